"""Visibility (docs/anomalies.md section 4): the partition as one log that everybody sees at one time.

Bounds come from ``end`` alone: librdkafka fetches ahead, so a poll proves that what it returns existed when
it returned, never that there was no more. The exact rules are in wrackline.checkers.exact.log and
docs/linearizability.md 3.2; the table of places carries the earliest proof at or above each offset, so each
rule is one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import numpy as np

from wrackline.checkers.anomalies.integrity import TWO_VALUES
from wrackline.checkers.anomalies.loss import HOLE
from wrackline.checkers.checks.explained_by import ExplainedBy
from wrackline.checkers.checks.finding import Finding, apart, known, least, seconds
from wrackline.checkers.checks.places import Places
from wrackline.checkers.checks.registry import check, mark
from wrackline.checkers.engine.candidates import Candidate, Proof, SendOutcome, Step, is_place, lt
from wrackline.checkers.engine.candidates import least as least_of
from wrackline.checkers.engine.marks import Alone, Unfilled
from wrackline.checkers.inputs.table import NONE, Bools, Ints, bools
from wrackline.checkers.verdict.anomaly import Family, Promise


def _stale(rows: Candidate[Ints]) -> Bools:
    return bools((rows.step == Step.END_ASKED) & lt(rows.by_ack.index, rows.invoke_index))


def _stale_end(rows: Candidate[Ints]) -> Bools:
    """The record of the proof is in the final read, so it is the end that is wrong."""
    there = least_of(rows.by_settled_ack.index, rows.by_final.index)
    return bools((rows.step == Step.END_TOLD) & lt(there, rows.invoke_index))


def _future(rows: Candidate[Ints]) -> Bools:
    return bools(is_place(rows) & lt(least_of(rows.poll_index, rows.final_index), rows.invoke_index))


def _regressed(rows: Candidate[Ints]) -> Bools:
    return bools(
        (rows.step == Step.END_ASKED) & lt(least_of(rows.by_end.index, rows.by_poll.index), rows.invoke_index)
    )


def too_late(rows: Candidate[Ints]) -> Bools:
    """Invoked after the log was known to have grown past here (rule 3)."""
    proof = least_of(rows.by_ack.index, rows.by_poll.index, rows.by_final.index, rows.by_end.index)
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
GAP = mark("gap")
PLACELESS = mark("placeless", by_value=_placeless)


def _earliest(*proofs: Proof[int]) -> Proof[int]:
    """The earliest of these, of which some is known."""
    some = [proof for proof in proofs if proof.index is not None]
    return min(some, key=lambda proof: proof.index)


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
def stale_read(at: Places) -> Iterator[Finding]:
    """Yields a finding for each stale answer. An ack with an offset is found where that offset is; one
    without where the final read has its record."""
    answers = sorted(at.each(STALE), key=lambda c: (c.offset, c.complete_index, c.by_ack.index))
    for _, (c, *_) in groupby(answers, key=lambda c: c.complete_index):
        ack = c.by_ack
        acked, asked = apart(ack.ns, c.invoke_ns)
        yield at.finding(
            c,
            operations=[ack.index, c.invoke_index, c.complete_index],
            sentence=f"Process {at.run.process(c.process)} asked for the end offset of {at.log} at "
            f"{asked} and got {c.other_offset:,}, though value {at.run.value(ack.value)} had been "
            f"acknowledged at offset {ack.offset:,} at {acked}",
            since_ns=ack.ns,
            until_ns=c.complete_ns,
        )


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
def stale_end(at: Places) -> Iterator[Finding]:
    """Yields one finding per partition, with the smallest end."""
    c = min(at.each(STALE_END), key=lambda c: (c.other_offset, c.complete_index), default=None)
    if c is None:
        return
    earliest = _earliest(c.by_settled_ack, c.by_final)
    there, asked = apart(earliest.ns, c.invoke_ns)
    yield at.finding(
        offset=c.other_offset,
        operations=[earliest.index, c.invoke_index, c.complete_index],
        sentence=f"The final read asked for the end offset of {at.log} at {asked} and got "
        f"{c.other_offset:,}, though a record at offset {earliest.offset:,} was known at {there}, and the "
        f"final read has it",
        since_ns=earliest.ns,
        until_ns=c.complete_ns,
    )


@check(
    "future-read",
    Family.VISIBILITY,
    "–",
    "a record was returned before its send was invoked",
    breaks=Promise.ALWAYS,
    marks=[FUTURE],
)
def future_read(at: Places) -> Iterator[Finding]:
    for c in at.each(FUTURE):
        polled, sent = apart(c.poll_ns, c.invoke_ns)
        yield at.finding(
            c,
            operations=[c.poll_index, c.final_index, c.invoke_index],
            sentence=f"Value {at.run.value(c.value)} had been read at offset {c.offset:,} of {at.log} by "
            f"{polled or 'the time of the final read'}, before its send was invoked at {sent}",
            since_ns=known(c.poll_ns, c.invoke_ns),
            until_ns=c.invoke_ns,
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
def watermark_regression(at: Places) -> Iterator[Finding]:
    """A record that a consumer read shows a high watermark above its offset."""
    for c in at.each(REGRESSED):
        first = _earliest(c.by_end, c.by_poll)
        before, asked = apart(first.ns, c.invoke_ns)
        end = f"A client got {first.offset + 1:,} as the end offset of {at.log}"
        polled = f"A consumer read offset {first.offset:,} of {at.log}"
        yield at.finding(
            c,
            operations=[first.index, c.invoke_index, c.complete_index],
            sentence=f"{end if first.index == c.by_end.index else polled} at {before}; process "
            f"{at.run.process(c.process)} asked for the end offset after that, at {asked}, and got "
            f"{c.other_offset:,}",
            since_ns=first.ns,
            until_ns=c.complete_ns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Witness:
    """Operations of a partition that no order explains."""

    offset: int | None
    value: int | None
    rule: str
    operations: Sequence[int | None]
    why: str
    since_ns: int | None
    until_ns: int | None

    @property
    def order(self) -> tuple[int, str, int, list[int]]:
        """The last of its operations, from which on the history is wrong; the rule; the offset; all
        operations."""
        indexes = [one for one in self.operations if one is not None]
        return max(indexes, default=-1), self.rule, -1 if self.offset is None else self.offset, indexes


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
def not_linearizable(at: Places) -> Iterator[Finding]:
    """Reported once per partition, with the witness that is complete first: the shortest beginning of the
    history that is already wrong. ``where`` names the rule that it breaks."""
    every = chain(_late(at), _two_values(at), _holes(at), _unfilled(at))
    first = min(every, key=lambda one: one.order, default=None)
    if first is not None:
        yield at.finding(
            offset=first.offset,
            value=first.value,
            operations=first.operations,
            where=first.rule,
            sentence=f"{at.log} has no valid order: {first.why}",
            since_ns=first.since_ns or 0,
            until_ns=first.until_ns,
        )


def _late(at: Places) -> Iterator[_Witness]:
    for c in at.each(LATE):
        first, asked = _earliest(c.by_ack, c.by_poll, c.by_final, c.by_end), c.step == Step.END_ASKED
        before, after = apart(first.ns, c.invoke_ns)
        end = f"a client that asked for the end offset at {after} got {c.other_offset or 0:,}"
        sent = f"value {at.run.value(c.value)} was sent at {after}, and got offset {c.offset:,}"
        yield _Witness(
            offset=c.offset,
            value=c.value,
            rule="stale end" if asked else "late append",
            operations=[
                *(first.index, c.invoke_index, c.complete_index),
                *(() if asked else (least(c.poll_index, c.final_index),)),
            ],
            why=f"offset {first.offset:,} was known to be taken at {before}; after that, "
            f"{end if asked else sent}",
            since_ns=first.ns,
            until_ns=known(c.complete_ns, c.invoke_ns),
        )


def _two_values(at: Places) -> Iterator[_Witness]:
    for c in at.each(TWO_VALUES):
        yield _Witness(
            offset=c.offset,
            value=c.value,
            rule="two values",
            operations=[c.index, c.rival.index],
            why=f"offset {c.offset:,} has value {at.run.value(c.value)} and value "
            f"{at.run.value(c.rival.value)}",
            since_ns=c.invoke_ns,
            until_ns=least(c.poll_ns, c.complete_ns),
        )


def _holes(at: Places) -> Iterator[_Witness]:
    for c in at.each(HOLE):
        yield _Witness(
            offset=c.offset + 1,
            value=None,
            rule="hole",
            operations=[c.final_index, c.stored.index],
            why=f"the final read has nothing at offset {c.offset + 1:,}, though the log goes on to offset "
            f"{c.other_offset:,}",
            since_ns=0,
            until_ns=None,
        )


def _unfilled(at: Places) -> Iterator[_Witness]:
    """Offsets below a known end that nobody saw the content of, where the final read cannot tell: each must
    hold a send of its own whose outcome is unknown, invoked before the offset was known to be taken. In order
    of time there must never be more such offsets than such sends. Without idempotence a retry may fill them
    too, and nothing follows."""
    gaps, sends = at.having(GAP), np.sort(at.having(PLACELESS).invoke_index)
    order = np.lexsort((gaps.offset, gaps.above.index))
    gaps = gaps.take(order)
    needed = np.cumsum(gaps.unseen)
    there = np.searchsorted(sends, gaps.above.index, side="right")
    for number in np.flatnonzero((gaps.unseen > 0) & (needed > there)).tolist():
        index, ns = int(gaps.above.index[number]), int(gaps.above.ns[number])
        yield _Witness(
            offset=int(gaps.offset[number]) + 1,
            value=None,
            rule="unfilled",
            operations=[index],
            why=f"at {seconds(ns)} it held offsets that nobody ever read ({int(needed[number]):,} of them), "
            f"but fewer sends of unknown outcome that may have filled them had been invoked "
            f"({int(there[number]):,} of them)",
            since_ns=0,
            until_ns=ns,
        )
