"""Circles in a graph of transactions: its edges, its strongly connected components, the shortest circle of
each.

Everything is arrays until a component is found, for most graphs have none: a graph of a million nodes costs a
second. wrackline.checkers.anomalies.cycles says what nodes and edges are, and brings the rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from wrackline.checkers.inputs.arrays import Ints

WW, WR, RT = "ww", "wr", "rt"
MAX_CYCLES = 1000
"""Circles reported of one graph: every component has one."""
_OF_REAL_TIME = -1
_EDGES = ("source", "target", "kind", "log", "place", "offset", "value", "next_offset", "next_value")


@dataclass(frozen=True, slots=True)
class Edge:
    """``why`` is a sentence in which {source} and {target} are the nodes that it leads from and to, by their
    places in ``Graph.nodes``. Values in it are marked (wrackline.checkers.anomalies.evidence)."""

    kind: str
    source: int
    target: int
    why: str
    log: int = -1
    offset: int = -1
    value: int = -1


@dataclass(frozen=True, slots=True)
class Graph:
    """``nodes``: txn, process, invoke, complete, invoke_ns, complete_ns, in the order of invocations.
    ``edges``: the ww and wr edges that real time does not imply, with what they rest on. ``reads``: all wr
    edges."""

    nodes: pd.DataFrame
    edges: pd.DataFrame
    reads: pd.DataFrame


def graph_of(rows: pd.DataFrame) -> Graph:
    """``rows``: one per record that was sent or given, as of
    ``wrackline.checkers.anomalies.cycles.of_transactions``."""
    # Spark hands rows over in any order; where two records share an offset it would choose the cycle.
    rows = rows.sort_values(["complete_index", "log", "offset", "value"], kind="stable", ignore_index=True)
    nodes = (
        rows.groupby("txn", sort=False)
        .agg(
            process=("process", "min"),
            invoke=("invoke_index", "min"),
            complete=("complete_index", "max"),
            invoke_ns=("invoke_ns", "min"),
            complete_ns=("complete_ns", "max"),
        )
        .reset_index()
        .sort_values("invoke", ignore_index=True)
    )
    invoke, complete = nodes["invoke"].to_numpy(), nodes["complete"].to_numpy()
    number = pd.Series(np.arange(len(nodes)), index=nodes["txn"])
    rows = rows.assign(node=rows["txn"].map(number))
    sent = rows[rows["sent"]].sort_values(["log", "offset"], kind="stable").drop_duplicates(["log", "offset"])
    follower = sent.shift(-1, fill_value=-1)
    ww = pd.DataFrame(
        {
            "source": sent["node"],
            "target": follower["node"],
            "kind": WW,
            "log": sent["log"],
            "place": sent["place"],
            "offset": sent["offset"],
            "value": sent["value"],
            "next_offset": follower["offset"],
            "next_value": follower["value"],
        }
    )[sent["log"] == follower["log"]]
    given = rows[~rows["sent"]].merge(
        sent[["log", "offset", "value", "node"]], on=["log", "offset", "value"], suffixes=("", "_of")
    )
    wr = given.assign(kind=WR, next_offset=-1, next_value=-1).rename(
        columns={"node_of": "source", "node": "target"}
    )
    edges = pd.concat([ww[list(_EDGES)], wr[list(_EDGES)]], ignore_index=True)
    edges = edges[edges["source"] != edges["target"]]
    source, target = edges["source"].to_numpy(np.int64), edges["target"].to_numpy(np.int64)
    says_more = ~(complete[source] < invoke[target])
    reads = edges[edges["kind"] == WR]
    return Graph(nodes, edges[says_more].reset_index(drop=True), reads.reset_index(drop=True))


def circles(graph: Graph) -> Iterator[list[Edge]]:
    """Of each component of writes and real time the shortest circle through its first node (that an edge
    leaves); the same of each component of reads alone, whatever real time says of them; then, of each
    component of all with a read that does not lie within one of those, the shortest circle through that read.
    So none hides another. Each edge leads to where the next begins, the last one to where the first does."""
    writes = replace(graph, edges=graph.edges[graph.edges["kind"] == WW])
    reads = replace(graph, edges=graph.reads)
    by_writes, by_reads = _components(writes), _components(reads, real_time=False)
    yield from _of_one_kind(writes, by_writes)
    yield from _of_one_kind(reads, by_reads, real_time=False)
    if len(writes.edges) < len(graph.edges):
        yield from _with_a_read(graph, _components(graph), by_writes, by_reads)


def _with_a_read(graph: Graph, label: Ints, by_writes: Ints, by_reads: Ints) -> Iterator[list[Edge]]:
    """``by_writes``: the components without what reads add, each of which counts as one node; ``by_reads``:
    those of reads alone, which are reported already."""
    source, target = (graph.edges[name].to_numpy(np.int64) for name in ("source", "target"))
    inside = label[source] == label[target]
    adds = inside & (graph.edges["kind"] == WR).to_numpy()
    adds &= (by_writes[source] != by_writes[target]) & (by_reads[source] != by_reads[target])
    first = np.flatnonzero(adds)[np.unique(label[source[adds]], return_index=True)[1]]
    for at in first[:MAX_CYCLES].tolist():
        component = label[source[at]]
        edges = graph.edges[inside & (label[source] == component)]
        step = (int(source[at]), int(target[at]), int(graph.edges.index[at]))
        circle = _shortest(np.flatnonzero(label == component), graph.nodes, edges, step)
        yield [_edge(graph, *one) for one in circle]


def _of_one_kind(graph: Graph, label: Ints, *, real_time: bool = True) -> Iterator[list[Edge]]:
    if not len(graph.edges):
        return
    inside = label[graph.edges["source"]] == label[graph.edges["target"]]
    edges = graph.edges[inside]
    of_component = label[edges["source"]]
    order = np.argsort(of_component, kind="stable")
    cuts = np.flatnonzero(np.diff(of_component[order])) + 1
    nodes_by_label = np.argsort(label, kind="stable")
    for some in np.split(order, cuts)[:MAX_CYCLES] if len(order) else ():
        component = label[edges["source"].iloc[some[0]]]
        first, last = np.searchsorted(label[nodes_by_label], [component, component + 1])
        members = nodes_by_label[first:last]
        circle = _shortest(members, graph.nodes, edges.iloc[some], real_time=real_time)
        if circle:
            yield [_edge(graph, source, target, at) for source, target, at in circle]


def _components(graph: Graph, *, real_time: bool = True) -> Ints:
    """The number of each node's strongly connected component. Real time: every completion is a moment,
    moments are a chain, and a node follows the last moment before its invocation."""
    size = len(graph.nodes)
    if not len(graph.edges):
        return np.arange(size)
    if not real_time:
        return _connected(size, graph.edges["source"], graph.edges["target"])
    invoke, complete = (graph.nodes[name].to_numpy() for name in ("invoke", "complete"))
    by_completion = np.argsort(complete, kind="stable")
    last = np.searchsorted(complete[by_completion], invoke, "left") - 1
    follows = np.flatnonzero(last >= 0)
    moments = size + np.arange(size)
    source = [graph.edges["source"], by_completion, moments[:-1], moments[last[follows]]]
    target = [graph.edges["target"], moments, moments[1:], follows]
    return _connected(2 * size, np.concatenate(source), np.concatenate(target))[:size]


def _connected(size: int, source: Ints, target: Ints) -> Ints:
    # Every task that judges anything imports this module, and few need a graph.
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    pairs = (np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64))
    matrix = coo_matrix((np.ones(len(pairs[0]), dtype=np.int8), pairs), shape=(size, size))
    _, label = connected_components(matrix, directed=True, connection="strong")
    return np.asarray(label, dtype=np.int64)


Step = tuple[int, int, int]
"""(source, target, row of ``Graph.edges`` or ``_OF_REAL_TIME``)."""


def _shortest(
    members: Ints,
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    first: Step | None = None,
    *,
    real_time: bool = True,
) -> list[Step]:
    """Breadth first; by way of ``first``, where that is given; ``real_time``: by that too. ``members``
    ascend, and with them their invocations: whatever real time says comes after a node is the end of that
    list, and what one node has reached of it no other needs to look at again."""
    out: dict[int, list[Step]] = {}
    for step in zip(edges["source"].tolist(), edges["target"].tolist(), edges.index.tolist(), strict=True):
        out.setdefault(step[0], []).append(step)
    invoke, complete = nodes["invoke"].to_numpy(), nodes["complete"].to_numpy()
    begun = invoke[members]
    start = next(node for node in members.tolist() if node in out) if first is None else first[0]
    came: dict[int, Step] = {}
    unreached = len(members)
    queue = deque([start])
    if first is not None:
        came[first[1]] = first
        queue = deque([first[1]])
    while queue:
        at = queue.popleft()
        later = int(np.searchsorted(begun, complete[at], "right"))
        steps = list(out.get(at, ()))
        if real_time:
            if invoke[start] > complete[at]:
                steps.append((at, start, _OF_REAL_TIME))
            steps += [(at, node, _OF_REAL_TIME) for node in members[later:unreached].tolist()]
            unreached = min(unreached, later)
        for step in steps:
            if step[1] == start:
                return _way(came, start, step)
            if step[1] not in came:
                came[step[1]] = step
                queue.append(step[1])
    return []


def _way(came: Mapping[int, Step], start: int, last: Step) -> list[Step]:
    way = [last]
    while way[-1][0] != start:
        way.append(came[way[-1][0]])
    return way[::-1]


def _edge(graph: Graph, source: int, target: int, at: int) -> Edge:
    if at == _OF_REAL_TIME:
        done, begun = graph.nodes["complete_ns"][source] / 1e9, graph.nodes["invoke_ns"][target] / 1e9
        why = f"{{source}} had completed at {done:,.3f} s, before {{target}} was invoked at {begun:,.3f} s"
        return Edge(RT, source, target, why)
    one = graph.edges.loc[at]
    where = f"at offset {one['offset']:,} of {one['place']}"
    if one["kind"] == WR:
        why = f"{{source}} sent value {_label(one['value'])}, which {{target}} read {where}"
    else:
        why = (
            f"{{source}} wrote value {_label(one['value'])} {where}, before value "
            f"{_label(one['next_value'])} that {{target}} wrote at offset {one['next_offset']:,}"
        )
    return Edge(one["kind"], source, target, why, int(one["log"]), int(one["offset"]), int(one["value"]))


def _label(value: int) -> str:
    return f"{{value {value}}}"


def sentence_of(circle: Sequence[Edge], nodes: pd.DataFrame) -> str:
    """A part of a sentence for each edge."""

    def name(node: int) -> str:
        return f"transaction {nodes['txn'][node]} (process {{process {nodes['process'][node]}}})"

    return "; ".join(
        edge.why.replace("{source}", name(edge.source)).replace("{target}", name(edge.target))
        for edge in circle
    )
