"""What a transaction promises to those who read (docs/anomalies.md section 5), besides what cycles show
(wrackline.checkers.cycles)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.cycles import TRANSACTIONS
from wrackline.checkers.evidence import Window, findings, place, say, seconds
from wrackline.checkers.registry import Evidence, Family, check


@check(
    "precommitted-read",
    Family.TRANSACTIONS,
    "precommitted-read",
    "a transaction was given a record of its own, which is not committed before the transaction is",
    marks=[TRANSACTIONS],
)
def precommitted_read(evidence: Evidence) -> DataFrame:
    """Whatever became of the transaction: its polls come before its end. Once per record."""
    tables = evidence.tables
    events = tables.history.filter("f in ('send', 'poll') and extra like '%\"txn\"%'").select(
        *("run", "index", "time_ns", "process", "type", "f", "topic"),
        F.get_json_object("extra", "$.txn").cast("bigint").alias("txn"),
        F.explode("records").alias("record"),
    )
    keys = ["run", "txn", "topic", "partition", "value"]
    records = events.select(
        "*", *(F.col(f"record.{name}").alias(name) for name in ("partition", "offset", "value"))
    ).filter("value >= 0")
    sent = records.filter("f = 'send' and type = 'invoke'").select(
        *keys, F.col("index").alias("invoke_index"), F.col("time_ns").alias("invoke_ns")
    )
    given = (
        records.filter("f = 'poll' and type = 'ok'")
        .groupBy(*keys)
        .agg(F.min(F.struct("index", "time_ns", "process", "offset")).alias("poll"))
        .select(*keys, "poll.*")
    )
    logs = F.broadcast(tables.logs_of_runs.select("run", "topic", "partition", "log"))
    return findings(
        given.join(sent, keys).join(logs, ["run", "topic", "partition"]),
        "precommitted-read",
        operations=["invoke_index", "index"],
        sentence=say(
            "transaction %d sent value %d at %s and was given it itself, at offset %d of %s at %s: the value "
            "cannot have been committed by then",
            *("txn", "value", seconds("invoke_ns"), "offset", place(), seconds("time_ns")),
        ),
        around=Window(F.col("invoke_ns"), F.col("time_ns")),
    )
