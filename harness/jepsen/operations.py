"""The operations of a history, as all deciders of ``wrackline check`` read them: each invocation with its
completion."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wrackline.checkers.exact.operations import NEVER
from wrackline.checkers.models.protocol import Operation, Outcome
from wrackline.history.jepsen.ops import Op, read_in_order
from wrackline.history.jepsen.text import TextError
from wrackline.history.model import Type
from wrackline.values import spelt

_MORE = ("link", "position", "error")
"""What some deciders read beside the value."""
_OUTCOMES = {Type.OK: Outcome.OK, Type.FAIL: Outcome.FAIL, Type.INFO: Outcome.INFO}


@dataclass(frozen=True, slots=True)
class Operations:
    """``done``: the clients' operations, in the order of their invocations."""

    done: Sequence[Operation]
    left_out: int = 0
    """Events of Jepsen's own processes, such as its nemesis."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """The operations of each key, and those that have none."""

    of: dict[Hashable, list[Operation]] = field(default_factory=dict)
    without: list[Operation] = field(default_factory=list)


def read_operations(path: Path, progress: Callable[[int], None] = lambda _done: None) -> Operations:
    """The operations of a file. Raises TextError, OSError."""
    collects = gc.isenabled()
    gc.disable()  # there are no cycles in what is read, and it would look through all of it again and again
    try:
        return read_in_order(path, paired, progress)
    finally:
        if collects:
            gc.freeze()  # ... also later, while it is judged
            gc.enable()


def paired(events: Iterable[Op]) -> Operations:
    """Invocations with their completions. ``inv`` and ``ret`` count the events. Raises TextError."""
    done: list[Operation | None] = []
    begun: dict[int, tuple[int, int, Op]] = {}
    left_out = 0
    for order, event in enumerate(events, 1):
        process = event.process
        if process is None:
            left_out += 1
        elif event.type is Type.INVOKE:
            if process in begun:
                _, _, first = begun[process]
                raise TextError(
                    f"operation {event.at}: process {process} invokes again before operation {first.at} "
                    "completed"
                )
            begun[process] = len(done), order, event
            done.append(None)
        elif process in begun:
            place, inv, first = begun.pop(process)
            done[place] = _completed(first, inv, event, order)
        else:
            raise TextError(f"operation {event.at}: process {process} completes what it did not invoke")
    for place, inv, first in begun.values():
        done[place] = Operation(
            first.process or 0,
            first.f,
            first.value,
            None,
            inv,
            None,
            Outcome.INFO,
            first.at,
            None,
            first.time_ns,
        )
    return Operations([one for one in done if one is not None], left_out)


def _completed(first: Op, inv: int, event: Op, order: int) -> Operation:
    if event.f != first.f:
        raise TextError(
            f"operation {event.at}: process {event.process} completes :{event.f}, and what it invoked is "
            f":{first.f} (operation {first.at})"
        )
    outcome = _OUTCOMES[event.type]
    return Operation(
        first.process or 0,
        first.f,
        first.value,
        event.value if outcome is Outcome.OK else None,
        inv,
        None if outcome is Outcome.INFO else order,
        outcome,
        first.at,
        event.at,
        first.time_ns,
        event.time_ns,
        more={key: event.said[key] for key in _MORE if key in event.said},
    )


def by_key(operations: Iterable[Operation]) -> Keyed:
    """Splits operations by key, where values are [key value]. The key of a completion that lost it, as an
    exception in a client does, is that of its invocation."""
    found = Keyed()
    for one in operations:
        asked, told = as_pair(one.argument), as_pair(one.result)
        if asked is None and told is None:
            found.without.append(one)
            continue
        key = (asked or told or (None, None))[0]
        if one.outcome is Outcome.OK and told is None:
            found.without.append(one)
            continue
        found.of.setdefault(key, []).append(
            replace(
                one, key=key, argument=asked[1] if asked else one.argument, result=told[1] if told else None
            )
        )
    return found


def as_pair(value: Any) -> tuple[Any, Any] | None:
    """Returns a value that is [key value], else None."""
    return value if isinstance(value, tuple) and len(value) == 2 else None


def without_key(one: Operation) -> str:
    """Returns what is wrong with an operation that has no key."""
    return f"operation {one.at}: with --independent a value is [key value], not {spelt(one.value):.40}"


def completion_of(one: Operation) -> int:
    """Returns the place of an operation's completion; NEVER where nobody knows of one."""
    return NEVER if one.ret is None else one.ret
