"""Visibility (anomalies.md section 4): the partition as one log that everybody sees at one time.

Bounds come from ``end`` alone: librdkafka fetches ahead, so a poll proves that what it returns existed when it
returned, never that there was no more. The exact rules are in checkers.linearizable and linearizability.md 3.2; the
table of places carries the earliest proof at or above each offset, so each rule is one comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.evidence import Window, findings, place, say, seconds
from checkers.integrity import inconsistent
from checkers.places import END_ASKED, END_TOLD, FLOOR, IN_FINAL, IN_REPLICAS, NOWHERE, TOLD
from checkers.registry import Evidence, Family, check
from checkers.tables import ACKED, UNSURE
from checkers.witnesses import against


def _asked_after(index: Column) -> Column:
    return (F.col("step") == END_ASKED) & (index < F.col("invoke_index"))


def _stale() -> Column:
    return _asked_after(F.col("by_ack"))


@check(
    "stale-read",
    Family.VISIBILITY,
    "realtime-lag (metric)",
    "an end offset asked for after an ack does not reach past what was acked",
)
def stale_read(evidence: Evidence) -> DataFrame:
    return findings(
        against(evidence.suspects.filter(_stale()), F.col("by_ack"), evidence.witnesses),
        "stale-read",
        operations=["shown", "invoke_index", "complete_index"],
        sentence=say(
            "process %d asked for the end of %s at %s and was told %d, though value %d had been acked at offset %d at %s",
            *("process", place(), seconds("invoke_ns"), "told"),
            *("shown_value", "shown_offset", seconds("shown_ns")),
        ),
        around=Window(F.col("shown_ns"), F.col("complete_ns")),
    )


def _future() -> Column:
    read = F.least("poll_index", "final_index")
    return F.col("step").between(IN_FINAL, TOLD) & (read < F.col("invoke_index"))


@check("future-read", Family.VISIBILITY, "–", "a record was returned before its send was invoked", _future)
def future_read(evidence: Evidence) -> DataFrame:
    when = F.coalesce(seconds("poll_ns"), F.lit("the time of the final read"))
    return findings(
        evidence.suspects.filter(_future()),
        "future-read",
        operations=["poll_index", "final_index", "invoke_index"],
        sentence=say(
            "value %d was read at offset %d of %s by %s, before its send was invoked at %s",
            *("value", "offset", place(), when, seconds("invoke_ns")),
        ),
        around=Window(F.coalesce("poll_ns", "invoke_ns"), F.col("invoke_ns")),
    )


def _shown() -> Column:
    return F.least("by_end", "by_poll")


def _regressed() -> Column:
    return _asked_after(_shown())


@check(
    "watermark-regression",
    Family.VISIBILITY,
    "–",
    "of two observations that do not overlap the later shows a smaller high watermark",
)
def watermark_regression(evidence: Evidence) -> DataFrame:
    """A record that a consumer was given shows a high watermark past its offset."""
    how = F.when(
        F.col("shown_f") == "end",
        say("the end of %s was told to be %d", place(), F.col("shown_offset") + 1),
    ).otherwise(say("a consumer was given offset %d of %s", "shown_offset", place()))
    return findings(
        against(evidence.suspects.filter(_regressed()), _shown(), evidence.witnesses),
        "watermark-regression",
        operations=["shown", "invoke_index", "complete_index"],
        sentence=F.concat(
            how,
            say(
                " at %s; process %d asked for it at %s and was told %d",
                *(seconds("shown_ns"), "process", seconds("invoke_ns"), "told"),
            ),
        ),
        around=Window(F.col("shown_ns"), F.col("complete_ns")),
    )


def _proof() -> Column:
    """The earliest proof that the log had this row's offset."""
    return F.least("by_ack", "by_poll", "by_final", "by_end")


def too_late() -> Column:
    """Invoked after the log was known to have grown past here (rule 3)."""
    claims = F.col("step").between(IN_FINAL, TOLD) | (F.col("step") == END_ASKED)
    return claims & (_proof() < F.col("invoke_index"))


def _hole_above() -> Column:
    """The final read, complete, has nothing right above this row, though the log goes on (rules 4 and 5)."""
    upper = F.coalesce(F.col("final_offset"), F.col("log_end"))
    base = (F.col("step") == IN_FINAL) | (F.col("step") == FLOOR)
    return base & F.col("complete") & (upper > F.col("offset") + 1)


def _unseen() -> Column:
    """How many offsets between here and the next thing known above were never seen to hold anything."""
    held = F.when(F.col("known_offset") == F.col("point_offset"), 1).otherwise(0)
    return F.col("point_offset") - F.col("offset") - held


def gap_above() -> Column:
    """Offsets above were taken, and only sends of unknown outcome can be there (rule 5)."""
    point = F.col("step").isin(END_TOLD, FLOOR) | F.col("step").between(IN_FINAL, TOLD)
    open_ended = F.col("idempotent") & ~F.col("complete")
    return point & open_ended & (F.col("point_offset") > F.col("offset")) & (_unseen() > 0)


def _placeless() -> Column:
    """A send that may be anywhere: its place was told to no client, at most a replica's own log has it."""
    told = F.col("sent_offset").isNotNull() | F.col("in_final") | F.col("was_polled")
    only_held = (F.col("step") == IN_REPLICAS) & F.col("home") & F.col("first") & ~told
    return ((F.col("step") == NOWHERE) | only_held) & F.col("outcome").isin(ACKED, UNSURE)


def _nonlinear() -> Column:
    return too_late() | inconsistent() | _hole_above() | gap_above()


