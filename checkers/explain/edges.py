"""The edges among the operations that a finding cites: one of them came before another.

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

from wrackline.checkers.checks.explained_by import Cycle, ExplainedBy
from wrackline.checkers.explain.citations import EVERYTHING, Cited, held
from wrackline.checkers.explain.model import Edge, EdgeKind, Finding, Shown
from wrackline.history.model import ACKED_WITHOUT_OFFSET, POLLS, UNKNOWN, Record
from wrackline.history.wording import apart, number, partition_label, value_label


def shortest_cycle(steps: Sequence[Step], cited: Sequence[Cited], how: ExplainedBy) -> list[Edge]:
    """A cycle: each edge's ``after`` is the next one's ``before``, the last one's the first one's. It is
    empty when there is none. Of transactions that follow each other by a read too it goes through one, where
    it can."""
    whole = {one.number for one in cited if how.transactions and one.op.txn is not None}
    leaving: dict[int, list[Step]] = {}
    for step in steps:
        leaving.setdefault(step.edge.before, []).append(step)
    reads = [step for step in steps if how.cycle is Cycle.G1C and step.edge.kind is EdgeKind.SEEN]
    best = _shortest(reads, leaving, whole) or _shortest(steps, leaving, whole)
    edges = [step.edge for step in best]
    turn = min(
        range(len(edges)), key=lambda at: (edges[at].kind is not EdgeKind.TIME, edges[at].before), default=0
    )
    return edges[turn:] + edges[:turn]


def _shortest(begin: Sequence[Step], leaving: Mapping[int, Sequence[Step]], whole: set[int]) -> list[Step]:
    """The shortest cycle through one of the edges that it may ``begin`` with."""
    best: list[Step] = []
    for first in begin:
        result = _path_round(first, leaving, whole)
        if result and (not best or len(result) < len(best)):
            best = result
    return best


def _path_round(first: Step, leaving: Mapping[int, Sequence[Step]], whole: set[int]) -> list[Step]:
    """The shortest path that begins with this edge and ends where it begins, found by breadth-first search.
    Edges that only join the operations of one transaction are no cycle."""
    reached = {first}
    waiting: deque[list[Step]] = deque([[first]])
    while waiting:
        path = waiting.popleft()
        if path[-1].edge.after == first.edge.before and _goes_on(path[-1], first, whole):
            if any(step.edge.kind is not EdgeKind.TRANSACTION for step in path):
                return path
            continue
        for step in leaving.get(path[-1].edge.after, ()):
            if step not in reached and _goes_on(path[-1], step, whole):
                reached.add(step)
                waiting.append([*path, step])
    return []


def _goes_on(come: Step, go: Step, whole: set[int]) -> bool:
    """Tells whether the record by which ``come`` arrives lies at or before the one by which ``go`` leaves."""
    arrived, leaves = come.reaches, go.leaves
    if come.edge.after in whole or arrived is None or leaves is None or arrived.value == leaves.value:
        return True
    same_log = arrived.partition == leaves.partition
    return same_log and 0 <= arrived.offset <= leaves.offset


@dataclass(frozen=True, slots=True)
class Step:
    """An edge as a part of a path."""

    edge: Edge
    leaves: Record | None = None
    """The record of ``before`` that the edge is about; None when it is about the whole operation."""
    reaches: Record | None = None
    """The record of ``after`` that the edge is about; None when it is about the whole operation."""


def steps_among(cited: Sequence[Cited], finding: Finding, how: ExplainedBy) -> list[Step]:
    """All edges, those about the finding's own record first: of several cycles of one length theirs is
    shown."""
    if not how.sends:
        cited = [one for one in cited if one.op.f != "send"] or cited
    cited = _located(cited)
    result = [step for a, b in permutations(cited, 2) for step in _steps(a, b, finding)]
    return sorted(result, key=lambda step: not _about(step, finding))


def _located(cited: Sequence[Cited]) -> list[Cited]:
    """The same operations; where a send was acknowledged without an offset, that of the final read is
    used."""
    at = {(r.partition, r.value): r for one in cited if one.op.f == "drain" for r in one.read if r.value >= 0}

    def placed(sent: Record) -> Record:
        there = at.get((sent.partition, sent.value))
        unknown = sent.offset in (UNKNOWN, ACKED_WITHOUT_OFFSET)
        return sent._replace(offset=there.offset) if there is not None and unknown else sent

    return [replace(one, sent=tuple(placed(record) for record in one.sent)) for one in cited]


def _about(step: Step, finding: Finding) -> bool:
    records = [record for record in (step.leaves, step.reaches) if record is not None]
    return any(r.value == finding.value or r.offset == finding.offset for r in records)


def in_time(a: Cited, b: Cited) -> Edge | None:
    """Had ``a`` completed when ``b`` was invoked?"""
    if a.completed is None or b.invoked is None or a.completed > b.invoked:
        return None
    done, begun = apart(a.op.end_ns, b.op.begin_ns)
    sentence = f"{a.name} had completed at {done}, before {b.name} was invoked at {begun}"
    if done == begun:
        sentence = f"{a.name} had completed before {b.name} was invoked, both at {done}"
    return Edge(
        a.number, b.number, EdgeKind.TIME, sentence, Shown(time_ns=a.op.end_ns), Shown(time_ns=b.op.begin_ns)
    )


def _steps(a: Cited, b: Cited, finding: Finding) -> Iterator[Step]:
    timed = in_time(a, b)
    if timed is not None:
        yield Step(timed)
    if a.op.txn is not None and a.op.txn == b.op.txn:
        sentence = f"{a.name} and {b.name} belong to one transaction ({a.op.txn})"
        yield Step(Edge(a.number, b.number, EdgeKind.TRANSACTION, sentence))
    yield from _in_the_log(a, b, finding)
    yield from _seen(a, b, finding)
    yield from _unseen(a, b, finding)


def _shown(record: Record) -> Shown:
    """The place of a record, where it has one, and its value."""
    placed = record.offset if record.offset >= 0 else None
    return Shown(partition=record.partition, offset=placed, value=record.value)


def _in_the_log(a: Cited, b: Cited, finding: Finding) -> Iterator[Step]:
    for first in a.placed:
        for second in b.placed:
            if first.partition == second.partition and first.offset < second.offset:
                where = partition_label(finding.topic, first.partition)
                sentence = (
                    f"{a.name} put {value_label(first.value)} at offset {number(first.offset)} of {where}, "
                    f"{b.name} put {value_label(second.value)} behind it at {number(second.offset)}"
                )
                shown = _shown(first), _shown(second)
                yield Step(Edge(a.number, b.number, EdgeKind.LOG, sentence, *shown), first, second)


def _seen(a: Cited, b: Cited, finding: Finding) -> Iterator[Step]:
    for sent in a.sent:
        what = f"{value_label(sent.value)}, which {a.name} sent"
        read = next((read for read in b.read if read.value == sent.value), None)
        if read is not None:
            sentence = f"{b.name} was given {what}"
            edge = Edge(a.number, b.number, EdgeKind.SEEN, sentence, _shown(sent), _shown(read))
            yield Step(edge, leaves=sent)
        elif b.end is not None and 0 <= sent.offset < b.end and sent.partition == finding.partition:
            where = partition_label(finding.topic, finding.partition)
            sentence = (
                f"{b.name} returned {number(b.end)} as the end offset of {where}, "
                f"so offset {number(sent.offset)} was taken, and there lies {what}"
            )
            shown = _shown(sent), Shown(partition=finding.partition, end=b.end)
            yield Step(Edge(a.number, b.number, EdgeKind.SEEN, sentence, *shown), leaves=sent)


def _unseen(a: Cited, b: Cited, finding: Finding) -> Iterator[Step]:
    """``a`` does not show what ``b`` did or saw, though it would if it came later."""
    where = partition_label(finding.topic, finding.partition)
    if a.end is not None:
        returned = f"{a.name} returned {number(a.end)} as the end offset of {where}"
        shown = Shown(partition=finding.partition, end=a.end)
        beyond = [r for r in (*b.placed, *b.read) if r.offset >= a.end and r.partition == finding.partition]
        for record in sorted(beyond, key=lambda record: (record.offset != finding.offset, -record.offset)):
            verb = "put" if record in b.sent else "was given"
            sentence = (
                f"{returned}, which leaves out offset {number(record.offset)}, "
                f"where {b.name} {verb} {held(record)}"
            )
            edge = Edge(a.number, b.number, EdgeKind.UNSEEN, sentence, shown, _shown(record))
            yield Step(edge, reaches=record if record in b.sent else None)
        if b.end is not None and a.end < b.end:
            sentence = f"{returned}, less than the {number(b.end)} that {b.name} returned"
            later = Shown(partition=finding.partition, end=b.end)
            yield Step(Edge(a.number, b.number, EdgeKind.UNSEEN, sentence, shown, later))
    if a.span is not None:
        for sent in b.sent:
            if _covers(a, sent) and not any(read.value == sent.value for read in a.read):
                yield Step(_missing(a, b, sent, where), reaches=sent)
        for given in b.read if b.op.f in POLLS else ():
            at = (given.offset, given.value)
            if _covers(a, given) and not any((read.offset, read.value) == at for read in a.read):
                yield Step(_missing(a, b, given, where))


def _missing(a: Cited, b: Cited, sent: Record, where: str) -> Edge:
    assert a.span is not None
    whole = a.span[1] == EVERYTHING
    to = "to its end" if whole else f"up to offset {number(a.span[1])}"
    if sent in b.read:
        given = f"{b.name} was given at offset {number(sent.offset)}"
        sentence = f"{_looked(a, where)} {to} and does not hold {held(sent)}, which {given}"
    else:
        label = value_label(sent.value)
        promised = f" and which was acknowledged at offset {number(sent.offset)}" if sent.offset >= 0 else ""
        sentence = f"{_looked(a, where)} {to} and does not hold {label}, which {b.name} sent{promised}"
    shown = Shown(partition=a.op.partition, end=None if whole else a.span[1])
    return Edge(a.number, b.number, EdgeKind.UNSEEN, sentence, shown, _shown(sent))


def _looked(a: Cited, where: str) -> str:
    return f"{a.name} goes" if a.op.f == "replica" else f"{a.name} read {where}"


def _covers(a: Cited, sent: Record) -> bool:
    """Tells whether the read covers the offset where the record must be. For a record without an offset
    only a read of the whole log does."""
    assert a.span is not None
    first, end = a.span
    if sent.partition != a.op.partition:
        return False
    if sent.offset == ACKED_WITHOUT_OFFSET:
        return first == 0 and end == EVERYTHING
    return sent.offset >= 0 and first <= sent.offset < end
