"""What the generations of a group promise (docs/anomalies.md section 5): each begins where its group had
committed, what is committed somebody committed, and a partition has one owner.

A ``rebalance`` row tells which partitions a member has from then on (wrackline.history.model). A member is
known by the name that the group gave it, where the client tells that, else by its process.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import Window, findings, place, say, seconds
from wrackline.checkers.anomalies.group_tables import (
    COMMIT,
    COMMITTED,
    MAY_FOLLOW,
    REBALANCE,
    accounts,
    by_partition,
    events,
    operations,
    said,
    with_largest_before,
)
from wrackline.checkers.anomalies.registry import Evidence, Family, check
from wrackline.checkers.engine.tables import Tables

CRASH = "crash"
_IN_A_GENERATION = ("run", "group", "generation")
_COMMITTED_ONLY = "read_committed"


def _generation() -> Column:
    return said("generation").cast("bigint")


def _group() -> Column:
    return F.coalesce(said("group"), F.lit(""))


def _starts(tables: Tables) -> DataFrame:
    """One row per partition of which a member was told where it begins: run, log, topic, partition, group,
    generation, process, invoke_index and ns (of that row), start, joined (when its process subscribed; null
    where that is not on record)."""
    rows = (
        events(tables, REBALANCE)
        .filter("type = 'ok'")
        .withColumns({"group": _group(), "generation": _generation()})
    )
    told = by_partition(rows, "positions", tables).filter("offset >= 0")
    joined = events(tables, "subscribe").groupBy("run", "process").agg(F.min("index").alias("joined"))
    return told.join(joined, ["run", "process"], "left").select(
        *("run", "log", "topic", "partition", "group", "generation", "process", "joined"),
        F.col("index").alias("invoke_index"),
        F.col("time_ns").alias("ns"),
        F.col("offset").alias("start"),
    )


def _settled(commits: DataFrame, tables: Tables) -> DataFrame:
    """Commits that whoever asks later must be told: those that succeeded. The offsets of a transaction become
    visible some time after its commit has succeeded, and only clients at read_committed wait for that."""
    rows = [(number, run.info.isolation) for number, run in enumerate(tables.runs)]
    readers = F.broadcast(tables.small(rows, "run int, isolation string"))
    wait = F.col("txn").isNull() | (F.col("isolation") == _COMMITTED_ONLY)
    return commits.filter("type = 'ok'").join(readers, "run").filter(wait)


@check(
    "forgotten-commit",
    Family.GROUPS,
    "–",
    "a generation of a group begins before what the group had committed",
    needs=[COMMIT],
)
def forgotten_commit(evidence: Evidence) -> DataFrame:
    """Only of commits that the new owner must know of: made under an older generation, which the group has
    fenced by then, or answered before the new owner subscribed. An asynchronous one may have been sent later
    than it was asked for, under another generation. Where another commit, that may have taken effect later,
    is of the very offset that it begins at, nothing was forgotten."""
    tables = evidence.tables
    commits = operations(tables, COMMIT)
    settled = _settled(commits, tables)
    below = with_largest_before(_starts(tables), settled).filter("before.offset > start").drop("before")
    older = (
        "c.run = s.run and c.log = s.log and c.group = s.group and c.complete_index < s.invoke_index "
        "and c.offset > s.start "
        "and ((c.mode != 'async' and c.generation < s.generation) or c.complete_index < s.joined)"
    )
    last = F.max(
        F.struct(
            F.col("c.offset"),
            *(F.col(f"c.{name}") for name in ("complete_index", "complete_ns", "process")),
            F.col("c.invoke_index").alias("since"),
        )
    )
    keys = ("run", "log", "topic", "partition", "group", "process", "invoke_index", "ns", "start")
    behind = (
        below.alias("s")
        .join(settled.alias("c"), F.expr(older))
        .groupBy(*(F.col(f"s.{name}").alias(name) for name in keys))
        .agg(last.alias("before"))
    )
    begun_there = "c.offset = b.start and c.invoke_index < b.invoke_index"
    forgotten = behind.alias("b").join(
        accounts(commits).alias("c"), F.expr(f"{MAY_FOLLOW.format('b')} and {begun_there}"), "anti"
    )
    return findings(
        forgotten.withColumn("offset", F.col("start")),
        "forgotten-commit",
        operations=["before.since", "before.complete_index", "invoke_index"],
        sentence=say(
            "process %d was given %s by group %s at %s, from offset %d, though process %d had committed "
            "offset %d at %s",
            *("process", place(), "group", seconds("ns"), "start", "before.process", "before.offset"),
            seconds("before.complete_ns"),
        ),
        around=Window(F.col("before.complete_ns"), F.col("ns")),
    )


@check(
    "phantom-commit",
    Family.GROUPS,
    "–",
    "an offset is told to be committed that nobody committed",
    needs=[COMMITTED],
)
def phantom_commit(evidence: Evidence) -> DataFrame:
    """By commits that did not certainly fail, and that had been asked for by then; the commit of a
    transaction of which nothing but its abort was asked for is none."""
    tables = evidence.tables
    told = operations(tables, COMMITTED).filter("type = 'ok' and offset >= 0")
    by_then = (
        "c.run = t.run and c.log = t.log and c.group = t.group and c.offset = t.offset "
        "and c.invoke_index < t.complete_index"
    )
    rows = told.alias("t").join(accounts(operations(tables, COMMIT)).alias("c"), F.expr(by_then), "anti")
    return findings(
        rows,
        "phantom-commit",
        operations=["invoke_index", "complete_index"],
        sentence=say(
            "process %d was told at %s that offset %d of %s is committed for group %s, which nobody had "
            "committed",
            *("process", seconds("complete_ns"), "offset", place(), "group"),
        ),
        around=Window(F.lit(0), F.col("complete_ns")),
    )


def _owned(tables: Tables) -> DataFrame:
    """One row per partition that a rebalance left a member with: run, log, topic, partition, group, who,
    process, generation, protocol, at (index), ns, and ``until``: the index of the first later row of its
    process that leaves it without the partition (or says that it crashed); null: there is none."""
    told = F.when(F.col("f") == REBALANCE, F.from_json(said("partitions"), "array<int>"))
    has = F.coalesce(told, F.array().cast("array<int>"))
    of_process = SqlWindow.partitionBy("run", "process").orderBy("at")
    rows = (
        events(tables, REBALANCE, CRASH)
        .filter("type = 'ok'")
        .select(
            *("run", "process", "topic", "f"),
            F.col("index").alias("at"),
            F.col("time_ns").alias("ns"),
            *(_group().alias("group"), _who().alias("who"), _generation().alias("generation")),
            *(said("protocol").alias("protocol"), has.alias("has")),
        )
        .withColumn("next", F.lead(F.struct("at", "has")).over(of_process))
    )
    of_place = SqlWindow.partitionBy("run", "process", "topic", "partition").orderBy("at")
    ends = F.when(~F.array_contains("next.has", F.col("partition")), F.col("next.at"))
    until = F.first(ends, ignorenulls=True).over(of_place.rowsBetween(0, SqlWindow.unboundedFollowing))
    return (
        rows.filter(f"f = '{REBALANCE}' and generation is not null")
        .withColumn("partition", F.explode("has"))
        .withColumn("until", until)
        .drop("has", "next", "f")
        .join(F.broadcast(tables.logs_of_runs), ["run", "topic", "partition"])
    )


def _empty_handed(tables: Tables) -> DataFrame:
    """run, group, who, generation: members that were told that they have nothing in it."""
    rows = (
        events(tables, REBALANCE)
        .filter("type = 'ok'")
        .select(
            "run", _group().alias("group"), _who().alias("who"), _generation().alias("generation"), "extra"
        )
    )
    return rows.filter("generation is not null")


def _who() -> Column:
    """The member's name, where the client tells it."""
    return F.coalesce(said("member"), F.concat(F.lit("process "), F.col("process")))


