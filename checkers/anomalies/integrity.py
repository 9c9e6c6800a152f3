"""Integrity (docs/anomalies.md section 2): one value per offset, one offset per value, and nothing that
nobody sent."""

from __future__ import annotations

from functools import reduce

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.cycles import TRANSACTIONS
from wrackline.checkers.anomalies.evidence import Window, events_of, findings, having, place, say, seconds
from wrackline.checkers.anomalies.registry import Evidence, Family, check, mark
from wrackline.checkers.anomalies.transactions import READ_UNCOMMITTED, readers, visible_though_aborted
from wrackline.checkers.engine.candidates import Candidate, Outcome, is_held, is_place
from wrackline.checkers.engine.marks import Unfilled
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints, bools
from wrackline.history.model import CORRUPT

_DETAIL = "array<struct<partition:int,offset:bigint,detail:string>>"


def two_values(rows: Candidate[Ints]) -> Bools:
    """Another value was told for this offset."""
    return bools(is_place(rows) & (rows.value >= 0) & (rows.rival.offset != NONE))


def _diverging(rows: Candidate[Ints]) -> Bools:
    """Another value or another leader epoch is here, below the high watermarks of the replicas that hold
    them."""
    differs = (rows.committed.offset != NONE) | (rows.epoch_low != rows.epoch_high)
    return bools(is_held(rows) & (rows.hw_index != NONE) & differs)


def _own_offset(rows: Candidate[Ints]) -> Ints:
    """The offset that counts as the value's own: what its ack told, if it is there, else the lowest."""
    told = (rows.sent_offset != NONE) & (rows.astray == 0)
    return np.where(told, rows.sent_offset, rows.original_offset)


def _second_copy(rows: Candidate[Ints], _: Unfilled) -> Bools:
    copy = is_place(rows) & (rows.acked == 0) & (rows.stands == 1) & (rows.home == 1)
    own = _own_offset(rows)
    return bools(copy & (own != NONE) & (own != rows.offset))


def _aborted(rows: Candidate[Ints], _: Unfilled) -> Bools:
    read = is_place(rows) & ((rows.poll_index != NONE) | (rows.final_index != NONE))
    return bools(read & (rows.outcome == Outcome.REFUSED))


def _nobodys(rows: Candidate[Ints], _: Unfilled) -> Bools:
    return bools(is_held(rows) & (rows.outcome == NONE) & (rows.value != CORRUPT))


def _elsewhere(rows: Candidate[Ints], _: Unfilled) -> Bools:
    return bools(is_held(rows) & (rows.sent_log != NONE) & (rows.sent_log != rows.log))


def _spoiled(rows: Candidate[Ints], _: Unfilled) -> Bools:
    return bools(is_held(rows) & (rows.value == CORRUPT))


TWO_VALUES = mark("two values", two_values)
DIVERGING = mark("diverging", _diverging)
SECOND_COPY = mark("second copy", by_value=_second_copy)
ABORTED = mark("aborted", by_value=_aborted)
NOBODYS = mark("nobodys", by_value=_nobodys)
ELSEWHERE = mark("elsewhere", by_value=_elsewhere)
SPOILED = mark("spoiled", by_value=_spoiled)
DISORDERED_EPOCHS = mark("disordered epochs")


def _seen_ns() -> Column:
    return F.least("poll_ns", F.when(F.col("acked"), F.col("complete_ns")))


def _seen_by() -> Column:
    """``the final read`` and so on: the strongest witness of a place."""
    return (
        F.when(F.col("final_index").isNotNull(), F.lit("the final read"))
        .when(F.col("poll_index").isNotNull(), say("a consumer at %s", seconds("poll_ns")))
        .when(F.col("acked"), say("the ack of its send at %s", seconds("complete_ns")))
        .otherwise(F.lit("a replica's own log"))
    )


