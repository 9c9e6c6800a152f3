"""The edges of an explanation (one operation came before another), and the shortest cycle of them.

One operation came before another in *time* (it had completed when the other was invoked), in the *log* (its
record lies at the smaller offset), because it was *seen* (the other read its record, or returned an end
offset beyond it), because it did not see the other (*unseen*: it read past the offset of the other's record,
or returned a smaller end offset), or *with* it (both belong to one transaction). Each of these holds in every
correct order, so a cycle of edges proves that there is no correct order.

Records of one send are appended one by one, so a path that reaches a send by one record leaves it by that
record, or by one behind it in the log. A transaction is whole: a path may leave it by any of its records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Literal

from wrackline.harness.report.read.files import Finding
from wrackline.harness.report.testimony import ACROSS_PARTITIONS, EVERYTHING, Witness, held
from wrackline.harness.report.text import apart, number, partition_label, value_label
from wrackline.history.model import ACKED_WITHOUT_OFFSET, UNKNOWN, Record

Kind = Literal["time", "log", "seen", "unseen", "with", "held", "queue"]


@dataclass(frozen=True, slots=True)
class Edge:
    """``before`` and ``after`` are numbers of operations, from 1, in the order of
    ``Explanation.operations``."""

    before: int
    after: int
    kind: Kind
    sentence: str
    leaves: Record | None = None
    """The record of ``before`` that the edge is about; None when it is about the whole operation."""
    reaches: Record | None = None
    """The record of ``after`` that the edge is about; None when it is about the whole operation."""

    @property
    def conclusion(self) -> str:
        """What follows from the sentence, as ``2 before 1``."""
        verb = "and" if self.kind in ("with", "held") else "before"
        return f"{self.before} {verb} {self.after}" + (" belong together" if verb == "and" else "")

    def plain(self) -> dict[str, Any]:
        return {"before": self.before, "after": self.after, "kind": self.kind, "sentence": self.sentence}


def edges_among(witnesses: Sequence[Witness], finding: Finding) -> list[Edge]:
    """All edges, those about the finding's own record first: of several cycles of one length theirs is
    shown."""
    if finding.anomaly == "vanished-read":  # the ack may be missing too, but that is another finding
        witnesses = [w for w in witnesses if w.op.f != "send"] or witnesses
    witnesses = _located(witnesses)
    found = [edge for a, b in permutations(witnesses, 2) for edge in _edges(a, b, finding)]
    return sorted(found, key=lambda edge: not _about(edge, finding))


def _located(witnesses: Sequence[Witness]) -> list[Witness]:
    """The same operations; where a send was acknowledged without an offset, that of the final read is
    used."""
    at = {(r.partition, r.value): r for w in witnesses if w.op.f == "drain" for r in w.read if r.value >= 0}

    def placed(sent: Record) -> Record:
        there = at.get((sent.partition, sent.value))
        unknown = sent.offset in (UNKNOWN, ACKED_WITHOUT_OFFSET)
        return sent._replace(offset=there.offset) if there is not None and unknown else sent

    return [replace(w, sent=tuple(placed(record) for record in w.sent)) for w in witnesses]


def _about(edge: Edge, finding: Finding) -> bool:
    records = [record for record in (edge.leaves, edge.reaches) if record is not None]
    return any(r.value == finding.value or r.offset == finding.offset for r in records)


def in_time(a: Witness, b: Witness) -> Edge | None:
    """Had ``a`` completed when ``b`` was invoked?"""
    if a.completed is None or b.invoked is None or a.completed > b.invoked:
        return None
    done, begun = apart(a.op.end_ns, b.op.begin_ns)
    sentence = f"{a.name} had completed at {done}, before {b.name} was invoked at {begun}"
    if done == begun:
        sentence = f"{a.name} had completed before {b.name} was invoked, both at {done}"
    return Edge(a.number, b.number, "time", sentence)


def _edges(a: Witness, b: Witness, finding: Finding) -> Iterator[Edge]:
    timed = in_time(a, b)
    if timed is not None:
        yield timed
    if a.op.txn is not None and a.op.txn == b.op.txn:
        sentence = f"{a.name} and {b.name} belong to one transaction ({a.op.txn})"
        yield Edge(a.number, b.number, "with", sentence)
    yield from _log_edges(a, b, finding)
    yield from _seen_edges(a, b, finding)
    yield from _unseen_edges(a, b, finding)


def _log_edges(a: Witness, b: Witness, finding: Finding) -> Iterator[Edge]:
    for first in a.placed:
        for second in b.placed:
            if first.partition == second.partition and first.offset < second.offset:
                where = partition_label(finding.topic, first.partition)
                yield Edge(
                    a.number,
                    b.number,
                    "log",
                    f"{a.name} put {value_label(first.value)} at offset {number(first.offset)} of {where}, "
                    f"{b.name} put {value_label(second.value)} behind it at {number(second.offset)}",
                    first,
                    second,
                )


def _seen_edges(a: Witness, b: Witness, finding: Finding) -> Iterator[Edge]:
    for sent in a.sent:
        what = f"{value_label(sent.value)}, which {a.name} sent"
        if any(read.value == sent.value for read in b.read):
            yield Edge(a.number, b.number, "seen", f"{b.name} was given {what}", leaves=sent)
        elif b.end is not None and 0 <= sent.offset < b.end and sent.partition == finding.partition:
            where = partition_label(finding.topic, finding.partition)
            sentence = (
                f"{b.name} returned {number(b.end)} as the end offset of {where}, "
                f"so offset {number(sent.offset)} was taken, and there lies {what}"
            )
            yield Edge(a.number, b.number, "seen", sentence, leaves=sent)


def _unseen_edges(a: Witness, b: Witness, finding: Finding) -> Iterator[Edge]:
    """``a`` does not show what ``b`` did or saw, though it would if it came later."""
    where = partition_label(finding.topic, finding.partition)
    if a.end is not None:
        returned = f"{a.name} returned {number(a.end)} as the end offset of {where}"
        beyond = [r for r in (*b.placed, *b.read) if r.offset >= a.end and r.partition == finding.partition]
        for record in sorted(beyond, key=lambda record: (record.offset != finding.offset, -record.offset)):
            verb = "put" if record in b.sent else "was given"
            yield Edge(
                a.number,
                b.number,
                "unseen",
                f"{returned}, which leaves out offset {number(record.offset)}, "
                f"where {b.name} {verb} {held(record)}",
                reaches=record if record in b.sent else None,
            )
        if b.end is not None and a.end < b.end:
            sentence = f"{returned}, less than the {number(b.end)} that {b.name} returned"
            yield Edge(a.number, b.number, "unseen", sentence)
    if a.span is not None:
        for sent in b.sent:
            if _covers(a, sent) and not any(read.value == sent.value for read in a.read):
                yield Edge(a.number, b.number, "unseen", _missing(a, b, sent, where), reaches=sent)
        for given in b.read if b.op.f == "poll" else ():
            at = (given.offset, given.value)
            if _covers(a, given) and not any((read.offset, read.value) == at for read in a.read):
                yield Edge(a.number, b.number, "unseen", _missing(a, b, given, where))


def _missing(a: Witness, b: Witness, sent: Record, where: str) -> str:
    assert a.span is not None
    to = "to its end" if a.span[1] == EVERYTHING else f"up to offset {number(a.span[1])}"
    if sent in b.read:
        given = f"{b.name} was given at offset {number(sent.offset)}"
        return f"{_looked(a, where)} {to} and does not hold {held(sent)}, which {given}"
    promised = f" and which was acknowledged at offset {number(sent.offset)}" if sent.offset >= 0 else ""
    return (
        f"{_looked(a, where)} {to} and does not hold {value_label(sent.value)}, which {b.name} sent{promised}"
    )


def _looked(a: Witness, where: str) -> str:
    return f"{a.name} goes" if a.op.f == "replica" else f"{a.name} read {where}"


def _covers(a: Witness, sent: Record) -> bool:
    """Whether the read covers the offset where the record must be. For a record without an offset only a read
    of the whole log does."""
    assert a.span is not None
    first, end = a.span
    if sent.partition != a.op.partition:
        return False
    if sent.offset == ACKED_WITHOUT_OFFSET:
        return first == 0 and end == EVERYTHING
    return sent.offset >= 0 and first <= sent.offset < end


# cycles -----------------------------------------------------------------------------------------------------


def shortest_cycle(edges: Sequence[Edge], witnesses: Sequence[Witness], finding: Finding) -> list[Edge]:
    """A cycle: each edge's ``after`` is the next one's ``before``, the last one's the first one's. It is
    empty when there is none."""
    whole = {w.number for w in witnesses if finding.anomaly in ACROSS_PARTITIONS and w.op.txn is not None}
    leaving: dict[int, list[Edge]] = {}
    for edge in edges:
        leaving.setdefault(edge.before, []).append(edge)
    best: list[Edge] = []
    for first in edges:
        found = _path_round(first, leaving, whole)
        if found and (not best or len(found) < len(best)):
            best = found
    turn = min(range(len(best)), key=lambda at: (best[at].kind != "time", best[at].before), default=0)
    return best[turn:] + best[:turn]


def _path_round(first: Edge, leaving: Mapping[int, Sequence[Edge]], whole: set[int]) -> list[Edge]:
    """The shortest path that begins with this edge and ends where it begins, found by breadth-first search.
    Edges that only join the operations of one transaction are no cycle."""
    reached = {first}
    waiting: deque[list[Edge]] = deque([[first]])
    while waiting:
        path = waiting.popleft()
        if path[-1].after == first.before and _goes_on(path[-1], first, whole):
            if any(edge.kind != "with" for edge in path):
                return path
            continue
        for edge in leaving.get(path[-1].after, ()):
            if edge not in reached and _goes_on(path[-1], edge, whole):
                reached.add(edge)
                waiting.append([*path, edge])
    return []


def _goes_on(come: Edge, go: Edge, whole: set[int]) -> bool:
    """Whether the record by which ``come`` arrives lies at or before the one by which ``go`` leaves."""
    arrived, leaves = come.reaches, go.leaves
    if come.after in whole or arrived is None or leaves is None or arrived.value == leaves.value:
        return True
    same_log = arrived.partition == leaves.partition
    return same_log and 0 <= arrived.offset <= leaves.offset
