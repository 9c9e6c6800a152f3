"""Order (anomalies.md section 3): of sends against real time and within a process, and of what a consumer is given.

The order of sends is judged in the final read: a record that is gone from it was lost, which is reported as that,
and its offset is used again by records sent later.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.evidence import Window, findings, named, place, say, seconds
from checkers.places import IN_FINAL, JUMP
from checkers.registry import Evidence, Family, check
from checkers.tables import Tables
from checkers.witnesses import against


def out_of_order() -> Column:
    return (F.col("step") == IN_FINAL) & (F.col("by_settled_ack") < F.col("invoke_index"))


@check(
    "append-order",
    Family.ORDER,
    "G0-realtime",
    "one send completed before another was invoked, yet has the larger offset",
    out_of_order,
)
def append_order(evidence: Evidence) -> DataFrame:
    rows = evidence.suspects.filter(out_of_order())
    return findings(
        against(rows, F.col("by_settled_ack"), evidence.witnesses),
        "append-order",
        operations=["invoke_index", "complete_index", "final_index", "shown"],
        sentence=say(
            "value %d had been acked at offset %d of %s at %s; value %d was sent after that, at %s, and is before "
            "it, at offset %d",
            *("shown_value", "shown_offset", place(), seconds("shown_ns")),
            *("value", seconds("invoke_ns"), "offset"),
        ),
        around=Window(F.col("shown_ns"), F.coalesce("complete_ns", "invoke_ns")),
    )


def _process_out_of_order() -> Column:
    return out_of_order() & F.col("acked") & (F.col("earlier_offset") > F.col("offset"))


@check(
    "session-order",
    Family.ORDER,
    "nonmonotonic-send",
    "a later send of one process has the smaller offset",
)
def session_order(evidence: Evidence) -> DataFrame:
    """A process that goes on has its earlier sends acked, so this is a part of append-order."""
    return findings(
        evidence.suspects.filter(_process_out_of_order()),
        "session-order",
        operations=["earlier_index", "invoke_index", "complete_index", "final_index"],
        sentence=say(
            "process %d had value %d acked at offset %d of %s, and sent value %d after that, at %s: it is at offset %d",
            *("process", "earlier_value", "earlier_offset", place(), "value", seconds("invoke_ns"), "offset"),
        ),
        around=Window(F.col("invoke_ns"), F.col("complete_ns")),
    )


def steps(tables: Tables) -> DataFrame:
    """Reads that do not follow on the one before in their process and partition.

    run, log, process, offset (where the consumer stood), told (what it was given), invoke_index (of the event
    before), complete_index, complete_ns. An ``assign`` sets the position; without one the first read has nothing
    before it."""
    given = tables.reads.select(
        *("run", "log", "process", "index", "position", "time_ns"),
        F.col("offset").alias("given"),
        (F.col("offset") + 1).alias("next"),
    )
    moved = tables.assignments.select(
        *("run", "log", "process", "index", F.lit(-1).alias("position"), "time_ns"),
        F.lit(None).cast("bigint").alias("given"),
        F.when(F.col("start") >= 0, F.col("start")).alias("next"),
    )
    by_consumer = SqlWindow.partitionBy("process", "log").orderBy("index", "position")
    return (
        given.union(moved)
        .withColumn("stood", F.lag("next").over(by_consumer))
        .withColumn("before_index", F.lag("index").over(by_consumer))
        .filter("given != stood")
        .select(
            *("run", "log", "process"),
            F.col("stood").alias("offset"),
            F.col("given").alias("told"),
            F.col("before_index").alias("invoke_index"),
            F.col("index").alias("complete_index"),
            F.col("time_ns").alias("complete_ns"),
        )
    )


def _jumped() -> Column:
    """There was something at an offset that was gone past."""
    return (F.col("step") == JUMP) & (F.col("known_offset") < F.col("told"))


@check(
    "poll-skip",
    Family.ORDER,
    "int-/poll-skip",
    "a consumer jumped over offsets that held records, with no assignment or seek between",
    _jumped,
)
def poll_skip(evidence: Evidence) -> DataFrame:
    return findings(
        evidence.suspects.filter(_jumped()),
        "poll-skip",
        operations=["invoke_index", "complete_index"],
        sentence=say(
            "process %d stood at offset %d of %s and was next given offset %d, at %s: it never was given offset %d",
            *("process", "offset", place(), "told", seconds("complete_ns"), "known_offset"),
        ),
        around=Window(F.col("complete_ns"), F.col("complete_ns")),
    )


@check(
    "poll-rewind",
    Family.ORDER,
    "(int-)nonmonotonic-poll",
    "a consumer was given an offset again or an earlier one, with no assignment or seek between",
)
def poll_rewind(evidence: Evidence) -> DataFrame:
    return findings(
        named(evidence.steps.filter("told < offset"), evidence.tables),
        "poll-rewind",
        operations=["invoke_index", "complete_index"],
        offset=F.col("told"),
        sentence=say(
            "process %d stood at offset %d of %s and was next given offset %d, at %s, with no assignment between",
            *("process", "offset", place(), "told", seconds("complete_ns")),
        ),
        around=Window(F.col("complete_ns"), F.col("complete_ns")),
    )
