"""Integrity (docs/anomalies.md section 2): one value per offset, one offset per value, and nothing that
nobody sent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import orjson

from wrackline.checkers.checks.explained_by import IN_ANY_ORDER, By, ExplainedBy, FurtherRows, Spelt
from wrackline.checkers.checks.finding import Finding, known, least, seconds
from wrackline.checkers.checks.places import Places, Row
from wrackline.checkers.checks.registry import check, completion, mark
from wrackline.checkers.engine.candidates import Candidate, SendOutcome, is_held, is_place
from wrackline.checkers.engine.marks import Unfilled
from wrackline.checkers.inputs.table import NONE, Bools, Ints, bools
from wrackline.checkers.verdict.anomaly import Family, Promise
from wrackline.history.model import CORRUPT

READ_UNCOMMITTED = "read_uncommitted"


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


def _seen_ns(c: Row) -> int | None:
    return least(c.poll_ns, c.complete_ns if c.acked == 1 else None)


def _seen_by(c: Row) -> str:
    """``the final read`` and so on: the strongest witness of a place."""
    if c.final_index is not None:
        return "the final read"
    if c.poll_index is not None:
        return f"a consumer at {seconds(c.poll_ns)}"
    if c.acked == 1:
        return f"the acknowledgement of its send at {seconds(c.complete_ns)}"
    return "a replica's own log"


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
def inconsistent_offset(at: Places) -> Iterator[Finding]:
    """Yields a finding for each value at an offset that holds more than one."""
    for c in at.each(TWO_VALUES):
        yield at.finding(
            c,
            operations=[c.index, c.rival.index],
            sentence=f"Offset {c.offset:,} of {at.log} holds value {at.run.value(c.value)} according to "
            f"{_seen_by(c)}, but value {at.run.value(c.rival.value)} according to another operation",
            since_ns=0,
            until_ns=_seen_ns(c),
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
def replica_divergence(at: Places) -> Iterator[Finding]:
    for c in at.each(DIVERGING):
        twice = c.committed.offset == c.offset
        there = (
            f"At offset {c.offset:,} of {at.log}, which is below the high watermarks of both, one replica "
            f"holds value {at.run.value(c.value)}"
        )
        values = (
            f"{there} (leader epoch {c.epoch_high}) and another holds value "
            f"{at.run.value(c.committed.value)} (leader epoch {c.committed_epoch})"
        )
        epochs = (
            f"{there} under leader epoch {c.epoch_low} and another holds it under leader epoch {c.epoch_high}"
        )
        yield at.finding(
            c,
            operations=[c.hw_index, c.committed.index],
            where="value" if twice else "leader epoch",
            sentence=values if twice else epochs,
            since_ns=0,
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
def duplicate(at: Places) -> Iterator[Finding]:
    """One finding for each copy besides the original. A copy in another partition is misrouted, not counted
    here."""
    for c in at.each(SECOND_COPY):
        original = known(c.sent_offset, c.original_offset)
        yield at.finding(
            c,
            operations=[c.invoke_index, c.complete_index, c.index, c.original_index],
            sentence=f"Value {at.run.value(c.value)} was sent once, at {seconds(c.invoke_ns)}, but it is at "
            f"offset {original:,} of {at.log} and again at offset {c.offset:,} (seen by {_seen_by(c)})",
            since_ns=c.invoke_ns,
            until_ns=_seen_ns(c),
        )


@check(
    "aborted-read",
    Family.INTEGRITY,
    "G1a",
    "a value was read whose send had certainly failed, or whose transaction was never asked to commit",
    breaks=Promise.NO_ABORTED_READS,
    marks=[ABORTED],
    words_of=completion,
    explained_by=IN_ANY_ORDER,
)
def aborted_read(at: Places) -> Iterator[Finding]:
    """Yields a finding for each record that was read though its send or its transaction failed. ``where``:
    ``transaction`` (its abort succeeded), ``abort failed`` (nobody knows its end, but its commit was never
    asked for: the walk of transactions finds that); nothing for a plain send. At read_uncommitted
    consumers are given what is aborted later."""
    for c in at.each(ABORTED):
        words = at.words(c.complete_index)
        txn = orjson.loads(words.extra or b"{}").get("txn")
        if txn is not None and at.run.info.isolation == READ_UNCOMMITTED:
            continue
        value, when, why = at.run.value(c.value), seconds(c.complete_ns), words.error or "failed"
        refused = f"The send of value {value} was refused at {when} ({why})"
        aborted = f"Value {value} is of transaction {txn}, which was aborted at {when} ({why})"
        yield at.finding(
            c,
            operations=[c.invoke_index, c.complete_index, c.poll_index, c.final_index],
            where=None if txn is None else "transaction",
            sentence=f"{refused if txn is None else aborted}, but the value was read at offset {c.offset:,} "
            f"of {at.log} by {_seen_by(c)}",
            since_ns=c.invoke_ns,
            until_ns=_seen_ns(c),
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
def phantom(at: Places) -> Iterator[Finding]:
    for c in at.each(NOBODYS):
        ours = f"Nobody sent value {at.run.value(c.value)}, but it is at offset {c.offset:,} of {at.log}"
        foreign = f"Offset {c.offset:,} of {at.log} holds a record of another run"
        yield at.finding(
            c,
            operations=[c.poll_index, c.final_index, c.replica_index],
            sentence=f"{ours if c.value >= 0 else foreign} (seen by {_seen_by(c)})",
            since_ns=0,
            until_ns=_seen_ns(c),
        )


@check(
    "misrouted",
    Family.INTEGRITY,
    "–",
    "a value was read from another topic or partition than it was sent to",
    breaks=Promise.ALWAYS,
    marks=[ELSEWHERE],
    explained_by=IN_ANY_ORDER,
)
def misrouted(at: Places) -> Iterator[Finding]:
    """Yields a finding for each record that is elsewhere than it was sent to. ``where``: ``topic`` where the
    topic is another one, and not only the partition."""
    for c in at.each(ELSEWHERE):
        home = at.run.of_number.get(c.sent_log)
        if home is None:
            continue
        other = home.topic != at.log.topic
        there = (
            f"in another topic, at offset {c.offset:,} of {at.log}"
            if other
            else (f"at offset {c.offset:,} of {at.log}")
        )
        yield at.finding(
            c,
            operations=[c.invoke_index, c.poll_index, c.final_index, c.replica_index],
            where="topic" if other else None,
            sentence=f"Value {at.run.value(c.value)} was sent to {home} at {seconds(c.invoke_ns)}, but it is "
            f"{there} (seen by {_seen_by(c)})",
            since_ns=c.invoke_ns,
            until_ns=_seen_ns(c),
        )


def _witness(rows: Candidate[Ints]) -> Ints:
    """The event that read the record."""
    result = np.where(rows.final_index != NONE, rows.final_index, rows.poll_index)
    return np.where(result != NONE, result, rows.replica_index)


@check(
    "corrupt",
    Family.INTEGRITY,
    "–",
    "payload, key, headers or timestamp differ from what was sent",
    breaks=Promise.INTACT_FILES,
    marks=[SPOILED],
    words_of=_witness,
    explained_by=IN_ANY_ORDER,
)
def corrupt(at: Places) -> Iterator[Finding]:
    """Yields a finding for each corrupt record; the details are in ``extra.corrupt`` of the event that
    read it."""
    for c in at.each(SPOILED):
        words = at.words(known(c.final_index, c.poll_index, c.replica_index))
        details = orjson.loads(words.extra or b"{}").get("corrupt") or ()
        here = [
            one.get("detail")
            for one in details
            if one.get("partition") == at.log.partition and one.get("offset") == c.offset
        ]
        detail = here[0] if here and here[0] is not None else "its checksum is wrong"
        yield at.finding(
            c,
            operations=[c.poll_index, c.final_index, c.replica_index],
            sentence=f"The record at offset {c.offset:,} of {at.log} differs from the one that was sent: "
            f"{detail} (seen by {_seen_by(c)})",
            since_ns=0,
            until_ns=_seen_ns(c),
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
def epoch_order(at: Places) -> Iterator[Finding]:
    """Yields a finding for each leader epoch that is out of order, in the final read and in each replica's
    own log: it begins (at ``offset``) before a smaller one ends (at ``other_offset``)."""
    for c in at.each(DISORDERED_EPOCHS):
        hosts = at.log.hosts
        whose = f"log of {hosts[c.process]}" if 0 <= c.process < len(hosts) else "final read"
        yield at.finding(
            c,
            operations=[c.index, c.rival.index],
            where=f"the {whose}",
            sentence=f"The {whose} of {at.log} has leader epoch {c.epoch_high} at offset {c.offset:,}, but "
            f"the smaller leader epoch {c.epoch_low} at offset {c.other_offset:,}, which is later in the log",
            since_ns=0,
        )
