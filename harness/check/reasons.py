"""The reason why an object that was decided exactly is invalid, as a clause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wrackline.checkers.exact import log, queue, register
from wrackline.harness.check.results import shown

_OF_REGISTER: Final[Mapping[register.Rule, str]] = {
    register.Rule.GARBAGE: "{value} was read, and nobody wrote it",
    register.Rule.ABORTED: "{value} was read, and its write had failed",
    register.Rule.FUTURE: "{value} was read before its write began",
    register.Rule.TWO_AT_ONCE: "the register must have held {value} and {other} at one time",
    register.Rule.INSIDE: "{other} came and went while the register must have held {value} all the time",
}
_OF_QUEUE: Final[Mapping[queue.Rule, str]] = {
    queue.Rule.GARBAGE: "{value} was dequeued, and nobody enqueued it",
    queue.Rule.ABORTED: "{value} was dequeued, and its enqueue had failed",
    queue.Rule.TWICE: "{value} was dequeued twice",
    queue.Rule.FUTURE: "{value} was dequeued before its enqueue began",
    queue.Rule.OVERTAKEN: "{value} came out before {other}, and {other} had gone in earlier",
    queue.Rule.LOST: "{value} never came out, and {other}, enqueued later, did",
    queue.Rule.NOT_EMPTY: "a dequeue found the queue empty, and at every moment of it some value was inside",
}
_OF_LOG: Final[Mapping[log.Rule, str]] = {
    log.Rule.TWO_VALUES: "offset {place} has two values",
    log.Rule.TWO_OFFSETS: "value {place} is at two offsets",
    log.Rule.GARBAGE: "value {place} is in the log, and nobody sent it",
    log.Rule.ABORTED: "value {place} is in the log, and its send had failed",
    log.Rule.LATE: "offset {place} was filled after the log was known to have grown past it",
    log.Rule.HOLE: "offset {place} was shown empty by a read that covered it",
    log.Rule.UNFILLED: "offset {place} is filled, and no append is left that can have filled it",
    log.Rule.NO_PLACE: "value {place} was acknowledged without an offset, and every offset it could have is "
    "another value's",
}


def of_object(rule: register.Rule | queue.Rule, value: Any, other: Any) -> str:
    """``2 was read, and nobody wrote it``. ``other``: a value that it contradicts, where the rule has one."""
    told = _OF_REGISTER[rule] if isinstance(rule, register.Rule) else _OF_QUEUE[rule]
    return told.format(value=shown(value), other=shown(other))


def of_log(rule: log.Rule, place: Any) -> str:
    """``place``: the value, or the offset, that the rule is about."""
    return _OF_LOG[rule].format(place=place)
