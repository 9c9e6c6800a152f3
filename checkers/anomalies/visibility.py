"""Visibility (docs/anomalies.md section 4): the partition as one log that everybody sees at one time.

Bounds come from ``end`` alone: librdkafka fetches ahead, so a poll proves that what it returns existed when
it returned, never that there was no more. The exact rules are in wrackline.checkers.exact.log and
docs/linearizability.md 3.2; the table of places carries the earliest proof at or above each offset, so each
rule is one comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import Window, apart, findings, having, place, say, seconds, shown
from wrackline.checkers.anomalies.integrity import TWO_VALUES
from wrackline.checkers.anomalies.registry import Evidence, Family, check, mark
from wrackline.checkers.engine.candidates import Candidate, Outcome, Step, is_place, least, lt
from wrackline.checkers.engine.marks import Alone, Unfilled
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints, bools


def _stale(rows: Candidate[Ints]) -> Bools:
    return bools((rows.step == Step.END_ASKED) & lt(rows.by_ack.index, rows.invoke_index))


def _future(rows: Candidate[Ints]) -> Bools:
    return bools(is_place(rows) & lt(least(rows.poll_index, rows.final_index), rows.invoke_index))


def _regressed(rows: Candidate[Ints]) -> Bools:
    return bools(
        (rows.step == Step.END_ASKED) & lt(least(rows.by_end.index, rows.by_poll.index), rows.invoke_index)
    )


def too_late(rows: Candidate[Ints]) -> Bools:
    """Invoked after the log was known to have grown past here (rule 3)."""
    proof = least(rows.by_ack.index, rows.by_poll.index, rows.by_final.index, rows.by_end.index)
    return bools((is_place(rows) | (rows.step == Step.END_ASKED)) & lt(proof, rows.invoke_index))


def _placeless(rows: Candidate[Ints], unfilled: Unfilled) -> Bools:
    """A send that may be anywhere (its place was told to no client, at most a replica's own log has it), in a
    log with offsets that nobody saw the content of."""
    told = (rows.sent_offset != NONE) | (rows.in_final == 1) | (rows.was_polled == 1)
    only_held = (rows.step == Step.IN_REPLICAS) & (rows.home == 1) & (rows.first == 1) & ~told
    free = ((rows.step == Step.NOWHERE) | only_held) & (
        (rows.outcome == Outcome.ACKED) | (rows.outcome == Outcome.UNSURE)
    )
    return bools(free & np.isin(rows.log, np.array(sorted(unfilled), dtype=np.int64)))


STALE = mark("stale", _stale)
FUTURE = mark("future", _future, Alone(_future))
REGRESSED = mark("regressed", _regressed)
LATE = mark("late", too_late, Alone(too_late))
HOLE = mark("hole")
GAP = mark("gap")
PLACELESS = mark("placeless", by_value=_placeless)


@check(
    "stale-read",
    Family.VISIBILITY,
    "realtime-lag (metric)",
    "an end offset asked for after an ack does not reach past what was acked",
    marks=[STALE],
)
def stale_read(evidence: Evidence) -> DataFrame:
    acked, asked = apart("shown_ns", "invoke_ns")
    return findings(
        shown(having(evidence, STALE), "by_ack"),
        "stale-read",
        operations=["shown", "invoke_index", "complete_index"],
        sentence=say(
            "process %d asked for the end offset of %s at %s and got %d, though value %d had been acked at "
            "offset %d at %s",
            *("process", place(), asked, "told"),
            *("shown_value", "shown_offset", acked),
        ),
        around=Window(F.col("shown_ns"), F.col("complete_ns")),
    )


@check(
    "future-read", Family.VISIBILITY, "–", "a record was returned before its send was invoked", marks=[FUTURE]
)
def future_read(evidence: Evidence) -> DataFrame:
    polled, sent = apart("poll_ns", "invoke_ns")
    when = F.coalesce(polled, F.lit("the time of the final read"))
    return findings(
        having(evidence, FUTURE),
        "future-read",
        operations=["poll_index", "final_index", "invoke_index"],
        sentence=say(
            "value %d was read at offset %d of %s by %s, before its send was invoked at %s",
            *("value", "offset", place(), when, sent),
        ),
        around=Window(F.coalesce("poll_ns", "invoke_ns"), F.col("invoke_ns")),
    )


@check(
    "watermark-regression",
    Family.VISIBILITY,
    "–",
    "of two observations that do not overlap the later shows a smaller high watermark",
    marks=[REGRESSED],
)
def watermark_regression(evidence: Evidence) -> DataFrame:
    """A record that a consumer was given shows a high watermark past its offset."""
    how = F.when(
        F.col("shown_f") == "end",
        say("the end offset of %s was answered as %d", place(), F.col("shown_offset") + 1),
    ).otherwise(say("a consumer was given offset %d of %s", "shown_offset", place()))
    before, asked = apart("shown_ns", "invoke_ns")
    return findings(
        shown(having(evidence, REGRESSED), "by_end", "by_poll"),
        "watermark-regression",
        operations=["shown", "invoke_index", "complete_index"],
        sentence=F.concat(
            how,
            say(
                " at %s; process %d asked for the end offset at %s and got %d",
                *(before, "process", asked, "told"),
            ),
        ),
        around=Window(F.col("shown_ns"), F.col("complete_ns")),
    )


@check(
    "not-linearizable",
    Family.VISIBILITY,
    "–",
    "the partition's history has no valid order",
    marks=[LATE, TWO_VALUES, HOLE, GAP],
)
def not_linearizable(evidence: Evidence) -> DataFrame:
    """Reported once per partition, with the witness that is complete first: the shortest beginning of the
    history that is already wrong. ``where`` names the rule that it breaks."""
    rules = [(LATE, _late), (TWO_VALUES, _two_values), (HOLE, _holes), (GAP, _unfilled)]
    found = [witnesses(evidence) for seen, witnesses in rules if evidence.counts.get(seen)]
    witnesses = reduce(DataFrame.union, found)
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
    asked = F.col("step") == Step.END_ASKED
    read = F.when(~asked, F.least("poll_index", "final_index"))
    rows = shown(having(evidence, LATE), "by_ack", "by_poll", "by_final", "by_end").withColumn("read", read)
    before, after = apart("shown_ns", "invoke_ns")
    known = say("offset %d was known to be taken at %s", "shown_offset", before)
    end = say("an end offset asked for at %s was answered as %d", after, "told")
    sent = say("value %d, sent at %s, got offset %d", "value", after, "offset")
    return _witness(
        rows,
        F.when(asked, "stale end").otherwise("late append"),
        ["shown", "invoke_index", "complete_index", "read"],
        F.concat(known, F.lit("; after that, "), F.when(asked, end).otherwise(sent)),
        F.col("shown_ns"),
        F.coalesce("complete_ns", "invoke_ns"),
    )


def _two_values(evidence: Evidence) -> DataFrame:
    return _witness(
        having(evidence, TWO_VALUES),
        F.lit("two values"),
        ["index", "told_index"],
        say("offset %d has value %d and value %d", "offset", "value", "told_value"),
        F.col("invoke_ns"),
        F.least("poll_ns", "complete_ns"),
    )


def _holes(evidence: Evidence) -> DataFrame:
    rows = having(evidence, HOLE)
    return _witness(
        rows.withColumn("offset", F.col("offset") + 1).withColumn("value", F.lit(None)),
        F.lit("hole"),
        ["final_index", "final_at"],
        say("the final read has nothing at offset %d, though the log goes on to %d", "offset", "told"),
        F.lit(0),
        F.lit(None),
    )


def _unfilled(evidence: Evidence) -> DataFrame:
    """Offsets below a known end that nobody saw the content of, where the final read cannot tell: each must
    hold a send of its own whose outcome is unknown, invoked before the offset was known to be taken. In order
    of time there must never be more such offsets than such sends. Without idempotence a retry may fill them
    too, and nothing follows."""
    keys = ("run", "log", "topic", "partition")
    proof = ("above", "above_ns", "above_offset", "above_value")
    gaps = having(evidence, GAP).select(
        *keys,
        (F.col("offset") + 1).alias("offset"),
        F.col("above").alias("at"),
        *proof,
        F.col("unseen").alias("needed"),
        F.lit(0).cast("bigint").alias("there"),
    )
    candidates = having(evidence, PLACELESS).select(
        *keys,
        F.lit(None).cast("bigint").alias("offset"),
        F.col("invoke_index").alias("at"),
        *(F.lit(None).cast("bigint").alias(name) for name in proof),
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
    rows = shown(short, "above")
    return _witness(
        rows,
        F.lit("unfilled"),
        ["shown"],
        say(
            "by %s the offsets that were taken and that nobody read numbered %d, but the sends of unknown "
            "outcome that may have filled them only %d",
            *(seconds("shown_ns"), "all_needed", "all_there"),
        ),
        F.lit(0),
        F.col("shown_ns"),
    )
