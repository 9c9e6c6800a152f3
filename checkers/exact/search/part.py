"""Decides one part of a history: feeds the native search with transitions and memory, until it knows or a
limit is reached."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from wrackline.checkers.exact.judgement import Answer, End, Part
from wrackline.checkers.exact.search.kernel import LOOKS, OP, TIMES, R, Said, rehash, run
from wrackline.checkers.exact.search.layout import Rows, lay_out
from wrackline.checkers.exact.search.memory import Meter
from wrackline.checkers.exact.search.native import Longs, lean_start
from wrackline.checkers.exact.search.transitions import Transitions
from wrackline.checkers.models.protocol import Model, Operation, asked

MOST_ENDS = 8
PROGRESS_S = 5.0
Progress = Callable[[str], None]
_AT_ONCE = 1 << 14
MOST_STEPS = 50_000
"""Most configurations between two looks at the clock: some 0.02 s."""
STEP_BYTES = 1 << 20
"""... and most memory that they take."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the search of one part."""

    deadline_s: float
    memory_bytes: int
    """For all that the process takes."""
    meter: Meter

    def room(self) -> int:
        """Bytes that are left."""
        return self.memory_bytes - self.meter.taken()

    @property
    def used_up(self) -> str:
        """Tells why a search gave up for want of memory."""
        return f"{self.memory_bytes >> 20} MB of memory are used up"