@check(
    "not-linearizable",
    Family.VISIBILITY,
    "–",
    "the partition's history has no valid order",
    _nonlinear,
)
def not_linearizable(evidence: Evidence) -> DataFrame:
    """Once per partition, with the witness that is whole first: the shortest beginning of the history that is
    already wrong. ``where`` says which rule it breaks."""
    witnesses = (
        _late(evidence)
        .union(_two_values(evidence.suspects))
        .union(_holes(evidence.suspects))
        .union(_unfilled(evidence))
    )
    keys = ("run", "log", "topic", "partition")
    columns = [name for name in witnesses.columns if name not in (*keys, "whole_index")]
    first = witnesses.groupBy(*keys).agg(
        F.min_by(F.struct(*columns), F.struct("whole_index", "rule", "offset")).alias("witness")
    )
    return findings(
        first.select(*keys, "witness.*"),
        "not-linearizable",
        operations=[F.get("witnessed", F.lit(n)) for n in range(4)],
        where=F.col("rule"),
        sentence=F.concat(place(), F.lit(" has no valid order: "), F.col("told_why")),
        around=Window(F.coalesce("from_ns", F.lit(0)), F.col("to_ns")),
    )


def _witness(
    rows: DataFrame, rule: Column, operations: Sequence[str], why: Column, since: Column, until: Column
) -> DataFrame:
    witnessed = F.array(*(F.col(one).cast("bigint") for one in operations))
    return rows.select(
        *("run", "log", "topic", "partition"),
        F.col("offset").cast("bigint").alias("offset"),
        F.col("value").cast("bigint").alias("value"),
        rule.alias("rule"),
        F.array_compact(witnessed).alias("witnessed"),
        F.array_max(witnessed).alias("whole_index"),
        why.alias("told_why"),
        since.cast("bigint").alias("from_ns"),
        until.cast("bigint").alias("to_ns"),
    )


def _late(evidence: Evidence) -> DataFrame:
    asked = F.col("step") == END_ASKED
    read = F.when(~asked, F.least("poll_index", "final_index"))
    rows = against(evidence.suspects.filter(too_late()), _proof(), evidence.witnesses).withColumn(
        "read", read
    )
    shown = say("offset %d was known to be taken at %s", "shown_offset", seconds("shown_ns"))
    end = say("an end offset asked for at %s was told as %d", seconds("invoke_ns"), "told")
    sent = say("value %d, sent at %s, got offset %d", "value", seconds("invoke_ns"), "offset")
    return _witness(
        rows,
        F.when(asked, "stale end").otherwise("late append"),
        ["shown", "invoke_index", "complete_index", "read"],
        F.concat(shown, F.lit("; after that, "), F.when(asked, end).otherwise(sent)),
        F.col("shown_ns"),
        F.coalesce("complete_ns", "invoke_ns"),
    )


def _two_values(suspects: DataFrame) -> DataFrame:
    return _witness(
        suspects.filter(inconsistent()),
        F.lit("two values"),
        ["index", "told_index"],
        say("offset %d has value %d and value %d", "offset", "value", "told_value"),
        F.col("invoke_ns"),
        F.least("poll_ns", "complete_ns"),
    )


def _holes(suspects: DataFrame) -> DataFrame:
    upper = F.coalesce(F.col("final_offset"), F.col("log_end"))
    rows = suspects.filter(_hole_above()).withColumn("upper", upper)
    return _witness(
        rows.withColumn("offset", F.col("offset") + 1).withColumn("value", F.lit(None)),
        F.lit("hole"),
        ["final_index", "final_at"],
        say("the final read has nothing at offset %d, though the log goes on to %d", "offset", "upper"),
        F.lit(0),
        F.lit(None),
    )


def _unfilled(evidence: Evidence) -> DataFrame:
    """Offsets below a known end that nobody saw the content of, where the final read cannot tell: each must hold
    a send of its own whose outcome is unknown, invoked before the offset was known to be taken. In order of time
    there must never be more such offsets than such sends. Without idempotence a retry may fill them too, and
    nothing follows."""
    keys = ("run", "log", "topic", "partition")
    gaps = evidence.suspects.filter(gap_above()).select(
        *keys,
        (F.col("offset") + 1).alias("offset"),
        F.col("above").alias("at"),
        _unseen().cast("bigint").alias("needed"),
        F.lit(0).cast("bigint").alias("there"),
    )
    candidates = evidence.suspects.filter(_placeless()).select(
        *keys,
        F.lit(None).cast("bigint").alias("offset"),
        F.col("invoke_index").alias("at"),
        F.lit(0).cast("bigint").alias("needed"),
        F.lit(1).cast("bigint").alias("there"),
    )
    by_time = (
        SqlWindow.partitionBy(*keys)
        .orderBy("at", "offset")
        .rowsBetween(SqlWindow.unboundedPreceding, SqlWindow.currentRow)
    )
    short = (
        gaps.union(candidates)
        .withColumn("all_needed", F.sum("needed").over(by_time))
        .withColumn("all_there", F.sum("there").over(by_time))
        .filter("needed > 0 and all_needed > all_there")
        .withColumn("value", F.lit(None))
    )
    rows = against(short, F.col("at"), evidence.witnesses)
    return _witness(
        rows,
        F.lit("unfilled"),
        ["shown"],
        say(
            "by %s, %d offsets that nobody read had been taken, with only %d sends of unknown outcome to fill them",
            *(seconds("shown_ns"), "all_needed", "all_there"),
        ),
        F.lit(0),
        F.col("shown_ns"),
    )
