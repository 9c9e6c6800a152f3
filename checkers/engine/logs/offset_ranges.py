"""One range of offsets of one log: everything that was said of it, held against each other.

Facts become *places* (one row per offset and value), sorted by offset, and three questions are answered for
all of them at once: who else claims this offset, what is the *earliest* proof that the log had grown to it or
past it (docs/linearizability.md 3.2, rule 3: what was invoked later came too late for it), and what comes
next above it. Nearly every anomaly is then a comparison of columns. What a range must know of those above it
is a few numbers (wrackline.checkers.engine.logs.range_bounds).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from wrackline.checkers.engine.candidates import (
    Entry,
    Proof,
    Rows,
    SendOutcome,
    Step,
    is_kept,
    is_place,
    is_stray,
    least,
)
from wrackline.checkers.engine.context import Context, LogInfo
from wrackline.checkers.engine.fact_codec import Writer
from wrackline.checkers.engine.facts import (
    Ack,
    End,
    EndAsked,
    Facts,
    Final,
    Floor,
    Held,
    InFinal,
    Jump,
    Placed,
    Poll,
    Session,
    Summary,
    table_at,
)
from wrackline.checkers.engine.logs.earliest_proof import (
    Known,
    LastSent,
    Series,
    Slots,
    at_rows,
    earliest_polls,
    first_at,
    first_of,
    largest,
    right_before,
    smallest,
)
from wrackline.checkers.engine.logs.unacknowledged import put_to_senders, settled
from wrackline.checkers.engine.proofs import NOTHING_ABOVE, OfEach, with_proofs
from wrackline.checkers.engine.routing import put_candidates
from wrackline.checkers.inputs.table import (
    NEVER,
    NONE,
    Bools,
    Ints,
    Table,
    assigned,
    bools,
    concatenated,
    constant,
)

_COMPACT_ROWS = 4_000_000


class Range:
    """Takes up facts; ``judged`` when all are there."""

    def __init__(self, log: int, number: int, context: Context) -> None:
        self.log, self.number, self.context = log, number, context
        self.base = number * context.width
        self.about = context.logs.get(log, LogInfo())
        self._above = context.above.get((log, number), NOTHING_ABOVE)
        self._facts = Facts()
        self._polls = 0
        self.settled = InFinal.unknown(0)
        """Records that the final read has where their acks say, next to sends that were told no offset."""

    def take(self, rows: Table[Ints]) -> None:
        self._facts.take(rows)
        if isinstance(rows, Poll):
            self._polls += len(rows)
            if self._polls > _COMPACT_ROWS:
                polls = earliest_polls(self._facts.of(Poll))
                self._facts.replace(polls)
                self._polls = len(polls)

    def put(self, writer: Writer) -> int:
        """Sends candidates to where all of their value is, a summary to the driver."""
        candidates, summary = self.judged()
        put_candidates(writer, self.context, candidates, again=bool(self.context.again))
        writer.rows(
            self.log, self.number, Summary.of_columns([constant(one, 1) for one in summary.columns()])
        )
        put_to_senders(writer, self.context, self.settled)
        return len(candidates)

    def judged(self) -> tuple[Rows, Summary[int]]:
        """(the candidates of this range, what it says to the driver)."""
        places = self._places()
        series = self._series(places)
        claims = concatenated(Rows, [places, *self._asked()])
        known = Known(claims.offset, series, self._above)
        claims = with_proofs(claims, known.indexes())
        marks = self.context.marks.at_places(claims)
        expected = np.flatnonzero((marks != 0) | is_stray(claims))
        candidates = replace(claims.take(expected), marks=marks[expected])
        candidates = with_proofs(candidates, known.at(expected))
        last_sent = LastSent(places)
        strays = (candidates.step == Step.IN_FINAL) & is_stray(candidates)
        candidates = replace(candidates, below=last_sent.below(candidates.offset, strays))
        jumps, need = self._jumps(places)
        gaps = self._gaps(places, series)
        result = concatenated(Rows, [candidates, jumps, gaps, self._holes(places, series)])
        summary = self._summary(places, self._last_claim(claims), series)
        return result, replace(summary, jump_need=need, gaps=len(gaps), below=last_sent.of_all())

    def _of_log(self, rows: Rows | int) -> Rows:
        """The rows (or so many unknown ones) with what is known of their log."""
        rows = Rows.unknown(rows) if isinstance(rows, int) else rows
        size = len(rows)
        return replace(
            rows,
            log=constant(self.log, size),
            log_end=constant(self.about.end, size),
            complete=constant(int(self.about.complete), size),
            idempotent=constant(int(self.about.idempotent), size),
        )

    # --- places

    def _places(self) -> Rows:
        """One row per (offset, value) that anybody spoke of, sorted by offset, step and value."""
        facts = self._facts
        final, ack, poll, held = facts.of(Final), facts.of(Ack), facts.of(Poll), facts.of(Held)
        slots = Slots(self.base, self.context.width, [final, ack, poll, held])
        size = slots.size
        at_final, at_ack, at_poll, at_held = (slots.find(rows) for rows in (final, ack, poll, held))
        below_hw = held.committed == 1
        at_hw, epoch = at_held[below_hw], held.epoch[below_hw]
        bits = np.zeros(size, dtype=np.int64)
        np.bitwise_or.at(bits, at_held, held.bit)
        final_index = smallest(size, at_final, final.index)
        poll_index = smallest(size, at_poll, poll.index)
        placed = facts.of(Placed)
        self.settled = settled(placed, at_rows(final_index, slots.find(placed)))
        acked = assigned(constant(0, size), at_ack, 1)
        places = replace(
            self._of_log(size),
            offset=slots.offset,
            value=slots.value,
            step=self._steps(slots.offset, final_index != NONE, (acked == 1) | (poll_index != NONE)),
            poll_index=poll_index,
            poll_ns=smallest(size, at_poll, poll.ns),
            final_index=final_index,
            final_ns=smallest(size, at_final, final.ns),
            replica_index=smallest(size, at_held, held.index),
            hw_index=smallest(size, at_hw, held.index[below_hw]),
            epoch_low=smallest(size, at_hw, epoch),
            epoch_high=largest(size, at_hw, epoch),
            held=bits,
            acked=acked,
            process=first_at(size, at_ack, ack.process),
            invoke_index=first_at(size, at_ack, ack.invoke_index),
            invoke_ns=first_at(size, at_ack, ack.invoke_ns),
            complete_index=first_at(size, at_ack, ack.complete_index),
            complete_ns=first_at(size, at_ack, ack.complete_ns),
            earlier=self._earlier(slots),
        )
        there = np.flatnonzero(slots.value != NONE)
        if slots.crowded:
            there = there[np.lexsort((places.value[there], places.step[there], places.offset[there]))]
        if slots.crowded or len(there) < size:
            places = places.take(there)
        return self._with_neighbours(self._with_sends(places), crowded=slots.crowded)

    def _steps(self, offset: Ints, read: Bools, given: Bools) -> Ints:
        step = np.where(read, Step.IN_FINAL, np.where(given, Step.GIVEN, Step.IN_REPLICAS))
        if self.about.derived:
            step = np.where((step == Step.GIVEN) & (offset >= self.about.end), Step.UNREAD, step)
        return np.where((step == Step.GIVEN) & (offset < self.about.start), Step.DELETED, step)

    def _with_sends(self, places: Rows) -> Rows:
        """Adds to each place what the ack that names it says."""
        acked = places.acked == 1
        acked_index = np.where(acked, places.complete_index, NONE)
        return replace(
            places,
            outcome=np.where(acked, SendOutcome.ACKED, NONE),
            sent_offset=np.where(acked, places.offset, NONE),
            sent_log=np.where(acked, self.log, NONE),
            index=least(acked_index, places.poll_index, places.final_index),
            owed=np.where(self._is_owed(places), self.about.every, 0),
        )

    def _is_owed(self, places: Rows) -> Bools:
        """Tells which records the replicas in the ISR must have: a record that was acknowledged or given
        to somebody before anyone looked into their logs, and lies below the end of the log when the final
        read was made."""
        about, acked = self.about, places.acked == 1
        proof = least(places.complete_index, places.poll_index, places.final_index)
        in_time = (proof != NONE) & (proof < about.looked_at)
        within = (places.offset >= about.held_from) & (acked | (places.offset < about.end))
        return bools(in_time & within)

    def _earlier(self, slots: Slots) -> Entry[Ints]:
        sessions = self._facts.of(Session)
        nothing = Entry[Ints].unknown(slots.size)
        if not len(sessions):
            return nothing
        at = slots.find(sessions)
        pairs = zip(nothing.columns(), sessions.earlier.columns(), strict=True)
        return Entry.of_columns([assigned(none, at[at >= 0], column[at >= 0]) for none, column in pairs])

    def _with_neighbours(self, places: Rows, *, crowded: bool) -> Rows:
        """Adds the other record at each offset, and what the final read has there or next."""
        size, offset, value = len(places), places.offset, places.value
        in_final = places.step == Step.IN_FINAL
        if crowded:
            rival = right_before(offset, is_place(places) & (value >= 0))
            committed = right_before(offset, places.hw_index != NONE)
            places = replace(
                places,
                rival=table_at(Entry(offset, value, places.index), rival),
                committed=table_at(Entry(offset, value, places.hw_index), committed),
                committed_epoch=at_rows(places.epoch_high, committed),
            )
        read = right_before(offset, in_final) if crowded else constant(-1, size)
        finals = np.flatnonzero(in_final)
        following = np.append(finals, -1)[np.searchsorted(offset[finals], offset, "right")]
        read = np.where(read >= 0, read, following)
        return replace(places, stored=table_at(Entry(offset, value, places.final_index), read))

    def _asked(self) -> Iterator[Rows]:
        """Yields the ends in this range that clients were told, and those that the final read was told."""
        final = [
            (one.invoke_index, one.invoke_ns, one.complete_index, one.complete_ns, one.end, one.process)
            for one in self.about.reported_ends
            if one.end // self.context.width == self.number
        ]
        columns = np.array(final, np.int64).reshape(-1, len(EndAsked.names())).T
        of_final = EndAsked.of_columns(list(columns))
        for step, asked in ((Step.END_ASKED, self._facts.of(EndAsked)), (Step.END_TOLD, of_final)):
            yield replace(
                self._of_log(asked.carry(Rows)),
                step=constant(step, len(asked)),
                other_offset=asked.offset,
                acked=constant(0, len(asked)),
            )

    # --- proofs

    def _series(self, places: Rows) -> OfEach[Series]:
        given = is_place(places)
        acked = given & (places.acked == 1)
        ends = self._facts.of(End)
        ends = ends.take(np.argsort(ends.offset, kind="stable"))

        def of(index: Ints, ns: Ints, where: Bools) -> Series:
            return Series(places.offset, np.where(where & (index != NONE), index, NEVER), ns, places.value)

        return OfEach(
            by_ack=of(places.complete_index, places.complete_ns, acked),
            by_settled_ack=of(places.complete_index, places.complete_ns, acked & is_kept(places)),
            by_poll=of(places.poll_index, places.poll_ns, given),
            by_final=of(places.final_index, places.final_ns, given),
            by_end=Series(ends.offset, ends.complete_index, ends.complete_ns, constant(NONE, len(ends))),
        )

    # --- what lies between places

    def _jumps(self, places: Rows) -> tuple[Rows, int]:
        """Jumps over offsets that held something, and how far up one must look for those that are not
        decided."""
        jumps = self._facts.of(Jump)
        given = places.offset[is_place(places)]
        # Whoever stood below the log's beginning can go on at it: what was between may have been deleted.
        at = np.searchsorted(given, np.maximum(jumps.offset, self.about.start), "left")
        nearest = np.append(given, NEVER if self._above.low_place == NONE else self._above.low_place)[at]
        over = nearest < jumps.next_offset
        undecided = (at == len(given)) & (jumps.next_offset > self.base + self.context.width)
        need = int(jumps.next_offset[undecided].max()) if undecided.any() else NONE
        result = jumps.take(over)
        rows = replace(
            self._of_log(result.carry(Rows)),
            step=constant(Step.JUMP, len(result)),
            marks=constant(self.context.marks.bit("skipped"), len(result)),
            other_offset=result.next_offset,
            known_offset=nearest[over],
        )
        return rows, need

    def _holes(self, places: Rows, series: OfEach[Series]) -> Rows:
        """Returns the holes: places where the complete final read has nothing right above a record of it
        (or above the log's start), though the log goes on (rules 4 and 5), and what had shown that there
        was something. The highest is decided in the second round only."""
        if not (self.about.complete and self.about.contiguous):
            return Rows.unknown(0)
        final = np.flatnonzero(places.step == Step.IN_FINAL)
        offset, index = places.offset[final], places.final_index[final]
        distinct = np.append(True, np.diff(offset) != 0)[: len(offset)]
        floors = self._facts.of(Floor).offset[:1]
        offset = np.concatenate([floors, offset[distinct]])
        index = np.concatenate([np.full(len(floors), NONE), index[distinct]])
        next_up, size = self._above.low_final, len(offset)
        end = self.about.end if next_up.offset == NONE else next_up.offset
        last = (self.log, self.number) in self.context.again
        above = np.append(offset[1:], end if last else NONE)[:size]
        at = np.append(index[1:], next_up.index)[:size]
        hole = (above != NONE) & (above > offset + 1)
        size = int(hole.sum())
        rows = replace(
            self._of_log(size),
            step=constant(Step.HOLE, size),
            marks=constant(self.context.marks.bit("hole"), size),
            offset=offset[hole],
            other_offset=above[hole],
            final_index=index[hole],
            stored=replace(Entry[Ints].unknown(size), index=at[hole]),
        )
        return with_proofs(rows, Known(offset[hole] + 1, series, self._above).at(np.arange(size)))

    def _points(self, places: Rows) -> tuple[Ints, Ints]:
        """(offsets that were told to be taken, by a place or an end; whether by a place), ascending."""
        given, ends = places.offset[is_place(places)], self._facts.of(End).offset
        points = np.unique(np.concatenate([given, ends]))
        return points, np.isin(points, given).astype(np.int64)

    def _gaps(self, places: Rows, series: OfEach[Series]) -> Rows:
        """Offsets that were taken, and that only sends of unknown outcome can be at (rule 5)."""
        if not (self.about.idempotent and self.about.contiguous) or self.about.complete:
            return Rows.unknown(0)
        points, is_taken = self._points(places)
        upper = np.append(points, self._above.low_point)
        is_taken = np.append(is_taken, max(self._above.low_is_place, 0))
        lower = np.unique(np.concatenate([points, self._facts.of(Floor).offset[:1]]))
        at = np.searchsorted(points, lower, "right")
        next_up, there = upper[at], is_taken[at]
        unseen = next_up - lower - there
        some = np.flatnonzero((next_up != NONE) & (unseen > 0))
        size = len(some)
        known = Known(lower[some] + 1, series, self._above).at(np.arange(size))
        above = replace(Proof[Ints].unknown(size), index=least(*(proof.index for proof in known.each())))
        for proof in known.each():
            pairs = zip(proof.columns(), above.columns(), strict=True)
            above = Proof.of_columns([np.where(proof.index == above.index, *pair) for pair in pairs])
        return replace(
            self._of_log(size),
            step=constant(Step.GAP, size),
            marks=constant(self.context.marks.bit("gap"), size),
            offset=lower[some],
            unseen=unseen[some],
            above=above,
        )

    # --- what the driver must know

    @staticmethod
    def _last_claim(claims: Rows) -> int:
        """The latest invocation that claims a place, or asked for the end."""
        asked = (claims.step == Step.END_ASKED) | (claims.step == Step.END_TOLD)
        claimed = (is_place(claims) | asked) & (claims.invoke_index != NONE)
        return int(claims.invoke_index[claimed].max()) if claimed.any() else NONE

    def _summary(self, places: Rows, last_claim: int, series: OfEach[Series]) -> Summary[int]:
        proofs = series.map(Series.first)
        final = np.flatnonzero(places.step == Step.IN_FINAL)
        given = places.offset[is_place(places)]
        points, is_taken = self._points(places) if not self.about.complete else (given, np.ones_like(given))
        entries = Entry(places.offset, places.value, places.final_index)
        lowest = Entry.of_columns([first_of(column) for column in entries.take(final).columns()])
        return replace(
            Summary[int].all(NONE),
            log=self.log,
            part=self.number,
            by_ack=proofs.by_ack,
            by_settled_ack=proofs.by_settled_ack,
            by_poll=proofs.by_poll,
            by_final=proofs.by_final,
            by_end=proofs.by_end,
            last_claim=last_claim,
            low_final=lowest,
            high_final=first_of(places.offset[final][::-1]),
            low_place=first_of(given),
            low_point=first_of(points),
            low_is_place=first_of(is_taken),
            high_point=first_of(points[::-1]),
            floor=first_of(self._facts.of(Floor).offset),
        )
