"""Cycles between operations of several records (anomalies.md section 3): Elle's G0 and G1c.

Nodes are transactions (sends and polls that carry the same ``extra.txn``), and in a graph of their own sends of several
records that are no transaction.

=====  ==================================================================================================
ww     a record of one node is followed, among records of nodes in its partition, by one of another
wr     a transaction was given a record that another one sent
rt     one node had completed before another was invoked
=====  ==================================================================================================

A consumer reads ahead and a poll never proves that there was no more, so there are no anti-dependencies (rw). Edges
that real time implies anyway say nothing and are left out. What is left is a sparse graph, whose strongly connected
components are found in linear time; real time is a chain of moments in it, not a square of pairs. Of each component
the shortest cycle through its first node is told, edge by edge.

Spark brings operations together, with one row for each record they sent or were given (about 100 bytes each). The
transactions of a run are one graph, in one task. Sends are many more, and are cut by time: a ww edge between sends that
contradicts real time is ``append-order`` and no edge here, and then of a shortest cycle all invocations lie within
twice the longest operation (D). Proof: where one member completed before another was invoked, the other is the next
one, or the cycle had a shorter way; so all but the next one of the first to complete (at c) are invoked in [c - D, c],
and that next one before the completion of the one after it, which is c + D at the latest. So each cycle is whole in
one of the windows of 4 D that begin every 2 D. Where no send is torn (its records apart, or in several partitions)
sends have no cycles, and nothing of this is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.evidence import Window, findings
from checkers.packets import Ints
from checkers.registry import Evidence, Family, check, mark
from checkers.tables import Tables

OPEN = 2**62
"""The completion of a transaction that never completed."""
TRANSACTIONS = mark("transactions")
"""Seen where operations carry ``extra.txn``."""
TORN = mark("torn sends")
"""Seen where records of one send are not side by side, or in several partitions."""
WHOLE_RUN = -1
"""The ``cut`` of transactions."""
WW, WR, RT = "ww", "wr", "rt"
MAX_CYCLES = 1000
"""Cycles told of one run: every transaction in a component has one."""
_CYCLE = (
    "run int, log bigint, kind string, offset bigint, value bigint, since_ns bigint, until_ns bigint, "
    "indexes array<bigint>, unit string, told string"
)


@dataclass(frozen=True, slots=True)
class Transaction:
    number: int
    process: int
    invoke: int
    complete: int
    invoke_ns: int
    complete_ns: int


@dataclass(frozen=True, slots=True)
class Edge:
    """``why``: a sentence without its end."""

    kind: str
    source: int
    target: int
    why: str
    log: int = -1
    offset: int = -1
    value: int = -1


def of_transactions(tables: Tables) -> DataFrame:
    """One row per record that a transaction sent (acknowledged) or was given, with its operation."""
    events = tables.history.filter("f in ('send', 'poll') and extra like '%\"txn\"%'").withColumn(
        "txn", F.get_json_object("extra", "$.txn").cast("bigint")
    )
    return _records(events, tables).withColumn("cut", F.lit(WHOLE_RUN)).withColumn("width", F.lit(0))


def of_sends(tables: Tables) -> DataFrame:
    """The same for sends of several records that are no transaction: a row for each window of time that it is in.
    ``txn`` is the index of the send's invocation. The window ``cut`` goes from (cut - 1) ``width`` to (cut + 1) ``width``."""
    events = tables.history.filter(
        "f = 'send' and size(records) > 1 and coalesce(extra, '') not like '%\"txn\"%'"
    ).withColumn("txn", F.lit(None).cast("bigint"))
    rows = _records(events, tables).withColumn("txn", F.col("invoke_index"))
    longest = F.max(F.col("complete_index") - F.col("invoke_index"))
    widths = rows.groupBy("run").agg((2 * longest).alias("width"))
    at = F.floor(F.col("invoke_index") / F.col("width"))
    return rows.join(F.broadcast(widths), "run").withColumn("cut", F.explode(F.array(at, at + 1)))


def _records(events: DataFrame, tables: Tables) -> DataFrame:
    by_process = SqlWindow.partitionBy("run", "process").orderBy("index")
    columns = ("run", "txn", "process", "f", "type", "topic", "records")
    before = {name: F.lag(name).over(by_process) for name in ("index", "time_ns", "type", "txn")}
    whole = (
        events.select(
            *columns,
            before["index"].alias("invoke_index"),
            F.col("index").alias("complete_index"),
            before["time_ns"].alias("invoke_ns"),
            F.col("time_ns").alias("complete_ns"),
            before["type"].alias("before"),
            before["txn"].eqNullSafe(F.col("txn")).alias("same"),
        )
        .filter("type = 'ok' and before = 'invoke' and same")
        .withColumn("record", F.explode("records"))
        .filter("record.offset >= 0 and record.value >= 0")
    )
    logs = F.broadcast(tables.logs_of_runs.select("run", "topic", "partition", "log"))
    times = ("invoke_index", "complete_index", "invoke_ns", "complete_ns")
    return (
        whole.withColumn("partition", F.col("record.partition"))
        .join(logs, ["run", "topic", "partition"])
        .select(
            *("run", "txn", "process", *times, "log"),
            F.format_string("%s-%d", "topic", "partition").alias("place"),
            *("record.offset", "record.value", (F.col("f") == "send").alias("sent")),
        )
    )


