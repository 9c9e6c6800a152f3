"""Loss (anomalies.md section 1): what was acknowledged or read, and is not in the final read.

A final read that did not reach its partition's end offset is never evidence of loss: all conditions here ask for
``complete``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from checkers.evidence import LEADER, Window, findings, place, say, seconds
from checkers.places import IN_FINAL, NOWHERE, TOLD
from checkers.registry import Evidence, Family, check
from checkers.tables import ACKED, UNSURE


def _by_ack() -> Column:
    """ " by n2", where the client knows who answered; else who led according to metadata."""
    return F.coalesce(F.concat(F.lit(" by "), F.col("node")), F.lit(LEADER))


def _is_a_place() -> Column:
    return F.col("step").between(IN_FINAL, TOLD)


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


def _lost() -> Column:
    told_where = _is_a_place() & F.col("acked")
    told_nothing = F.col("sent_offset").isNull() & F.col("first")
    somewhere = _is_a_place() | (F.col("step") == NOWHERE)
    return (
        (F.col("outcome") == ACKED)
        & F.col("complete")
        & ~F.col("in_final")
        & (told_where | (told_nothing & somewhere))
    )


def _maybe_lost() -> Column:
    """An ack named this place, and the final read does not have it here."""
    return (F.col("step") == TOLD) & F.col("acked") & F.col("complete")


@check(
    "lost-write",
    Family.LOSS,
    "lost-write / unseen",
    "an acknowledged value is absent from the final read",
    _maybe_lost,
)
def lost_write(evidence: Evidence) -> DataFrame:
    """``where``: ``tail`` (its offset is at or past the final end), ``middle`` (another value or nothing is at its
    offset), ``unknown offset`` (the client was told none)."""
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
        say("value %d was acked (no offset told) for %s at %s", "value", place(), seconds("complete_ns")),
        _by_ack(),
        say("; the final read of %s, which ends at offset %d, does not have it", place(), "log_end"),
    )
    there = F.when(F.col("final_offset") == F.col("offset"), F.col("final_at"))
    return findings(
        evidence.suspects.filter(_lost()),
        "lost-write",
        operations=["invoke_index", "complete_index", "poll_index", there],
        where=where,
        offset=F.when(told, F.col("offset")),
        sentence=F.when(told, acked).otherwise(acked_somewhere),
        around=Window(F.col("complete_ns")),
        leader_at=F.col("complete_ns"),
    )


def _vanished() -> Column:
    return (
        (F.col("step") == TOLD) & F.col("poll_index").isNotNull() & F.col("complete") & (F.col("value") >= 0)
    )


@check(
    "vanished-read", Family.LOSS, "–", "a record some consumer was given is not in the final read", _vanished
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
        evidence.suspects.filter(_vanished()),
        "vanished-read",
        operations=["invoke_index", "complete_index", "poll_index", there],
        where=F.when(F.col("offset") >= F.col("log_end"), "tail").otherwise("middle"),
        sentence=sentence,
        around=Window(F.col("poll_ns")),
        leader_at=F.col("poll_ns"),
    )


def _lost_on_replica() -> Column:
    held = F.coalesce(F.col("held"), F.lit(0))
    return (
        (F.col("step") == IN_FINAL)
        & (F.col("outcome") == ACKED)
        & (held.bitwiseAND(F.col("every")) != F.col("every"))
    )


@check(
    "lost-on-replica",
    Family.LOSS,
    "– (jepsen.nats: lost-on-node)",
    "after healing, an acknowledged value of the final read is missing from a replica in the ISR",
    _lost_on_replica,
)
def lost_on_replica(evidence: Evidence) -> DataFrame:
    held = F.coalesce(F.col("held"), F.lit(0))
    missing = F.filter("replicas", lambda _, bit: F.getbit(held, bit) == 0)
    rows = evidence.suspects.filter(_lost_on_replica()).withColumn("missing", F.array_join(missing, " and "))
    return findings(
        rows,
        "lost-on-replica",
        operations=["invoke_index", "complete_index", "final_index", "replica_index"],
        where=F.col("missing"),
        sentence=say(
            "value %d was acked at %s and is in the final read at offset %d of %s, but not in the log of %s, which "
            "is in the ISR",
            *("value", seconds("complete_ns"), "offset", place(), "missing"),
        ),
        around=Window(F.col("complete_ns")),
    )


def unproven() -> Column:
    """A send of unknown outcome. Counted, not a finding: ``in_final`` or ``was_polled`` tell whether it was read."""
    return (F.col("outcome") == UNSURE) & F.col("first") & (F.col("step").between(IN_FINAL, NOWHERE))
