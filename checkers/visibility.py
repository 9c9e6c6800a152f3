"""Visibility (anomalies.md section 4): the partition as one log that everybody sees at one time.

Bounds come from ``end`` alone: librdkafka fetches ahead, so a poll proves that what it returns existed when it
returned, never that there was no more. The exact rules are in checkers.linearizable and linearizability.md 3.2; the
table of places carries the earliest proof at or above each offset, so each rule is one comparison.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.evidence import Window, findings, place, say, seconds
from checkers.integrity import inconsistent
from checkers.places import END_ASKED, END_TOLD, FLOOR, IN_FINAL, NOWHERE, TOLD
from checkers.registry import Evidence, Family, check
from checkers.tables import ACKED, UNSURE


def _stale() -> Column:
    return (F.col("step") == END_ASKED) & (F.col("by_ack.ns") < F.col("invoke_ns"))


@check(
    "stale-read",
    Family.VISIBILITY,
    "realtime-lag (metric)",
    "an end offset asked for after an ack does not reach past what was acked",
    _stale,
)
def stale_read(evidence: Evidence) -> DataFrame:
    return findings(
        evidence.suspects.filter(_stale()),
        "stale-read",
        operations=["by_ack.index", "invoke_index", "complete_index"],
        sentence=say(
            "process %d asked for the end of %s at %s and was told %d, though value %d had been acked at offset %d at %s",
            *("process", place(), seconds("invoke_ns"), "told"),
            *("by_ack.value", "by_ack.offset", seconds("by_ack.ns")),
        ),
        around=Window(F.col("by_ack.ns"), F.col("complete_ns")),
    )


def _future() -> Column:
    read = F.least("poll_ns", "final_ns")
    return F.col("step").between(IN_FINAL, TOLD) & (read < F.col("invoke_ns"))


@check("future-read", Family.VISIBILITY, "–", "a record was returned before its send was invoked", _future)
def future_read(evidence: Evidence) -> DataFrame:
    read = F.least("poll_ns", "final_ns")
    return findings(
        evidence.suspects.filter(_future()),
        "future-read",
        operations=["poll_index", "final_index", "invoke_index"],
        sentence=say(
            "value %d was read at offset %d of %s by %s, before its send was invoked at %s",
            *("value", "offset", place(), seconds(read), seconds("invoke_ns")),
        ),
        around=Window(read, F.col("invoke_ns")),
    )


def _regressed() -> Column:
    shown = F.least("by_end.ns", "by_poll.ns")
    return (F.col("step") == END_ASKED) & (shown < F.col("invoke_ns"))


@check(
    "watermark-regression",
    Family.VISIBILITY,
    "–",
    "of two observations that do not overlap the later shows a smaller high watermark",
    _regressed,
)
def watermark_regression(evidence: Evidence) -> DataFrame:
    shown = F.least("by_end", "by_poll")
    rows = evidence.suspects.filter(_regressed()).withColumn("shown", shown)
    how = F.when(
        F.col("shown.index") == F.col("by_end.index"),
        say("the end of %s was told to be %d", place(), F.col("shown.offset") + 1),
    ).otherwise(say("a consumer was given offset %d of %s", "shown.offset", place()))
    return findings(
        rows,
        "watermark-regression",
        operations=["shown.index", "invoke_index", "complete_index"],
        sentence=F.concat(
            how,
            say(
                " at %s; process %d asked for it at %s and was told %d",
                *(seconds("shown.ns"), "process", seconds("invoke_ns"), "told"),
            ),
        ),
        around=Window(F.col("shown.ns"), F.col("complete_ns")),
    )


def _proof() -> Column:
    """The earliest proof that the log had this row's offset."""
    return F.least("by_ack", "by_poll", "by_final", "by_end")


def _too_late() -> Column:
    """Invoked after the log was known to have grown past here (rule 3)."""
    shown = F.least("by_ack.ns", "by_poll.ns", "by_final.ns", "by_end.ns")
    claims = F.col("step").between(IN_FINAL, TOLD) | (F.col("step") == END_ASKED)
    return claims & (shown < F.col("invoke_ns"))


def _hole_above() -> Column:
    """The final read, complete, has nothing right above this row, though the log goes on (rules 4 and 5)."""
    upper = F.coalesce(F.col("next_final.offset"), F.col("log_end"))
    base = (F.col("step") == IN_FINAL) | (F.col("step") == FLOOR)
    return base & F.col("complete") & (upper > F.col("offset") + 1)


def _unseen() -> Column:
    """How many offsets between here and the next thing known above were never seen to hold anything."""
    held = F.when(F.col("next_known") == F.col("next_point"), 1).otherwise(0)
    return F.col("next_point") - F.col("offset") - held


def _gap_above() -> Column:
    point = F.col("step").isin(END_TOLD, FLOOR) | F.col("step").between(IN_FINAL, TOLD)
    return point & (F.col("next_point") > F.col("offset")) & (_unseen() > 0)


def _placeless() -> Column:
    """A send that may be anywhere."""
    return (F.col("step") == NOWHERE) & F.col("outcome").isin(ACKED, UNSURE)


