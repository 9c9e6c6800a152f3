"""A history held against the rules of linearizability without the plan: the exact rules in numpy
(wrackline.checkers.exact.log), partition by partition, on events that fit in memory. It is the other
witness of the judge's checks, and quick enough to go over thousands of made histories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from wrackline.checkers.exact.log import NEVER, NOWHERE, Append, End, Read, Rule, Violation, check_log
from wrackline.checkers.inputs.row_groups import ROWS_OF_MEMBERS
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, Event, Record, Type
from wrackline.proving.model.columns import TOPIC

RULES = frozenset({Rule.TWO_VALUES, Rule.LATE, Rule.HOLE, Rule.UNFILLED})
"""What makes a partition not linearizable; the other rules of ``check_log`` are anomalies of their own."""

_OF_GROUPS = (*ROWS_OF_MEMBERS, "subscribe", "commit", "committed")


@dataclass
class _Partition:
    appends: list[Append] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    final_reads: list[Read] = field(default_factory=list)
    not_reported: dict[int, int] = field(default_factory=dict)
    """Value -> when its send was acknowledged without an offset. Where it is then the final read tells."""
    final: tuple[int, int] | None = None
    """(log start, end) of a complete final read."""


def violations(
    events: Iterable[Event], partitions: int, *, idempotence: bool, contiguous: bool = True
) -> list[list[Violation]]:
    """Returns for each partition of the model's topic the violations of ``RULES``. The events are in order
    of ``index``. Where offsets are not ``contiguous``, one without a record proves nothing."""
    seen = [_Partition() for _ in range(partitions)]
    open_: dict[int, Event] = {}
    for event in events:
        if event.process < 0 or event.f in _OF_GROUPS or event.topic not in (None, TOPIC):
            continue
        if event.type is Type.INVOKE:
            if event.process in open_:
                _sent(seen, open_.pop(event.process), None)
            open_[event.process] = event
        else:
            _completed(seen, open_.pop(event.process), event)
    for pending in open_.values():
        _sent(seen, pending, None)
    return [_verdict(one, idempotence, contiguous) for one in seen]


def _completed(seen: Sequence[_Partition], invoked: Event, event: Event) -> None:
    if event.f == "send":
        _sent(seen, invoked, event)
    elif event.type is not Type.OK or event.f == "assign":
        return
    elif event.f == "poll":
        for record in event.records:
            seen[record.partition].reads.append(Read(event.index, record.offset, record.value))
    elif event.partition is not None:
        mine = seen[event.partition]
        if event.f == "end":
            mine.ends.append(End(invoked.index, event.index, event.high_watermark or 0))
        elif event.f == "drain":
            mine.final_reads += [Read(event.index, r.offset, r.value) for r in event.records]
            if (event.extra or {}).get("complete"):
                mine.final = (event.offset or 0, event.high_watermark or 0)


def _sent(seen: Sequence[_Partition], invoked: Event, completed: Event | None) -> None:
    if invoked.f != "send":
        return
    reported: dict[int, Record] = {r.value: r for r in completed.records} if completed is not None else {}
    for record in invoked.records:
        offset = reported[record.value].offset if record.value in reported else NOWHERE
        failed = offset == FAILED or (completed is not None and completed.type is Type.FAIL and offset < 0)
        ret = completed.index if completed is not None and offset >= 0 else NEVER
        one = Append(record.value, invoked.index, ret, max(offset, NOWHERE), failed)
        seen[record.partition].appends.append(one)
        if completed is not None and offset == ACKED_WITHOUT_OFFSET:
            seen[record.partition].not_reported[record.value] = completed.index


def _verdict(one: _Partition, idempotence: bool, contiguous: bool) -> list[Violation]:
    every = [*one.reads, *one.final_reads]
    known = [read for read in every if read.value >= 0]
    result = check_log(one.appends, known, one.ends, holes=False)
    if one.not_reported:
        result += check_log(*_placed(one), [], holes=False)
    if not contiguous:
        return [violation for violation in result if violation.rule in RULES]
    if one.final is not None:
        result += [v for v in check_log([], one.final_reads, [], covered=one.final) if v.rule is Rule.HOLE]
    elif idempotence:
        result += [v for v in check_log(one.appends, every, one.ends) if v.rule is Rule.UNFILLED]
    return [violation for violation in result if violation.rule in RULES]


def _placed(one: _Partition) -> tuple[list[Append], list[Read]]:
    """The records of the final read alone, those acknowledged without an offset where it has them."""
    at = {read.value: read.offset for read in sorted(one.final_reads, key=lambda read: -read.offset)}
    kept = [read for read in one.final_reads if read.value >= 0 and at[read.value] == read.offset]
    appends = [
        replace(append, offset=at[append.value], ret=one.not_reported.get(append.value, append.ret))
        for append in one.appends
        if append.value in at
        and (append.value in one.not_reported or append.offset in (NOWHERE, at[append.value]))
    ]
    return appends, kept
