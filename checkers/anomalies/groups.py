"""Groups and offsets (docs/anomalies.md section 5): what consumers committed, and what members of groups were
given."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import Window, findings, place, say, seconds
from wrackline.checkers.anomalies.group_tables import (
    COMMIT,
    COMMITTED,
    MAY_FOLLOW,
    REBALANCE,
    accounts,
    deliveries,
    events,
    kept,
    members,
    operations,
    reached,
    rewinds,
    said,
    untold,
    with_largest_before,
)
from wrackline.checkers.anomalies.registry import Evidence, Family, check


@check(
    "commit-regression",
    Family.GROUPS,
    "–",
    "a committed offset goes back, and no consumer had sought back",
    needs=[COMMIT],
)
def commit_regression(evidence: Evidence) -> DataFrame:
    """``where``: ``commit`` (a consumer committed less than had been committed, and neither it nor its group
    had sought back to there in between) or ``read`` (the response names a smaller committed offset, or none
    at all, and no commit accounts for it). A commit of unknown outcome accounts for it ever after: it may
    take effect late."""
    tables = evidence.tables
    commits = operations(tables, COMMIT)
    acked = commits.filter("type = 'ok'")
    went_back = with_largest_before(acked, acked).filter("before.offset > offset")
    may_account = accounts(commits)
    moved = (
        "a.run = w.run and a.log = w.log and (a.process = w.process or a.member = w.member) "
        "and a.at > w.before.index and a.at < w.invoke_index"
    )
    unasked = went_back.alias("w").join(
        rewinds(tables).alias("a"), F.expr(f"{moved} and a.start <= w.offset"), "anti"
    )
    # Where no rebalance names a position, the consumer began at the committed offset: no less than any commit
    # that may have been the last by then.
    named = ("run", "log", "group", "invoke_index")
    begun = (
        unasked.alias("w")
        .join(untold(tables).alias("a"), F.expr(moved))
        .join(
            may_account.alias("c"),
            F.expr(f"{MAY_FOLLOW.format('w')} and c.invoke_index < a.at and c.offset <= w.offset"),
        )
        .select(*(f"w.{name}" for name in named))
        .distinct()
    )
    same = " and ".join(f"b.{name} = w.{name}" for name in named)
    unasked = unasked.alias("w").join(begun.alias("b"), F.expr(same), "anti")
    told = with_largest_before(operations(tables, COMMITTED).filter("type = 'ok'"), acked).filter(
        "before.offset > offset"
    )
    unaccounted = told.alias("t").join(
        may_account.alias("c"), F.expr(f"{MAY_FOLLOW.format('t')} and c.offset = t.offset"), "anti"
    )
    rows = unasked.withColumn("how", F.lit("commit")).union(unaccounted.withColumn("how", F.lit("read")))
    committed = say("process %d committed offset %d of %s", "process", "offset", place())
    read = say(
        "process %d asked for the committed offset and got %s of %s",
        "process",
        F.when(F.col("offset") < 0, F.lit("no offset")).otherwise(say("offset %d", "offset")),
        place(),
    )
    return findings(
        rows,
        "commit-regression",
        offset=F.when(F.col("offset") >= 0, F.col("offset")),
        operations=["before.index", "invoke_index", "complete_index"],
        where=F.col("how"),
        sentence=F.concat(
            F.when(F.col("how") == "commit", committed).otherwise(read),
            say(
                " for group %s at %s, after a commit of offset %d had succeeded at %s",
                *("group", seconds("complete_ns"), "before.offset", seconds("before.ns")),
            ),
        ),
        around=Window(F.col("before.ns"), F.col("complete_ns")),
    )


@check(
    "commit-beyond-end",
    Family.GROUPS,
    "–",
    "an offset was committed past the end of the log",
    needs=[COMMIT],
)
def commit_beyond_end(evidence: Evidence) -> DataFrame:
    """Against the end that the final read reached: logs do not get shorter."""
    rows = operations(evidence.tables, COMMIT).filter("type = 'ok' and complete and offset > log_end")
    return findings(
        rows,
        "commit-beyond-end",
        operations=["invoke_index", "complete_index"],
        sentence=say(
            "process %d committed offset %d of %s for group %s at %s, but the final read of it ends at "
            "offset %d",
            *("process", "offset", place(), "group", seconds("complete_ns"), "log_end"),
        ),
        around=Window(F.col("complete_ns")),
    )


@check(
    "zombie-commit",
    Family.GROUPS,
    "–",
    "the commit of a member that its group had fenced took effect",
    needs=[COMMIT],
)
def zombie_commit(evidence: Evidence) -> DataFrame:
    """A member is fenced when another one has been given partitions under a later generation of the group."""
    given = events(evidence.tables, REBALANCE).select(
        "run",
        F.coalesce(said("group"), F.lit("")).alias("group"),
        F.col("index").alias("at"),
        F.struct(said("generation").cast("bigint").alias("generation"), "index", "process", "time_ns").alias(
            "told"
        ),
        F.lit(None).alias("row"),
    )
    commits = operations(evidence.tables, COMMIT).filter("type = 'ok' and generation is not null")
    asked = commits.select(
        "run",
        "group",
        F.col("invoke_index").alias("at"),
        F.lit(None).alias("told"),
        F.struct("*").alias("row"),
    )
    until_here = (
        SqlWindow.partitionBy("run", "group").orderBy("at").rowsBetween(SqlWindow.unboundedPreceding, -1)
    )
    rows = (
        given.filter("told.generation is not null")
        .union(asked)
        .withColumn("newer", F.max("told").over(until_here))
        .filter("row is not null and newer.generation > row.generation")
        .select("row.*", "newer")
    )
    return findings(
        rows,
        "zombie-commit",
        operations=["newer.index", "invoke_index", "complete_index"],
        sentence=say(
            "process %d committed offset %d of %s for group %s under generation %d at %s, though process "
            "%d had been given partitions under generation %d at %s",
            *("process", "offset", place(), "group", "generation", seconds("complete_ns")),
            *("newer.process", "newer.generation", seconds("newer.time_ns")),
        ),
        around=Window(F.col("newer.time_ns"), F.col("complete_ns")),
    )


@check(
    "group-skip",
    Family.GROUPS,
    "–",
    "a group committed past a record that no member of it was given",
    needs=[COMMIT],
)
def group_skip(evidence: Evidence) -> DataFrame:
    """Of records that are in the final read, from where the group began: the lowest offset that a member was
    put at or given, or that was committed."""
    tables = evidence.tables
    keys = ("run", "log", "group")
    given = deliveries(tables)
    first = given.groupBy(*keys).agg(F.min("offset").alias("low_given"))
    put = (
        rewinds(tables)
        .filter("start >= 0")
        .join(F.broadcast(members(tables)), ["run", "process"])
        .groupBy(*keys)
        .agg(F.min("start").alias("low_start"))
    )
    bounds = (
        reached(tables)
        .join(first, list(keys), "left")
        .join(put, list(keys), "left")
        .withColumn("low", F.least("low_given", "low_start", "low_commit"))
    )
    rows = (
        kept(evidence)
        .join(F.broadcast(bounds), ["run", "topic", "partition"])
        .filter("offset >= low and offset < last.offset")
        .join(given, [*keys, "offset"], "anti")
    )
    return findings(
        rows,
        "group-skip",
        operations=["last.complete_index", "final_index"],
        sentence=say(
            "value %d is at offset %d of %s; group %s committed offset %d (process %d at %s), but no "
            "member of it was given that record",
            *(
                "value",
                "offset",
                place(),
                "group",
                "last.offset",
                "last.process",
                seconds("last.complete_ns"),
            ),
        ),
        around=Window(F.lit(0), F.col("last.complete_ns")),
    )
