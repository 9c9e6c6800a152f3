"""Registers and queues on partitions (workloads ``register`` and ``queue``): the sentences of findings.
wrackline.checkers.exact.register and wrackline.checkers.exact.queue decide, in pieces
(wrackline.checkers.engine.objects.values, wrackline.checkers.engine.objects.times)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.explained_by import By, ExplainedBy
from wrackline.checkers.checks.finding import MAX_OPERATIONS, Finding, known, least, seconds
from wrackline.checkers.checks.places import Places
from wrackline.checkers.checks.registry import check, mark
from wrackline.checkers.engine.facts import grouped
from wrackline.checkers.engine.object_facts import Call, Contradiction
from wrackline.checkers.engine.objects.values import QUEUE, REGISTER, RULES
from wrackline.checkers.exact.operations import NOTHING
from wrackline.checkers.exact.queue import Rule as QueueRule
from wrackline.checkers.exact.register import Rule as RegisterRule
from wrackline.checkers.inputs.table import rows_of
from wrackline.checkers.verdict.anomaly import Family, Promise

_TWO_VALUES = RULES.index((REGISTER, RegisterRule.TWO_AT_ONCE)), RULES.index((REGISTER, RegisterRule.INSIDE))


@dataclass(frozen=True, slots=True)
class WrongValue:
    """A value that is wrong, with its operations. Columns of those that are not there are None, and so are
    ``ret`` and ``ret_ns`` of one that did not return."""

    rule: RegisterRule | QueueRule
    contradicted: int
    """How many values it contradicts."""
    found: Contradiction[Any]

    @property
    def calls(self) -> list[Call[Any]]:
        """Lists its operations, each once."""
        return list(dict.fromkeys(call for call in self.found.calls if call.inv is not None))

    @property
    def indexes(self) -> list[int]:
        """The events of the witness: of each operation its completion, or its invocation where there is
        none."""
        return [call.inv if call.ret is None else call.ret for call in self.calls][:MAX_OPERATIONS]

    @property
    def begin_ns(self) -> int:
        """Gives the time of the witness's first event."""
        return min((call.inv_ns for call in self.calls), default=0) or 0

    @property
    def end_ns(self) -> int:
        """Gives the time of the witness's last event."""
        return max((known(call.ret_ns, call.inv_ns) or 0 for call in self.calls), default=0)


def wrong_values(at: Places, workload: str) -> Iterator[WrongValue]:
    """Each value that is wrong. What intervals of time know of one culprit is taken together; the first says
    by which of the two rules it is called."""
    result = at.contradictions
    result = result.take(np.isin(result.rule, [n for n, (of, _) in enumerate(RULES) if of == workload]))
    first, second = _TWO_VALUES
    family = np.where(result.rule == second, first, result.rule)
    order, starts, _ = grouped(family, result.key, result.order, result.rule)
    family, key = family[order], result.key[order]
    new = np.append(True, (np.diff(family) != 0) | (np.diff(key) != 0))[: len(order)]
    begins = np.flatnonzero(starts & new)
    sizes = np.diff(np.append(begins, len(order)))
    if not len(begins):
        return
    pieces = np.maximum.reduceat(result.pieces[order], begins)
    contradicted = np.add.reduceat(result.contradicted[order], begins)
    whole = np.flatnonzero(sizes >= pieces)
    for number, row in zip(whole.tolist(), rows_of(result.take(order[begins[whole]])), strict=True):
        yield WrongValue(RULES[row.rule][1], int(contradicted[number]), row)


def when(ns: int | None) -> str:
    """Spells a time: ``12.318 s``; ``the beginning`` for what was there before anything."""
    return seconds(ns) or "the beginning"


mark(REGISTER)  # set where they are found (wrackline.checkers.engine.objects.values.put_contradictions)


@check(
    "register-not-linearizable",
    Family.REGISTERS,
    "Knossos: register",
    "what clients wrote to and read from a partition as a register has no valid order",
    breaks=Promise.LINEARIZABLE_OBJECTS,
    marks=[REGISTER],
    explained_by=ExplainedBy(By.REGISTER),
)
def register_not_linearizable(at: Places) -> Iterator[Finding]:
    """One per culprit: a value that was read and should not have been, or was held when another must have
    been."""
    for error in wrong_values(at, REGISTER):
        others = error.contradicted - 1
        like_it = f" ({others:,} other values contradict it too)" if others > 0 else ""
        yield _finding(at, error, f"register: {_why_of_register(error, at.run)}{like_it}")


