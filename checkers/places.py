"""Places: one row per (offset, value) that anybody was told of, with who said so when, beside the send it came
from, and what is known above it in the log. Nearly every anomaly is a filter over this one table.

It is built in two steps. ``places`` goes over everything once: what was read, grouped by place; beside it the sends
that were told this place; and one window per partition from the highest offset down, which carries the *earliest*
proof that the log had grown past a row (linearizability.md 3.2, rule 3). Whatever was invoked after such a proof came
too late for its offset: a send there is out of order, an end offset there is stale. ``with_strays`` then takes up,
by value, what is usually little: places that no ack named, and sends that were told no place.

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

from checkers.tables import Tables, partition_of, placed, run_of

END_TOLD, IN_FINAL, TOLD, IN_REPLICAS, END_ASKED, JUMP, FLOOR, NOWHERE = 0, 10, 11, 12, 20, 30, 40, 50
BROADCAST_ROWS = 100_000
_SEND = (
    *("process", "outcome", "error", "node"),
    *("invoke_index", "invoke_ns", "complete_index", "complete_ns"),
    *("earlier_offset", "earlier_value", "earlier_index"),
)


def places(tables: Tables, jumps: DataFrame) -> DataFrame:
    """Every place, beside the send whose ack named it, and the other rows of the window. ``jumps``: log, offset,
    told, process, invoke_index, complete_index, complete_ns of reads that went past offsets, which may or may not
    have held anything."""
    rows = (
        _with_acks(cells(tables), tables)
        .unionByName(_ends(tables.ends), allowMissingColumns=True)
        .unionByName(jumps.withColumn("step", F.lit(JUMP)), allowMissingColumns=True)
        .unionByName(_floors(tables.logs), allowMissingColumns=True)
    )
    return _looking_up(rows).join(F.broadcast(tables.logs), "log", "left")


def cells(tables: Tables) -> DataFrame:
    """What was read, by (log, offset, value)."""
    of, index = F.col("f"), F.col("index")
    below_hw = (of == "replica") & (F.col("offset") < F.col("hw"))
    epoch = F.col("leader_epoch")
    # All that follows is about single logs: one shuffle serves the grouping, the join and the window.
    return (
        tables.seen.repartition("log")
        .groupBy("log", "offset", "value")
        .agg(
            F.min(F.when(of == "poll", F.col("time_ns"))).alias("poll_ns"),
            F.min(F.when(of == "poll", index)).alias("poll_index"),
            F.min(F.when(of == "drain", index)).alias("final_index"),
            F.min(F.when(of == "replica", index)).alias("replica_index"),
            F.bit_or("bit").alias("held"),
            F.min(F.when(below_hw, index)).alias("hw_index"),
            F.min(F.when(below_hw, epoch)).alias("epoch_low"),
            F.max(F.when(below_hw, epoch)).alias("epoch_high"),
        )
    )


def _with_acks(seen: DataFrame, tables: Tables) -> DataFrame:
    acks = placed(tables.sends).select("log", "offset", "value", *_SEND).repartition("log")
    acked = F.col("outcome").isNotNull()
    told = acked | F.col("poll_index").isNotNull()
    step = F.when(F.col("final_index").isNotNull(), IN_FINAL).when(told, TOLD).otherwise(IN_REPLICAS)
    return seen.join(acks, ["log", "offset", "value"], "full").select(
        "*", acked.alias("acked"), step.alias("step"), F.col("offset").alias("sent_offset")
    )


def _ends(ends: DataFrame) -> DataFrame:
    """Each end offset twice: as proof of what existed, and as a claim of what did not."""
    proof = ends.filter("told > 0").select(
        "*", (F.col("told") - 1).alias("offset"), F.lit(END_TOLD).alias("step")
    )
    claim = ends.select("*", F.col("told").alias("offset"), F.lit(END_ASKED).alias("step"))
    return proof.unionByName(claim)


def _floors(logs: DataFrame) -> DataFrame:
    return logs.select("log", (F.col("log_start") - 1).alias("offset"), F.lit(FLOOR).alias("step"))


def _looking_up(rows: DataFrame) -> DataFrame:
    """Adds what is known at and above each row. The index of the earliest proof that the log had this offset:
    ``by_ack``, ``by_settled_ack`` (of a record that is in the final read), ``by_poll``, ``by_final``, ``by_end``. The
    nearest rows above, or beside at the same offset: ``told_offset``, ``told_value``, ``told_index`` (of what clients
    were told), ``final_offset``, ``final_value``, ``final_at`` (of the final read), ``hw_offset``, ``hw_value``,
    ``hw_at``, ``hw_epoch`` (of what replicas hold below their high watermark), ``known_offset`` (of any place clients
    were told of) and ``point_offset`` (also of ends). ``above``: the earliest proof strictly above."""
    by_log = Window.partitionBy("log").orderBy(F.col("offset").desc_nulls_last(), "step", "value")
    down_to_here = by_log.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    above = by_log.rowsBetween(Window.unboundedPreceding, -1)
    step, place = F.col("step"), F.col("step").between(IN_FINAL, TOLD)
    final, acked = step == IN_FINAL, place & F.col("acked")
    committed, ours = F.col("hw_index").isNotNull(), place & (F.col("value") >= 0)
    ack = F.when(acked, F.col("complete_index"))
    end = F.when(step == END_TOLD, F.col("complete_index"))
    index = F.least(ack, "poll_index", "final_index")

    def nearest(when: Column, what: Column | str) -> Column:
        column = F.col(what) if isinstance(what, str) else what
        return F.last(F.when(when, column), ignorenulls=True).over(above)

    return rows.select(
        "*",
        index.alias("index"),
        F.min(ack).over(down_to_here).alias("by_ack"),
        F.min(F.when(final, ack)).over(down_to_here).alias("by_settled_ack"),
        F.min("poll_index").over(down_to_here).alias("by_poll"),
        F.min("final_index").over(down_to_here).alias("by_final"),
        F.min(end).over(down_to_here).alias("by_end"),
        F.min(F.least(index, end)).over(above).alias("above"),
        nearest(ours, "offset").alias("told_offset"),
        nearest(ours, "value").alias("told_value"),
        nearest(ours, index).alias("told_index"),
        nearest(final, "offset").alias("final_offset"),
        nearest(final, "value").alias("final_value"),
        nearest(final, "final_index").alias("final_at"),
        nearest(committed, "offset").alias("hw_offset"),
        nearest(committed, "value").alias("hw_value"),
        nearest(committed, "hw_index").alias("hw_at"),
        nearest(committed, "epoch_high").alias("hw_epoch"),
        nearest(place, "offset").alias("known_offset"),
        nearest(place | (step == END_TOLD), "offset").alias("point_offset"),
    )


def is_stray() -> Column:
    """A place that no ack named: whose send it came from must be found by value."""
    return F.col("step").between(IN_FINAL, IN_REPLICAS) & ~F.col("acked")


def with_strays(suspects: DataFrame, tables: Tables) -> DataFrame:
    """The places some check wants to see, with each stray beside the send of its value (none: nobody sent it), and
    with the sends that were told no place and are in none. Adds ``run``, ``sent_log``, and per value: ``in_final``,
    ``was_polled``, ``first`` (this row speaks for the value), ``stands`` and ``original`` (its lowest place in the
    partition it was sent to)."""
    own = suspects.filter(~is_stray()).withColumn("sent_log", F.col("log"))
    strays = suspects.filter(is_stray()).withColumn("run", run_of("log"))
    sent = tables.sends.select(
        "run",
        "value",
        F.col("log").alias("sent_log"),
        F.col("offset").alias("sent_offset"),
        *(F.lit(None).cast("bigint").alias(name) if name.startswith("earlier") else name for name in _SEND),
    )
    few = strays.filter("value >= 0").select("run", "value").distinct()
    if strays.isEmpty():
        found = strays.withColumn("sent_log", F.lit(None).cast("bigint"))
        homeless = sent.filter("sent_offset is null")
    else:
        many = few.limit(BROADCAST_ROWS + 1).count() > BROADCAST_ROWS
        theirs = sent.join(few if many else F.broadcast(few), ["run", "value"])
        found = strays.drop(*_SEND, "sent_offset").join(theirs, ["run", "value"], "left")
        homeless = sent.filter("sent_offset is null").join(
            few if many else F.broadcast(few), ["run", "value"], "anti"
        )
    nowhere = (
        homeless.withColumn("log", F.col("sent_log"))
        .withColumn("step", F.lit(NOWHERE))
        .withColumn("acked", F.lit(False))
        .join(F.broadcast(tables.logs), "log", "left")
    )
    rows = (
        own.withColumn("run", run_of("log"))
        .unionByName(found)
        .unionByName(nowhere, allowMissingColumns=True)
        .withColumn("complete", F.coalesce("complete", F.lit(False)))
        .withColumn("partition", F.coalesce("partition", partition_of("log")))
    )
    return _by_value(rows)


def _by_value(rows: DataFrame) -> DataFrame:
    # Rows without a value, and payloads that are no records of a run, get keys of their own.
    nobodys = F.col("value").isNull() | (F.col("value") < 0)
    key = F.when(nobodys, -1 - F.monotonically_increasing_id()).otherwise(F.col("value"))
    by_value = Window.partitionBy("run", "key")
    in_final, polled = F.col("final_index").isNotNull(), F.col("poll_index").isNotNull()
    # A record that was polled and is gone is a vanished read; its value elsewhere is then no second copy.
    stands = F.col("acked") | in_final | (polled & ~F.col("complete"))
    home = F.col("log") == F.col("sent_log")
    at = F.struct("acked", "log", "offset")
    return (
        rows.withColumn("key", key)
        .withColumn("stands", stands)
        .withColumn("home", home)
        .withColumn("in_final", F.coalesce(F.max(in_final).over(by_value), F.lit(False)))
        .withColumn("was_polled", F.coalesce(F.max(polled).over(by_value), F.lit(False)))
        .withColumn("original", F.min(F.when(stands & home, F.struct("offset", "index"))).over(by_value))
        .withColumn("first", F.col("offset").isNull() | (F.min(at).over(by_value) == at))
        .drop("key")
    )