class Seen:
    """The configurations that were looked at: a hash table whose buckets are chains of rows."""

    def __init__(self, rows: int, width: int, hashed_words: int) -> None:
        self._words = hashed_words
        self.rows: Longs = np.empty((rows, width), np.int64)
        self.chain = np.empty(rows, np.int32)
        self.heads = np.full(rows, -1, np.int32)

    @property
    def per_row(self) -> int:
        """Bytes."""
        return self.rows.strides[0] + self.chain.itemsize

    def at(self, front: int, count: int) -> tuple[Longs, int]:
        """The first MOST_ENDS of ``count`` rows that have this front, and how many have it."""
        few, result = [self.rows[:0]], 0
        for begin in range(0, count, _AT_ONCE):  # a copy of all may be more than there is room for
            some = self.rows[begin : min(count, begin + _AT_ONCE)]
            some = some[(some[:, 0] & 0xFFFFFFFF) == front]
            few.append(some[: max(0, MOST_ENDS - result)].copy())
            result += len(some)
        return np.concatenate(few), result

    def bytes(self, count: int) -> int:
        """Memory in use with ``count`` rows."""
        return count * self.per_row + self.heads.nbytes

    def grow(self, count: int, most_bytes: int, room: int) -> bool:
        """More space; False where there is no room.

        Addresses for all rows that ``most_bytes`` can hold are reserved at once. A page of them is in memory
        when the first row in it is written, so nothing is there twice, and what is there is looked at as the
        search goes on."""
        most = min(most_bytes // self.per_row, int(np.iinfo(np.int32).max))
        if most <= count or 2 * self.bytes(count) > room:
            return False
        while True:
            try:
                rows, chain = np.empty((most, self.rows.shape[1]), np.int64), np.empty(most, np.int32)
                break
            except MemoryError:  # there are limits of addresses, too
                most //= 2
                if most < 2 * count:
                    return False
        rows[:count], chain[:count] = self.rows[:count], self.chain[:count]
        self.rows, self.chain = rows, chain
        return self.spread(count, room)

    def spread(self, count: int, room: int) -> bool:
        """More buckets, where there are few for ``count`` rows; False where there is no room."""
        if count < 2 * len(self.heads):
            return True
        if 4 * self.heads.nbytes > room:
            return False
        self.heads = np.full(4 * len(self.heads), -1, np.int32)
        rehash(self.heads, self.chain, self.rows, count, self._words)
        return True


@cache
def load() -> None:
    """Have the native code in memory before anybody measures: with numba it takes some 60 MB, and more where
    it must be compiled first."""
    operation = Operation(0, "", None, None, 0, 1)
    table = Transitions(_Anything())
    rows = Rows(None, [0], [0], [1], [False], [table.symbol(operation)])
    with lean_start():
        PartSearch(rows, table, Limits(1.0, 1 << 30, Meter())).go(1.0, lambda _line: None)


class _Anything(Model[int]):
    def initial(self) -> int:
        return 0

    def step(self, state: int, operation: Operation) -> int:  # noqa: ARG002
        return state


class Search(ABC):
    """A search for an order of the operations of one part. It may be left for a while and gone on with."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._spent_s = 0.0

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Memory in use."""

    def go(self, turn_s: float, progress: Progress) -> Part | None:
        """Search for so long at most; None where that did not suffice. Raises ModelError."""
        began = time.monotonic()
        until = began + min(turn_s, self._limits.deadline_s - self._spent_s)
        answer, why = self._search(until, progress)
        self._spent_s += time.monotonic() - began
        if answer is None and self._spent_s < self._limits.deadline_s:
            return None
        return self._part(answer, why)

    @abstractmethod
    def _search(self, until: float, progress: Progress) -> tuple[Answer | None, str]:
        """The answer; None where the time was up. Of UNKNOWN why."""

    @abstractmethod
    def _part(self, answer: Answer | None, why: str) -> Part: ...


class PartSearch(Search):
    """Asks a model for one step at a time."""

    def __init__(self, rows: Rows, table: Transitions, limits: Limits) -> None:
        super().__init__(limits)
        layout = lay_out(rows)
        self._rows, self._layout, self._table = rows, layout, table
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
        """Memory in use; that of the transitions is an estimate."""
        seen = self._seen.bytes(int(self._regs[R.SEEN]))
        return self._table.bytes + seen + self._stack.nbytes + self._layout.ops.nbytes

    def _search(self, until: float, progress: Progress) -> tuple[Answer | None, str]:
        table, regs, limits = self._table, self._regs, self._limits
        show_at = time.monotonic() + PROGRESS_S
        arrays = self._arrays()
        steps = max(1, min(MOST_STEPS, STEP_BYTES // self._seen.per_row))
        while True:
            regs[R.BUDGET] = steps
            said = run(*arrays)
            full = False
            # The first of these is what happens most, by far, with a model of many states.
            if said == Said.ASKS:
                try:
                    if table.answer(self._needs[: regs[R.ASKED]], limits.room):
                        arrays = self._arrays()
                except MemoryError:
                    full = True
            elif said == Said.FULL:
                full = not self._seen.grow(int(regs[R.SEEN]), limits.memory_bytes, limits.room())
                arrays = self._arrays()
            elif said == Said.PAUSED:
                heads = self._seen.heads
                full = not self._seen.spread(int(regs[R.SEEN]), limits.room())
                if heads is not self._seen.heads:
                    arrays = self._arrays()
            else:
                return (Answer.VALID if said == Said.VALID else Answer.INVALID), ""
            now = time.monotonic()
            if full or limits.meter.exceeds(limits.memory_bytes, now):
                return Answer.UNKNOWN, limits.used_up
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
        """Returns the arguments with which ``run`` is called, until there is more room."""
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
        there, count = self._seen.at(front, int(self._regs[R.SEEN]))
        limit, stuck = layout.returns[front].tolist()
        is_open = np.flatnonzero((layout.ops[:, 0] < limit) & (layout.ops[:, 3] >= front)).tolist()
        ends = []
        for row in there.tolist():
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
        return int(layout.certain[stuck]), tuple(ends), count


def _of(places: Longs, rows: Sequence[int]) -> tuple[int, ...]:
    return tuple(places[list(rows)].tolist())


def _bit(words: Sequence[int], bit: int) -> bool:
    return bool(words[bit >> 6] >> (bit & 63) & 1)
