"""What the operations told that a suspect is held against: the ack, read or end offset that came before it.

The table of places carries only the *index* of each such operation. When there are suspects, and there are few or
none in most runs, the events themselves are looked up here for the sentence that tells of them.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from checkers.places import BROADCAST_ROWS
from checkers.tables import Tables, keep, partition_of

COLUMNS = "run int, log bigint, index bigint, shown_f string, shown_ns bigint, shown_offset bigint, shown_value bigint"


def witnesses(suspects: DataFrame, late: Column, tables: Tables) -> DataFrame:
    """run, log, index, shown_f (send, poll, end, drain), shown_ns, shown_offset (the largest it told of the log),
    shown_value (null for ends)."""
    proofs = F.array("by_ack", "by_settled_ack", "by_poll", "by_end", "by_final", "above")
    wanted = keep(
        suspects.filter(late)
        .select("run", "log", F.explode(F.array_compact(proofs)).alias("index"))
        .distinct()
    )
    if wanted.isEmpty():
        return tables.small([], COLUMNS)
    few = wanted.limit(BROADCAST_ROWS + 1).count() <= BROADCAST_ROWS
    events = tables.history.filter("type != 'invoke' and process >= 0").select(
        "run", "index", "f", "time_ns", "high_watermark", "records"
    )
    here = F.filter("records", lambda record: record["partition"] == partition_of("log"))
    last = F.array_max(F.transform(here, lambda record: F.struct(record["offset"], record["value"])))
    found = events.join(F.broadcast(wanted) if few else wanted, ["run", "index"]).withColumn("last", last)
    is_end = F.col("f") == "end"
    return keep(
        found.select(
            *("run", "log", "index"),
            F.col("f").alias("shown_f"),
            F.col("time_ns").alias("shown_ns"),
            F.when(is_end, F.col("high_watermark") - 1).otherwise(F.col("last.offset")).alias("shown_offset"),
            F.when(~is_end, F.col("last.value")).alias("shown_value"),
        )
    )


def against(rows: DataFrame, index: Column, known: DataFrame) -> DataFrame:
    """Rows beside what the operation with ``index`` told of their log: shown (its index), shown_f and so on."""
    return rows.withColumn("shown", index).join(
        known.withColumnRenamed("index", "shown"), ["run", "log", "shown"], "left"
    )
