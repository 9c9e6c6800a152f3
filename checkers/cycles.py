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
of writes and real time the shortest cycle through its first node is told, edge by edge; of each component with a read
that does not lie within one of those, the shortest cycle through that read (checkers.circles).

Spark brings operations together, with one row for each record they sent or were given (about 100 bytes each). The
transactions of a run are one graph, in one task. Sends are many more, and are cut by time: a ww edge between sends that
contradicts real time is ``append-order`` and no edge here, and then of a shortest cycle all invocations lie within
twice the longest operation (D). Proof: where one member completed before another was invoked, the other is the next
one, or the cycle had a shorter way; so all but the next one of the first to complete (at c) are invoked in [c - D, c],
and that next one before the completion of the one after it, which is c + D at the latest. So each cycle is whole in
one of the windows of 4 D (or more) that begin every 2 D. Where no send is torn (its records apart, or in several partitions)
sends have no cycles, and nothing of this is done.
"""

from __future__ import annotations

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.circles import WR, WW, circles, graph_of, told
from checkers.evidence import Window, findings
from checkers.registry import Evidence, Family, check, mark
from checkers.tables import Tables

TRANSACTIONS = mark("transactions")
"""Seen where operations carry ``extra.txn``."""
TORN = mark("torn sends")
"""Seen where records of one send are not side by side, or in several partitions."""
WHOLE_RUN = -1
"""The ``cut`` of transactions."""
LEAST_WIDTH = 50_000
"""Events from one window to the next: smaller ones cost more than they save."""
_CYCLE = (
    "run int, log bigint, kind string, offset bigint, value bigint, since_ns bigint, until_ns bigint, "
    "indexes array<bigint>, unit string, told string"
)


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
    widths = rows.groupBy("run").agg(F.greatest(2 * longest, F.lit(LEAST_WIDTH)).alias("width"))
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
    logs = F.broadcast(tables.logs_of_runs.select("run", "topic", "partition", "log", "complete"))
    place = ["run", "topic", "partition"]
    # The offset of a lost record is used again, which is loss, and no order.
    stayed = (
        tables.history.filter("f = 'drain' and type = 'ok'")
        .select("run", "topic", F.explode("records").alias("record"))
        .select(
            "run", "topic", "record.partition", "record.offset", "record.value", F.lit(True).alias("stayed")
        )
    )
    times = ("invoke_index", "complete_index", "invoke_ns", "complete_ns")
    return (
        whole.select("*", "record.partition", "record.offset", "record.value")
        .join(logs, place)
        .join(stayed, [*place, "offset", "value"], "left")
        .filter("stayed or not complete")
        .select(
            *("run", "txn", "process", *times, "log"),
            F.format_string("%s-%d", "topic", "partition").alias("place"),
            *("offset", "value", (F.col("f") == "send").alias("sent")),
        )
    )


def found_in(rows: pd.DataFrame) -> pd.DataFrame:
    """The cycles of one graph as rows of ``_CYCLE``; of a window those that begin in its first half, for the others
    are in the next window too."""
    run, cut, width = (int(rows[name].iloc[0]) for name in ("run", "cut", "width"))
    unit = "transaction" if cut == WHOLE_RUN else "send"
    graph = graph_of(rows, either_way=cut == WHOLE_RUN)
    found = []
    for circle in circles(graph):
        place = next((edge for edge in circle if edge.log >= 0), None)
        members = graph.nodes.iloc[[edge.source for edge in circle]]
        if cut != WHOLE_RUN and members["invoke"].min() // width + 1 != cut:
            continue
        found.append(
            (
                run,
                None if place is None else place.log,
                WR if any(edge.kind == WR for edge in circle) else WW,
                None if place is None else place.offset,
                None if place is None else place.value,
                members["invoke_ns"].min(),
                members["complete_ns"].max(),
                sorted({*members["invoke"].tolist(), *members["complete"].tolist()}),
                unit,
                told(circle, graph.nodes, unit),
            )
        )
    names = [part.split()[0] for part in _CYCLE.replace("array<bigint>", "x").split(", ")]
    return pd.DataFrame(found, columns=names)


def _found(evidence: Evidence, kind: str, anomaly: str) -> DataFrame:
    tables = evidence.tables
    rows = of_transactions(tables)
    if kind == WW and evidence.counts.get(TORN):
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