def cycles_of(rows: pd.DataFrame) -> Iterator[list[Edge]]:
    """The cycles among the transactions of one run, or the sends of one window; rows as of ``of_transactions``. Each is
    a list of edges, the last of which leads back to where the first begins."""
    nodes, edges = graph_of(rows)
    for members in _components(nodes, edges):
        cycle = _shortest(sorted(members, key=lambda node: nodes[node].invoke), nodes, edges)
        if cycle:
            yield cycle


def graph_of(rows: pd.DataFrame) -> tuple[list[Transaction], list[Edge]]:
    """Nodes in the order of their first invocation, and the edges that real time does not imply."""
    spans = (
        rows.groupby("txn", sort=False)
        .agg(
            process=("process", "min"),
            invoke=("invoke_index", "min"),
            complete=("complete_index", "max"),
            invoke_ns=("invoke_ns", "min"),
            complete_ns=("complete_ns", "max"),
        )
        .reset_index()
        .sort_values("invoke")
    )
    nodes = [Transaction(*map(int, row)) for row in spans.itertuples(index=False)]
    number = {one.number: at for at, one in enumerate(nodes)}
    invoke = np.array([one.invoke for one in nodes], dtype=np.int64)
    complete = np.array([one.complete for one in nodes], dtype=np.int64)
    node = rows["txn"].map(number).to_numpy(dtype=np.int64)
    rows = rows.assign(node=node)
    sent = rows[rows["sent"]].sort_values(["log", "offset"]).drop_duplicates(["log", "offset"])
    found = list(_followers(sent, invoke, complete, either_way=not _of_sends(rows)))
    given = rows[~rows["sent"]].merge(
        sent[["log", "offset", "value", "node"]], on=["log", "offset", "value"], suffixes=("", "_of")
    )
    found += _readers(given, invoke, complete)
    return nodes, found


def _of_sends(rows: pd.DataFrame) -> bool:
    return bool(rows["cut"].iloc[0] != WHOLE_RUN)


def _matters(source: Ints, target: Ints, invoke: Ints, complete: Ints) -> Any:
    """Whether an edge says more than real time does."""
    return (source != target) & ~(complete[source] < invoke[target])


def _followers(sent: pd.DataFrame, invoke: Ints, complete: Ints, *, either_way: bool) -> Iterator[Edge]:
    """``either_way``: edges that contradict real time too."""
    log, node = sent["log"].to_numpy(), sent["node"].to_numpy()
    if len(sent) < 2:
        return
    wanted = (log[1:] == log[:-1]) & _matters(node[:-1], node[1:], invoke, complete)
    if not either_way:
        wanted &= complete[node[1:]] >= invoke[node[:-1]]
    offset, value, place = (sent[name].tolist() for name in ("offset", "value", "place"))
    for at in np.flatnonzero(wanted).tolist():
        why = (
            f"its value {value[at]} is at offset {offset[at]} of {place[at]}, before value {value[at + 1]} of {{target}} "
            f"at offset {offset[at + 1]}"
        )
        yield Edge(WW, int(node[at]), int(node[at + 1]), why, int(log[at]), offset[at], value[at])


def _readers(given: pd.DataFrame, invoke: Ints, complete: Ints) -> Iterator[Edge]:
    wanted = _matters(given["node_of"].to_numpy(), given["node"].to_numpy(), invoke, complete)
    for row in given[wanted].itertuples(index=False):
        why = f"{{target}} was given its value {row.value} at offset {row.offset} of {row.place}"
        yield Edge(WR, int(row.node_of), int(row.node), why, int(row.log), int(row.offset), int(row.value))


def _components(nodes: Sequence[Transaction], edges: Sequence[Edge]) -> list[list[int]]:
    """Strongly connected components of two transactions or more. Real time: every completion is a moment, moments are a
    chain, and a transaction follows the last moment before its invocation."""
    # Every task that judges anything imports this module, and few need a graph.
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    size = len(nodes)
    if not edges:
        return []
    by_completion = sorted(range(size), key=lambda node: nodes[node].complete)
    completions = np.array([nodes[node].complete for node in by_completion])
    last = np.searchsorted(completions, [one.invoke for one in nodes], "left") - 1
    source = [edge.source for edge in edges] + by_completion
    target = [edge.target for edge in edges] + [size + at for at in range(size)]
    source += [size + at for at in range(size - 1)]
    target += [size + at + 1 for at in range(size - 1)]
    source += [size + int(at) for at in last if at >= 0]
    target += [node for node, at in enumerate(last.tolist()) if at >= 0]
    graph = coo_matrix((np.ones(len(source), dtype=np.int8), (source, target)), shape=(2 * size, 2 * size))
    _, label = connected_components(graph, directed=True, connection="strong")
    members: dict[int, list[int]] = {}
    for node in range(size):
        members.setdefault(int(label[node]), []).append(node)
    return [some for some in members.values() if len(some) > 1][:MAX_CYCLES]


