"""Where a finding is wrong in any order of its operations: a sentence on what each of them shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from wrackline.harness.report.objects import QUEUE, REGISTER
from wrackline.harness.report.read.files import Finding
from wrackline.harness.report.read.operations import Operation
from wrackline.harness.report.testimony import TAKES, Witness, held, is_marker
from wrackline.harness.report.text import number, partition_label, value_label
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, Record

_IN_ORDER: Final = ("poll-skip", "poll-rewind")
_GROUP_WORDS: Final = {
    "commit": "committed", "committed": "got the group's committed offsets:", "rebalance": "was given",
    "subscribe": "asked for", "assign": "took",
}  # fmt: skip
_SPELT: Final = 8


def facts_of(witness: Witness, finding: Finding) -> Iterator[str]:
    if finding.anomaly in (REGISTER, QUEUE):
        yield from _of_an_object(witness)
        return
    if witness.end is not None:
        where = partition_label(witness.op.topic, witness.op.partition)
        yield f"{witness.name} returned {number(witness.end)} as the end offset of {where}"
    if witness.op.f in _GROUP_WORDS:
        yield f"{witness.name}: {witness.op.who} {_GROUP_WORDS[witness.op.f]} {witness.op.what or 'nothing'}"
    for record in witness.sent:
        if finding.anomaly == "batch-order" or _meant(record, finding):
            place, outcome = _place(witness.op, record), _outcome(record, witness.op)
            yield f"{witness.name} sent {value_label(record.value)} to {place}: {outcome}"
    if finding.anomaly in _IN_ORDER and witness.read:
        yield _in_order(witness, finding)
    else:
        yield from _holdings(witness, finding)


def _meant(record: Record, finding: Finding) -> bool:
    return record.value == finding.value or (
        record.offset == finding.offset and record.partition == finding.partition
    )


def _place(op: Operation, record: Record) -> str:
    return partition_label(op.topic, record.partition)


def _holdings(witness: Witness, finding: Finding) -> Iterator[str]:
    there = [record for record in witness.read if _meant(record, finding)]
    lesser = [r for r in witness.read if finding.anomaly == "epoch-order" and _behind(r, there)]
    for record, times in Counter([*there, *lesser]).items():
        epoch = f", leader epoch {record.leader_epoch}" if record.leader_epoch >= 0 else ""
        again = f", {times} times" if times > 1 else ""
        where = f"offset {number(record.offset)} of {_place(witness.op, record)}"
        yield f"{witness.name} has {held(record)} at {where}{epoch}{again}"
    if witness.span is not None and not there and finding.offset is not None:
        yield from _absence(witness, finding.offset)


def _absence(witness: Witness, offset: int) -> Iterator[str]:
    assert witness.span is not None
    first, end = witness.span
    last = max((record.offset for record in witness.read), default=first - 1)
    where = partition_label(witness.op.topic, witness.op.partition)
    if offset < first:
        yield f"{witness.name} begins at offset {number(first)} of {where}"
    elif last < offset < end:
        yield f"{witness.name} ends at offset {number(last + 1)} of {where}"
    elif offset < end:
        nothing = f"{witness.name} has nothing at offset {number(offset)} of {where}"
        yield f"{nothing}, though it goes on to {number(last)}"


def _behind(record: Record, there: list[Record]) -> bool:
    """A smaller leader epoch at a larger offset."""
    return any(
        record.partition == one.partition and record.offset > one.offset
        and 0 <= record.leader_epoch < one.leader_epoch
        for one in there
    )  # fmt: skip


def _in_order(witness: Witness, finding: Finding) -> str:
    """What a poll gave around an offset, in the order in which it gave it."""
    given = sorted(witness.read, key=lambda r: abs(r.offset - (finding.offset or 0)))[:_SPELT]
    kept = [record for record in witness.read if record in given]
    spelt = ", ".join(f"{number(record.offset)} ({held(record)})" for record in kept)
    where = partition_label(finding.topic, finding.partition)
    around = f"around offset {number(finding.offset)} of {where}"
    return f"{witness.name}: {witness.op.who} was given, {around}, {spelt}"


def _of_an_object(witness: Witness) -> Iterator[str]:
    if witness.took_nothing:
        yield f"{witness.name} came back with nothing"
    for record in witness.sent:
        if not is_marker(record):
            yield f"{witness.name} put {value_label(record.value)}: {_outcome(record, witness.op)}"
    if witness.op.f in TAKES:
        for record in witness.read:
            yield f"{witness.name} by {witness.op.who} came back with {held(record)}"


def _outcome(record: Record, op: Operation) -> str:
    if record.offset >= 0:
        return f"acknowledged at offset {number(record.offset)}"
    if record.offset == ACKED_WITHOUT_OFFSET:
        return "acknowledged, without an offset"
    if record.offset == FAILED or op.outcome == "fail":
        return "certainly not appended"
    return "outcome unknown"
