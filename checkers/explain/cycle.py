"""The shortest cycle of edges: it proves that no order of the operations is possible."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from wrackline.checkers.checks.explained_by import Cycle, ExplainedBy
from wrackline.checkers.explain.citations import Cited
from wrackline.checkers.explain.edges import Step
from wrackline.checkers.explain.model import Edge, EdgeKind


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
        found = _path_round(first, leaving, whole)
        if found and (not best or len(found) < len(best)):
            best = found
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
    """Whether the record by which ``come`` arrives lies at or before the one by which ``go`` leaves."""
    arrived, leaves = come.reaches, go.leaves
    if come.edge.after in whole or arrived is None or leaves is None or arrived.value == leaves.value:
        return True
    same_log = arrived.partition == leaves.partition
    return same_log and 0 <= arrived.offset <= leaves.offset
