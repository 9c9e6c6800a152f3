"""The operations of one part of a history as the arrays that the search reads
(wrackline.checkers.exact.search.kernel)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from wrackline.checkers.exact.search.native import Longs, Words, native


@dataclass(frozen=True, slots=True)
class Rows:
    """The operations of a part that the search must place, or may. ``ret`` None: the outcome is unknown.
    ``deduced``: whether ``ret`` is only known from what others saw."""

    key: Hashable
    places: Sequence[int]
    """In the history."""
    inv: Sequence[int]
    ret: Sequence[int | None]
    deduced: Sequence[bool]
    symbols: Sequence[int]


@dataclass(frozen=True, slots=True)
class Layout:
    """``certain`` and ``uncertain``: which operation of the history each row of ``ops`` and of ``unknowns``
    is. ``first_of_kind``: (k + 1) where each symbol begins in ``unknowns``."""

    ops: Words
    returns: Words
    unknowns: Words
    first_of_kind: Words
    slots: int
    certain: Longs
    uncertain: Longs

    @property
    def words(self) -> int:
        """Returns the number of words of the mask for slots."""
        return max(1, -(-self.slots // 64))

    @property
    def mask_words(self) -> int:
        """Returns the number of words of the mask for slots and unknowns."""
        return self.words + -(-len(self.unknowns) // 64)

    def links(self) -> Words:
        """Returns the linked list of operations: of each of ``ops`` the next and the previous, and that it
        has no place yet; the last row is both ends."""
        n = len(self.ops)
        links = np.zeros((n + 1, 3), np.int32)
        links[:, 0] = np.roll(np.arange(n + 1), -1)
        links[:, 1] = np.roll(np.arange(n + 1), 1)
        return links

    def __len__(self) -> int:
        return len(self.ops) + len(self.unknowns)


def lay_out(rows: Rows) -> Layout:
    """The arrays of these operations."""
    symbol = np.array(rows.symbols, np.int32)
    begun, ended = events(rows.inv, rows.ret, rows.deduced)
    return arrays_of(np.array(rows.places, np.int64), symbol, begun, ended)


def events(inv: Sequence[int], ret: Sequence[int | None], deduced: Sequence[bool]) -> tuple[Words, Words]:
    """The numbers of invocations and of returns in one order of both; -1 where nothing returned."""
    begins = np.array(inv, np.int64)
    known = np.array([one is not None for one in ret], bool)
    ends = np.array([one for one in ret if one is not None], np.int64)
    # Of equal times invocations come first: operations that touch are concurrent. What is deduced from
    # another operation's return comes after that return, so that the other one is said to have no place.
    late = np.zeros(len(begins) + len(ends), np.int8)
    late[len(begins) :] = 1 + np.array(deduced, bool)[known]
    event = np.empty(len(late), np.int32)
    event[np.lexsort((late, np.concatenate([begins, ends])))] = np.arange(len(late), dtype=np.int32)
    ended = np.full(len(begins), -1, np.int32)
    ended[known] = event[len(begins) :]
    return event[: len(begins)], ended


def arrays_of(where: Longs, symbol: Words, begun: Words, ended: Words) -> Layout:
    """The layout of operations whose events are numbered."""
    known = ended >= 0
    maybe = np.flatnonzero(~known)
    maybe = maybe[np.lexsort((begun[maybe], symbol[maybe]))]
    unknowns = np.stack([begun[maybe], symbol[maybe]], axis=1)
    first_of_kind = np.append(np.flatnonzero(np.diff(unknowns[:, 1], prepend=-2)), len(maybe))

    sure = np.flatnonzero(known)
    order = np.argsort(begun[sure])
    ended = ended[sure[order]]
    ops = np.zeros((len(sure), 4), np.int32)
    ops[:, 0], ops[:, 1] = begun[sure][order], symbol[sure][order]
    returns = np.zeros((len(sure), 2), np.int32)
    returns[:, 1] = np.argsort(ended)
    returns[:, 0] = ended[returns[:, 1]]
    slots = _give_slots(ops, returns)
    return Layout(
        ops, returns, unknowns, first_of_kind.astype(np.int32), slots, where[sure[order]], where[maybe]
    )


@native
def _give_slots(ops: Words, returns: Words) -> int:
    """Fill the columns of ``ops`` for slots and places in ``returns``. Returns how many slots there are: as
    many as operations were open at once."""
    free = np.empty(len(ops), np.int32)
    frees, slots, at = 0, 0, 0
    for back in range(len(returns)):
        while at < len(ops) and ops[at, 0] < returns[back, 0]:
            if frees > 0:
                frees -= 1
                ops[at, 2] = free[frees]
            else:
                ops[at, 2] = slots
                slots += 1
            at += 1
        one = returns[back, 1]
        ops[one, 3] = back
        free[frees] = ops[one, 2]
        frees += 1
    return slots
