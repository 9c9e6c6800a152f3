"""Decides one part of a history: feeds the native search with transitions and memory, until it knows or a
limit is reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wrackline.checkers.exact.judgement import Answer, End, Part
from wrackline.checkers.exact.kernel import LOOKS, OP, TIMES, R, Said, rehash, run
from wrackline.checkers.exact.layout import Rows, lay_out
from wrackline.checkers.exact.native import Longs
from wrackline.checkers.exact.transitions import Transitions
from wrackline.checkers.models.protocol import asked

MOST_ENDS = 8
PROGRESS_S = 5.0
_ASKED, _BUDGET = int(R.ASKED), int(R.BUDGET)
_STEPS = 100_000
"""Most configurations between two looks at the clock: some 0.03 s."""


@dataclass(frozen=True, slots=True)
class Limits:
    """For one part."""

    deadline_s: float
    memory_bytes: int


class Seen:
    """The configurations that were looked at: a hash table whose buckets are chains of rows."""

    def __init__(self, rows: int, width: int, hashed_words: int) -> None:
        self._words = hashed_words
        self._make(rows, width)

    def _make(self, rows: int, width: int) -> None:
        self.rows: Longs = np.empty((rows, width), np.int64)
        self.chain = np.empty(rows, np.int32)
        self.heads = np.full(rows, -1, np.int32)

    @property
    def bytes(self) -> int:
        return self.rows.nbytes + self.chain.nbytes + self.heads.nbytes

    def grow(self, count: int, most_bytes: int) -> bool:
        """Twice the room; False where that does not fit into ``most_bytes`` beside what there is now."""
        if 3 * self.bytes > most_bytes or 2 * count > np.iinfo(np.int32).max:
            return False
        old = self.rows
        self._make(2 * count, old.shape[1])
        self.rows[:count] = old
        rehash(self.heads, self.chain, self.rows, count, self._words)
        return True


class PartSearch:
    """For an order of the operations of one part. It may be left for a while and gone on with."""

    def __init__(self, rows: Rows, table: Transitions, limits: Limits) -> None:
        layout = lay_out(rows)
        self._rows, self._layout, self._table, self._limits = rows, layout, table, limits
        self._spent_s = 0.0
        all_of_them = len(layout)
        self._regs: Longs = np.zeros(R.SIZE, np.int64)
        self._kinds = np.zeros((len(layout.first_of_kind), 2), np.int32)
        self._kinds[:, 0] = layout.first_of_kind
        self._links = layout.links()
        self._mask = np.zeros(layout.mask_words, np.int64)
        self._stack = np.zeros((all_of_them, 4), np.int32)
        self._best = np.zeros(all_of_them, np.int32)
        self._needs = np.zeros((64, 2), np.int64)
        self._symbols = np.zeros((len(table.symbols), 2), np.int32)
        self._symbols[:, LOOKS] = table.kinds
        self._symbols[:, TIMES] = np.bincount(layout.ops[:, 1], minlength=len(table.symbols))
        self._seen = Seen(1 << 8 if len(layout) < 64 else 1 << 11, 1 + layout.mask_words, layout.words)

    @property
    def bytes(self) -> int:
        """Memory in use, without that of the transitions."""
        return self._seen.bytes + self._stack.nbytes + self._layout.ops.nbytes

    def go(self, turn_s: float, progress: Callable[[str], None]) -> Part | None:
        """Search for so long at most; None where that did not suffice. Raises ModelError."""
        began = time.monotonic()
        until = began + min(turn_s, self._limits.deadline_s - self._spent_s)
        answer, why = self._search(until, progress)
        self._spent_s += time.monotonic() - began
        if answer is None and self._spent_s < self._limits.deadline_s:
            return None
        return self._part(answer, why)

    def _search(self, until: float, progress: Callable[[str], None]) -> tuple[Answer | None, str]:
        """The answer; None where the time was up. Of UNKNOWN why."""
        table, regs, limits = self._table, self._regs, self._limits
        show_at = time.monotonic() + PROGRESS_S
        arrays = self._arrays()
        while True:
            regs[_BUDGET] = _STEPS
            said = run(*arrays)
            full = False
            # The first of these is what happens most, by far, with a model of many states.
            if said == Said.ASKS:
                keys, many = table.keys, table.many
                table.answer(self._needs[: regs[_ASKED]])
                if keys is not table.keys or many is not table.many:
                    arrays = self._arrays()
                    full = table.bytes + self._seen.bytes > limits.memory_bytes
            elif said == Said.FULL:
                full = not self._seen.grow(int(regs[R.SEEN]), limits.memory_bytes - table.bytes)
                arrays = self._arrays()
            elif said != Said.PAUSED:
                return (Answer.VALID if said == Said.VALID else Answer.INVALID), ""
            if full:
                return Answer.UNKNOWN, f"{limits.memory_bytes >> 20} MB of memory are used up"
            now = time.monotonic()
            if now > until:
                return None, f"no answer within {limits.deadline_s:g} s"
            if now > show_at:
                show_at = now + PROGRESS_S
                progress(self._so_far())

    def _part(self, answer: Answer | None, why: str) -> Part:
        with asked(self._table.model, "describe_state()"):
            return self._described(answer, why)

    def _described(self, answer: Answer | None, why: str) -> Part:
        regs, rows = self._regs, self._rows
        order = self._order(found=answer is Answer.VALID)
        stuck, ends, count = self._stuck() if answer is Answer.INVALID else (None, (), 0)
        return Part(
            key=rows.key,
            answer=answer or Answer.UNKNOWN,
            operations=len(rows.places),
            why=f"{why}: {self._so_far()}" if why else "",
            order=order,
            state=self._table.model.describe_state(self._table.states[int(regs[R.BEST_STATE])]),
            stuck=stuck,
            ends=ends,
            ends_found=count,
            configurations=int(regs[R.TRIED]),
            seconds=self._spent_s,
        )

    def _arrays(self) -> tuple[Any, ...]:
        """What ``run`` is called with, until there is more room."""
        layout, table, seen = self._layout, self._table, self._seen
        return (
            *(self._regs, layout.ops, layout.returns, layout.unknowns, self._kinds, self._symbols),
            *(self._links, self._mask, self._stack, self._best, seen.heads, seen.chain, seen.rows),
            *(table.keys, table.values, table.many, self._needs, layout.words),
        )

    def _so_far(self) -> str:
        front = max(int(self._regs[R.BEST_FRONT]), int(self._regs[R.FRONT]))
        returns, tried = len(self._layout.returns), int(self._regs[R.TRIED])
        return (
            f"the first {front:,} of {returns:,} to return have a place, {tried:,} configurations were tried"
        )

    def _order(self, *, found: bool) -> tuple[int, ...]:
        """The longest one, as places in the history."""
        regs, best = self._regs, self._best[: self._regs[R.BEST_DEPTH]]
        ahead = (regs[R.FRONT], regs[R.DEPTH]) > (regs[R.BEST_FRONT], regs[R.BEST_DEPTH])
        if not found and ahead:  # it was still on its way when a limit was reached
            best = self._stack[: regs[R.DEPTH], OP]
            regs[R.BEST_STATE] = regs[R.STATE]
        n, used = len(self._layout.ops), [0] * len(self._kinds)
        places = []
        for one in best.tolist():
            if one < n:
                places.append(int(self._layout.certain[one]))
            else:
                places.append(int(self._layout.uncertain[self._kinds[one - n, 0] + used[one - n]]))
                used[one - n] += 1
        return tuple(places)

    def _stuck(self) -> tuple[int, tuple[End, ...], int]:
        """The operation without a place, the ends before it, and how many there are."""
        layout = self._layout
        front = int(self._regs[R.BEST_FRONT])
        there = self._seen.rows[: self._regs[R.SEEN]]
        there = there[(there[:, 0] & 0xFFFFFFFF) == front]
        limit, stuck = layout.returns[front].tolist()
        is_open = np.flatnonzero((layout.ops[:, 0] < limit) & (layout.ops[:, 3] >= front)).tolist()
        ends = []
        for row in there[:MOST_ENDS].tolist():
            state, mask = row[0] >> 32, row[1:]
            placed = [one for one in is_open if _bit(mask, int(layout.ops[one, 2]))]
            unknown = [n for n in range(len(layout.unknowns)) if _bit(mask[layout.words :], n)]
            waiting = sorted(set(is_open) - set(placed), key=lambda one: (one != stuck, one))
            ends.append(
                End(
                    self._table.states[state],
                    self._table.model.describe_state(self._table.states[state]),
                    (*_of(layout.certain, placed), *_of(layout.uncertain, unknown)),
                    _of(layout.certain, waiting),
                )
            )
        return int(layout.certain[stuck]), tuple(ends), len(there)


def _of(places: Longs, rows: Sequence[int]) -> tuple[int, ...]:
    return tuple(places[list(rows)].tolist())


def _bit(words: Sequence[int], bit: int) -> bool:
    return bool(words[bit >> 6] >> (bit & 63) & 1)
