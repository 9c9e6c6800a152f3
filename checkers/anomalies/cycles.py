"""Cycles between transactions (docs/anomalies.md section 3): Elle's G0 and G1c.

Nodes are transactions: sends and polls that carry the same ``extra.txn``. Sends that are none are no nodes,
however many records they have: nothing in Kafka keeps the records of a send together.

=====  =======================================================================================================
ww     a record of one transaction is followed, among records of transactions in its partition, by one of
       another
wr     a transaction was given a record that another one sent
rt     one transaction had completed before another was invoked
=====  =======================================================================================================

A consumer reads ahead and a poll never proves that there was no more, so there are no anti-dependencies (rw).
Edges that real time implies anyway say nothing and are left out. What is left is a sparse graph, whose
strongly connected components are found in linear time; real time is a chain of moments in it, not a square of
pairs. Of each component of writes and real time the shortest cycle through its first node is told, edge by
edge, and so of each component of reads alone; of each component of all with a read that does not lie within
one of those, the shortest cycle through that read (wrackline.checkers.anomalies.cycle_search).

Kafka does not isolate writes (KIP-98): records of open transactions lie between each other. What it promises
at read_committed is that nobody is given a record before its transaction has committed, and so a cycle of
reads alone cannot be: everyone in it would have committed before the next one did.

Spark brings operations together, with one row for each record they sent or were given (about 100 bytes each).
The transactions of a run are one graph, in one task.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.cycle_search import WR, WW, Edge, circles, graph_of, told
from wrackline.checkers.anomalies.evidence import Window, findings
from wrackline.checkers.anomalies.registry import Evidence, Family, check, mark
from wrackline.checkers.engine.tables import Tables, keep

TRANSACTIONS = mark("transactions")
"""Seen where operations carry ``extra.txn``."""
_BOTH = "both"
_CYCLE = (
    "run int, log bigint, kind string, offset bigint, value bigint, since_ns bigint, until_ns bigint, "
    "indexes array<bigint>, told string"
)


def of_transactions(tables: Tables) -> DataFrame:
    """One row per record that a transaction sent (acknowledged) or was given, with its operation."""
    events = (
        tables.events(tables.transactional)
        .filter("f in ('send', 'poll') and extra like '%\"txn\"%'")
        .withColumn("txn", F.get_json_object("extra", "$.txn").cast("bigint"))
    )
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
    logs = F.broadcast(
        tables.logs_of_runs.select("run", "topic", "partition", "log", "complete", "unread_from")
    )
    place = ["run", "topic", "partition"]
    # The offset of a lost record is used again, which is loss, and no order.
    stayed = (
        tables.events(tables.transactional)
        .filter("f = 'drain' and type = 'ok'")
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
        .filter("stayed or not complete or offset >= unread_from")
        .select(
            *("run", "txn", "process", *times, "log"),
            F.format_string("%s-%d", "topic", "partition").alias("place"),
            *("offset", "value", (F.col("f") == "send").alias("sent")),
        )
    )


def found_in(rows: pd.DataFrame) -> pd.DataFrame:
    """The cycles of one run as rows of ``_CYCLE``."""
    graph = graph_of(rows)
    found = []
    for circle in circles(graph):
        place = next((edge for edge in circle if edge.log >= 0), None)
        members = graph.nodes.iloc[[edge.source for edge in circle]]
        found.append(
            (
                int(rows["run"].iloc[0]),
                None if place is None else place.log,
                _kind_of(circle),
                None if place is None else place.offset,
                None if place is None else place.value,
                members["invoke_ns"].min(),
                members["complete_ns"].max(),
                sorted({*members["invoke"].tolist(), *members["complete"].tolist()}),
                told(circle, graph.nodes),
            )
        )
    names = [part.split()[0] for part in _CYCLE.replace("array<bigint>", "x").split(", ")]
    return pd.DataFrame(found, columns=names)


def _kind_of(circle: Sequence[Edge]) -> str:
    kinds = {edge.kind for edge in circle}
    if WR not in kinds:
        return WW
    return WR if kinds == {WR} else _BOTH


def _found(evidence: Evidence, kind: str, anomaly: str) -> DataFrame:
    tables = evidence.tables

    def every() -> DataFrame:
        return keep(of_transactions(tables).groupBy("run").applyInPandas(found_in, _CYCLE))

    cycles = evidence.once("cycles", every).filter(F.col("kind") == kind)
    logs = F.broadcast(tables.logs_of_runs.select("log", "topic", "partition"))
    return findings(
        cycles.join(logs, "log", "left"),
        anomaly,
        operations=[F.get("indexes", F.lit(n)) for n in range(8)],
        sentence=F.concat(F.lit("transactions follow each other in a cycle: "), F.col("told")),
        around=Window(F.col("since_ns"), F.col("until_ns")),
    )


@check(
    "write-cycle",
    Family.CYCLES,
    "G0",
    "transactions follow each other in a cycle, by the order of their records and real time",
    marks=[TRANSACTIONS],
)
def write_cycle(evidence: Evidence) -> DataFrame:
    return _found(evidence, WW, "write-cycle")


@check(
    "read-cycle",
    Family.CYCLES,
    "G1c",
    "transactions follow each other in a cycle, by what they were given alone",
    marks=[TRANSACTIONS],
)
def read_cycle(evidence: Evidence) -> DataFrame:
    return _found(evidence, WR, "read-cycle")


@check(
    "write-read-cycle",
    Family.CYCLES,
    "G1c (with :ww-deps)",
    "transactions follow each other in a cycle, by what they were given, the order of their records and "
    "real time",
    marks=[TRANSACTIONS],
)
def write_read_cycle(evidence: Evidence) -> DataFrame:
    return _found(evidence, _BOTH, "write-read-cycle")
