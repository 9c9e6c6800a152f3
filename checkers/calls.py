"""Operations on registers and queues as a table, and what findings tell of them.

A send is a write or an enqueue, unless its value is a marker's: those are sent by reads to see the log's end.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.columns import NEVER, NOTHING
from checkers.evidence import MAX_OPERATIONS, Window, seconds
from checkers.tables import Tables
from harness.history.model import FAILED, MARKER

REGISTER, QUEUE = "register", "queue"
CALL = "struct<inv:bigint,ret:bigint,inv_ns:bigint,ret_ns:bigint,process:int>"
CALLS = f"run int, log bigint, puts boolean, value bigint, ok boolean, failed boolean, call {CALL}"


def object_calls(tables: Tables, workload: str) -> DataFrame:
    """One row per operation on the objects of the runs with this workload: run, log, puts, value (NOTHING where a
    get found none), ok, failed, call (``ret`` is NEVER, and ``ret_ns`` null, where it did not return or nobody knows
    whether it happened). Markers are left out, and gets that certainly took nothing."""
    runs = [number for number, run in enumerate(tables.runs) if run.info.workload == workload]
    if not runs:
        return tables.small([], CALLS)
    get = "read" if workload == REGISTER else "dequeue"
    by_process = SqlWindow.partitionBy("run", "process").orderBy("index")
    following = {name: F.lead(name).over(by_process) for name in ("type", "index", "time_ns", "records")}
    events = (
        tables.history.filter(
            F.col("run").isin(runs) & F.col("f").isin("send", get) & (F.col("process") >= 0)
        )
        .select("*", *(column.alias(f"next_{name}") for name, column in following.items()))
        .filter("type = 'invoke'")
        .withColumn("kind", F.when(F.col("next_type") != "invoke", F.col("next_type")).otherwise("info"))
    )
    puts, ok = F.col("f") == "send", F.col("kind") == "ok"
    told = F.when(puts, F.get("records", F.lit(0))).otherwise(F.get("next_records", F.lit(0)))
    failed = (F.col("kind") == "fail") | (
        puts & (F.get("next_records", F.lit(0))["offset"] == FAILED) & (F.col("kind") != "info")
    )
    logs = tables.logs_of_runs.select("run", "topic", "partition", "log")
    return (
        events.join(F.broadcast(logs), ["run", "topic", "partition"])
        .withColumn("value", F.coalesce(told["value"], F.lit(NOTHING)))
        .withColumn("failed", F.coalesce(failed, F.lit(False)))
        .filter(F.when(puts, F.col("value").bitwiseAND(15) != MARKER).otherwise(~F.col("failed")))
        .select(
            "run",
            "log",
            puts.alias("puts"),
            "value",
            ok.alias("ok"),
            "failed",
            F.struct(
                F.col("index").alias("inv"),
                F.when(ok, F.col("next_index")).otherwise(NEVER).alias("ret"),
                F.col("time_ns").alias("inv_ns"),
                F.when(ok, F.col("next_time_ns")).alias("ret_ns"),
                "process",
            ).alias("call"),
        )
    )


def named(rows: DataFrame, tables: Tables) -> DataFrame:
    """Adds topic and partition to rows that know their log alone, and the offset that they have none of."""
    logs = tables.logs.select("log", "topic", "partition")
    return rows.join(F.broadcast(logs), "log").withColumn("offset", F.lit(None))


def indexes(calls: Column) -> list[Column]:
    """The events of a witness: of each operation its completion, or its invocation where there is none."""
    told = F.transform(
        calls, lambda call: F.when(call["ret_ns"].isNotNull(), call["ret"]).otherwise(call["inv"])
    )
    return [F.get(told, F.lit(n)) for n in range(MAX_OPERATIONS)]


def moment(call: str, which: str) -> Column:
    """``12.318 s``; ``the beginning`` for what was there before anything."""
    return F.coalesce(seconds(f"{call}.{which}_ns"), F.lit("the beginning"))


def around(calls: Column) -> Window:
    """The faults between a witness's first event and its last."""
    begins = F.array_min(F.transform(calls, lambda call: call["inv_ns"]))
    ends = F.array_max(F.transform(calls, lambda call: F.coalesce(call["ret_ns"], call["inv_ns"])))
    return Window(F.coalesce(begins, F.lit(0)), F.coalesce(ends, F.lit(0)))
