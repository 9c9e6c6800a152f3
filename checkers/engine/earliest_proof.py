"""Columns of places: a row for each (offset, value), and the earliest proof that the log had grown to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wrackline.checkers.engine.candidates import IN_FINAL, least
from wrackline.checkers.engine.facts import BELOW, Rows, grouped
from wrackline.checkers.inputs.arrays import NEVER, NONE, Bools, Ints


def first_of(column: Ints) -> int:
    return int(column[0]) if len(column) else NONE


def at_rows(column: Ints, rows: Ints) -> Ints:
    """The column at these rows; NONE where a row is negative."""
    found: Ints = np.append(column, NONE)[rows]
    return found


def right_before(offset: Ints, where: Bools) -> Ints:
    """The row right before each that is at the same offset and answers to ``where``; -1 where there is
    none."""
    rows = np.maximum.accumulate(np.where(where, np.arange(len(offset)), -1))
    before = np.append(-1, rows)[:-1] if len(rows) else rows
    found: Ints = np.where((before >= 0) & (at_rows(offset, before) == offset), before, -1)
    return found


def smallest(size: int, at: Ints, values: Ints) -> Ints:
    found = np.full(size, NEVER)
    np.minimum.at(found, at, values)
    return np.where(found == NEVER, NONE, found)


def largest(size: int, at: Ints, values: Ints) -> Ints:
    found = np.full(size, NONE)
    np.maximum.at(found, at, values)
    return found


def earliest_polls(polls: Rows) -> Rows:
    """Each place polled once, by the first that was given it."""
    order, starts, _ = grouped(polls.offset, polls.value, polls.index)
    kept = polls.take(order)
    new = np.append(True, (np.diff(kept.offset) != 0) | (np.diff(kept.value) != 0))
    return kept.take(new & starts)


class Slots:
    """A number for each (offset, value): that of the offset for the first value told of it, a later one for
    others."""

    def __init__(self, base: int, width: int, facts: Sequence[Rows]) -> None:
        # A log shorter than a chunk needs no room for more.
        highest = max((int(rows.offset.max()) for rows in facts if len(rows)), default=base - 1)
        self.base, self.width = base, min(width, highest + 1 - base)
        width = self.width
        self._value = np.full(width, NONE)
        for rows in facts:
            at = rows.offset - base
            empty = self._value[at] == NONE
            self._value[at[empty]] = rows.value[empty]
        others = [rows.take(self._value[rows.offset - base] != rows.value) for rows in facts]
        offset = np.concatenate([rows.offset for rows in others])
        value = np.concatenate([rows.value for rows in others])
        order, starts, _ = grouped(offset, value)
        self._other_offset, self._other_value = offset[order][starts], value[order][starts]
        self.crowded = len(offset) > 0
        self.size = width + len(self._other_offset)
        self.offset = np.concatenate([np.arange(base, base + width), self._other_offset])
        self.value = np.concatenate([self._value, self._other_value])
        self.of = [self.find(rows) for rows in facts]

    def find(self, rows: Rows) -> Ints:
        """-1 where nobody told of the place."""
        at = rows.offset - self.base
        wrong = np.flatnonzero(np.append(self._value, NONE)[np.minimum(at, self.width)] != rows.value)
        if len(wrong):
            numbers = {
                pair: self.width + number
                for number, pair in enumerate(
                    zip(self._other_offset.tolist(), self._other_value.tolist(), strict=True)
                )
            }
            pairs = zip(rows.offset[wrong].tolist(), rows.value[wrong].tolist(), strict=True)
            at = at.copy()
            at[wrong] = [numbers.get(pair, -1) for pair in pairs]
        found: Ints = at
        return found


@dataclass(slots=True)
class Proof:
    """Events that showed offsets, in ascending order; ``index`` is NEVER where there is none."""

    offset: Ints
    index: Ints
    ns: Ints
    value: Ints
    _who: Ints | None = None

    def who(self) -> Ints:
        """For each row the one at or above it with the earliest index: the highest, where they are
        several."""
        if self._who is None:
            size = len(self.index)
            down = self.index[::-1]
            earliest = np.minimum.accumulate(down)
            fresh = np.append(True, down[1:] < earliest[:-1])[:size]
            rows = np.maximum.accumulate(np.where(fresh, np.arange(size), 0))
            self._who = (size - 1 - rows)[::-1]
        return self._who

    def rows(self, offset: Ints) -> Ints:
        """Who showed each offset or a larger one first; -1 where nobody did."""
        if not len(self.index):
            return np.full(len(offset), -1)
        at = np.searchsorted(self.offset, offset, "left")
        who = np.append(self.who(), -1)[at]
        found: Ints = np.where(np.append(self.index, NEVER)[who] == NEVER, -1, who)
        return found

    def at(self, offset: Ints) -> dict[str, Ints]:
        """The event as columns: its index (""), "_ns", "_offset" and "_value"."""
        rows = self.rows(offset if len(self.index) == 0 else np.minimum(offset, self.offset[0]))
        return self.columns(rows)

    def columns(self, rows: Ints) -> dict[str, Ints]:
        return {
            "": at_rows(self.index, rows),
            "_ns": at_rows(self.ns, rows),
            "_offset": at_rows(self.offset, rows),
            "_value": at_rows(self.value, rows),
        }


class Known:
    """What is known at or above each row, in this chunk and in those above it."""

    def __init__(self, rows: Rows, proofs: dict[str, Proof], carry: Mapping[str, int]) -> None:
        self.proofs, self.carry = proofs, carry
        self._rows = {name: proof.rows(rows.offset) for name, proof in proofs.items()}

    def index(self, name: str) -> Ints:
        here = at_rows(self.proofs[name].index, self._rows[name])
        above = self.carry.get(name.removeprefix("by_"), NONE)
        return here if above == NONE else least(here, np.full(len(here), above))

    def told(self, name: str, rows: Ints) -> dict[str, Ints]:
        """The event's columns, for some rows."""
        kind = name.removeprefix("by_")
        found = self.proofs[name].columns(self._rows[name][rows])
        above = self.carry.get(kind, NONE)
        if above != NONE:
            elsewhere = (found[""] == NONE) | (above <= found[""])
            for part in found:
                found[part] = np.where(elsewhere, self.carry.get(kind + part, NONE), found[part])
        return {name + part: column for part, column in found.items()}


class Below:
    """The other way round: of the acknowledged records of the final read the one below an offset that was
    sent last."""

    _OF = ("invoke_index", "invoke_ns", "complete_index", "complete_ns", "offset", "value")

    def __init__(self, places: Rows) -> None:
        self._rows = places.take((places.step == IN_FINAL) & (places.acked == 1))
        index = self._rows.invoke_index
        latest = np.maximum.accumulate(index)
        fresh = np.append(True, index[1:] > latest[:-1])[: len(index)]
        self._who = np.maximum.accumulate(np.where(fresh, np.arange(len(index)), 0))

    def _columns(self, rows: Ints) -> dict[str, Ints]:
        return {name: at_rows(self._rows.columns[of], rows) for name, of in zip(BELOW, self._OF, strict=True)}

    def of(self, offset: Ints, where: Bools) -> dict[str, Ints]:
        at = np.searchsorted(self._rows.offset, offset, "left")
        found = np.append(-1, self._who)[at]
        return self._columns(np.where(where, found, -1))

    def last(self) -> dict[str, int]:
        """Of the whole chunk."""
        found = self._columns(self._who[-1:])
        return {name: first_of(column) for name, column in found.items()}
