"""Columns of places: a row for each (offset, value), and the earliest proof that the log had grown to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wrackline.checkers.engine.candidates import Candidate, Proof, SentBelow, Step, least
from wrackline.checkers.engine.facts import Ack, Held, Placed, Poll, Read, Session, grouped, table_at
from wrackline.checkers.engine.proofs import KnownAbove, OfEach
from wrackline.checkers.inputs.table import NEVER, NONE, Bools, Ints, constant

Claim = Read | Held | Ack
"""Facts that say that a value is at an offset."""


def first_of(column: Ints) -> int:
    return int(column[0]) if len(column) else NONE


def at_rows(column: Ints, rows: Ints) -> Ints:
    """The column at these rows; NONE where a row is negative."""
    result: Ints = np.append(column, NONE)[rows]
    return result


def right_before(offset: Ints, where: Bools) -> Ints:
    """The row right before each that is at the same offset and answers to ``where``; -1 where there is
    none."""
    rows = np.maximum.accumulate(np.where(where, np.arange(len(offset)), -1))
    before = np.append(-1, rows)[:-1] if len(rows) else rows
    result: Ints = np.where((before >= 0) & (at_rows(offset, before) == offset), before, -1)
    return result


def smallest(size: int, at: Ints, values: Ints) -> Ints:
    """Returns for each row the smallest of the values that are at it; NONE where none is."""
    result = np.full(size, NEVER)
    np.minimum.at(result, at, values)
    return np.where(result == NEVER, NONE, result)


def largest(size: int, at: Ints, values: Ints) -> Ints:
    result = np.full(size, NONE)
    np.maximum.at(result, at, values)
    return result


def first_at(size: int, at: Ints, values: Ints) -> Ints:
    """Returns for each row the first of the values that are at it; NONE where none is."""
    result = np.full(size, NONE)
    result[at[::-1]] = values[::-1]
    return result


def earliest_polls(polls: Poll) -> Poll:
    """Each place polled once, by the first that was given it."""
    order, starts, _ = grouped(polls.offset, polls.value, polls.index)
    kept = polls.take(order)
    new = np.append(True, (np.diff(kept.offset) != 0) | (np.diff(kept.value) != 0))
    return kept.take(new & starts)


class Slots:
    """A number for each (offset, value): that of the offset for the first value that is said to be there, a
    later one for others."""

    def __init__(self, base: int, width: int, facts: Sequence[Claim]) -> None:
        # A log shorter than a range needs no room for more.
        highest = max((int(rows.offset.max()) for rows in facts if len(rows)), default=base - 1)
        self.base, self.width = base, min(width, highest + 1 - base)
        width = self.width
        self._value = np.full(width, NONE)
        for rows in facts:
            at = rows.offset - base
            empty = self._value[at] == NONE
            self._value[at[empty]] = rows.value[empty]
        others = [self._value[rows.offset - base] != rows.value for rows in facts]
        offset = np.concatenate([rows.offset[other] for rows, other in zip(facts, others, strict=True)])
        value = np.concatenate([rows.value[other] for rows, other in zip(facts, others, strict=True)])
        order, starts, _ = grouped(offset, value)
        self._other_offset, self._other_value = offset[order][starts], value[order][starts]
        self.crowded = len(offset) > 0
        self.size = width + len(self._other_offset)
        self.offset = np.concatenate([np.arange(base, base + width), self._other_offset])
        self.value = np.concatenate([self._value, self._other_value])

    def find(self, rows: Claim | Session | Placed) -> Ints:
        """-1 where nobody said so."""
        at = rows.offset - self.base
        error = np.flatnonzero(np.append(self._value, NONE)[np.minimum(at, self.width)] != rows.value)
        if len(error):
            numbers = {
                pair: self.width + number
                for number, pair in enumerate(
                    zip(self._other_offset.tolist(), self._other_value.tolist(), strict=True)
                )
            }
            pairs = zip(rows.offset[error].tolist(), rows.value[error].tolist(), strict=True)
            at = at.copy()
            at[error] = [numbers.get(pair, -1) for pair in pairs]
        result: Ints = at
        return result


@dataclass(slots=True)
class Series:
    """Events that showed offsets, in ascending order of these; ``index`` is NEVER where there is none."""

    offset: Ints
    index: Ints
    ns: Ints
    value: Ints
    _who: Ints | None = field(default=None, init=False)

    def who(self) -> Ints:
        """Returns for each row the number of the one at or above it with the earliest index: the highest,
        where they are several."""
        if self._who is None:
            size = len(self.index)
            down = self.index[::-1]
            earliest = np.minimum.accumulate(down)
            fresh = np.append(True, down[1:] < earliest[:-1])[:size]
            rows = np.maximum.accumulate(np.where(fresh, np.arange(size), 0))
            self._who = (size - 1 - rows)[::-1]
        return self._who

    def rows(self, offset: Ints) -> Ints:
        """Returns the row of the event that showed each offset or a larger one first; -1 where nobody did."""
        if not len(self.index):
            return np.full(len(offset), -1)
        at = np.searchsorted(self.offset, offset, "left")
        who = np.append(self.who(), -1)[at]
        result: Ints = np.where(np.append(self.index, NEVER)[who] == NEVER, -1, who)
        return result

    def first(self) -> Proof[int]:
        """The earliest of all events."""
        result = self.at(self.rows(self.offset[:1]))
        return Proof.of_columns([first_of(column) for column in result.columns()])

    def at(self, rows: Ints) -> Proof[Ints]:
        """The events of these rows; NONE where a row is negative."""
        mine: Proof[Ints] = Proof(self.index, self.ns, self.offset, self.value)
        return table_at(mine, rows)


@dataclass(frozen=True, slots=True)
class _Known:
    """The proofs of one kind: here, and above."""

    series: Series
    rows: Ints
    above: Proof[int]

    def index(self) -> Ints:
        here = at_rows(self.series.index, self.rows)
        return here if self.above.index == NONE else least(here, constant(self.above.index, len(here)))

    def at(self, rows: Ints) -> Proof[Ints]:
        result = self.series.at(self.rows[rows])
        if self.above.index == NONE:
            return result
        elsewhere = (result.index == NONE) | (self.above.index <= result.index)
        pairs = zip(self.above.columns(), result.columns(), strict=True)
        return Proof.of_columns([np.where(elsewhere, above, here) for above, here in pairs])


class Known:
    """The proofs at or above each offset, in this range and in those above it."""

    def __init__(self, offset: Ints, series: OfEach[Series], above: KnownAbove) -> None:
        self._of = series.with_other(above.proofs, lambda one, up: _Known(one, one.rows(offset), up))
        self._nothing = Proof[Ints].unknown(len(offset))

    def indexes(self) -> OfEach[Proof[Ints]]:
        """The proofs, without all but their indexes."""
        return self._of.map(lambda one: replace(self._nothing, index=one.index()))

    def at(self, rows: Ints) -> OfEach[Proof[Ints]]:
        """The proofs, for some rows."""
        return self._of.map(lambda one: one.at(rows))


class LastSent:
    """The other way round: of the acknowledged records of the final read the one below an offset that was
    sent last."""

    def __init__(self, places: Candidate[Ints]) -> None:
        some = (places.step == Step.IN_FINAL) & (places.acked == 1)
        self._rows = places.carry(SentBelow[Ints]).take(some)
        index = self._rows.invoke_index
        latest = np.maximum.accumulate(index)
        fresh = np.append(True, index[1:] > latest[:-1])[: len(index)]
        self._who = np.maximum.accumulate(np.where(fresh, np.arange(len(index)), 0))

    def below(self, offset: Ints, where: Bools) -> SentBelow[Ints]:
        """Returns for each offset the record below it that was sent last; NONE where ``where`` is false."""
        at = np.searchsorted(self._rows.offset, offset, "left")
        result = np.append(-1, self._who)[at]
        return table_at(self._rows, np.where(where, result, -1))

    def of_all(self) -> SentBelow[int]:
        """Returns the record of the whole range that was sent last."""
        last = table_at(self._rows, self._who[-1:])
        return SentBelow.of_columns([first_of(column) for column in last.columns()])
