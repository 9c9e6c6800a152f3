"""Places: one row per (offset, value) that anybody was told of, with who said so when, beside the send it came
from, and what is known above it in the log. Nearly every anomaly is a filter over this one table.

The table is built in three shuffles: what was seen, grouped by place; joined with the sends, by value; and one
window per partition from the highest offset down, which carries the *earliest* proof that the log had grown past
a row (linearizability.md 3.2, rule 3). Whatever was invoked after such a proof came too late for its offset:
a send there is out of order, an end offset there is stale.

Rows of the window, at one offset in this order (``step``):

====  =================================================================================================
0     ``end`` told offset + 1: the record at ``offset`` existed when it returned
10    a place that is in the final read    11  another place clients were told of    12  in replicas only
20    ``end`` told ``offset``: nothing at or past it had been appended when it was invoked
30    a consumer stood at ``offset`` and was next given ``told``
40    just below the log's start
50    a send without a place (offset null)
====  =================================================================================================
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from checkers.tables import Tables

END_TOLD, IN_FINAL, TOLD, IN_REPLICAS, END_ASKED, JUMP, FLOOR, NOWHERE = 0, 10, 11, 12, 20, 30, 40, 50


def places(tables: Tables, jumps: DataFrame) -> DataFrame:
    """The table described above. ``jumps``: run, topic, partition, offset, told, complete_index, complete_ns, process
    of reads that went past offsets, which may or may not have held anything."""
    rows = (
        with_sends(cells(tables), tables)
        .unionByName(_ends(tables.ends), allowMissingColumns=True)
        .unionByName(jumps.withColumn("step", F.lit(JUMP)), allowMissingColumns=True)
        .unionByName(_floors(tables.logs), allowMissingColumns=True)
    )
    return looking_up(rows)


def cells(tables: Tables) -> DataFrame:
    """What was seen, by (run, topic, partition, offset, value)."""
    of = F.col("f")
    below_hw = (of == "replica") & (F.col("offset") < F.col("hw"))
    index, time_ns, epoch = F.col("index"), F.col("time_ns"), F.col("leader_epoch")
    return tables.seen.groupBy("run", "topic", "partition", "offset", "value").agg(
        F.max(of == "send").alias("acked"),
        F.min(F.when(of == "poll", time_ns)).alias("poll_ns"),
        F.min(F.when(of == "poll", index)).alias("poll_index"),
        F.min(F.when(of == "drain", time_ns)).alias("final_ns"),
        F.min(F.when(of == "drain", index)).alias("final_index"),
        F.min(F.when(of == "replica", index)).alias("replica_index"),
        F.bit_or(F.when(of == "replica", F.expr("shiftleft(1L, bit)"))).alias("held"),
        F.min(F.when(below_hw, index)).alias("hw_index"),
        F.min(F.when(below_hw, epoch)).alias("epoch_low"),
        F.max(F.when(below_hw, epoch)).alias("epoch_high"),
        F.max(F.when(epoch >= 0, epoch)).alias("epoch"),
    )


def with_sends(seen: DataFrame, tables: Tables) -> DataFrame:
    """Places beside the sends of their values; sends nobody saw and values nobody sent are there too."""
    sent = tables.sends.select(
        "run",
        F.col("value").alias("key"),
        F.col("topic").alias("sent_topic"),
        F.col("partition").alias("sent_partition"),
        F.col("offset").alias("sent_offset"),
        *("process", "node", "outcome", "error", "earlier"),
        *("invoke_index", "invoke_ns", "complete_index", "complete_ns"),
    )
    # Values of payloads that are no records of a run are all the same: as keys they get one value each.
    key = F.when(F.col("value") >= 0, F.col("value")).otherwise(-3 - F.col("offset"))
    joined = (
        seen.withColumn("key", key)
        .join(sent, ["run", "key"], "full")
        .withColumn("topic", F.coalesce("topic", "sent_topic"))
        .withColumn("partition", F.coalesce("partition", "sent_partition"))
        .withColumn("value", F.coalesce("value", "key"))
        .withColumn("acked", F.coalesce("acked", F.lit(False)))
        .join(F.broadcast(tables.logs), ["run", "topic", "partition"], "left")
        .withColumn("complete", F.coalesce("complete", F.lit(False)))
    )
    return _with_other_places(joined)


def _with_other_places(joined: DataFrame) -> DataFrame:
    """Adds, per value: ``in_final``, ``was_polled``, ``first`` (this row speaks for the value) and ``original``
    (its lowest place in the partition it was sent to)."""
    by_value = Window.partitionBy("run", "key")
    in_final = F.col("final_index").isNotNull()
    polled = F.col("poll_index").isNotNull()
    # A record that was polled and is gone is a vanished read; its value elsewhere is then no second copy.
    stands = F.col("acked") | in_final | (polled & ~F.col("complete"))
    home = (F.col("partition") == F.col("sent_partition")) & (F.col("topic") == F.col("sent_topic"))
    here = F.struct("topic", "partition", "offset")
    client = F.col("acked") | in_final | polled
    return (
        joined.withColumn("stands", stands)
        .withColumn(
            "index", F.least(F.when(F.col("acked"), F.col("complete_index")), "poll_index", "final_index")
        )
        .withColumn("in_final", F.max(in_final).over(by_value))
        .withColumn("was_polled", F.max(polled).over(by_value))
        .withColumn("original", F.min(F.when(stands & home, F.struct("offset", "index"))).over(by_value))
        .withColumn("first", F.col("offset").isNull() | (F.min(here).over(by_value) == here))
        .withColumn(
            "step",
            F.when(F.col("offset").isNull(), NOWHERE)
            .when(in_final, IN_FINAL)
            .when(client, TOLD)
            .otherwise(IN_REPLICAS),
        )
    )


def _ends(ends: DataFrame) -> DataFrame:
    """Each end offset twice: as proof of what existed, and as a claim of what did not."""
    proof = ends.filter("told > 0").select(
        "*", (F.col("told") - 1).alias("offset"), F.lit(END_TOLD).alias("step")
    )
    claim = ends.select("*", F.col("told").alias("offset"), F.lit(END_ASKED).alias("step"))
    return proof.unionByName(claim)


def _floors(logs: DataFrame) -> DataFrame:
    return logs.select(
        *("run", "topic", "partition", "log_start", "log_end", "complete", "idempotent"),
        (F.col("log_start") - 1).alias("offset"),
        F.lit(FLOOR).alias("step"),
    )


def looking_up(rows: DataFrame) -> DataFrame:
    """Adds what is known at and above each row: ``by_ack``, ``by_settled_ack`` (of a record that is in the final
    read), ``by_poll``, ``by_final``, ``by_end``: the earliest proof, struct<ns, index, offset, value>, that the log
    had this offset; and the nearest rows above: ``next_told``, ``next_final``, ``next_committed``,
    ``next_known`` (offset) and ``next_point`` (offset), ``proved_ns`` (earliest proof strictly above)."""
    by_log = Window.partitionBy("run", "topic", "partition").orderBy(
        F.col("offset").desc_nulls_last(), "step", "value"
    )
    here_and_above = by_log.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    above = by_log.rowsBetween(Window.unboundedPreceding, -1)
    step = F.col("step")
    place = step.between(IN_FINAL, TOLD)
    acked = place & F.col("acked")
    final = step == IN_FINAL

    def proof(when: Column, ns: str, index: str) -> Column:
        known = F.struct(F.col(ns).alias("ns"), F.col(index).alias("index"), "offset", "value")
        return F.when(when, known)

    def nearest(when: Column, *columns: str) -> Column:
        return F.min(F.when(when, F.struct("offset", *columns))).over(above)

    earliest = F.least(
        F.when(acked | (step == END_TOLD), F.col("complete_ns")),
        F.when(place, F.col("poll_ns")),
        F.when(final, F.col("final_ns")),
    )
    return (
        rows.withColumn("by_ack", F.min(proof(acked, "complete_ns", "complete_index")).over(here_and_above))
        .withColumn(
            "by_settled_ack",
            F.min(proof(acked & final, "complete_ns", "complete_index")).over(here_and_above),
        )
        .withColumn(
            "by_poll",
            F.min(proof(place & F.col("poll_ns").isNotNull(), "poll_ns", "poll_index")).over(here_and_above),
        )
        .withColumn("by_final", F.min(proof(final, "final_ns", "final_index")).over(here_and_above))
        .withColumn(
            "by_end", F.min(proof(step == END_TOLD, "complete_ns", "complete_index")).over(here_and_above)
        )
        .withColumn("next_told", nearest(place & (F.col("value") >= 0), "index", "value"))
        .withColumn("next_final", nearest(final, "final_index", "value"))
        .withColumn(
            "next_committed", nearest(F.col("hw_index").isNotNull(), "hw_index", "value", "epoch_high")
        )
        .withColumn("next_known", F.min(F.when(place, F.col("offset"))).over(above))
        .withColumn("next_point", F.min(F.when(place | (step == END_TOLD), F.col("offset"))).over(above))
        .withColumn("proved_ns", F.min(earliest).over(above))
    )
