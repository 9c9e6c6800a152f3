"""The task for one value: it joins all places of the value, and the send that it came from.

An ack that names a place settles most values where the place is judged. What comes here is the rest: places
that no ack named (*strays*), sends that were told no place, and candidates, whose other copies decide what
they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from wrackline.checkers.engine.candidates import (
    Candidate,
    Proof,
    Rows,
    SendOutcome,
    SentBelow,
    Step,
    is_beyond_reading,
    is_stray,
)
from wrackline.checkers.engine.context import Context, LogInfo, run_of
from wrackline.checkers.engine.fact_codec import AGAIN, VALUES, Writer
from wrackline.checkers.engine.facts import Send, each_group, grouped
from wrackline.checkers.engine.logs.earliest_proof import at_rows
from wrackline.checkers.engine.logs.unacknowledged import put_unplaced, unplaced
from wrackline.checkers.engine.proofs import NOTHING_ABOVE, proofs_of, with_proofs
from wrackline.checkers.inputs.table import NEVER, NONE, Bools, Ints, Table, assigned, concatenated, constant


class Bucket:
    """Takes up rows of the values of one bucket; ``put`` when all are there."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._candidates: list[Rows] = []
        self._sends: list[Send] = []

    def take(self, owner: int, rows: Table[Ints]) -> None:
        """Raises TypeError for what is looked at elsewhere."""
        if isinstance(rows, Candidate):
            self._candidates.append(rows if owner == AGAIN else self._of_the_first_round(rows))
        elif isinstance(rows, Send):
            self._sends.append(rows)
        else:
            raise TypeError(f"no {type(rows).__name__} is looked at by value")

    def _of_the_first_round(self, rows: Rows) -> Rows:
        """Drops the rows that were judged again."""
        if not self.context.again:
            return rows
        number = np.maximum(rows.offset, 0) // self.context.width
        again = np.zeros(len(rows), dtype=bool)
        for log, judged in self.context.again:
            again |= (rows.log == log) & (number == judged)
        others = (Step.REWIND, Step.BATCH, Step.EPOCH, Step.SHOWN)
        return rows.take(~again | np.isin(rows.step, others))

    def put(self, writer: Writer) -> None:
        """Writes the rows that some check wants, and counts: unproven sends by run, strays whose value none
        of the sends here has."""
        rows = self._with_bounds(concatenated(Rows, self._candidates))
        sends = _once(concatenated(Send, self._sends))
        of_rows, of_sends, groups = _numbered(rows, sends)
        send_of = np.full(groups + 1, -1)
        send_of[of_sends[::-1]] = np.arange(len(sends))[::-1]
        stray = is_stray(rows) & (rows.value >= 0)
        rows, unmatched = _with_sends(rows, np.flatnonzero(stray), send_of[of_rows], sends)
        placed = np.zeros(groups + 1, dtype=bool)
        placed[of_rows[stray]] = True
        lost = (sends.sent_offset == NONE) & ~placed[of_sends]
        rows = concatenated(Rows, [rows, self._nowhere(sends.take(lost))])
        rows = _with_copies(rows, np.concatenate([of_rows, of_sends[lost]]), groups)
        rows = replace(rows, marks=self.context.marks.by_value(rows, self.context.unfilled))
        without_offset, expected = unplaced(rows), rows.take(rows.marks != 0)
        note = {
            "unproven": [[run, *both] for run, both in self._unproven(rows).items()],
            "unmatched": unmatched,
            "unplaced": len(without_offset),
            "acked_without_offset": int((without_offset.outcome == SendOutcome.ACKED).sum()),
            "marks": self.context.marks.counted(expected),
        }
        writer.note(VALUES, 0, note)
        writer.rows(VALUES, 0, expected)
        put_unplaced(writer, self.context, without_offset)

    def _with_bounds(self, rows: Rows) -> Rows:
        """Completes rows by the earliest proofs of the ranges above theirs, and by the record that was
        sent last of those below."""
        if not (self.context.above or self.context.below) or not len(rows):
            return rows
        number = np.maximum(rows.offset, 0) // self.context.width
        proofs = proofs_of(rows).map(_writable)
        last_sent: SentBelow[Ints] = SentBelow.of_columns([np.array(one) for one in rows.below.columns()])
        for some in each_group(rows.log, number):
            place = int(rows.log[some[0]]), int(number[some[0]])
            below = self.context.below.get(place)
            if below is not None:
                earlier = rows.below.invoke_index[some] < below.invoke_index
                later = some[earlier & (rows.step[some] == Step.IN_FINAL)]
                _write(last_sent, later, below)
            above = self.context.above.get(place, NOTHING_ABOVE)
            for mine, known in zip(proofs.each(), above.proofs.each(), strict=True):
                if known.index != NONE:
                    index = mine.index[some]
                    _write(mine, some[(index == NONE) | (known.index <= index)], known)
        return replace(with_proofs(rows, proofs), below=last_sent)

    def _nowhere(self, sends: Send) -> Rows:
        """Sends that were told no place and are in none."""
        size = len(sends)
        about = [self.context.logs.get(log) for log in sends.log.tolist()]

        def of_log(number: Callable[[LogInfo], int], unknown: int) -> Ints:
            return np.array([number(one) if one else unknown for one in about], dtype=np.int64)

        return replace(
            sends.carry(Rows),
            step=constant(Step.NOWHERE, size),
            marks=constant(0, size),
            acked=constant(0, size),
            sent_log=sends.log,
            complete=of_log(lambda one: int(one.complete and not one.derived and not one.start), 0),
            log_end=of_log(lambda one: one.end, NONE),
            idempotent=of_log(lambda one: int(one.idempotent), 0),
        )

    @staticmethod
    def _unproven(rows: Rows) -> dict[int, tuple[int, int]]:
        """Sends of unknown outcome, counted once each."""
        unsure = (rows.outcome == SendOutcome.UNSURE) & (rows.first == 1) & (rows.step <= Step.NOWHERE)
        run, seen = run_of(rows.log[unsure]), (rows.in_final | rows.was_polled)[unsure] == 1
        return {
            int(one): (int((seen & (run == one)).sum()), int((~seen & (run == one)).sum()))
            for one in np.unique(run)
        }