@check(
    "double-owner",
    Family.GROUPS,
    "–",
    "a partition is owned by two members of a group at once",
    needs=[REBALANCE],
)
def double_owner(evidence: Evidence) -> DataFrame:
    """``where``: ``one generation`` (under whatever protocol), ``overlap`` (eager and cooperative, where the
    protocol is told: the first owner took part in the later generation too, so the group waited for it to
    give the partition up, and it had not). Whoever crashed owns nothing any more."""
    owned = _owned(evidence.tables)
    names = ("who", "process", "generation", "protocol", "at", "ns", "until")
    before = owned.select("run", "group", "log", *(F.col(name).alias(f"first_{name}") for name in names))
    still = "first_who != who and first_process != process and first_at < at"
    same = (
        owned.join(before.withColumn("generation", F.col("first_generation")), [*_IN_A_GENERATION, "log"])
        .filter(f"{still} and (first_until is null or first_until > at)")
        .withColumn("how", F.lit("one generation"))
    )
    # Who else was in the generation: the group waited for each of them before it began.
    others = owned.select(*_IN_A_GENERATION, F.col("who").alias("first_who")).union(
        _empty_handed(evidence.tables).select(*_IN_A_GENERATION, F.col("who").alias("first_who"))
    )
    overlap = (
        owned.filter("protocol in ('eager', 'cooperative')")
        .join(others.distinct(), list(_IN_A_GENERATION))
        .join(before, ["run", "group", "log", "first_who"])
        .filter(f"{still} and first_generation < generation and first_protocol = protocol")
        .filter("first_until > at")
        .withColumn("how", F.lit("overlap"))
    )
    keys = ("run", "log", "topic", "partition", "group", "generation", "first_who", "who", "how")
    about = ("at", "first_at", "process", "ns", "first_process", "first_generation", "first_ns")
    rows = (
        same.select(*keys, *about)
        .union(overlap.select(*keys, *about))
        .groupBy(*keys)
        .agg(F.min(F.struct(*about)).alias("one"))
        .select(*keys, "one.*")
    )
    return findings(
        rows.withColumn("offset", F.lit(None)),
        "double-owner",
        operations=["first_at", "at"],
        where=F.col("how"),
        sentence=say(
            "process %d was given %s by group %s in generation %d at %s, while process %d, which had been "
            "given it in generation %d at %s, had not given it up",
            *("process", place(), "group", "generation", seconds("ns")),
            *("first_process", "first_generation", seconds("first_ns")),
        ),
        around=Window(F.col("first_ns"), F.col("ns")),
    )
