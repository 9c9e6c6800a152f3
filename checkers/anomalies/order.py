"""Order (docs/anomalies.md section 3): of sends against real time and within a process, and of what a
consumer is given.

The order of sends is judged in the final read: a record that is gone from it was lost, which is reported as
that, and its offset is used again by records sent later.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wrackline.checkers.checks.explained_by import IN_ANY_ORDER, By, ExplainedBy, Spelt
from wrackline.checkers.checks.finding import Finding, known, seconds
from wrackline.checkers.checks.places import Places, Row
from wrackline.checkers.checks.registry import check, mark
from wrackline.checkers.engine.candidates import Candidate, SendOutcome, has_wrong_offset, is_kept, lt
from wrackline.checkers.engine.marks import Alone, Unfilled
from wrackline.checkers.inputs.table import Bools, Ints, bools, rows_of
from wrackline.checkers.verdict.anomaly import Family, Promise


def out_of_order(rows: Candidate[Ints]) -> Bools:
    return bools(is_kept(rows) & lt(rows.by_settled_ack.index, rows.invoke_index))


def _process_out_of_order(rows: Candidate[Ints]) -> Bools:
    return bools(out_of_order(rows) & (rows.acked == 1) & lt(rows.offset, rows.earlier.offset))


def _before_what_was_acked(rows: Candidate[Ints], _: Unfilled) -> Bools:
    """Tells which records are out of order at another offset than the one that had been acked: at that
    very offset it is an inconsistent-offset."""
    return bools(out_of_order(rows) & (rows.by_settled_ack.offset != rows.offset))


OUT_OF_ORDER = mark("out of order", out_of_order, _before_what_was_acked)
OUT_OF_SESSION = mark("out of session", _process_out_of_order)
WRONG_OFFSET = mark("wrong offset", by_value=Alone(has_wrong_offset))
BATCH_REORDERED = mark("batch reordered")
SKIPPED = mark("skipped")
REWOUND = mark("rewound")


def _acked_at(c: Row) -> str:
    """ ", which was acknowledged at 1.234 s", where it was."""
    unsure = c.outcome is not None and c.outcome != SendOutcome.ACKED
    if unsure or c.complete_ns is None:
        return ", whose outcome is unknown"
    return f", which was acknowledged at {seconds(c.complete_ns)}"


@check(
    "append-order",
    Family.ORDER,
    "G0-realtime",
    "one send completed before another was invoked, yet has the larger offset",
    breaks=Promise.ALWAYS,
    marks=[OUT_OF_ORDER],
)
def append_order(at: Places) -> Iterator[Finding]:
    """Yields a finding for each place, against the earliest acknowledgement that names a larger offset."""
    marked = at.having(OUT_OF_ORDER)
    proof = marked.by_settled_ack
    marked = marked.take(
        np.lexsort((marked.invoke_index, proof.offset, proof.index, marked.value, marked.offset))
    )
    _, first = np.unique(np.stack([marked.offset, marked.value]), axis=1, return_index=True)
    for c in rows_of(marked.take(first)):
        acked = c.by_settled_ack
        yield at.finding(
            c,
            operations=[c.invoke_index, c.complete_index, c.final_index, c.kept_index, acked.index],
            sentence=f"Value {at.run.value(acked.value)} had been acknowledged at {seconds(acked.ns)}, and "
            f"it is at offset {acked.offset:,} of {at.log}; value {at.run.value(c.value)} was sent after "
            f"that, at {seconds(c.invoke_ns)}, but it lies before the other, at offset {c.offset:,}",
            since_ns=acked.ns,
            until_ns=known(c.complete_ns, c.invoke_ns),
        )


@check(
    "session-order",
    Family.ORDER,
    "nonmonotonic-send",
    "a later send of one process has the smaller offset",
    breaks=Promise.IDEMPOTENCE,
    marks=[OUT_OF_SESSION],
)
def session_order(at: Places) -> Iterator[Finding]:
    """A process that goes on has its earlier sends acknowledged, so this is a part of append-order."""
    for c in at.each(OUT_OF_SESSION):
        sent_at = "" if c.invoke_ns is None else f", at {seconds(c.invoke_ns)}"
        yield at.finding(
            c,
            operations=[c.earlier.index, c.invoke_index, c.complete_index, c.final_index, c.kept_index],
            sentence=f"Process {at.run.process(c.process)} had value {at.run.value(c.earlier.value)} "
            f"acknowledged, which is at offset {c.earlier.offset:,} of {at.log}; it sent value "
            f"{at.run.value(c.value)} after that{sent_at}, but this value lies before the other, at offset "
            f"{c.offset:,}",
            since_ns=known(c.invoke_ns, c.complete_ns),
            until_ns=known(c.complete_ns, c.invoke_ns),
        )


@check(
    "wrong-offset",
    Family.ORDER,
    "–",
    "an ack or a poll names an offset at which the value is not: the final read has it elsewhere",
    breaks=Promise.LASTING_OFFSETS,
    marks=[WRONG_OFFSET],
    explained_by=IN_ANY_ORDER,
)
def wrong_offset(at: Places) -> Iterator[Finding]:
    """One finding for each place that was named. Compaction moves nothing: of a compacted topic a copy that a
    retry made may be all that is left, but it lies above the first, and an idempotent producer makes none."""
    for c in at.each(WRONG_OFFSET):
        if at.log.compacted and not at.run.info.idempotence and c.kept_offset > c.offset:
            continue
        value, acked = at.run.value(c.value), c.acked == 1
        by_ack = (
            f"Value {value} was acknowledged at offset {c.offset:,} of {at.log} at {seconds(c.complete_ns)}"
        )
        by_poll = f"A consumer read value {value} at offset {c.offset:,} of {at.log} at {seconds(c.poll_ns)}"
        yield at.finding(
            c,
            operations=[c.invoke_index, c.complete_index, c.poll_index, c.kept_index],
            where="ack" if acked else "poll",
            sentence=f"{by_ack if acked else by_poll}; the final read has the value at offset "
            f"{c.kept_offset:,} instead",
            since_ns=known(c.complete_ns if acked else None, c.poll_ns),
        )


@check(
    "batch-order",
    Family.ORDER,
    "int-nonmonotonic-send",
    "records of one send are stored in another order than they were sent in",
    breaks=Promise.IDEMPOTENCE,
    marks=[BATCH_REORDERED],
    explained_by=ExplainedBy(By.FACTS, spelt=Spelt.ALL_SENT),
)
def batch_order(at: Places) -> Iterator[Finding]:
    for c in at.each(BATCH_REORDERED):
        yield at.finding(
            c,
            operations=[c.invoke_index, c.complete_index, c.final_index, c.kept_index],
            sentence=f"Process {at.run.process(c.process)} sent value {at.run.value(c.value)} after value "
            f"{at.run.value(c.earlier.value)} in one operation{_acked_at(c)}, but in {at.log} it lies before "
            f"the other: it is at offset {c.offset:,}, and the other at offset {c.earlier.offset:,}",
            since_ns=known(c.complete_ns, c.invoke_ns),
            until_ns=known(c.complete_ns, c.invoke_ns),
        )


@check(
    "poll-skip",
    Family.ORDER,
    "int-/poll-skip",
    "a consumer jumped over offsets that held records, with no assignment or seek between",
    breaks=Promise.CONSUMERS_GET_ALL,
    marks=[SKIPPED],
    explained_by=ExplainedBy(By.FACTS, spelt=Spelt.AS_GIVEN),
)
def poll_skip(at: Places) -> Iterator[Finding]:
    """Yields a finding for each poll that skipped records, but none for a compacted topic: what the
    consumer passed over may have been gone by then. Nor where its position was deleted, and
    ``auto.offset.reset`` takes it elsewhere than to the log start."""
    if at.log.compacted:
        return
    for c in at.each(SKIPPED):
        if at.run.info.reset not in ("", "earliest") and c.offset < at.log.start:
            continue
        yield at.finding(
            c,
            operations=[c.invoke_index, c.complete_index],
            sentence=f"Process {at.run.process(c.process)} stood at offset {c.offset:,} of {at.log} and read "
            f"offset {c.other_offset:,} next, at {seconds(c.complete_ns)}, so it passed over the record at "
            f"offset {c.known_offset:,}",
            since_ns=c.complete_ns,
            until_ns=c.complete_ns,
        )


@check(
    "poll-rewind",
    Family.ORDER,
    "(int-)nonmonotonic-poll",
    "a consumer was given an offset again or an earlier one, with no assignment or seek between",
    breaks=Promise.CONSUMERS_GET_ALL,
    marks=[REWOUND],
    explained_by=ExplainedBy(By.FACTS, spelt=Spelt.AS_GIVEN),
)
def poll_rewind(at: Places) -> Iterator[Finding]:
    for c in at.each(REWOUND):
        yield at.finding(
            offset=c.other_offset,
            value=c.value,
            operations=[c.invoke_index, c.complete_index],
            sentence=f"Process {at.run.process(c.process)} stood at offset {c.offset:,} of {at.log} and read "
            f"offset {c.other_offset:,} next, at {seconds(c.complete_ns)}, though it was neither given "
            f"partitions nor told to seek in between",
            since_ns=c.complete_ns,
            until_ns=c.complete_ns,
        )