def _writable(proof: Proof[Ints]) -> Proof[Ints]:
    return Proof.of_columns([np.array(column) for column in proof.columns()])


def _write(table: Table[Ints], rows: Ints, values: Table[int]) -> None:
    """Writes into columns in place, on purpose: ranges are many, and these columns were just made."""
    for column, value in zip(table.columns(), values.columns(), strict=True):
        column[rows] = value


def _with_sends(rows: Rows, strays: Ints, send: Ints, sends: Send) -> tuple[Rows, int]:
    """Gives each stray what is known of the send of its value; and says how many have none."""
    result = send[strays] >= 0
    at = strays[result]
    of = sends.take(send[at])
    rows = replace(
        rows,
        process=assigned(rows.process, at, of.process),
        outcome=assigned(rows.outcome, at, of.outcome),
        sent_offset=assigned(rows.sent_offset, at, of.sent_offset),
        sent_log=assigned(rows.sent_log, at, of.log),
        rank=assigned(rows.rank, at, of.rank),
        invoke_index=assigned(rows.invoke_index, at, of.invoke_index),
        invoke_ns=assigned(rows.invoke_ns, at, of.invoke_ns),
        complete_index=assigned(rows.complete_index, at, of.complete_index),
        complete_ns=assigned(rows.complete_ns, at, of.complete_ns),
    )
    return rows, int((~result).sum())


def _with_copies(rows: Rows, group: Ints, groups: int) -> Rows:
    """Completes each row by the other places of its value. ``group``: a number for its value."""
    final, polled = rows.final_index != NONE, rows.poll_index != NONE
    home = rows.log == rows.sent_log
    # What an ack or a poll named and the whole final read does not have there is no copy: it vanished, or
    # never was.
    gone = ~final & (rows.complete == 1) & ~is_beyond_reading(rows)
    stands = final | (((rows.acked == 1) | polled) & ~gone)
    original = _original(rows, group, groups, stands & home)
    kept = _original(rows, group, groups, final & home)
    astray = _any((rows.acked == 1) & gone, group, groups)
    # Where an ack was right nothing is wrong with its place, and it is no candidate.
    right = (rows.sent_offset != NONE) & (astray == 0) & home & (rows.complete == 1)
    return replace(
        rows,
        home=home.astype(np.int64),
        stands=stands.astype(np.int64),
        in_final=_any(final, group, groups),
        was_polled=_any(polled, group, groups),
        first=_first_of_each(rows, group).astype(np.int64),
        original_offset=at_rows(rows.offset, original),
        original_index=at_rows(rows.index, original),
        kept_offset=np.where(right, rows.sent_offset, at_rows(rows.offset, kept)),
        kept_index=at_rows(rows.final_index, kept),
        astray=astray,
    )


def _once(sends: Send) -> Send:
    """Sends that came twice, once."""
    order, starts, _ = grouped(run_of(sends.log), sends.value, sends.invoke_index)
    return sends.take(order[starts])


def _numbered(rows: Rows, sends: Send) -> tuple[Ints, Ints, int]:
    """A number for each (run, value): of rows, of sends, and how many. Rows that are of no value have their
    own."""
    run = np.concatenate([run_of(rows.log), run_of(sends.log)])
    value = np.concatenate([rows.value, sends.value])
    order, starts, _ = grouped(run, value)
    number = np.zeros(len(value), dtype=np.int64)
    number[order] = np.cumsum(starts) - 1
    nobodys = np.flatnonzero(rows.value < 0)
    groups = int(number.max()) + 1 if len(number) else 0
    number[nobodys] = groups + np.arange(len(nobodys))
    return number[: len(rows)], number[len(rows) :], groups + len(nobodys)


def _any(what: Bools, group: Ints, groups: int) -> Ints:
    result = np.zeros(groups + 1, dtype=np.int64)
    result[group[what]] = 1
    return result[group]


def _first_of_each(rows: Rows, group: Ints) -> Bools:
    """Marks the row that speaks for its value."""
    order = np.lexsort((rows.offset, rows.log, rows.acked, group))
    new = np.append(True, np.diff(group[order]) != 0)[: len(order)]
    first = np.zeros(len(group), dtype=bool)
    first[order[new]] = True
    result: Bools = first | (rows.offset == NONE)
    return result


def _original(rows: Rows, group: Ints, groups: int, where: Bools) -> Ints:
    """The lowest place of each row's value that stands where it was sent to; -1 where there is none."""
    some = np.flatnonzero(where)
    order = some[
        np.lexsort((np.where(rows.index == NONE, NEVER, rows.index)[some], rows.offset[some], group[some]))
    ]
    lowest = np.full(groups + 1, -1)
    lowest[group[order[::-1]]] = order[::-1]
    result: Ints = lowest[group]
    return result
