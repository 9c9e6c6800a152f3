"""The order of records whose senders were told no offset: of unknown outcome, or acknowledged without one.

Where each lies only the final read says, and what was sent with its value only the look by value
(wrackline.checkers.engine.logs.by_value). Two questions are left then, for those that are there:

- of each process, its records in one partition in the order in which it sent them (*rank* within a send): is
  one that was sent later below one that was sent earlier? Within a send that is ``batch-order``; between
  sends ``session-order``, where the earlier one had been acknowledged. A record of unknown outcome may land
  any time later, which is no disorder. Records that an ack named the offset of are needed next to those
  without: they come by way of the range of offsets, which knows whether they are in the final read;
- of each log, from its end down: was one sent after another above it had been acknowledged? That is
  ``append-order``. Of records that an ack named the offset of the range says which one below was sent last
  (``below``).

A value with several copies counts by its lowest one: whatever is sent after an ack lies above the copy that
was acknowledged, and so above the lowest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wrackline.checkers.engine.candidates import (
    Candidate,
    Entry,
    Proof,
    SendOutcome,
    Step,
    is_stray,
    lt,
)
from wrackline.checkers.engine.context import Context, LogInfo, run_of
from wrackline.checkers.engine.fact_codec import SENDERS, Writer
from wrackline.checkers.engine.facts import FIRST, LAST, EndAsked, InFinal, Placed
from wrackline.checkers.engine.logs.earliest_proof import Series, at_rows
from wrackline.checkers.engine.marks import Marks
from wrackline.checkers.engine.routing import bucket_of
from wrackline.checkers.inputs.table import NONE, Bools, Ints, bools, concatenated, constant


def settled(placed: Placed, final_index: Ints) -> InFinal:
    """Returns the records that the final read has where their acks say."""
    there = final_index != NONE
    result = placed.take(there)
    size = len(result)
    return replace(
        result.carry(InFinal),
        outcome=constant(SendOutcome.ACKED, size),
        final_index=final_index[there],
        placed=constant(1, size),
    )


def unplaced(rows: Candidate[Ints]) -> InFinal:
    """Returns the records in the final read whose sender was told no offset, at their lowest place, out of
    rows with all that is known of their values."""
    there = (rows.step == Step.IN_FINAL) & is_stray(rows) & (rows.sent_offset == NONE) & (rows.home == 1)
    known = np.isin(rows.outcome, (SendOutcome.ACKED, SendOutcome.UNSURE)) & (rows.value >= 0)
    result = rows.take(there & known & (rows.offset == rows.kept_offset))
    return replace(
        result.carry(InFinal),
        placed=constant(0, len(result)),
        late=lt(result.by_settled_ack.index, result.invoke_index).astype(np.int64),
    )


def put_to_senders(writer: Writer, context: Context, rows: InFinal) -> None:
    """To those who look at what each process sent."""
    if len(rows):
        bucket = bucket_of(run_of(rows.log), rows.process, context.buckets)
        writer.spread(SENDERS - bucket, 0, rows)


def put_unplaced(writer: Writer, context: Context, rows: InFinal) -> None:
    """The same, and to those who look at each log from its end down."""
    put_to_senders(writer, context, rows)
    writer.spread(rows.log, -(rows.offset // context.width), rows)


def of_senders(rows: InFinal, marks: Marks) -> Candidate[Ints]:
    """Returns the records that a process sent later and that are below what it sent earlier."""
    rows = _once(rows)
    rows = rows.take(np.lexsort((rows.rank, rows.invoke_index, rows.process, rows.log)))
    group = np.append(False, (np.diff(rows.log) == 0) & (np.diff(rows.process) == 0))[: len(rows)]
    at = np.flatnonzero(group)
    later, earlier = rows.take(at), rows.take(at - 1)
    apart = bools((earlier.offset > later.offset) & ((earlier.placed == 0) | (later.placed == 0)))
    same = later.invoke_index == earlier.invoke_index
    known = (np.minimum(earlier.rank, later.rank) > FIRST) & (np.maximum(earlier.rank, later.rank) < LAST)
    after_ack = (earlier.outcome == SendOutcome.ACKED) & lt(earlier.complete_index, later.invoke_index)
    reordered = _pairs(earlier, later, apart & same & known, marks.bit("batch reordered"))
    unordered = _pairs(earlier, later, apart & after_ack, marks.bit("out of session"))
    return concatenated(Candidate[Ints], [reordered, unordered])


def _once(rows: InFinal) -> InFinal:
    """Keeps one row of a record that came several times: the one that knows its rank."""
    unsure = (rows.rank == FIRST) | (rows.rank == LAST)
    order = np.lexsort((unsure, rows.value, run_of(rows.log)))
    new = np.append(True, (np.diff(rows.value[order]) != 0) | (np.diff(run_of(rows.log)[order]) != 0))
    return rows.take(order[new[: len(order)]])


def _candidates(rows: InFinal, step: Step, marks: int) -> Candidate[Ints]:
    size = len(rows)
    return replace(rows.carry(Candidate[Ints]), step=constant(step, size), marks=constant(marks, size))


def _pairs(earlier: InFinal, later: InFinal, where: Bools, mark: int) -> Candidate[Ints]:
    result, before = later.take(where), earlier.take(where)
    return replace(
        _candidates(result, Step.BATCH, mark),
        earlier=Entry(before.offset, before.value, before.complete_index),
        kept_index=before.final_index,
    )


class LogOrder:
    """Looks at one log, from its highest range down."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._marks = context.marks.bit("out of order") | context.marks.bit("late")
        self._above = InFinal.unknown(0)
        """Of the records above, acknowledged without an offset, that which was so first; or none."""

    def judged(self, log: int, rows: InFinal, asked: EndAsked) -> Candidate[Ints]:
        """Records sent, and end offsets at or below them asked for, after one above them had been
        acknowledged without an offset."""
        rows = rows.take(np.argsort(rows.offset, kind="stable"))
        acked = rows.take(rows.outcome == SendOutcome.ACKED)
        known = concatenated(InFinal, [acked, self._above])
        series = Series(known.offset, known.complete_index, known.complete_ns, known.value)
        who = series.rows(rows.offset)
        late = (rows.late != 1) & lt(at_rows(known.complete_index, who), rows.invoke_index)
        over = _disordered(rows.take(late), known.take(who[late]), self._marks)
        first = acked.take(lt(acked.complete_index, acked.below.invoke_index))
        under = _disordered(_below(first), first, self._marks)
        stale = self._stale(log, asked, known, series)
        self._above = known.take(series.rows(rows.offset[:1])[:1]) if len(known) and len(rows) else known
        return concatenated(Candidate[Ints], [over, under, stale])

    def _stale(self, log: int, asked: EndAsked, known: InFinal, series: Series) -> Candidate[Ints]:
        """Answers that do not reach past a record that had been acknowledged."""
        who = series.rows(asked.offset)
        late = lt(at_rows(known.complete_index, who), asked.invoke_index)
        result, above = asked.take(late), known.take(who[late])
        marks, about = self._context.marks, self._context.logs.get(log, LogInfo())
        size = len(result)
        return replace(
            result.carry(Candidate[Ints]),
            log=constant(log, size),
            step=constant(Step.END_ASKED, size),
            marks=constant(marks.bit("stale") | marks.bit("late"), size),
            other_offset=result.offset,
            acked=constant(0, size),
            by_ack=Proof(above.complete_index, above.complete_ns, above.offset, above.value),
            log_end=constant(about.end, size),
            complete=constant(int(about.complete), size),
        )


def _below(rows: InFinal) -> InFinal:
    """The records that an ack named the offset of, and that lie below these."""
    size = len(rows)
    return replace(
        rows.below.carry(InFinal),
        log=rows.log,
        outcome=constant(SendOutcome.ACKED, size),
        placed=constant(1, size),
    )


def _disordered(rows: InFinal, above: InFinal, marks: int) -> Candidate[Ints]:
    """``above``: to each the record above it that had been acknowledged before."""
    proof = Proof(above.complete_index, above.complete_ns, above.offset, above.value)
    return replace(
        _candidates(rows, Step.IN_FINAL, marks),
        acked=rows.placed,
        kept_index=above.final_index,
        by_ack=proof,
        by_settled_ack=proof,
    )
