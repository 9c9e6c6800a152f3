"""Decides a FIFO queue whose values repeat: feeds its native search
(wrackline.checkers.exact.search.queue_kernel), and says which operation has no place."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from wrackline.checkers.exact.judgement import Answer, End, Part
from wrackline.checkers.exact.search.kernel import Said
from wrackline.checkers.exact.search.layout import Layout, arrays_of, events
from wrackline.checkers.exact.search.native import Longs, Words
from wrackline.checkers.exact.search.part import PROGRESS_S, STEP_BYTES, Limits, Progress, Search, Seen
from wrackline.checkers.exact.search.queue_kernel import ANY, GET, NEVER, PUT, STACK, Q, run
from wrackline.checkers.models.protocol import Operation, Outcome, frozen
from wrackline.checkers.models.queues import FifoQueue, found_nothing

_STEPS = 20_000
"""Most configurations between two looks at the clock."""
_ASK = 2
"""Kind of an answer "empty", beside PUT and GET."""


class _Table:
    """The operations as columns; events are numbered in one order."""

    def __init__(self, members: Sequence[tuple[int, Operation]]) -> None:
        ids: dict[Hashable, int] = {}
        kinds, values, rets = [], [], []
        for _, one in members:
            known = one.outcome is Outcome.OK
            rets.append(one.ret if known else None)
            if found_nothing(one):
                kinds.append(_ASK)
                values.append(ANY)
            elif one.f == "enqueue":
                kinds.append(PUT)
                values.append(ids.setdefault(frozen(one.argument), len(ids)))
            else:
                kinds.append(GET)
                values.append(ids.setdefault(frozen(one.result), len(ids)) if known else ANY)
        self.kind, self.value = np.array(kinds, np.int8), np.array(values, np.int32)
        self.begun, self.ended = events([one.inv for _, one in members], rets, [False] * len(members))
        self.held: list[Hashable] = list(ids)
        """The value of each number."""
        self.returns = np.flatnonzero(self.ended >= 0)
        self.returns = self.returns[np.argsort(self.ended[self.returns])]


class _Question:
    """Is there an order of the operations of which the first ``certain`` to return have a place? What returns
    later may have one."""

    def __init__(self, table: _Table, certain: int) -> None:
        self.table, self.certain = table, certain
        last = table.ended[table.returns[certain - 1]] if certain else -1
        there = table.begun < last
        ended = np.where(table.ended <= last, table.ended, -1)
        sure = table.value[(table.kind == GET) & (ended >= 0)]
        needed = np.isin(table.value, sure)
        rows = [
            np.flatnonzero(there & (table.kind == PUT) & ((ended >= 0) | needed)),
            np.flatnonzero(there & (table.kind == GET)),
        ]
        many = len(table.held)
        self._more_came_out = np.bincount(sure, minlength=many) > np.bincount(
            table.value[rows[PUT]], minlength=many
        )
        self.asks = np.flatnonzero(there & (table.kind == _ASK) & (ended >= 0))
        self.ended = ended
        self.sides = [arrays_of(some, table.value[some], table.begun[some], ended[some]) for some in rows]
        self._kinds = [_kinds(side) for side in self.sides]
        self._kind_of = [_kind_of(side, len(table.held)) for side in self.sides]
        puts, gets = self.sides
        self._pairs = min(len(puts), len(gets))
        self._best = np.zeros((self._pairs + 1, 2), np.int32)
        self._regs: Longs = np.zeros(Q.SIZE, np.int64)
        self._regs[Q.LATEST] = self._regs[Q.QUIET] = -1
        words = [puts.words, gets.words, puts.mask_words - puts.words, gets.mask_words - gets.words]
        self._words = words[0] + words[1]
        self.seen = Seen(1 << 11, sum(words) + 2, self._words)
        self._fixed: tuple[Any, ...] = (
            *_arrays(puts, self._kinds[PUT], self._kind_of[PUT]),
            *_arrays(gets, self._kinds[GET], self._kind_of[GET]),
            *self._empty(),
            np.zeros(sum(words), np.int64),
            np.append(0, np.cumsum(words)).astype(np.int32),
            np.zeros((self._pairs + 1, STACK), np.int32),
            self._best,
        )

    @property
    def bytes(self) -> int:
        fixed = sum(int(one.nbytes) for one in self._fixed)
        return self.seen.bytes(int(self._regs[Q.SEEN])) + fixed

    @property
    def tried(self) -> int:
        return int(self._regs[Q.TRIED])

    @property
    def placed(self) -> int:
        """Most pairs that were found to have a place."""
        return max(int(self._regs[Q.BEST]), int(self._regs[Q.DEPTH]))

    def _empty(self) -> tuple[Longs, Longs]:
        ret, inv = self.ended[self.asks].astype(np.int64), self.table.begun[self.asks].astype(np.int64)
        order = np.argsort(ret)
        empty = np.stack([ret[order], np.maximum.accumulate(inv[order])], axis=1)
        return empty, np.sort(inv).reshape(-1, 1)

    def go(self, until: float, limits: Limits) -> Said:
        """VALID, INVALID, PAUSED: the time was up, or FULL: the memory was used up."""
        if self._more_came_out.any():
            return Said.INVALID
        while True:
            self._regs[Q.BUDGET] = max(1, min(_STEPS, STEP_BYTES // self.seen.per_row))
            table = (self.seen.heads, self.seen.chain, self.seen.rows)
            said = Said(run(*(self._regs, *self._fixed, *table)))
            if said in (Said.VALID, Said.INVALID):
                return said
            count = int(self._regs[Q.SEEN])
            if said is Said.FULL and not self.seen.grow(count, limits.memory_bytes, limits.room()):
                return said
            if said is Said.PAUSED and not self.seen.spread(count, limits.room()):
                return Said.FULL
            now = time.monotonic()
            if limits.meter.exceeds(limits.memory_bytes, now):
                return Said.FULL
            if now > until:
                return Said.PAUSED

    def order(self, *, whole: bool) -> list[int]:
        """The longest one that was found, as rows of the table. ``whole``: with what comes behind it."""
        begun, ended = self.table.begun.tolist(), self.ended.tolist()
        pairs = list(self._placed())
        placed = {row for pair in pairs for row in pair}
        left = [row for row in self.sides[PUT].certain.tolist() if row not in placed]
        asks = self._moments(pairs, left) if whole else {}
        result: list[tuple[int, int, int]] = []
        put_at = get_at = -1
        for at, pair in enumerate([*pairs, ()]):
            # Ranks of one moment: what is before a pair, the enqueue, the dequeue.
            for moment, row in asks.get(at, ()):
                put_at = max(put_at, moment)
                result.append((moment, 3 * at, row))
            if pair:
                put_at = max(put_at, begun[pair[PUT]])
                get_at = max(get_at, put_at, begun[pair[GET]])
                result += [(put_at, 3 * at + 1, pair[PUT]), (get_at, 3 * at + 2, pair[GET])]
        if whole:
            last = 3 * len(pairs) + 3
            result += [(max(put_at, begun[row]), last + begun[row], row) for row in left if ended[row] >= 0]
        return [row for *_, row in sorted(result)]

    def _placed(self) -> Iterator[tuple[int, int]]:
        used = [np.zeros(len(kinds), np.int64) for kinds in self._kinds]
        for pair in self._best[: self._regs[Q.BEST]].tolist():
            rows = [0, 0]
            for at, side in enumerate(self.sides):
                kind = pair[at] - len(side.ops)
                if kind < 0:
                    rows[at] = int(side.certain[pair[at]])
                else:
                    rows[at] = int(side.uncertain[self._kinds[at][kind, 0] + used[at][kind]])
                    used[at][kind] += 1
            yield rows[PUT], rows[GET]

    def _moments(
        self, pairs: Sequence[tuple[int, int]], left: Sequence[int]
    ) -> dict[int, list[tuple[int, int]]]:
        """The answers "empty" that stand before a pair, each with its moment."""
        begun, ended = self.table.begun, np.where(self.ended >= 0, self.ended, NEVER)
        rows = np.array(pairs, np.int64).reshape(-1, 2)
        latest = np.append(-1, np.maximum.accumulate(begun[rows].max(axis=1, initial=-1)))
        none_later = min((int(ended[row]) for row in left), default=NEVER)
        ends = np.append(ended[rows].min(axis=1, initial=NEVER), none_later)
        soonest = np.minimum.accumulate(ends[::-1])[::-1]
        result: dict[int, list[tuple[int, int]]] = {}
        for row in self.asks.tolist():
            moment = np.maximum(latest, begun[row])
            at = int(np.argmax(moment <= np.minimum(soonest, ended[row])))
            result.setdefault(at, []).append((int(moment[at]), row))
        return result


def _kinds(side: Layout) -> Words:
    kinds = np.zeros((len(side.first_of_kind), 2), np.int32)
    kinds[:, 0] = side.first_of_kind
    return kinds


def _kind_of(side: Layout, values: int) -> Words:
    kind_of = np.full(values + 1, -1, np.int32)
    kind_of[side.unknowns[side.first_of_kind[:-1], 1]] = np.arange(len(side.first_of_kind) - 1)
    return kind_of


def _arrays(side: Layout, kinds: Words, kind_of: Words) -> tuple[Words, ...]:
    return side.ops, side.returns, side.links(), side.unknowns, kinds, kind_of


class QueueSearch(Search):
    """Goes through the queue of a FIFO queue instead of time."""

    def __init__(
        self, key: Hashable, members: Sequence[tuple[int, Operation]], model: FifoQueue, limits: Limits
    ) -> None:
        super().__init__(limits)
        self._key, self._members, self._model = key, members, model
        self._table = _Table(members)
        self._question = _Question(self._table, len(self._table.returns))
        self._right: _Question | None = None
        """The longest beginning that was found to have an order."""
        self._wrong = 0
        """So many to return are known to have none; 0 as long as none is."""
        self._tried = 0

    @property
    def bytes(self) -> int:
        return self._question.bytes

    def _search(self, until: float, progress: Progress) -> tuple[Answer | None, str]:
        show_at = time.monotonic() + PROGRESS_S
        answer, why = None, f"no answer within {self._limits.deadline_s:g} s"
        while answer is None and time.monotonic() <= until:
            said = self._question.go(min(until, show_at), self._limits)
            if said is Said.FULL:
                why = self._limits.used_up
            answer = self._answer(said)
            if time.monotonic() > show_at:
                show_at = time.monotonic() + PROGRESS_S
                progress(self._so_far())
        return answer, why

    def _answer(self, said: Said) -> Answer | None:
        """Returns the answer, or None as long as there is more to ask. Of a history that has no order it
        is asked, by halves, which operation is the first to return without a place."""
        if said is Said.PAUSED:
            return None
        if said is Said.FULL:
            return Answer.INVALID if self._wrong else Answer.UNKNOWN
        if said is Said.INVALID:
            self._wrong = self._question.certain
        elif self._wrong:
            self._right = self._question
        else:
            return Answer.VALID
        right = self._right.certain if self._right else 0
        if self._wrong == right + 1:
            return Answer.INVALID
        self._tried += self._question.tried
        self._question = _Question(self._table, (right + self._wrong) // 2)
        return None

    def _so_far(self) -> str:
        some, every = self._question.placed, int(np.sum(self._table.kind == GET))
        tried = self._tried + self._question.tried
        return f"{some:,} of {every:,} values that came out have a place, {tried:,} configurations were tried"

    def _part(self, answer: Answer | None, why: str) -> Part:
        # Where a limit keeps the first operation without a place from being found, the one that is known.
        answer = answer or (Answer.INVALID if self._wrong else Answer.UNKNOWN)
        best = self._right if answer is Answer.INVALID else self._question
        rows = best.order(whole=answer is not Answer.UNKNOWN) if best else []
        held = self._held_after(rows)
        stuck, ends = None, tuple[End, ...]()
        if answer is Answer.INVALID:
            stuck = int(self._table.returns[self._wrong - 1])
            rows, ends = self._stuck(stuck, rows, held)
        return Part(
            key=self._key,
            answer=answer,
            operations=len(self._members),
            why=f"{why}: {self._so_far()}" if answer is Answer.UNKNOWN else "",
            order=self._places(rows),
            state=self._model.describe_state(tuple(held)),
            stuck=self._members[stuck][0] if stuck is not None else None,
            ends=ends,
            ends_found=len(ends),
            configurations=self._tried + self._question.tried,
            seconds=self._spent_s,
        )

    def _places(self, rows: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._members[row][0] for row in rows)

    def _held_after(self, rows: Sequence[int]) -> deque[Hashable]:
        held: deque[Hashable] = deque()
        for row in rows:
            self._take_place(row, held)
        return held

    def _take_place(self, row: int, held: deque[Hashable]) -> bool:
        """Gives the operation its place if it can be next; tells whether it can."""
        kind, value = int(self._table.kind[row]), int(self._table.value[row])
        if kind == PUT:
            held.append(self._table.held[value])
        elif kind == _ASK:
            return not held
        elif not held or (value != ANY and held[0] != self._table.held[value]):
            return False
        else:
            held.popleft()
        return True

    def _stuck(
        self, stuck: int, rows: Sequence[int], held: deque[Hashable]
    ) -> tuple[list[int], tuple[End, ...]]:
        """The order with what can be next of what is open when ``stuck`` returns, and where it ends."""
        table = self._table
        begun, ended = table.begun, table.ended
        is_open = (begun < ended[stuck]) & ((ended >= ended[stuck]) | (ended < 0))
        order, waiting = list(rows), set(np.flatnonzero(is_open & (ended >= 0)).tolist()) - set(rows)
        while (following := next((row for row in sorted(waiting) if self._take_place(row, held)), -1)) >= 0:
            order.append(following)
            waiting.remove(following)
        placed = [row for row in order if is_open[row]]
        first = sorted(waiting, key=lambda row: (row != stuck, row))
        state = tuple(held)
        end = End(state, self._model.describe_state(state), self._places(placed), self._places(first))
        return order, (end,)