def _nonlinear() -> Column:
    return _too_late() | inconsistent() | _hole_above() | _gap_above() | _placeless()


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
        _late_witnesses(evidence.suspects)
        .unionByName(_two_values(evidence.suspects))
        .unionByName(_holes(evidence.suspects))
        .unionByName(_unfilled(evidence))
    )
    columns = [name for name in witnesses.columns if name not in ("run", "topic", "partition", "whole_index")]
    first = witnesses.groupBy("run", "topic", "partition").agg(
        F.min_by(F.struct(*columns), F.struct("whole_index", "rule", "offset")).alias("witness")
    )
    rows = first.select("run", "topic", "partition", "witness.*")
    return findings(
        rows,
        "not-linearizable",
        operations=[F.get("witnessed", F.lit(n)) for n in range(4)],
        where=F.col("rule"),
        sentence=F.concat(place(), F.lit(" has no valid order: "), F.col("told_why")),
        around=Window(F.coalesce("from_ns", F.lit(0)), F.col("to_ns")),
    )


def _witness(
    rows: DataFrame, rule: Column, operations: list[Column | str], why: Column, since: Column, until: Column
) -> DataFrame:
    witnessed = F.array(*((F.col(one) if isinstance(one, str) else one).cast("bigint") for one in operations))
    return rows.select(
        *("run", "topic", "partition"),
        F.col("offset").cast("bigint").alias("offset"),
        F.col("value").cast("bigint").alias("value"),
        rule.alias("rule"),
        F.array_compact(witnessed).alias("witnessed"),
        F.array_max(witnessed).alias("whole_index"),
        why.alias("told_why"),
        since.cast("bigint").alias("from_ns"),
        until.cast("bigint").alias("to_ns"),
    )


def _late_witnesses(suspects: DataFrame) -> DataFrame:
    rows = suspects.filter(_too_late()).withColumn("shown", _proof())
    asked = F.col("step") == END_ASKED
    shown = say("offset %d was known to be taken at %s", "shown.offset", seconds("shown.ns"))
    end = say("an end offset asked for at %s was told as %d", seconds("invoke_ns"), "told")
    sent = say("value %d, sent at %s, got offset %d", "value", seconds("invoke_ns"), "offset")
    return _witness(
        rows,
        F.when(asked, "stale end").otherwise("late append"),
        [
            "shown.index",
            "invoke_index",
            "complete_index",
            F.when(~asked, F.least("poll_index", "final_index")),
        ],
        F.concat(shown, F.lit("; after that, "), F.when(asked, end).otherwise(sent)),
        F.col("shown.ns"),
        F.coalesce("complete_ns", "invoke_ns"),
    )


def _two_values(suspects: DataFrame) -> DataFrame:
    return _witness(
        suspects.filter(inconsistent()),
        F.lit("two values"),
        ["index", "next_told.index"],
        say("offset %d has value %d and value %d", "offset", "value", "next_told.value"),
        F.col("invoke_ns"),
        F.least("poll_ns", "final_ns", "complete_ns"),
    )


def _holes(suspects: DataFrame) -> DataFrame:
    rows = suspects.filter(_hole_above()).withColumn("value", F.lit(None).cast("bigint"))
    upper = F.coalesce(F.col("next_final.offset"), F.col("log_end"))
    return _witness(
        rows.withColumn("offset", F.col("offset") + 1),
        F.lit("hole"),
        ["final_index", "next_final.final_index"],
        say("the final read has nothing at offset %d, though the log goes on to %d", "offset", upper),
        F.lit(0),
        F.lit(None),
    )


def _unfilled(evidence: Evidence) -> DataFrame:
    """Offsets below a known end that nobody saw the content of, where the final read cannot tell: each must hold
    a send of its own whose outcome is unknown, invoked before the offset was known to be taken. Sorted by time,
    there must never be more such offsets than such sends. Without idempotence a retry may fill them too, and
    nothing follows."""
    logs = evidence.tables.logs.filter("idempotent and not complete").select("run", "topic", "partition")
    gaps = evidence.suspects.filter(_gap_above()).select(
        *("run", "topic", "partition"),
        (F.col("offset") + 1).alias("offset"),
        F.col("proved_ns").alias("ns"),
        _unseen().alias("needed"),
        F.lit(0).alias("there"),
    )
    candidates = evidence.suspects.filter(_placeless()).select(
        *("run", "topic", "partition"),
        F.lit(None).cast("bigint").alias("offset"),
        F.col("invoke_ns").alias("ns"),
        F.lit(0).cast("bigint").alias("needed"),
        F.lit(1).alias("there"),
    )
    rows = gaps.unionByName(candidates).join(F.broadcast(logs), ["run", "topic", "partition"])
    by_time = (
        SqlWindow.partitionBy("run", "topic", "partition")
        .orderBy("ns", F.col("there").desc(), F.col("offset"))
        .rowsBetween(SqlWindow.unboundedPreceding, SqlWindow.currentRow)
    )
    short = (
        rows.withColumn("all_needed", F.sum("needed").over(by_time))
        .withColumn("all_there", F.sum("there").over(by_time))
        .filter("needed > 0 and all_needed > all_there")
        .withColumn("value", F.lit(None).cast("bigint"))
    )
    found = _witness(
        short,
        F.lit("unfilled"),
        [],
        say(
            "by %s, %d offsets that nobody read were taken, with only %d sends of unknown outcome to fill them",
            *(seconds("ns"), "all_needed", "all_there"),
        ),
        F.lit(0),
        F.col("ns"),
    )
    return found.withColumn("whole_index", F.lit(1 << 62).cast("bigint"))