@check(
    "inconsistent-offset",
    Family.INTEGRITY,
    "inconsistent-offsets",
    "acks, polls or the final read show two values at one offset",
    marks=[TWO_VALUES],
)
def inconsistent_offset(evidence: Evidence) -> DataFrame:
    return findings(
        having(evidence, TWO_VALUES),
        "inconsistent-offset",
        operations=["index", "told_index"],
        sentence=say(
            "offset %d of %s was reported to hold value %d (by %s) and also value %d",
            *("offset", place(), "value", _seen_by(), "told_value"),
        ),
        around=Window(F.lit(0), _seen_ns()),
    )


@check(
    "replica-divergence",
    Family.INTEGRITY,
    "–",
    "two replicas hold different records at one offset below both high watermarks",
    marks=[DIVERGING],
)
def replica_divergence(evidence: Evidence) -> DataFrame:
    twice = F.col("hw_offset") == F.col("offset")
    values = say(
        "below their high watermarks one replica holds value %d (leader epoch %d) at offset %d of %s and "
        "another value %d (leader epoch %d)",
        *("value", "epoch_high", "offset", place(), "hw_value", "hw_epoch"),
    )
    epochs = say(
        "below their high watermarks replicas hold value %d at offset %d of %s, one under leader epoch %d, "
        "another under %d",
        *("value", "offset", place(), "epoch_low", "epoch_high"),
    )
    return findings(
        having(evidence, DIVERGING),
        "replica-divergence",
        operations=["hw_index", "hw_at"],
        where=F.when(twice, "value").otherwise("leader epoch"),
        sentence=F.when(twice, values).otherwise(epochs),
        around=Window(F.lit(0)),
    )


def _original() -> Column:
    return F.coalesce("sent_offset", "original_offset")


@check("duplicate", Family.INTEGRITY, "duplicate", "one value is at two offsets", marks=[SECOND_COPY])
def duplicate(evidence: Evidence) -> DataFrame:
    """One finding for each copy besides the original. A copy in another partition is misrouted, not counted
    here."""
    return findings(
        having(evidence, SECOND_COPY),
        "duplicate",
        operations=["invoke_index", "complete_index", "index", "original_index"],
        sentence=say(
            "value %d, sent once at %s, is at offset %d of %s and again at offset %d (seen by %s)",
            *("value", seconds("invoke_ns"), _original(), place(), "offset", _seen_by()),
        ),
        around=Window(F.col("invoke_ns"), _seen_ns()),
    )


@check(
    "aborted-read",
    Family.INTEGRITY,
    "G1a",
    "a value was read whose send had certainly failed, or whose transaction was never asked to commit",
    marks=[ABORTED, TRANSACTIONS],
)
def aborted_read(evidence: Evidence) -> DataFrame:
    """``where``: ``transaction`` (its abort succeeded), ``abort failed`` (nobody knows its end, but its
    commit was never asked for); nothing for a plain send. At read_uncommitted consumers are given what is
    aborted later."""
    found = []
    if evidence.counts.get(ABORTED):
        found.append(_refused(evidence))
    if evidence.counts.get(TRANSACTIONS):
        found.append(visible_though_aborted(evidence))
    return reduce(DataFrame.union, found)


def _refused(evidence: Evidence) -> DataFrame:
    tables = evidence.tables
    number = F.get_json_object("extra", "$.txn").cast("bigint")
    rows = (
        events_of(having(evidence, ABORTED), "complete_index", tables)
        .join(readers(tables), "run")
        .withColumn("txn", number)
        .filter(F.col("txn").isNull() | (F.col("isolation") != READ_UNCOMMITTED))
    )
    why = F.coalesce("error", F.lit("failed"))
    refused = say("value %d was refused at %s (%s)", "value", seconds("complete_ns"), why)
    aborted = say(
        "value %d is of transaction %d, which was aborted at %s (%s)",
        *("value", "txn", seconds("complete_ns"), why),
    )
    return findings(
        rows,
        "aborted-read",
        operations=["invoke_index", "complete_index", "poll_index", "final_index"],
        where=F.when(F.col("txn").isNotNull(), "transaction"),
        sentence=F.concat(
            F.when(F.col("txn").isNull(), refused).otherwise(aborted),
            say(", yet %s has it at offset %d of %s", _seen_by(), "offset", place()),
        ),
        around=Window(F.col("invoke_ns"), _seen_ns()),
    )


