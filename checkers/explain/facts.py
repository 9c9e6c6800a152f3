"""The facts that make a finding wrong in any order of its operations: a sentence on what each of them
shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from wrackline.checkers.checks.explained_by import By, ExplainedBy, Spelt
from wrackline.checkers.explain.citations import TAKES, Cited, held, is_marker
from wrackline.checkers.explain.model import Finding, Operation
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, LIVENESS, Record
from wrackline.history.wording import number, partition_label, value_label

_GROUP_WORDS: Final = {
    "commit": "committed", "committed": "got the group's committed offsets:", "rebalance": "was given",
    "subscribe": "asked for", "assign": "took", "acknowledge": "acknowledged", "lag": "asked for the lag of",
    "delete": "deleted",
}  # fmt: skip
_SPELT: Final = 8


def facts_of(cited: Cited, finding: Finding, how: ExplainedBy) -> Iterator[str]:
    if how.by in (By.REGISTER, By.QUEUE):
        yield from _of_an_object(cited)
        return
    if cited.end is not None:
        where = partition_label(cited.op.topic, cited.op.partition)
        start = f", and {number(cited.start)} as its start" if cited.start is not None else ""
        yield f"{cited.name} returned {number(cited.end)} as the end offset of {where}{start}"
    if cited.op.f in _GROUP_WORDS:
        yield f"{cited.name}: {cited.op.who} {_GROUP_WORDS[cited.op.f]} {cited.op.what or 'nothing'}"
    if cited.op.f == LIVENESS or how.spelt is Spelt.WHOLE:
        yield f"{cited.name} shows {cited.op.what}"
    for record in cited.sent:
        if how.spelt is Spelt.ALL_SENT or _meant(record, finding):
            place, outcome = _place(cited.op, record), _outcome(record, cited.op)
            yield f"{cited.name} sent {value_label(record.value)} to {place}: {outcome}"
    if how.spelt is Spelt.AS_GIVEN and cited.read:
        yield _in_order(cited, finding)
    else:
        yield from _holdings(cited, finding, how)


def _meant(record: Record, finding: Finding) -> bool:
    return record.value == finding.value or (
        record.offset == finding.offset and record.partition == finding.partition
    )


def _place(op: Operation, record: Record) -> str:
    return partition_label(op.topic, record.partition)


def _holdings(cited: Cited, finding: Finding, how: ExplainedBy) -> Iterator[str]:
    there = [record for record in cited.read if _meant(record, finding)]
    lesser = [r for r in cited.read if how.spelt is Spelt.SMALLER_EPOCHS and _behind(r, there)]
    for record, times in Counter([*there, *lesser]).items():
        epoch = f", leader epoch {record.leader_epoch}" if record.leader_epoch >= 0 else ""
        again = f", {times} times" if times > 1 else ""
        where = f"offset {number(record.offset)} of {_place(cited.op, record)}"
        yield f"{cited.name} has {held(record)} at {where}{epoch}{again}"
    if cited.span is not None and not there and finding.offset is not None:
        yield from _absence(cited, finding.offset)


def _absence(cited: Cited, offset: int) -> Iterator[str]:
    assert cited.span is not None
    first, end = cited.span
    last = max((record.offset for record in cited.read), default=first - 1)
    where = partition_label(cited.op.topic, cited.op.partition)
    if offset < first:
        yield f"{cited.name} begins at offset {number(first)} of {where}"
    elif last < offset < end:
        yield f"{cited.name} ends at offset {number(last + 1)} of {where}"
    elif offset < end:
        nothing = f"{cited.name} has nothing at offset {number(offset)} of {where}"
        yield f"{nothing}, though it goes on to {number(last)}"


def _behind(record: Record, there: list[Record]) -> bool:
    """A smaller leader epoch at a larger offset."""
    return any(
        record.partition == one.partition and record.offset > one.offset
        and 0 <= record.leader_epoch < one.leader_epoch
        for one in there
    )  # fmt: skip


def _in_order(cited: Cited, finding: Finding) -> str:
    """Returns a sentence with the records that a poll gave around an offset, in the order in which it gave
    them."""
    given = sorted(cited.read, key=lambda r: abs(r.offset - (finding.offset or 0)))[:_SPELT]
    kept = [record for record in cited.read if record in given]
    spelt = ", ".join(f"{number(record.offset)} ({held(record)})" for record in kept)
    where = partition_label(finding.topic, finding.partition)
    around = f"around offset {number(finding.offset)} of {where}"
    return f"{cited.name}: {cited.op.who} was given, {around}, {spelt}"


def _of_an_object(cited: Cited) -> Iterator[str]:
    if cited.took_nothing:
        yield f"{cited.name} came back with nothing"
    for record in cited.sent:
        if not is_marker(record):
            yield f"{cited.name} put {value_label(record.value)}: {_outcome(record, cited.op)}"
    if cited.op.f in TAKES:
        for record in cited.read:
            yield f"{cited.name} by {cited.op.who} came back with {held(record)}"


def _outcome(record: Record, op: Operation) -> str:
    if record.offset >= 0:
        return f"acknowledged at offset {number(record.offset)}"
    if record.offset == ACKED_WITHOUT_OFFSET:
        return "acknowledged, without an offset"
    if record.offset == FAILED or op.outcome == "fail":
        return "certainly not appended"
    return "outcome unknown"
