"""Integrity (docs/anomalies.md section 2): one value per offset, one offset per value, and nothing that
nobody sent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.cycles import TRANSACTIONS
from wrackline.checkers.anomalies.evidence import (
    Window,
    details_of,
    findings,
    having,
    place,
    say,
    seconds,
    value_label,
)
from wrackline.checkers.anomalies.explained_by import IN_ANY_ORDER, By, ExplainedBy, FurtherRows, Spelt
from wrackline.checkers.anomalies.group_tables import readers
from wrackline.checkers.anomalies.registry import Evidence, Findings, check, mark
from wrackline.checkers.anomalies.transactions import READ_UNCOMMITTED, visible_though_aborted
from wrackline.checkers.engine.candidates import Candidate, SendOutcome, is_held, is_place
from wrackline.checkers.engine.frames import Frame, Int, Long, Text, struct_type, unpacked
from wrackline.checkers.engine.marks import Unfilled
from wrackline.checkers.engine.tables import CandidateOfRun
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints, bools
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.anomaly import Family, Promise
from wrackline.history.model import CORRUPT


@dataclass(frozen=True, slots=True)
class _Detail(Table[Column]):
    """What is wrong with one record that was read (``extra.corrupt``)."""

    partition: Int
    offset: Long
    detail: Text


def two_values(rows: Candidate[Ints]) -> Bools:
    """Clients were given another value at this offset too."""
    return bools(is_place(rows) & (rows.value >= 0) & (rows.rival.offset != NONE))


def _diverging(rows: Candidate[Ints]) -> Bools:
    """Another value or another leader epoch is here, below the high watermarks of the replicas that hold
    them."""
    differs = (rows.committed.offset != NONE) | (rows.epoch_low != rows.epoch_high)
    return bools(is_held(rows) & (rows.hw_index != NONE) & differs)


def _own_offset(rows: Candidate[Ints]) -> Ints:
    """The offset that counts as the value's own: that which its ack named, if the value is there, else
    the lowest."""
    named = (rows.sent_offset != NONE) & (rows.astray == 0)
    return np.where(named, rows.sent_offset, rows.original_offset)


def _second_copy(rows: Candidate[Ints], _: Unfilled) -> Bools:
    copy = is_place(rows) & (rows.acked == 0) & (rows.stands == 1) & (rows.home == 1)
    own = _own_offset(rows)
    return bools(copy & (own != NONE) & (own != rows.offset))


def _aborted(rows: Candidate[Ints], _: Unfilled) -> Bools:
    read = is_place(rows) & ((rows.poll_index != NONE) | (rows.final_index != NONE))
    return bools(read & (rows.outcome == SendOutcome.REFUSED))


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


def _seen_ns(c: CandidateOfRun) -> Column:
    return F.least(c.poll_ns, F.when(c.acked, c.complete_ns))


def _seen_by(c: CandidateOfRun) -> Column:
    """``the final read`` and so on: the strongest witness of a place."""
    return (
        F.when(c.final_index.isNotNull(), F.lit("the final read"))
        .when(c.poll_index.isNotNull(), say("a consumer at %s", seconds(c.poll_ns)))
        .when(c.acked, say("the acknowledgement of its send at %s", seconds(c.complete_ns)))
        .otherwise(F.lit("a replica's own log"))
    )


@check(
    "inconsistent-offset",
    Family.INTEGRITY,
    "inconsistent-offsets",
    "acks, polls or the final read show two values at one offset",
    breaks=Promise.LASTING_OFFSETS,
    right_then_wrong=True,
    marks=[TWO_VALUES],
    explained_by=IN_ANY_ORDER,
)
def inconsistent_offset(evidence: Evidence) -> Findings:
    """Once for each value that is there."""
    rows = having(evidence, TWO_VALUES)
    c = rows.c
    return findings(
        rows,
        "inconsistent-offset",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.index, c.rival.index],
        sentence=say(
            "Offset %,d of %s holds value %s according to %s, but value %s according to another operation",
            *(c.offset, place(c), value_label(c.value), _seen_by(c), value_label(c.rival.value)),
        ),
        around=Window(F.lit(0), _seen_ns(c)),
    )


@check(
    "replica-divergence",
    Family.INTEGRITY,
    "–",
    "two replicas hold different records at one offset below both high watermarks",
    breaks=Promise.INTACT_FILES,
    rests_on_replicas=True,
    marks=[DIVERGING],
    explained_by=ExplainedBy(By.FACTS, further_rows=FurtherRows.HOLDERS, until_fault=True),
)
def replica_divergence(evidence: Evidence) -> Findings:
    rows = having(evidence, DIVERGING)
    c = rows.c
    twice = c.committed.offset == c.offset
    values = say(
        "At offset %,d of %s, which is below the high watermarks of both, one replica holds value %s (leader "
        "epoch %d) and another holds value %s (leader epoch %d)",
        *(c.offset, place(c), value_label(c.value), c.epoch_high),
        *(value_label(c.committed.value), c.committed_epoch),
    )
    epochs = say(
        "At offset %,d of %s, which is below the high watermarks of both, one replica holds value %s under "
        "leader epoch %d and another holds it under leader epoch %d",
        *(c.offset, place(c), value_label(c.value), c.epoch_low, c.epoch_high),
    )
    return findings(
        rows,
        "replica-divergence",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.hw_index, c.committed.index],
        where=F.when(twice, "value").otherwise("leader epoch"),
        sentence=F.when(twice, values).otherwise(epochs),
        around=Window(F.lit(0)),
    )


@check(
    "duplicate",
    Family.INTEGRITY,
    "duplicate",
    "one value is at two offsets",
    breaks=Promise.IDEMPOTENCE,
    marks=[SECOND_COPY],
    explained_by=IN_ANY_ORDER,
)
def duplicate(evidence: Evidence) -> Findings:
    """One finding for each copy besides the original. A copy in another partition is misrouted, not counted
    here."""
    rows = having(evidence, SECOND_COPY)
    c = rows.c
    original = F.coalesce(c.sent_offset, c.original_offset)
    return findings(
        rows,
        "duplicate",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.invoke_index, c.complete_index, c.index, c.original_index],
        sentence=say(
            "Value %s was sent once, at %s, but it is at offset %,d of %s and again at offset %,d (seen by "
            "%s)",
            *(value_label(c.value), seconds(c.invoke_ns), original, place(c), c.offset, _seen_by(c)),
        ),
        around=Window(c.invoke_ns, _seen_ns(c)),
    )


@check(
    "aborted-read",
    Family.INTEGRITY,
    "G1a",
    "a value was read whose send had certainly failed, or whose transaction was never asked to commit",
    breaks=Promise.NO_ABORTED_READS,
    marks=[ABORTED, TRANSACTIONS],
    explained_by=IN_ANY_ORDER,
)
def aborted_read(evidence: Evidence) -> Findings:
    """``where``: ``transaction`` (its abort succeeded), ``abort failed`` (nobody knows its end, but its
    commit was never asked for); nothing for a plain send. At read_uncommitted consumers are given what is
    aborted later."""
    found = []
    if evidence.counts.get(ABORTED):
        found.append(_refused(evidence))
    if evidence.counts.get(TRANSACTIONS):
        found.append(visible_though_aborted(evidence))
    return reduce(Frame.union, found)


def _refused(evidence: Evidence) -> Findings:
    marked, asked = having(evidence, ABORTED), readers(evidence.tables)
    joined = details_of(marked, marked.c.run, marked.c.complete_index, evidence.tables).join(
        asked, marked.c.run == asked.c.run
    )
    (c, details), reader = joined.c
    txn = F.get_json_object(details.extra, "$.txn").cast("bigint")
    rows = joined.filter(txn.isNull() | (reader.isolation != READ_UNCOMMITTED))
    value, at = value_label(c.value), seconds(c.complete_ns)
    why = F.coalesce(details.error, F.lit("failed"))
    refused = say("The send of value %s was refused at %s (%s)", value, at, why)
    aborted = say("Value %s is of transaction %d, which was aborted at %s (%s)", value, txn, at, why)
    return findings(
        rows,
        "aborted-read",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.invoke_index, c.complete_index, c.poll_index, c.final_index],
        where=F.when(txn.isNotNull(), "transaction"),
        sentence=F.concat(
            F.when(txn.isNull(), refused).otherwise(aborted),
            say(", but the value was read at offset %,d of %s by %s", c.offset, place(c), _seen_by(c)),
        ),
        around=Window(c.invoke_ns, _seen_ns(c)),
    )


@check(
    "phantom",
    Family.INTEGRITY,
    "(throws)",
    "a value was read that nobody sent in this run",
    breaks=Promise.ALWAYS,
    marks=[NOBODYS],
    explained_by=IN_ANY_ORDER,
)
def phantom(evidence: Evidence) -> Findings:
    rows = having(evidence, NOBODYS)
    c = rows.c
    ours = say(
        "Nobody sent value %s, but it is at offset %,d of %s (seen by %s)",
        *(value_label(c.value), c.offset, place(c), _seen_by(c)),
    )
    foreign = say(
        "Offset %,d of %s holds a record of another run (seen by %s)", c.offset, place(c), _seen_by(c)
    )
    return findings(
        rows,
        "phantom",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.poll_index, c.final_index, c.replica_index],
        sentence=F.when(c.value >= 0, ours).otherwise(foreign),
        around=Window(F.lit(0), _seen_ns(c)),
    )


@check(
    "misrouted",
    Family.INTEGRITY,
    "–",
    "a value was read from another partition than it was sent to",
    breaks=Promise.ALWAYS,
    marks=[ELSEWHERE],
    explained_by=IN_ANY_ORDER,
)
def misrouted(evidence: Evidence) -> Findings:
    marked, logs = having(evidence, ELSEWHERE), evidence.tables.logs
    rows = marked.join(logs.small(), marked.c.sent_log == logs.c.log)
    c, home = rows.c
    return findings(
        rows,
        "misrouted",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.invoke_index, c.poll_index, c.final_index, c.replica_index],
        sentence=say(
            "Value %s was sent to %s at %s, but it is at offset %,d of %s (seen by %s)",
            *(value_label(c.value), place(home), seconds(c.invoke_ns), c.offset, place(c), _seen_by(c)),
        ),
        around=Window(c.invoke_ns, _seen_ns(c)),
    )


@check(
    "corrupt",
    Family.INTEGRITY,
    "–",
    "payload, key, headers or timestamp differ from what was sent",
    breaks=Promise.INTACT_FILES,
    marks=[SPOILED],
    explained_by=IN_ANY_ORDER,
)
def corrupt(evidence: Evidence) -> Findings:
    """What is wrong with each is in ``extra.corrupt`` of the event that read it."""
    marked = having(evidence, SPOILED)
    c = marked.c
    witness = F.coalesce(c.final_index, c.poll_index, c.replica_index)
    rows = details_of(marked, c.run, witness, evidence.tables)
    _, details = rows.c

    def is_here(column: Column) -> Column:
        one = unpacked(_Detail, column)
        return (one.partition == c.partition) & (one.offset == c.offset)

    every = F.from_json(F.get_json_object(details.extra, "$.corrupt"), f"array<{struct_type(_Detail)}>")
    detail = unpacked(_Detail, F.get(F.filter(every, is_here), F.lit(0))).detail
    return findings(
        rows,
        "corrupt",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.poll_index, c.final_index, c.replica_index],
        sentence=say(
            "The record at offset %,d of %s differs from the one that was sent: %s (seen by %s)",
            *(c.offset, place(c), F.coalesce(detail, F.lit("its checksum is wrong")), _seen_by(c)),
        ),
        around=Window(F.lit(0), _seen_ns(c)),
    )


@check(
    "epoch-order",
    Family.INTEGRITY,
    "–",
    "the leader epochs of records decrease along offsets",
    breaks=Promise.ALWAYS,
    marks=[DISORDERED_EPOCHS],
    explained_by=ExplainedBy(By.FACTS, spelt=Spelt.SMALLER_EPOCHS),
)
def epoch_order(evidence: Evidence) -> Findings:
    """In the final read, and in each replica's own log: an epoch that begins (at ``offset``) before a smaller
    one ends (at ``other_offset``) is out of order."""
    marked, replicas = having(evidence, DISORDERED_EPOCHS), evidence.tables.replicas
    c, r = marked.c, replicas.c
    rows = marked.join(replicas.small(), (c.log == r.log) & (c.process == r.process), "left")
    whose = F.coalesce(F.concat(F.lit("the log of "), r.host), F.lit("the final read"))
    subject = F.coalesce(F.concat(F.lit("The log of "), r.host), F.lit("The final read"))
    return findings(
        rows,
        "epoch-order",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.index, c.rival.index],
        where=whose,
        sentence=say(
            "%s of %s has leader epoch %d at offset %,d, but the smaller leader epoch %d at offset %,d, "
            "which is later in the log",
            *(subject, place(c), c.epoch_high, c.offset, c.epoch_low, c.other_offset),
        ),
        around=Window(F.lit(0)),
    )