def _finding(at: Places, wrong: WrongValue, why: str) -> Finding:
    return at.finding(
        value=wrong.found.value,
        operations=wrong.indexes,
        where=str(wrong.rule),
        sentence=f"{at.log} is not a linearizable {why}",
        since_ns=wrong.begin_ns,
        until_ns=wrong.end_ns,
    )


def _why_of_register(wrong: WrongValue, run: AboutRun) -> str:
    # Slots: write, first to return and last to start of one zone, and those of another.
    result = wrong.found
    _, first, last, _, other_first, other_last, *_ = result.calls
    one, other = _value(run, result.value), _value(run, result.other)
    read = f"process {run.process(first.process)} read {one} at {when(first.ret_ns)}"
    ends = other_first.ret_ns, other_last.inv_ns
    known = [end for end in ends if end is not None]
    begin, end = seconds(least(*ends)), seconds(max(known, default=None))
    held = f"it held {one} at least from {when(first.ret_ns)} until {when(last.inv_ns)}, but "
    match wrong.rule:
        case RegisterRule.GARBAGE:
            return f"{read}, but nobody wrote it"
        case RegisterRule.ABORTED:
            return f"{read}, but its write by process {run.process(other_first.process)} had failed"
        case RegisterRule.FUTURE:
            return f"{read}, but its write was only invoked at {when(other_first.inv_ns)}"
        case RegisterRule.TWO_AT_ONCE:
            return f"{held}it must also have held {other} from {begin} to {end}"
        case RegisterRule.INSIDE:
            return f"{held}{other} was written and read between {begin} and {end}"
    raise ValueError(f"no sentence for {wrong.rule}")


def _value(run: AboutRun, value: int | None) -> str:
    return "nothing" if value == NOTHING else f"value {run.value(value)}"


mark(QUEUE)  # set where they are found (wrackline.checkers.engine.objects.values.put_contradictions)


@check(
    "queue-not-linearizable",
    Family.QUEUES,
    "Knossos: fifo-queue",
    "what clients enqueued in and dequeued from a partition as a FIFO queue has no valid order",
    breaks=Promise.LINEARIZABLE_OBJECTS,
    marks=[QUEUE],
    explained_by=ExplainedBy(By.QUEUE),
)
def queue_not_linearizable(at: Places) -> Iterator[Finding]:
    """One per culprit: a value that came out wrongly or never, or an empty answer that was not true."""
    for error in wrong_values(at, QUEUE):
        yield _finding(at, error, f"queue: {_why_of_queue(error, at.run)}")


def _why_of_queue(wrong: WrongValue, run: AboutRun) -> str:
    result, others = wrong.found, wrong.contradicted - 1
    # Slots: enqueue and dequeue of one value, and those of another; the answer "empty" first.
    put, got, other_put, other_got, *_ = result.calls
    value, other = run.value(result.value), run.value(result.other)

    def dequeued(call: Call[Any]) -> str:
        return f"process {run.process(call.process)} dequeued value {value} at {when(call.ret_ns)}"

    match wrong.rule:
        case QueueRule.GARBAGE:
            return f"{dequeued(got)}, but nobody had enqueued it"
        case QueueRule.TWICE:
            again = f"process {run.process(other_got.process)} dequeued it again at {when(other_got.ret_ns)}"
            return f"{dequeued(got)}, and {again}"
        case QueueRule.ABORTED:
            return f"{dequeued(got)}, but its enqueue had failed"
        case QueueRule.FUTURE:
            return f"{dequeued(got)}, but its enqueue was only invoked at {when(put.inv_ns)}"
        case QueueRule.LOST:
            return (
                f"value {value} had been enqueued by {when(put.ret_ns)} and was never dequeued, but value "
                f"{other}, which was enqueued later, was dequeued at {when(other_got.ret_ns)}"
            )
        case QueueRule.OVERTAKEN:
            several = f" (and before those of {others:,} other values)" if others else ""
            return (
                f"value {value} had been dequeued by {when(other_got.ret_ns)}, before the dequeue of value "
                f"{other} began at {when(got.inv_ns)}{several}, but value {other} had been enqueued by "
                f"{when(put.ret_ns)}, before the enqueue of value {value} began at {when(other_put.inv_ns)}"
            )
        case QueueRule.NOT_EMPTY:
            several = ", and other values were in it before that one was dequeued" if others else ""
            return (
                f"process {run.process(put.process)} found the queue empty at {when(put.ret_ns)}, but value "
                f"{other} had been in it since {when(got.ret_ns)}{several}"
            )
    raise ValueError(f"no sentence for {wrong.rule}")
