"""Loss (docs/anomalies.md section 1): what was acknowledged or read, and is not in the final read.

A final read that did not reach its partition's end offset is never evidence of loss: all conditions here ask
for ``complete``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import (
    LEADER,
    Window,
    events_of,
    findings,
    having,
    place,
    say,
    seconds,
)
from wrackline.checkers.anomalies.keys import lasting
from wrackline.checkers.anomalies.registry import Evidence, Family, check, mark
from wrackline.checkers.engine.candidates import Candidate, Outcome, Step, is_astray, is_place
from wrackline.checkers.engine.marks import Alone, Unfilled
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints, bools


def _by_ack() -> Column:
    """ " by n2", where the client knows who answered; else who led according to metadata."""
    return F.coalesce(F.concat(F.lit(" by "), F.col("node")), F.lit(LEADER))


def _final_there() -> Column:
    """What the final read has at an offset that it should hold something else at."""
    there = F.col("final_offset") == F.col("offset")
    value = F.col("final_value")
    return (
        F.when(
            F.col("offset") >= F.col("log_end"),
            say("; the final read of %s ends at offset %d", place(), "log_end"),
        )
        .when(
            F.col("offset") < F.col("log_start"),
            say("; the final read of %s begins at offset %d", place(), "log_start"),
        )
        .when(there & (value >= 0), say("; the final read has value %d there", value))
        .when(there, F.lit("; the final read has a record there that is none of this run's"))
        .otherwise(F.lit("; the final read has nothing there"))
    )


def _maybe_lost(rows: Candidate[Ints]) -> Bools:
    """An ack named this place, and the final read does not have it here."""
    return bools((rows.step == Step.GIVEN) & (rows.acked == 1) & (rows.complete == 1))


def _lost(rows: Candidate[Ints], _: Unfilled) -> Bools:
    place = is_place(rows)
    told_where = place & (rows.acked == 1) & (rows.step != Step.UNREAD)
    told_nothing = (rows.sent_offset == NONE) & (rows.first == 1) & (place | (rows.step == Step.NOWHERE))
    absent = (rows.outcome == Outcome.ACKED) & (rows.complete == 1) & (rows.in_final == 0)
    return bools(absent & (told_where | told_nothing))


def _maybe_vanished(rows: Candidate[Ints]) -> Bools:
    return bools(
        (rows.step == Step.GIVEN) & (rows.poll_index != NONE) & (rows.complete == 1) & (rows.value >= 0)
    )


def _vanished(rows: Candidate[Ints], _: Unfilled) -> Bools:
    """This place was given to somebody, and is gone; where its log has the value elsewhere, the poll named a
    wrong offset."""
    return bools(_maybe_vanished(rows) & ~is_astray(rows))


def _missing(rows: Candidate[Ints]) -> Bools:
    """``owed``: a bit for each replica that must have it (wrackline.checkers.engine.offset_ranges)."""
    return bools((rows.step == Step.IN_FINAL) & (rows.value >= 0) & (rows.held & rows.owed != rows.owed))


LOST = mark("lost", _maybe_lost, _lost)
VANISHED = mark("vanished", _maybe_vanished, _vanished)
MISSING = mark("missing", _missing, Alone(_missing))
BEYOND = mark("beyond")


@check(
    "lost-write",
    Family.LOSS,
    "lost-write / unseen",
    "an acknowledged value is absent from the final read",
    marks=[LOST],
)
def lost_write(evidence: Evidence) -> DataFrame:
    """``where``: ``tail`` (its offset is at or past the final end), ``middle`` (another value or nothing is
    at its offset), ``unknown offset`` (the acknowledgement had none)."""
    told = F.col("sent_offset").isNotNull()
    where = (
        F.when(~told, "unknown offset").when(F.col("offset") >= F.col("log_end"), "tail").otherwise("middle")
    )
    acked = F.concat(
        say(
            "value %d was acked at offset %d of %s at %s", "value", "offset", place(), seconds("complete_ns")
        ),
        _by_ack(),
        _final_there(),
    )
    acked_somewhere = F.concat(
        say("value %d was acked without an offset for %s at %s", "value", place(), seconds("complete_ns")),
        _by_ack(),
        say("; the final read of %s, which ends at offset %d, does not have it", place(), "log_end"),
    )
    there = F.when(F.col("final_offset") == F.col("offset"), F.col("final_at"))
    return findings(
        events_of(lasting(having(evidence, LOST), evidence), "complete_index", evidence.tables),
        "lost-write",
        operations=["invoke_index", "complete_index", "poll_index", there],
        where=where,
        offset=F.when(told, F.col("offset")),
        sentence=F.when(told, acked).otherwise(acked_somewhere),
        around=Window(F.col("complete_ns")),
        leader_at=F.col("complete_ns"),
    )


@check(
    "vanished-read",
    Family.LOSS,
    "–",
    "a record that a consumer was given is not in the final read",
    marks=[VANISHED],
)
def vanished_read(evidence: Evidence) -> DataFrame:
    sentence = F.concat(
        say(
            "a consumer was given value %d at offset %d of %s at %s",
            "value",
            "offset",
            place(),
            seconds("poll_ns"),
        ),
        F.lit(LEADER),
        _final_there(),
    )
    there = F.when(F.col("final_offset") == F.col("offset"), F.col("final_at"))
    return findings(
        lasting(having(evidence, VANISHED), evidence),
        "vanished-read",
        operations=["invoke_index", "complete_index", "poll_index", there],
        where=F.when(F.col("offset") >= F.col("log_end"), "tail").otherwise("middle"),
        sentence=sentence,
        around=Window(F.col("poll_ns")),
        leader_at=F.col("poll_ns"),
    )


@check(
    "lost-committed",
    Family.LOSS,
    "–",
    "an end offset or high watermark that a client was shown lies past the end of the final read",
    marks=[BEYOND],
)
def lost_committed(evidence: Evidence) -> DataFrame:
    """Reported once per partition, for the largest offset: what a client is shown as the log's end is
    committed, whoever sent the records."""
    keys = ("run", "log", "topic", "partition")
    told = ("offset", "told", "process", "invoke_index", "complete_index", "complete_ns", "log_end")
    largest = F.max_by(F.struct(*told), F.struct("told", -F.col("complete_index")))
    rows = having(evidence, BEYOND).groupBy(*keys).agg(largest.alias("shown")).select(*keys, "shown.*")
    sentence = F.concat(
        say(
            "process %d got at %s an answer that shows the end of %s at offset %d",
            "process",
            seconds("complete_ns"),
            place(),
            "told",
        ),
        F.lit(LEADER),
        say(
            "; the final read of %s ends at offset %d: %d committed records are gone",
            *(place(), "log_end", F.col("told") - F.col("log_end")),
        ),
    )
    return findings(
        rows,
        "lost-committed",
        operations=["invoke_index", "complete_index"],
        sentence=sentence,
        around=Window(F.col("complete_ns")),
        leader_at=F.col("complete_ns"),
    )


@check(
    "lost-on-replica",
    Family.LOSS,
    "– (jepsen.nats: lost-on-node)",
    "after healing, a record that consumers are given, acknowledged or not, is missing from a replica in the "
    "ISR",
    marks=[MISSING],
)
def lost_on_replica(evidence: Evidence) -> DataFrame:
    held = F.coalesce(F.col("held"), F.lit(0))
    missing = F.filter("replicas", lambda _, bit: F.getbit(held, bit) == 0)
    rows = lasting(having(evidence, MISSING), evidence).withColumn("missing", F.array_join(missing, " and "))
    acked = F.when(F.col("outcome") == Outcome.ACKED, say(" (acked at %s)", seconds("complete_ns")))
    return findings(
        rows,
        "lost-on-replica",
        operations=["invoke_index", "complete_index", "final_index", "replica_index"],
        where=F.col("missing"),
        sentence=say(
            "value %d%s is in the final read at offset %d of %s, but not in the log of %s, which is in the "
            "ISR",
            *(
                "value",
                F.when(F.col("outcome") == Outcome.ACKED, acked).otherwise(""),
                "offset",
                place(),
                "missing",
            ),
        ),
        around=Window(F.coalesce("complete_ns", "invoke_ns", F.lit(0))),
    )
