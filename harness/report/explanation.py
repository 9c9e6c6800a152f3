"""Why a finding is a contradiction: as data first, then one sentence per edge.

The operations a finding cites are the vertices. An edge says that one came before another: in *time* (it had completed when
the other was invoked), in the *log* (its record lies at the smaller offset), because it was *seen* (the other read its
record, or was told an end beyond it), or because it was *unseen* (it read past where the other's record is, or was told a smaller
end). Each kind holds in every correct order, so a cycle of edges is a proof that there is none; the shortest is shown. Where there is
no cycle (two values at one offset need no order to be wrong) each operation says what it knows of the offset.

At most eight operations a finding (``checkers.findings``), so nothing here grows with the history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import permutations
from typing import Any, Final, Literal

from harness.history.model import ACKED_WITHOUT_OFFSET, FAILED, Record, Type
from harness.report.excerpts import Excerpt
from harness.report.files import Finding
from harness.report.operations import Operation
from harness.report.text import number, partition_label, seconds, value_label

Kind = Literal["time", "log", "seen", "unseen"]
_READS: Final = ("poll", "drain", "replica")
_FACTS: Final = 8
_EVERYTHING: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Edge:
    """``before`` and ``after`` are numbers of operations, from 1, in the order of ``Explanation.operations``."""

    before: int
    after: int
    kind: Kind
    sentence: str


@dataclass(frozen=True, slots=True)
class Explanation:
    operations: tuple[Operation, ...]
    edges: tuple[Edge, ...]
    """A cycle: each edge's ``after`` is the next one's ``before``, the last one's the first one's. Empty: none found."""
    facts: tuple[str, ...]
    """What each operation knows of the offset, where there is no cycle."""

    def plain(self) -> dict[str, Any]:
        """For ``explanations.json``."""
        return {
            "operations": [asdict(op) for op in self.operations],
            "edges": [asdict(edge) for edge in self.edges],
            "facts": list(self.facts),
        }


@dataclass(frozen=True, slots=True)
class Witness:
    """An operation and what it says of the finding's partition."""

    number: int
    op: Operation
    invoked: int | None
    """History index of the invocation; None when the finding cites the completion alone."""
    completed: int | None
    sent: tuple[Record, ...] = ()
    read: tuple[Record, ...] = ()
    """Those near the finding's offset or of its value."""
    span: tuple[int, int] | None = None
    """The offsets [first, end) that a read covered; None: not known."""
    end: int | None = None
    """The end offset it was told."""

    @property
    def placed(self) -> tuple[Record, ...]:
        """The records it put at a known offset."""
        return tuple(record for record in self.sent if record.offset >= 0)


def explanation(
    finding: Finding,
    operations: Sequence[Operation],
    rows: Mapping[int, Excerpt],
    records: Mapping[int, Sequence[Record]],
) -> Explanation:
    """``rows``: the cited events by index; ``records``: of those, the records near the finding, by index."""
    witnesses = [_witness(number, op, finding, rows, records) for number, op in enumerate(operations, 1)]
    edges = [edge for a, b in permutations(witnesses, 2) for edge in _edges(a, b, finding)]
    cycle = _shortest_cycle(edges, len(witnesses))
    facts = () if cycle else tuple(fact for w in witnesses for fact in _facts(w, finding))[:_FACTS]
    return Explanation(tuple(operations), tuple(cycle), facts)


def _witness(
    number: int,
    op: Operation,
    finding: Finding,
    rows: Mapping[int, Excerpt],
    records: Mapping[int, Sequence[Record]],
) -> Witness:
    cited = [rows[index].event for index in op.indexes if index in rows]
    ends = [event for event in cited if event.type != Type.INVOKE]
    begins = [event for event in cited if event.type == Type.INVOKE]
    row = (ends or begins)[-1] if cited else None
    if row is None:
        return Witness(number, op, None, None)
    near = tuple(
        record
        for record in records.get(row.index, ())
        if finding.partition is None or record.partition == finding.partition
    )
    ended = row.index if row.type == Type.OK else None
    span = _span(row, rows[row.index]) if row.f in _READS and row.type == Type.OK else None
    return Witness(
        number,
        op,
        begins[0].index if begins else None,
        ended,
        sent=near if row.f == "send" else (),
        read=near if row.f in _READS else (),
        span=span,
        end=row.high_watermark if row.f == "end" and row.type == Type.OK else None,
    )


def _span(event: Any, excerpt: Excerpt) -> tuple[int, int] | None:
    """Which offsets of its partition a chunk of a final read or of a replica's log covers."""
    own = [bounds for bounds in excerpt.ranges if bounds[0] == event.partition]
    if event.f == "poll" or event.partition is None:
        return None
    first = own[0][2] if own else (event.offset or 0)
    last = own[0][3] + 1 if own else first
    if (event.extra or {}).get("complete") and event.high_watermark is not None:
        last = _EVERYTHING  # the last chunk: nothing is behind it
    return first, last


def _edges(a: Witness, b: Witness, finding: Finding) -> Iterator[Edge]:
    if a.completed is not None and b.invoked is not None and a.completed < b.invoked:
        yield Edge(
            a.number,
            b.number,
            "time",
            f"{_name(a)} had completed at {seconds(a.op.end_ns)}, before {_name(b)} was invoked at "
            f"{seconds(b.op.begin_ns)}",
        )
    yield from _log_edges(a, b, finding)
    yield from _seen_edges(a, b, finding)
    yield from _unseen_edges(a, b, finding)


