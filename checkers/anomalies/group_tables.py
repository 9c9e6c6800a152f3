"""Tables of what groups did: who committed what, where members were put, what they were given.

The rows that tell of groups (``commit``, ``committed``, ``rebalance``: wrackline.history.model) are few
beside records, so these are plain queries. Only what members were given, and what of it is in the final read,
looks at records.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F
from pyspark.sql import types as T

from wrackline.checkers.anomalies.keys import lasting
from wrackline.checkers.anomalies.registry import Evidence
from wrackline.checkers.engine.tables import Tables
from wrackline.checkers.inputs.operations import ROWS_OF_MEMBERS

COMMIT, COMMITTED, REBALANCE = "commit", "committed", "rebalance"
KINDS = frozenset({COMMIT, COMMITTED, "subscribe", *ROWS_OF_MEMBERS})
"""Where none of these is, there is no group."""
_OFFSETS = T.MapType(T.StringType(), T.LongType())
_LOG = ("run", "log", "topic", "partition", "log_start", "log_end", "complete")


def said(name: str) -> Column:
    return F.get_json_object("extra", f"$.{name}")


def by_partition(rows: DataFrame, map_name: str, tables: Tables) -> DataFrame:
    """One row per partition named in a map of ``extra``: with log, and ``offset`` = what the map says of
    it."""
    told = rows.select(
        *rows.columns, F.explode(F.from_json(said(map_name), _OFFSETS)).alias("named", "offset")
    )
    return told.withColumn("partition", F.expr("try_cast(named as int)")).join(
        F.broadcast(tables.logs_of_runs), ["run", "topic", "partition"]
    )


def _with_groups(tables: Tables) -> list[int]:
    return [number for number, run in enumerate(tables.runs) if run.kinds & KINDS]


def _history(tables: Tables) -> DataFrame:
    return tables.events(_with_groups(tables))


def _of_members(tables: Tables) -> DataFrame:
    """Events of the kinds that groups alone have, and ``assign``."""
    return tables.events(_with_groups(tables), KINDS | {"assign"})


def events(tables: Tables, *kinds: str) -> DataFrame:
    """``kinds``: some of ``_of_members``."""
    return (
        _of_members(tables)
        .filter(F.col("f").isin(*kinds))
        .select("run", "index", "time_ns", "process", "type", "f", "topic", "extra")
    )


def operations(tables: Tables, f: str) -> DataFrame:
    """One row per partition of a ``commit`` or ``committed``: group, member, generation, log, offset,
    process, the operation's indexes and times (null when it never completed), type, and of what belongs to a
    transaction its number and what was asked for; ``mode`` (sync, async or empty). An offset is -1 where
    nothing was told to be committed."""
    by_process = SqlWindow.partitionBy("run", "process").orderBy("index")
    names = ("type", "index", "time_ns", "extra")
    rows = events(tables, f).select(
        "*", *(F.lead(name).over(by_process).alias(f"next_{name}") for name in names)
    )
    answered = F.coalesce(F.col("next_type") != "invoke", F.lit(False))

    def completion(name: str) -> Column:
        return F.when(answered, F.col(f"next_{name}"))

    whole = rows.filter("type = 'invoke'").select(
        *("run", "process", "topic"),
        F.col("index").alias("invoke_index"),
        F.col("time_ns").alias("invoke_ns"),
        completion("index").alias("complete_index"),
        completion("time_ns").alias("complete_ns"),
        F.coalesce(completion("type"), F.lit("info")).alias("type"),
        F.coalesce(completion("extra"), F.col("extra")).alias("extra"),
    )
    told = by_partition(whole, "offsets", tables).filter(F.col("offset") >= (0 if f == COMMIT else -1))
    return told.select(
        *_LOG,
        *("process", "offset", "invoke_index", "invoke_ns", "complete_index", "complete_ns", "type"),
        F.coalesce(said("group"), F.lit("")).alias("group"),
        said("member").alias("member"),
        said("generation").cast("bigint").alias("generation"),
        said("txn").cast("bigint").alias("txn"),
        said("asked").alias("asked"),
        F.coalesce(said("mode"), F.lit("")).alias("mode"),
    )


_MOVE = ("run", "log", "process", "member", "index as at")


def _moves(tables: Tables) -> DataFrame:
    moves = events(tables, "assign", REBALANCE).filter("type = 'ok'")
    return moves.withColumn("member", said("member"))


def rewinds(tables: Tables) -> DataFrame:
    """run, log, process, member, at (index), start: where a consumer was put by itself or by its group."""
    return by_partition(_moves(tables), "positions", tables).selectExpr(*_MOVE, "offset as start")


def untold(tables: Tables) -> DataFrame:
    """run, log, process, member, at (index): where a group gave a partition and nobody told from where."""
    given = _moves(tables).select(
        "*",
        F.explode(F.from_json(said("partitions"), "array<int>")).alias("partition"),
        F.from_json(F.coalesce(said("positions"), F.lit("{}")), _OFFSETS).alias("told"),
    )
    without = given.filter(~F.array_contains(F.map_keys("told"), F.col("partition").cast("string")))
    return without.join(F.broadcast(tables.logs_of_runs), ["run", "topic", "partition"]).selectExpr(*_MOVE)


def with_largest_before(asked: DataFrame, acked: DataFrame) -> DataFrame:
    """Each row beside the largest offset whose commit had succeeded before it was invoked: before.offset,
    .index, .ns (of its completion), .since (of its invocation)."""
    keys = ("run", "log", "group")
    told = F.struct(
        F.col("offset"),
        F.col("complete_index").alias("index"),
        F.col("complete_ns").alias("ns"),
        F.col("invoke_index").alias("since"),
    )
    events = asked.select(
        *keys, F.col("invoke_index").alias("at"), F.struct("*").alias("row"), F.lit(None).alias("told")
    )
    proofs = acked.select(
        *keys, F.col("complete_index").alias("at"), F.lit(None).alias("row"), told.alias("told")
    )
    until_here = SqlWindow.partitionBy(*keys).orderBy("at").rowsBetween(SqlWindow.unboundedPreceding, -1)
    return (
        events.union(proofs)
        .withColumn("before", F.max("told").over(until_here))
        .filter("row is not null")
        .select("row.*", "before")
    )


def reached(tables: Tables) -> DataFrame:
    """How far a group committed, one row per partition: run, log, topic, partition, log_start, log_end,
    complete, group, last (offset, complete_index, complete_ns, process: of the largest offset whose commit
    succeeded), low_commit (the smallest)."""
    last = F.max(F.struct("offset", "complete_index", "complete_ns", "process")).alias("last")
    commits = operations(tables, COMMIT).filter("type = 'ok'")
    return commits.groupBy(*_LOG, "group").agg(last, F.min("offset").alias("low_commit"))


MAY_FOLLOW = "c.run = {0}.run and c.log = {0}.log and c.group = {0}.group and c.until > {0}.before.since"
"""Commit c may have taken effect after ``before`` did."""


def accounts(commits: DataFrame) -> DataFrame:
    """Commits that took effect, or may have, and until when they may. Of a transaction of which nothing but
    its abort was asked for it may not."""
    return commits.filter("type != 'fail' and coalesce(asked, '') != 'abort'").select(
        *("run", "log", "group", "offset", "invoke_index"),
        F.when(F.col("type") == "ok", F.col("complete_index")).otherwise(F.lit(2**62)).alias("until"),
    )


def members(tables: Tables) -> DataFrame:
    """run, process, group: every consumer that ever told of a group. One that assigns reads for a group only
    where it says so: its commits may be those of a transaction, and of another process."""
    named = said("group")
    told = (
        _of_members(tables)
        .filter(
            F.col("f").isin(COMMIT, REBALANCE, "subscribe") | ((F.col("f") == "assign") & named.isNotNull())
        )
        .select("run", "process", F.coalesce(named, F.lit("")).alias("group"))
    )
    return told.distinct()


def deliveries(tables: Tables) -> DataFrame:
    """One row per record that a member of a group was given: run, log, group, offset, undone (the transaction
    that it was given to was aborted), poll_index, poll_ns, poll_process."""
    polls = (
        _history(tables)
        .filter("f = 'poll' and type = 'ok'")
        .join(F.broadcast(members(tables)), ["run", "process"])
    )
    records = polls.select(
        *("run", "topic", "group", F.explode("records").alias("record")),
        F.coalesce(said("aborted") == "fail", F.lit(False)).alias("undone"),
        F.col("index").alias("poll_index"),
        F.col("time_ns").alias("poll_ns"),
        F.col("process").alias("poll_process"),
    ).select("*", "record.partition", "record.offset")
    logs = F.broadcast(tables.logs_of_runs.select("run", "topic", "partition", "log"))
    return records.join(logs, ["run", "topic", "partition"]).select(
        "run", "log", "group", "offset", "undone", "poll_index", "poll_ns", "poll_process"
    )


def kept(evidence: Evidence) -> DataFrame:
    """One row per record of the final read that no later one of its key follows: run, topic, partition,
    offset, value, final_index."""
    drained = (
        _history(evidence.tables)
        .filter("f = 'drain' and type = 'ok'")
        .select(*("run", "topic", "index"), F.explode("records").alias("record"))
    )
    records = drained.select(
        *("run", "topic", F.col("record.partition").alias("partition"), F.col("index").alias("final_index")),
        *("record.offset", "record.value"),
    )
    return lasting(records.filter("value >= 0"), evidence)


def duplicates(tables: Tables) -> DataFrame:
    """The metric ``group-duplicates``: run, group, deliveries, records (different ones)."""
    of_record = deliveries(tables).groupBy("run", "group", "log", "offset").agg(F.count("*").alias("n"))
    return of_record.groupBy("run", "group").agg(
        F.sum("n").alias("deliveries"), F.count("*").alias("records")
    )