@check(
    "phantom",
    Family.INTEGRITY,
    "(throws)",
    "a value was read that nobody sent in this run",
    marks=[NOBODYS],
)
def phantom(evidence: Evidence) -> DataFrame:
    ours = say(
        "value %d, which nobody sent, is at offset %d of %s (seen by %s)",
        "value",
        "offset",
        place(),
        _seen_by(),
    )
    foreign = say("offset %d of %s holds a record of another run (seen by %s)", "offset", place(), _seen_by())
    return findings(
        having(evidence, NOBODYS),
        "phantom",
        operations=["poll_index", "final_index", "replica_index"],
        sentence=F.when(F.col("value") >= 0, ours).otherwise(foreign),
        around=Window(F.lit(0), _seen_ns()),
    )


@check(
    "misrouted",
    Family.INTEGRITY,
    "–",
    "a value was read from another partition than it was sent to",
    marks=[ELSEWHERE],
)
def misrouted(evidence: Evidence) -> DataFrame:
    home = evidence.tables.logs.select(
        F.col("log").alias("sent_log"),
        F.col("topic").alias("sent_topic"),
        F.col("partition").alias("sent_partition"),
    )
    return findings(
        having(evidence, ELSEWHERE).join(F.broadcast(home), "sent_log"),
        "misrouted",
        operations=["invoke_index", "poll_index", "final_index", "replica_index"],
        sentence=say(
            "value %d was sent to %s at %s, but is at offset %d of %s (seen by %s)",
            *(
                "value",
                place("sent_topic", "sent_partition"),
                seconds("invoke_ns"),
                "offset",
                place(),
                _seen_by(),
            ),
        ),
        around=Window(F.col("invoke_ns"), _seen_ns()),
    )


@check(
    "corrupt",
    Family.INTEGRITY,
    "–",
    "payload, key, headers or timestamp differ from what was sent",
    marks=[SPOILED],
)
def corrupt(evidence: Evidence) -> DataFrame:
    """What is wrong with each is in ``extra.corrupt`` of the event that read it."""
    witness = F.coalesce("final_index", "poll_index", "replica_index")
    rows = events_of(having(evidence, SPOILED).withColumn("witness", witness), "witness", evidence.tables)
    said = F.from_json(F.get_json_object("extra", "$.corrupt"), _DETAIL)
    here = F.filter(
        said, lambda one: (one["partition"] == F.col("partition")) & (one["offset"] == F.col("offset"))
    )
    told = rows.withColumn("detail", F.get(here, F.lit(0))["detail"])
    return findings(
        told,
        "corrupt",
        operations=["poll_index", "final_index", "replica_index"],
        sentence=say(
            "the record at offset %d of %s differs from the one that was sent: %s (seen by %s)",
            *("offset", place(), F.coalesce("detail", F.lit("its checksum is wrong")), _seen_by()),
        ),
        around=Window(F.lit(0), _seen_ns()),
    )


@check(
    "epoch-order",
    Family.INTEGRITY,
    "–",
    "the leader epochs of records decrease along offsets",
    marks=[DISORDERED_EPOCHS],
)
def epoch_order(evidence: Evidence) -> DataFrame:
    """In the final read, and in each replica's own log: an epoch that begins (at ``offset``) before a smaller
    one ends (at ``told``) is out of order."""
    hosts = evidence.tables.hosts
    rows = having(evidence, DISORDERED_EPOCHS).join(F.broadcast(hosts), ["log", "process"], "left")
    whose = F.coalesce(F.concat(F.lit("the log of "), "host"), F.lit("the final read"))
    return findings(
        rows,
        "epoch-order",
        operations=["index", "told_index"],
        where=whose,
        sentence=say(
            "%s of %s has leader epoch %d at offset %d, but the smaller epoch %d at the later offset %d",
            *(whose, place(), "epoch_high", "offset", "epoch_low", "told"),
        ),
        around=Window(F.lit(0)),
    )