def _shortest(members: Sequence[int], nodes: Sequence[Transaction], edges: Sequence[Edge]) -> list[Edge]:
    """The shortest cycle through the first of a component's members that is in one of few edges, breadth first."""
    inside = set(members)
    out: dict[int, list[Edge]] = {}
    for edge in edges:
        if edge.source in inside and edge.target in inside:
            out.setdefault(edge.source, []).append(edge)
    start = next(node for node in members if node in out)
    came: dict[int, Edge] = {}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for edge in (*out.get(at, ()), *_later(at, members, nodes)):
            if edge.target == start:
                return _way(came, start, edge)
            if edge.target not in came:
                came[edge.target] = edge
                queue.append(edge.target)
    return []


def _later(at: int, members: Iterable[int], nodes: Sequence[Transaction]) -> Iterator[Edge]:
    """What real time says of one transaction and the others of its component."""
    for other in members:
        if nodes[at].complete < nodes[other].invoke:
            why = (
                f"it had completed at {nodes[at].complete_ns / 1e9:.3f} s, before {{target}} was invoked at "
                + (f"{nodes[other].invoke_ns / 1e9:.3f} s")
            )
            yield Edge(RT, at, other, why)


def _way(came: dict[int, Edge], start: int, last: Edge) -> list[Edge]:
    way = [last]
    while way[-1].source != start:
        way.append(came[way[-1].source])
    return way[::-1]


def told(cycle: Sequence[Edge], nodes: Sequence[Transaction], unit: str) -> str:
    """One sentence for each edge. ``unit``: what nodes are."""

    def name(node: int) -> str:
        return f"{unit} {nodes[node].number} (process {nodes[node].process})"

    return "; ".join(f"{name(edge.source)}: " + edge.why.format(target=name(edge.target)) for edge in cycle)


def found_in(rows: pd.DataFrame) -> pd.DataFrame:
    """The cycles of one graph as rows of ``_CYCLE``; of a window those that begin in its first half, for the others
    are in the next window too."""
    nodes, _ = graph_of(rows)
    unit = "send" if _of_sends(rows) else "transaction"
    cut, width = int(rows["cut"].iloc[0]), int(rows["width"].iloc[0])
    found = []
    for cycle in cycles_of(rows):
        place = next((edge for edge in cycle if edge.log >= 0), None)
        members = [nodes[edge.source] for edge in cycle]
        if cut != WHOLE_RUN and min(one.invoke for one in members) // width + 1 != cut:
            continue
        found.append(
            (
                int(rows["run"].iloc[0]),
                None if place is None else place.log,
                WR if any(edge.kind == WR for edge in cycle) else WW,
                None if place is None else place.offset,
                None if place is None else place.value,
                min(one.invoke_ns for one in members),
                max(one.complete_ns for one in members),
                sorted({index for one in members for index in (one.invoke, one.complete)}),
                unit,
                told(cycle, nodes, unit),
            )
        )
    names = [part.split()[0] for part in _CYCLE.replace("array<bigint>", "x").split(", ")]
    return pd.DataFrame(found, columns=names)


def _found(evidence: Evidence, kind: str, anomaly: str) -> DataFrame:
    tables = evidence.tables
    rows = of_transactions(tables)
    if evidence.counts.get(TORN):
        rows = rows.unionByName(of_sends(tables))
    cycles = rows.groupBy("run", "cut").applyInPandas(found_in, _CYCLE).filter(F.col("kind") == kind)
    logs = F.broadcast(tables.logs_of_runs.select("log", "topic", "partition"))
    return findings(
        cycles.join(logs, "log", "left"),
        anomaly,
        operations=[F.get("indexes", F.lit(n)) for n in range(8)],
        sentence=F.concat("unit", F.lit("s follow each other in a circle: "), F.col("told")),
        around=Window(F.col("since_ns"), F.col("until_ns")),
        where=F.concat("unit", F.lit("s")),
    )


@check(
    "write-cycle",
    Family.CYCLES,
    "G0",
    "transactions, or sends of several records, follow each other in a circle, by the order of their records and real time",
    marks=[TRANSACTIONS, TORN],
)
def write_cycle(evidence: Evidence) -> DataFrame:
    return _found(evidence, WW, "write-cycle")


@check(
    "read-cycle",
    Family.CYCLES,
    "G1c",
    "transactions follow each other in a circle, by what they were given, the order of their records and real time",
    marks=[TRANSACTIONS],
)
def read_cycle(evidence: Evidence) -> DataFrame:
    return _found(evidence, WR, "read-cycle")
