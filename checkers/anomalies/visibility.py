"""Visibility (docs/anomalies.md section 4): the partition as one log that everybody sees at one time.

Bounds come from ``end`` alone: librdkafka fetches ahead, so a poll proves that what it returns existed when
it returned, never that there was no more. The exact rules are in wrackline.checkers.exact.log and
docs/linearizability.md 3.2; the table of places carries the earliest proof at or above each offset, so each
rule is one comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from pyspark.sql import Column
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import (
    Window,
    apart,
    earliest,
    findings,
    having,
    place,
    process_label,
    say,
    seconds,
    value_label,
)
from wrackline.checkers.anomalies.explained_by import ExplainedBy
from wrackline.checkers.anomalies.integrity import TWO_VALUES
from wrackline.checkers.anomalies.registry import Evidence, Findings, check, mark
from wrackline.checkers.engine.candidates import Candidate, SendOutcome, Step, is_place, least, lt
from wrackline.checkers.engine.frames import Frame, Long, packed, unpacked
from wrackline.checkers.engine.marks import Alone, Unfilled
from wrackline.checkers.engine.tables import CandidateOfRun, Partition
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints, bools
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.anomaly import Family, Promise


def _stale(rows: Candidate[Ints]) -> Bools:
    return bools((rows.step == Step.END_ASKED) & lt(rows.by_ack.index, rows.invoke_index))


def _stale_end(rows: Candidate[Ints]) -> Bools:
    """The record of the proof is in the final read, so it is the end that is wrong."""
    there = least(rows.by_settled_ack.index, rows.by_final.index)
    return bools((rows.step == Step.END_TOLD) & lt(there, rows.invoke_index))


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
    """A send that may be anywhere (no client knows its place, at most a replica's own log has it), in a
    log with offsets that nobody saw the content of."""
    known = (rows.sent_offset != NONE) | (rows.in_final == 1) | (rows.was_polled == 1)
    only_held = (rows.step == Step.IN_REPLICAS) & (rows.home == 1) & (rows.first == 1) & ~known
    free = ((rows.step == Step.NOWHERE) | only_held) & (
        (rows.outcome == SendOutcome.ACKED) | (rows.outcome == SendOutcome.UNSURE)
    )
    return bools(free & np.isin(rows.log, np.array(sorted(unfilled), dtype=np.int64)))


STALE = mark("stale", _stale)
STALE_END = mark("stale end", _stale_end)
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
    breaks=Promise.LINEARIZABLE_READS,
    right_then_wrong=True,
    rests_on_acks=True,
    marks=[STALE],
)
def stale_read(evidence: Evidence) -> Findings:
    rows = having(evidence, STALE)
    c, ack = rows.c, rows.c.by_ack
    acked, asked = apart(ack.ns, c.invoke_ns)
    return findings(
        rows,
        "stale-read",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[ack.index, c.invoke_index, c.complete_index],
        sentence=say(
            "Process %s asked for the end offset of %s at %s and got %,d, though value %s had been "
            "acknowledged at offset %,d at %s",
            *(process_label(c.process), place(c), asked, c.other_offset),
            *(value_label(ack.value), ack.offset, acked),
        ),
        around=Window(ack.ns, c.complete_ns),
    )


@dataclass(frozen=True, slots=True)
class _Told(Table[Column]):
    """An answer to the final read that names ``end``, though a record is known at ``offset``."""

    end: Column
    offset: Column
    index: Column
    """Of the event that shows the record."""
    ns: Column
    process: Column
    invoke_index: Column
    complete_index: Column
    invoke_ns: Column
    complete_ns: Column


@check(
    "stale-end",
    Family.VISIBILITY,
    "–",
    "after healing, the end offset that the final read was told does not reach past what it was given",
    breaks=Promise.LINEARIZABLE_READS,
    right_then_wrong=True,
    rests_on_final_read=True,
    marks=[STALE_END],
    explained_by=ExplainedBy(ends=True),
)
def stale_end(evidence: Evidence) -> Findings:
    """Once per partition, with the smallest end."""
    marked = having(evidence, STALE_END)
    c = marked.c
    shown = earliest(c.by_settled_ack, c.by_final)
    told = _Told(
        end=c.other_offset,
        offset=shown.offset,
        index=shown.index,
        ns=shown.ns,
        process=c.process,
        invoke_index=c.invoke_index,
        complete_index=c.complete_index,
        invoke_ns=c.invoke_ns,
        complete_ns=c.complete_ns,
    )
    smallest = F.min_by(packed(told), F.struct(c.other_offset, c.complete_index))
    rows = marked.grouped(Partition(c.run, c.log, c.topic, c.partition), unpacked(_Told, smallest))
    at, told = rows.c
    known, asked = apart(told.ns, told.invoke_ns)
    return findings(
        rows,
        "stale-end",
        at=at,
        offset=told.end,
        operations=[told.index, told.invoke_index, told.complete_index],
        sentence=say(
            "The final read asked for the end offset of %s at %s and got %,d, though a record at offset %,d "
            "was known at %s, and the final read has it",
            *(place(at), asked, told.end, told.offset, known),
        ),
        around=Window(told.ns, told.complete_ns),
    )


@check(
    "future-read",
    Family.VISIBILITY,
    "–",
    "a record was returned before its send was invoked",
    breaks=Promise.ALWAYS,
    marks=[FUTURE],
)
def future_read(evidence: Evidence) -> Findings:
    rows = having(evidence, FUTURE)
    c = rows.c
    polled, sent = apart(c.poll_ns, c.invoke_ns)
    return findings(
        rows,
        "future-read",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.poll_index, c.final_index, c.invoke_index],
        sentence=say(
            "Value %s had been read at offset %,d of %s by %s, before its send was invoked at %s",
            *(value_label(c.value), c.offset, place(c)),
            *(F.coalesce(polled, F.lit("the time of the final read")), sent),
        ),
        around=Window(F.coalesce(c.poll_ns, c.invoke_ns), c.invoke_ns),
    )


@check(
    "watermark-regression",
    Family.VISIBILITY,
    "–",
    "of two observations that do not overlap the later shows a smaller high watermark",
    breaks=Promise.LINEARIZABLE_READS,
    right_then_wrong=True,
    marks=[REGRESSED],
)
def watermark_regression(evidence: Evidence) -> Findings:
    """A record that a consumer read shows a high watermark above its offset."""
    rows = having(evidence, REGRESSED)
    c, first = rows.c, earliest(rows.c.by_end, rows.c.by_poll)
    before, asked = apart(first.ns, c.invoke_ns)
    end = say("A client got %,d as the end offset of %s", first.offset + 1, place(c))
    polled = say("A consumer read offset %,d of %s", first.offset, place(c))
    return findings(
        rows,
        "watermark-regression",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[first.index, c.invoke_index, c.complete_index],
        sentence=F.concat(
            F.when(first.index == c.by_end.index, end).otherwise(polled),
            say(
                " at %s; process %s asked for the end offset after that, at %s, and got %,d",
                *(before, process_label(c.process), asked, c.other_offset),
            ),
        ),
        around=Window(first.ns, c.complete_ns),
    )


@check(
    "not-linearizable",
    Family.VISIBILITY,
    "–",
    "the partition's history has no valid order",
    breaks=Promise.LINEARIZABLE_READS,
    right_then_wrong=True,
    rests_on_acks=True,
    marks=[LATE, TWO_VALUES, HOLE, GAP],
    explained_by=ExplainedBy(in_any_order=frozenset(("two values",))),
)
def not_linearizable(evidence: Evidence) -> Findings:
    """Reported once per partition, with the witness that is complete first: the shortest beginning of the
    history that is already wrong. ``where`` names the rule that it breaks."""
    rules = [(LATE, _late), (TWO_VALUES, _two_values), (HOLE, _holes), (GAP, _unfilled)]
    found = [witnesses(evidence) for seen, witnesses in rules if evidence.counts.get(seen)]
    witnesses = reduce(Frame.union, found)
    w = witnesses.c
    first = F.min_by(packed(w), F.struct(w.whole_index, w.rule, w.offset))
    rows = witnesses.grouped(Partition(w.run, w.log, w.topic, w.partition), unpacked(_Witness, first))
    _, c = rows.c
    return findings(
        rows,
        "not-linearizable",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[F.get(c.operations, F.lit(n)) for n in range(4)],
        where=c.rule,
        sentence=F.concat(place(c), F.lit(" has no valid order: "), c.why),
        around=Window(F.coalesce(c.from_ns, F.lit(0)), c.to_ns),
    )


@dataclass(frozen=True, slots=True)
class _Witness(Partition):
    """Operations of a partition that no order explains."""

    offset: Column
    value: Column
    rule: Column
    operations: Column
    whole_index: Column
    """The last of their indexes: from then on the history is wrong."""
    why: Column
    from_ns: Column
    to_ns: Column


def _witness(
    at: CandidateOfRun | _Unfilled,
    *,
    rule: Column,
    operations: Sequence[Column],
    why: Column,
    since: Column,
    until: Column,
    offset: Column,
    value: Column,
) -> _Witness:
    indexes = F.array(*(one.cast("bigint") for one in operations))
    return _Witness(
        run=at.run,
        log=at.log,
        topic=at.topic,
        partition=at.partition,
        offset=offset.cast("bigint"),
        value=value.cast("bigint"),
        rule=rule,
        operations=F.array_compact(indexes),
        whole_index=F.array_max(indexes),
        why=why,
        from_ns=since.cast("bigint"),
        to_ns=until.cast("bigint"),
    )


def _late(evidence: Evidence) -> Frame[_Witness]:
    rows = having(evidence, LATE)
    c = rows.c
    first = earliest(c.by_ack, c.by_poll, c.by_final, c.by_end)
    asked = c.step == Step.END_ASKED
    before, after = apart(first.ns, c.invoke_ns)
    known = say("offset %,d was known to be taken at %s; after that, ", first.offset, before)
    end = say("a client that asked for the end offset at %s got %,d", after, c.other_offset)
    sent = say("value %s was sent at %s, and got offset %,d", value_label(c.value), after, c.offset)
    return rows.select(
        _witness(
            c,
            rule=F.when(asked, "stale end").otherwise("late append"),
            operations=[
                *(first.index, c.invoke_index, c.complete_index),
                F.when(~asked, F.least(c.poll_index, c.final_index)),
            ],
            why=F.concat(known, F.when(asked, end).otherwise(sent)),
            since=first.ns,
            until=F.coalesce(c.complete_ns, c.invoke_ns),
            offset=c.offset,
            value=c.value,
        )
    )


def _two_values(evidence: Evidence) -> Frame[_Witness]:
    rows = having(evidence, TWO_VALUES)
    c = rows.c
    return rows.select(
        _witness(
            c,
            rule=F.lit("two values"),
            operations=[c.index, c.rival.index],
            why=say(
                "offset %,d has value %s and value %s",
                *(c.offset, value_label(c.value), value_label(c.rival.value)),
            ),
            since=c.invoke_ns,
            until=F.least(c.poll_ns, c.complete_ns),
            offset=c.offset,
            value=c.value,
        )
    )


def _holes(evidence: Evidence) -> Frame[_Witness]:
    rows = having(evidence, HOLE)
    c = rows.c
    hole = c.offset + 1
    return rows.select(
        _witness(
            c,
            rule=F.lit("hole"),
            operations=[c.final_index, c.stored.index],
            why=say(
                "the final read has nothing at offset %,d, though the log goes on to offset %,d",
                *(hole, c.other_offset),
            ),
            since=F.lit(0),
            until=F.lit(None),
            offset=hole,
            value=F.lit(None),
        )
    )


@dataclass(frozen=True, slots=True)
class _Unfilled(Partition):
    """Offsets that were taken and that nobody read, or a send that may have filled one, by time."""

    offset: Long
    at: Long
    """Index of the event that showed that the offsets were taken, or of the send's invocation."""
    ns: Long
    needed: Long
    """How many offsets; 0 for a send."""
    there: Long
    """1 for a send, 0 for offsets."""


def _unfilled(evidence: Evidence) -> Frame[_Witness]:
    """Offsets below a known end that nobody saw the content of, where the final read cannot tell: each must
    hold a send of its own whose outcome is unknown, invoked before the offset was known to be taken. In order
    of time there must never be more such offsets than such sends. Without idempotence a retry may fill them
    too, and nothing follows."""
    null, none, one = F.lit(None).cast("bigint"), F.lit(0).cast("bigint"), F.lit(1).cast("bigint")
    gaps, sends = having(evidence, GAP), having(evidence, PLACELESS)
    c = gaps.c
    gap = _Unfilled(
        run=c.run,
        log=c.log,
        topic=c.topic,
        partition=c.partition,
        offset=c.offset + 1,
        at=c.above.index,
        ns=c.above.ns,
        needed=c.unseen,
        there=none,
    )
    send = replace(gap, offset=null, at=c.invoke_index, ns=null, needed=none, there=one)
    both = gaps.select(gap).union(sends.select(send))
    u = both.c
    by_time = (
        SqlWindow.partitionBy(u.run, u.log)
        .orderBy(u.at, u.offset)
        .rowsBetween(SqlWindow.unboundedPreceding, SqlWindow.currentRow)
    )
    both, needed = both.plus(F.sum(u.needed).over(by_time))
    both, there = both.plus(F.sum(u.there).over(by_time))
    return both.filter((u.needed > 0) & (needed > there)).select(
        _witness(
            u,
            rule=F.lit("unfilled"),
            operations=[u.at],
            why=say(
                "at %s it held offsets that nobody ever read (%,d of them), but fewer sends of unknown "
                "outcome that may have filled them had been invoked (%,d of them)",
                *(seconds(u.ns), needed, there),
            ),
            since=F.lit(0),
            until=u.ns,
            offset=u.offset,
            value=F.lit(None),
        )
    )
