"""Decides one part of a history: feeds the native search with transitions and memory, until it knows or a
limit is reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from wrackline.checkers.exact.judgement import Answer, End, Part
from wrackline.checkers.exact.kernel import LOOKS, OP, TIMES, Longs, R, Said, rehash, run
from wrackline.checkers.exact.layout import Layout, lay_out
from wrackline.checkers.exact.transitions import Transitions

MOST_ENDS = 8
_STEPS = 200_000
"""Configurations between two looks at the clock: some 0.05 s."""
_PROGRESS_S = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    deadline_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Rows:
    """The operations of a part that the search must place, or may. ``ret`` None: the outcome is unknown."""

    key: Hashable
    places: Sequence[int]
    """In the history."""
    inv: Sequence[int]
    ret: Sequence[int | None]
    symbols: Sequence[int]


class _Seen:
    """The configurations that were looked at: a hash table whose buckets are chains of rows."""

    def __init__(self, layout: Layout) -> None:
        self._words = layout.words
        self._make(1 << 8 if len(layout) < 64 else 1 << 11, 1 + layout.mask_words)

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


def decide(rows: Rows, table: Transitions, limits: Limits, progress: Callable[[str], None]) -> Part:
    """Search for an order. Raises ModelError."""
    began = time.monotonic()
    one = _Search(lay_out(rows.places, rows.inv, rows.ret, rows.symbols), table)
    answer, why = one.decide(began, limits, progress)
    order = one.order(found=answer is Answer.VALID)
    stuck, ends, count = one.stuck() if answer is Answer.INVALID else (None, (), 0)
    state = table.model.describe_state(table.states[int(one.regs[R.BEST_STATE])])
    tried, seconds = int(one.regs[R.TRIED]), time.monotonic() - began
    return Part(rows.key, answer, len(rows.places), why, order, state, stuck, ends, count, tried, seconds)


class _Search:
    def __init__(self, layout: Layout, table: Transitions) -> None:
        self._layout, self._table = layout, table
        n, all_of_them = len(layout.ops), len(layout)
        self.regs: Longs = np.zeros(R.SIZE, np.int64)
        self._kinds = np.zeros((len(layout.first_of_kind), 2), np.int32)
        self._kinds[:, 0] = layout.first_of_kind
        self._links = np.zeros((n + 1, 3), np.int32)
        self._links[:, 0] = np.roll(np.arange(n + 1), -1)
        self._links[:, 1] = np.roll(np.arange(n + 1), 1)
        self._mask = np.zeros(layout.mask_words, np.int64)
        self._stack = np.zeros((all_of_them, 4), np.int32)
        self._best = np.zeros(all_of_them, np.int32)
        self._needs = np.zeros((64, 2), np.int64)
        self._symbols = np.zeros((len(table.symbols), 2), np.int32)
        self._symbols[:, LOOKS] = table.kinds
        self._symbols[:, TIMES] = np.bincount(layout.ops[:, 1], minlength=len(table.symbols))
        self._seen = _Seen(layout)

    def decide(self, began: float, limits: Limits, progress: Callable[[str], None]) -> tuple[Answer, str]:
        """The answer, and of UNKNOWN why."""
        table, regs = self._table, self.regs
        shown = began
        regs[R.BUDGET] = _STEPS
        while True:
            match self._run():
                case Said.VALID:
                    return Answer.VALID, ""
                case Said.INVALID:
                    return Answer.INVALID, ""
                case Said.ASKS:
                    table.answer(self._needs[: regs[R.ASKED]])
                case Said.FULL:
                    room = limits.memory_bytes - table.bytes
                    if not self._seen.grow(int(regs[R.SEEN]), room):
                        return Answer.UNKNOWN, f"{limits.memory_bytes >> 20} MB are used up: {self._so_far()}"
                case _:
                    now = time.monotonic()
                    if now - began > limits.deadline_s:
                        return Answer.UNKNOWN, f"no answer within {limits.deadline_s:g} s: {self._so_far()}"
                    if now - shown > _PROGRESS_S:
                        shown = now
                        progress(self._so_far())
                    regs[R.BUDGET] = _STEPS

    def _run(self) -> Said:
        layout, table, seen = self._layout, self._table, self._seen
        arrays = (
            *(
                self.regs,
                layout.ops,
                layout.returns,
                layout.unknowns,
                self._kinds,
                self._symbols,
                self._links,
            ),
            *(self._mask, self._stack, self._best, seen.heads, seen.chain, seen.rows),
            *(table.keys, table.values, table.many, self._needs),
        )
        return Said(run(*arrays, layout.words))

    def _so_far(self) -> str:
        front = max(int(self.regs[R.BEST_FRONT]), int(self.regs[R.FRONT]))
        returns, tried = len(self._layout.returns), int(self.regs[R.TRIED])
        return (
            f"the first {front:,} of {returns:,} to return have a place, {tried:,} configurations were tried"
        )

    def order(self, *, found: bool) -> tuple[int, ...]:
        """The longest one, as places in the history."""
        regs, best = self.regs, self._best[: self.regs[R.BEST_DEPTH]]
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

    def stuck(self) -> tuple[int, tuple[End, ...], int]:
        """The operation without a place, the ends before it, and how many there are."""
        layout = self._layout
        front = int(self.regs[R.BEST_FRONT])
        there = self._seen.rows[: self.regs[R.SEEN]]
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
