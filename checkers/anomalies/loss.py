"""Loss (docs/anomalies.md section 1): what was acknowledged or read, and is not in the final read.

A final read that did not reach its partition's end offset is never evidence of loss: all conditions here ask
for ``complete``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from wrackline.checkers.checks.explained_by import ExplainedBy, FurtherRows
from wrackline.checkers.checks.finding import Finding, known, seconds
from wrackline.checkers.checks.places import Places, Row
from wrackline.checkers.checks.registry import check, completion, mark
from wrackline.checkers.engine.candidates import (
    Candidate,
    SendOutcome,
    Step,
    has_wrong_offset,
    is_beyond_reading,
    is_place,
)
from wrackline.checkers.engine.marks import Alone, Unfilled
from wrackline.checkers.inputs.table import NONE, Bools, Ints, bools, rows_of
from wrackline.checkers.verdict.anomaly import Family, Promise


def _final_there(at: Places, c: Row) -> str:
    """Says what the final read has at an offset where it should have something else."""
    if c.offset >= c.log_end:
        return f"; the final read of {at.log} ends at offset {c.log_end:,}"
    if c.offset < at.log.start:
        return f"; the final read of {at.log} begins at offset {at.log.start:,}"
    if c.stored.offset != c.offset:
        return "; the final read has nothing there"
    if c.stored.value is not None and c.stored.value >= 0:
        return f"; the final read has value {at.run.value(c.stored.value)} there"
    return "; the final read has a record there that nobody sent in this run"


def _there(c: Row) -> int | None:
    """The event of the final read that shows what is there instead."""
    return c.stored.index if c.stored.offset == c.offset else None


def _maybe_lost(rows: Candidate[Ints]) -> Bools:
    """An ack named this place, and the final read does not have it here."""
    return bools((rows.step == Step.GIVEN) & (rows.acked == 1) & (rows.complete == 1))


def _lost(rows: Candidate[Ints], _: Unfilled) -> Bools:
    place = is_place(rows) & ~is_beyond_reading(rows)
    told_where = place & (rows.acked == 1)
    told_nothing = (rows.sent_offset == NONE) & (rows.first == 1) & (place | (rows.step == Step.NOWHERE))
    absent = (rows.outcome == SendOutcome.ACKED) & (rows.complete == 1) & (rows.in_final == 0)
    return bools(absent & (told_where | told_nothing))


def _maybe_vanished(rows: Candidate[Ints]) -> Bools:
    return bools(
        (rows.step == Step.GIVEN) & (rows.poll_index != NONE) & (rows.complete == 1) & (rows.value >= 0)
    )


def _vanished(rows: Candidate[Ints], _: Unfilled) -> Bools:
    """This place was given to somebody, and is gone; where its log has the value elsewhere, the poll named a
    wrong offset."""
    return bools(_maybe_vanished(rows) & ~has_wrong_offset(rows))


def _missing(rows: Candidate[Ints]) -> Bools:
    """``owed``: a bit for each replica that must have it (wrackline.checkers.engine.logs.offset_ranges)."""
    return bools((rows.step == Step.IN_FINAL) & (rows.value >= 0) & (rows.held & rows.owed != rows.owed))


LOST = mark("lost", _maybe_lost, _lost)
VANISHED = mark("vanished", _maybe_vanished, _vanished)
MISSING = mark("missing", _missing, Alone(_missing))
PAST_END = mark("past end")
HOLE = mark("hole")
"""Nothing is at an offset of the final read, though it goes on."""


@check(
    "lost-write",
    Family.LOSS,
    "lost-write / unseen",
    "an acknowledged value is absent from the final read",
    breaks=Promise.NO_LOSS,
    rests_on_final_read=True,
    marks=[LOST],
    words_of=completion,
    explained_by=ExplainedBy(further_rows=FurtherRows.FINAL_READ, until_fault=True),
)
def lost_write(at: Places) -> Iterator[Finding]:
    """Yields a finding for each acknowledged record that is gone. ``where``: ``tail`` (its offset is at or
    past the final end), ``middle`` (another value or nothing is at its offset), ``unknown offset`` (the
    acknowledgement had none)."""
    for c in filter(at.is_lasting, at.each(LOST)):
        value, node = at.run.value(c.value), at.words(c.complete_index).node
        by_whom = f" by {node}" if node else at.log.led_by(c.complete_ns)
        if c.sent_offset is not None:
            where = "tail" if c.offset >= c.log_end else "middle"
            sentence = (
                f"Value {value} was acknowledged at offset {c.offset:,} of {at.log} at "
                f"{seconds(c.complete_ns)}{by_whom}{_final_there(at, c)}"
            )
        else:
            where = "unknown offset"
            sentence = (
                f"Value {value} was acknowledged without an offset in {at.log} at {seconds(c.complete_ns)}"
                f"{by_whom}; the final read of {at.log}, which ends at offset {c.log_end:,}, does not have it"
            )
        yield at.finding(
            offset=c.offset if c.sent_offset is not None else None,
            value=c.value,
            operations=[c.invoke_index, c.complete_index, c.poll_index, _there(c)],
            where=where,
            sentence=sentence,
            since_ns=c.complete_ns,
        )


@check(
    "vanished-read",
    Family.LOSS,
    "–",
    "a record that a consumer was given is not in the final read",
    breaks=Promise.NO_LOSS,
    rests_on_final_read=True,
    marks=[VANISHED],
    explained_by=ExplainedBy(further_rows=FurtherRows.FINAL_READ, sends=False, until_fault=True),
)
def vanished_read(at: Places) -> Iterator[Finding]:
    for c in filter(at.is_lasting, at.each(VANISHED)):
        yield at.finding(
            c,
            operations=[c.invoke_index, c.complete_index, c.poll_index, _there(c)],
            where="tail" if c.offset >= c.log_end else "middle",
            sentence=f"A consumer read value {at.run.value(c.value)} at offset {c.offset:,} of {at.log} at "
            f"{seconds(c.poll_ns)}{at.log.led_by(c.poll_ns)}{_final_there(at, c)}",
            since_ns=c.poll_ns,
        )


@check(
    "lost-committed",
    Family.LOSS,
    "–",
    "an end offset or high watermark that a client was shown lies past the end of the final read, or past an "
    "offset where it has nothing",
    breaks=Promise.NO_LOSS,
    rests_on_final_read=True,
    marks=[PAST_END, HOLE],
    explained_by=ExplainedBy(further_rows=FurtherRows.FINAL_READ, ends=True, until_fault=True),
)
def lost_committed(at: Places) -> Iterator[Finding]:
    """Reported once per partition, with the largest offset, or else with the first that is missing in the
    middle of a topic with contiguous offsets: what a client is shown as the log's end is committed, whoever
    sent the records."""
    marked = at.having(PAST_END)
    if not len(marked):
        yield from islice(_middle(at), 1)
    largest = np.lexsort((-marked.complete_index, marked.other_offset))[-1:]
    for c in rows_of(marked.take(largest)):
        process, end, last = at.run.process(c.process), c.log_end, c.other_offset - 1
        yield at.finding(
            offset=c.offset,
            operations=[c.invoke_index, c.complete_index],
            sentence=f"Process {process} got an answer at {seconds(c.complete_ns)} that shows the end of "
            f"{at.log} at offset {c.other_offset:,}{at.log.led_by(c.complete_ns)}; the final read of "
            f"{at.log} ends at offset {end:,}, so the committed offsets from {end:,} to {last:,} are gone",
            since_ns=c.complete_ns,
        )


def _middle(at: Places) -> Iterator[Finding]:
    for c in at.each(HOLE):
        shown, gone = c.by_end, c.offset + 1
        if shown.index is not None:
            yield at.finding(
                offset=gone,
                operations=[shown.index, c.final_index, c.stored.index],
                where="middle",
                sentence=f"An answer at {seconds(shown.ns)} showed the end of {at.log} at offset "
                f"{shown.offset + 1:,}{at.log.led_by(shown.ns)}; the final read has nothing at offset "
                f"{gone:,} and goes on at offset {c.other_offset:,}, so committed records are gone",
                since_ns=shown.ns,
            )


@check(
    "lost-on-replica",
    Family.LOSS,
    "– (jepsen.nats: lost-on-node)",
    "after healing, a record that consumers are given, acknowledged or not, is missing from a replica in the "
    "ISR",
    breaks=Promise.INTACT_FILES,
    rests_on_final_read=True,
    rests_on_replicas=True,
    marks=[MISSING],
    explained_by=ExplainedBy(further_rows=FurtherRows.NAMED_LOGS, until_fault=True),
)
def lost_on_replica(at: Places) -> Iterator[Finding]:
    for c in filter(at.is_lasting, at.each(MISSING)):
        held = c.held or 0
        missing = " and ".join(host for bit, host in enumerate(at.log.replicas) if not held >> bit & 1)
        acked = f" (acknowledged at {seconds(c.complete_ns)})" if c.outcome == SendOutcome.ACKED else ""
        yield at.finding(
            c,
            operations=[c.invoke_index, c.complete_index, c.final_index, c.replica_index],
            where=missing,
            sentence=f"Value {at.run.value(c.value)}{acked} is in the final read at offset {c.offset:,} of "
            f"{at.log}, but it is missing from the log of {missing}, which is in the ISR",
            since_ns=known(c.complete_ns, c.invoke_ns, 0),
        )