def _log_edges(a: Witness, b: Witness, finding: Finding) -> Iterator[Edge]:
    for first in a.placed:
        for second in b.placed:
            if first.partition == second.partition and first.offset < second.offset:
                yield Edge(
                    a.number,
                    b.number,
                    "log",
                    f"{_name(a)} put {value_label(first.value)} at offset {number(first.offset)} of "
                    f"{partition_label(finding.topic, first.partition)}, {_name(b)} put {value_label(second.value)} behind "
                    f"it at {number(second.offset)}",
                )
                return


def _seen_edges(a: Witness, b: Witness, finding: Finding) -> Iterator[Edge]:
    for sent in a.sent:
        if any(read.value == sent.value for read in b.read):
            yield Edge(
                a.number,
                b.number,
                "seen",
                f"{_name(b)} was given {value_label(sent.value)}, which {_name(a)} sent",
            )
            return
        if b.end is not None and 0 <= sent.offset < b.end:
            yield Edge(
                a.number,
                b.number,
                "seen",
                f"{_name(b)} was told that {partition_label(finding.topic, finding.partition)} ends at {number(b.end)}, "
                f"past {value_label(sent.value)} at {number(sent.offset)}, which {_name(a)} sent",
            )
            return


def _unseen_edges(a: Witness, b: Witness, finding: Finding) -> Iterator[Edge]:
    """``a`` does not know what ``b`` did or saw, though it would if it came later."""
    where = partition_label(finding.topic, finding.partition)
    if a.end is not None:
        for record in (*b.placed, *b.read):
            if record.offset >= a.end:
                verb = "sent" if record in b.sent else "was given"
                yield Edge(
                    a.number,
                    b.number,
                    "unseen",
                    f"{_name(a)} was told that {where} ends at {number(a.end)}, not past {number(record.offset)}, where "
                    f"{_name(b)} {verb} {value_label(record.value)}",
                )
                return
        if b.end is not None and a.end < b.end:
            yield Edge(
                a.number,
                b.number,
                "unseen",
                f"{_name(a)} was told that {where} ends at {number(a.end)}, less than the {number(b.end)} that {_name(b)} "
                "was told",
            )
    if a.span is not None:
        for sent in b.sent:
            if _covers(a, sent) and not any(read.value == sent.value for read in a.read):
                yield Edge(
                    a.number,
                    b.number,
                    "unseen",
                    f"{_name(a)} read {where} and does not hold {value_label(sent.value)}, which {_name(b)} sent",
                )
                return


def _covers(a: Witness, sent: Record) -> bool:
    """Does the read cover where the record must be? Of a record without offset nobody can tell."""
    assert a.span is not None
    first, end = a.span
    return first <= sent.offset < end


def _name(witness: Witness) -> str:
    """``send 2``: what stands beside its number in the table and the drawing."""
    names = {
        "end": "the end-offset request",
        "drain": "the final read",
        "replica": f"the log of {witness.op.node}",
    }
    return f"{names.get(witness.op.f, 'the ' + witness.op.f)} ({witness.number})"


def _shortest_cycle(edges: Sequence[Edge], vertices: int) -> list[Edge]:
    leaving: dict[int, list[Edge]] = {}
    for edge in edges:
        leaving.setdefault(edge.before, []).append(edge)
    best: list[Edge] = []
    for start in range(1, vertices + 1):
        found = _way_back(start, leaving)
        if found and (not best or len(found) < len(best)):
            best = found
    return best


def _way_back(start: int, leaving: Mapping[int, Sequence[Edge]]) -> list[Edge]:
    """The shortest way from an operation to itself, by breadth."""
    reached: dict[int, list[Edge]] = {}
    waiting: deque[tuple[int, list[Edge]]] = deque([(start, [])])
    while waiting:
        at, way = waiting.popleft()
        for edge in leaving.get(at, ()):
            if edge.after == start:
                return [*way, edge]
            if edge.after not in reached:
                reached[edge.after] = [*way, edge]
                waiting.append((edge.after, reached[edge.after]))
    return []


def _facts(witness: Witness, finding: Finding) -> Iterator[str]:
    name = _name(witness)
    if witness.end is not None:
        yield f"{name} was told the end {number(witness.end)}"
    for record in witness.sent:
        if record.value == finding.value or record.offset == finding.offset:
            yield f"{name} sent {value_label(record.value)}: {_outcome(record, witness.op)}"
    there = [
        record for record in witness.read if record.offset == finding.offset or record.value == finding.value
    ]
    for record in there:
        epoch = f", leader epoch {record.leader_epoch}" if record.leader_epoch >= 0 else ""
        yield f"{name} holds {value_label(record.value)} at offset {number(record.offset)}{epoch}"
    if witness.op.f == "poll" and not there and finding.value is None:
        yield f"{name} was given {witness.op.what}"
    if witness.span is not None and not there and finding.offset is not None:
        first, end = witness.span
        if first <= finding.offset < end:
            yield f"{name} holds nothing at offset {number(finding.offset)}"


def _outcome(record: Record, op: Operation) -> str:
    if record.offset >= 0:
        return f"acknowledged at offset {number(record.offset)}"
    if record.offset == ACKED_WITHOUT_OFFSET:
        return "acknowledged, without an offset"
    if record.offset == FAILED or op.outcome == "fail":
        return "certainly not appended"
    return "of unknown outcome"
