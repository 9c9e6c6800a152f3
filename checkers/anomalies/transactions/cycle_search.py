"""Circles in a graph of transactions: its strongly connected components, the shortest circle of each.

Everything is arrays until a component is found, for most graphs have none: a graph of a million nodes costs a
second. wrackline.checkers.anomalies.transactions.cycles says what nodes and edges are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from wrackline.checkers.inputs.table import Ints, Table

MAX_CYCLES = 1000
"""Circles reported of one graph: every component has one."""


@dataclass(frozen=True, slots=True)
class Nodes(Table[Ints]):
    """Transactions, in the order of their invocations."""

    txn: Ints
    process: Ints
    invoke: Ints
    complete: Ints
    invoke_ns: Ints
    complete_ns: Ints


@dataclass(frozen=True, slots=True)
class Edges(Table[Ints]):
    """Edges between places in ``Nodes``, each with the record that it rests on; of an edge of writes with the
    next one too."""

    source: Ints
    target: Ints
    reads: Ints
    """1: the target was given the record; 0: it wrote the next one."""
    log: Ints
    offset: Ints
    value: Ints
    next_offset: Ints
    next_value: Ints


@dataclass(frozen=True, slots=True)
class Graph:
    nodes: Nodes
    edges: Edges


@dataclass(frozen=True, slots=True)
class Step:
    """``edge``: a row of ``Edges``; None: by real time."""

    source: int
    target: int
    edge: int | None


def circles(graph: Graph) -> Iterator[list[Step]]:
    """Yields for each component of writes and real time the shortest circle through its first node (that
    an edge leaves); the same for each component of reads alone, whatever real time says of them; then, for
    each component of all with a read that does not lie within one of those, the shortest circle through
    that read. So none hides another. Each step leads to where the next begins, the last one to where the
    first does."""
    nodes, edges, reads = graph.nodes, graph.edges, graph.edges.reads == 1
    rows = np.flatnonzero(
        nodes.complete[edges.source] >= nodes.invoke[edges.target]
    )  # not by real time alone
    writes, only_reads = rows[~reads[rows]], np.flatnonzero(reads)
    by_writes, by_reads = _components(graph, writes), _components(graph, only_reads, real_time=False)
    yield from _of_one_kind(graph, writes, by_writes)
    yield from _of_one_kind(graph, only_reads, by_reads, real_time=False)
    if len(writes) < len(rows):
        yield from _with_a_read(graph, rows, _components(graph, rows), by_writes, by_reads)


def _with_a_read(
    graph: Graph, rows: Ints, label: Ints, by_writes: Ints, by_reads: Ints
) -> Iterator[list[Step]]:
    """``by_writes``: the components without what reads add, each of which counts as one node; ``by_reads``:
    those of reads alone, which are reported already."""
    source, target = graph.edges.source[rows], graph.edges.target[rows]
    inside = label[source] == label[target]
    adds = inside & (graph.edges.reads[rows] == 1)
    adds &= (by_writes[source] != by_writes[target]) & (by_reads[source] != by_reads[target])
    first = np.flatnonzero(adds)[np.unique(label[source[adds]], return_index=True)[1]]
    for at in first[:MAX_CYCLES].tolist():
        component = label[source[at]]
        step = Step(int(source[at]), int(target[at]), int(rows[at]))
        members = np.flatnonzero(label == component)
        yield _shortest(graph, members, rows[inside & (label[source] == component)], step)


def _of_one_kind(graph: Graph, rows: Ints, label: Ints, *, real_time: bool = True) -> Iterator[list[Step]]:
    rows = rows[label[graph.edges.source[rows]] == label[graph.edges.target[rows]]]
    of_component = label[graph.edges.source[rows]]
    order = np.argsort(of_component, kind="stable")
    cuts = np.flatnonzero(np.diff(of_component[order])) + 1
    nodes_by_label = np.argsort(label, kind="stable")
    for some in np.split(rows[order], cuts)[:MAX_CYCLES] if len(order) else ():
        component = label[graph.edges.source[some[0]]]
        first, last = np.searchsorted(label[nodes_by_label], [component, component + 1])
        circle = _shortest(graph, nodes_by_label[first:last], some, real_time=real_time)
        if circle:
            yield circle


def _components(graph: Graph, rows: Ints, *, real_time: bool = True) -> Ints:
    """The number of each node's strongly connected component. Real time: every completion is a moment,
    moments are a chain, and a node follows the last moment before its invocation."""
    size = len(graph.nodes)
    if not len(rows):
        return np.arange(size)
    source, target = graph.edges.source[rows], graph.edges.target[rows]
    if not real_time:
        return _connected(size, source, target)
    invoke, complete = graph.nodes.invoke, graph.nodes.complete
    by_completion = np.argsort(complete, kind="stable")
    last = np.searchsorted(complete[by_completion], invoke, "left") - 1
    follows = np.flatnonzero(last >= 0)
    moments = size + np.arange(size)
    sources = [source, by_completion, moments[:-1], moments[last[follows]]]
    targets = [target, moments, moments[1:], follows]
    return _connected(2 * size, np.concatenate(sources), np.concatenate(targets))[:size]


def _connected(size: int, source: Ints, target: Ints) -> Ints:
    # Every task that judges anything imports this module, and few need a graph.
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    matrix = coo_matrix((np.ones(len(source), dtype=np.int8), (source, target)), shape=(size, size))
    _, label = connected_components(matrix, directed=True, connection="strong")
    return np.asarray(label, dtype=np.int64)


def _shortest(
    graph: Graph, members: Ints, rows: Ints, first: Step | None = None, *, real_time: bool = True
) -> list[Step]:
    """Breadth first; by way of ``first``, where that is given; ``real_time``: by that too. ``members``
    ascend, and with them their invocations: whatever real time says comes after a node is the end of that
    list, and what one node has reached of it no other needs to look at again."""
    out: dict[int, list[Step]] = {}
    sources, targets = (column[rows].tolist() for column in (graph.edges.source, graph.edges.target))
    for source, target, row in zip(sources, targets, rows.tolist(), strict=True):
        out.setdefault(source, []).append(Step(source, target, row))
    invoke, complete = graph.nodes.invoke, graph.nodes.complete
    begun = invoke[members]
    start = next(node for node in members.tolist() if node in out) if first is None else first.source
    came: dict[int, Step] = {}
    unreached = len(members)
    queue = deque([start])
    if first is not None:
        came[first.target] = first
        queue = deque([first.target])
    while queue:
        at = queue.popleft()
        later = int(np.searchsorted(begun, complete[at], "right"))
        steps = list(out.get(at, ()))
        if real_time:
            if invoke[start] > complete[at]:
                steps.append(Step(at, start, None))
            steps += [Step(at, node, None) for node in members[later:unreached].tolist()]
            unreached = min(unreached, later)
        for step in steps:
            if step.target == start:
                return _way(came, start, step)
            if step.target not in came:
                came[step.target] = step
                queue.append(step.target)
    return []


def _way(came: Mapping[int, Step], start: int, last: Step) -> list[Step]:
    way = [last]
    while way[-1].source != start:
        way.append(came[way[-1].source])
    return way[::-1]
