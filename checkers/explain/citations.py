"""The evidence in each operation that a finding cites: the records that it sent or was given, and the
offsets that it covered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wrackline.checkers.checks.explained_by import ExplainedBy
from wrackline.checkers.explain.model import Finding, Operation
from wrackline.history.excerpts import Excerpt
from wrackline.history.model import CORRUPT, FOREIGN, MARKER, POLLS, Event, Record, Type, parts_of
from wrackline.history.wording import value_label

READS: Final = (*POLLS, "drain", "replica")
TAKES: Final = ("read", "dequeue")
EVERYTHING: Final = 1 << 62
_RECORDS: Final = 12
"""Records of one operation that are looked at."""


@dataclass(frozen=True, slots=True)
class Cited:
    """An operation that a finding cites, and what it shows of the finding's partition."""

    number: int
    op: Operation
    invoked: int | None
    """History index of the invocation; None where it is not known."""
    completed: int | None
    """History index of the completion, if it was ``ok``."""
    sent: tuple[Record, ...] = ()
    read: tuple[Record, ...] = ()
    """The records that it was given near the finding's offset, or of its value."""
    span: tuple[int, int] | None = None
    """The offsets [first, end) that a read covered; None: not known."""
    end: int | None = None
    """The end offset that it returned."""
    start: int | None = None
    """The log start that it returned with that."""
    took_nothing: bool = False
    """Whether it is a read of an empty register or a dequeue of an empty queue."""

    @property
    def placed(self) -> tuple[Record, ...]:
        """The records that it sent whose offsets are known."""
        return tuple(record for record in self.sent if record.offset >= 0)

    @property
    def name(self) -> str:
        """``the send (2)``; the number is that in the table and the drawing."""
        return f"the {self.op.name} ({self.number})"


def cited_operation(
    number: int,
    op: Operation,
    finding: Finding,
    how: ExplainedBy,
    rows: Mapping[int, Excerpt],
    records: Mapping[int, Sequence[Record]],
    reaching: Collection[int] = (),
) -> Cited:
    """``rows``: the cited events by index; ``records``: of those, the records near the finding, by index;
    ``reaching``: indexes of the rows of final read and replicas that were the first to come to its offset or
    past it."""
    cited = [rows[index].event for index in op.indexes if index in rows]
    ends = [event for event in cited if event.type != Type.INVOKE]
    begins = [event for event in cited if event.type == Type.INVOKE]
    row = (ends or begins)[-1] if cited else None
    if row is None:
        return Cited(number, op, None, None)
    ok = row.type == Type.OK
    near = _near(finding, how, records.get(row.index, ()))
    span = _span(row, rows[row.index]) if row.f in READS and ok else None
    if span is not None and finding.offset is not None and row.index in reaching:
        span = min(span[0], finding.offset), span[1]  # what lies before its first record was missing too
    return Cited(
        number,
        op,
        begins[0].index if begins else None,
        row.index if ok else None,
        sent=near if row.f == "send" else (),
        read=near if row.f in (*READS, *TAKES) and ok else (),
        span=span,
        end=row.high_watermark if ok and _shows_an_end(row, how) else None,
        start=row.offset if ok and row.f == "end" else None,
        took_nothing=ok and row.f in TAKES and not row.records,
    )


def _shows_an_end(row: Event, how: ExplainedBy) -> bool:
    """Tells whether the end offset of this row matters: always that of an ``end``, and that of another
    read where the finding is about it."""
    return row.f == "end" or (how.ends and row.f != "replica")


def _near(finding: Finding, how: ExplainedBy, records: Sequence[Record]) -> tuple[Record, ...]:
    """The records that matter, in the order in which they were sent or given."""
    there = [
        record
        for record in records
        if finding.partition is None
        or how.transactions
        or record.partition == finding.partition
        or (record.value >= 0 and record.value == finding.value)
    ]
    least = sorted(range(len(there)), key=lambda at: not _meant(there[at], finding))[:_RECORDS]
    return tuple(there[at] for at in sorted(least))


def _meant(record: Record, finding: Finding) -> bool:
    return (record.value >= 0 and record.value == finding.value) or record.offset == finding.offset


def _span(event: Event, excerpt: Excerpt) -> tuple[int, int] | None:
    """The offsets [first, end) of its partition that a row of a final read or of a replica's log covers."""
    own = [bounds for bounds in excerpt.ranges if bounds[0] == event.partition]
    if event.f in POLLS or event.partition is None:
        return None
    first = own[0][2] if own else (event.offset or 0)
    last = own[0][3] + 1 if own else first
    if (event.extra or {}).get("complete") and event.high_watermark is not None:
        last = EVERYTHING  # the last row: nothing is behind it
    return first, last


def is_marker(record: Record) -> bool:
    """Tells whether the record was written by a read, to see the log's end, and not by a client of the
    register or queue."""
    return record.value >= 0 and parts_of(record.value)[2] == MARKER


def held(record: Record) -> str:
    """The name of a record that was read, for a sentence."""
    special: dict[int, str] = {
        CORRUPT: "a record whose checksum is wrong",
        FOREIGN: "a record of another run",
    }
    return special.get(record.value) or value_label(record.value)
