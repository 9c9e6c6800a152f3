"""Operations on one object as numpy columns: what the exact checks of wrackline.checkers.exact.register and
wrackline.checkers.exact.queue read.

Time is a position in one total order of events (the history's ``index``) or a clock that all clients share.
An operation is the closed interval [inv, ret]: equal stamps mean that two operations overlap. Stamps of
clocks that are not the same must be widened by their error before they come here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NEVER = int(np.iinfo(np.int64).max)
"""``ret`` of an operation of unknown outcome: it may take effect at any time after its invocation, or
never."""
BEFORE = int(np.iinfo(np.int64).min)
"""When the initial value was written."""
NOTHING = -3
"""``value`` of a read that found nothing written yet, and of a dequeue that found the queue empty (below the
codes for payloads that are no values)."""


class RepeatedValue(ValueError):
    """A value was written twice: these checks do not apply (the problem is then NP-complete), a search
    does."""

    def __init__(self, value: int, others: int) -> None:
        more = f" (as were {others} others)" if others else ""
        super().__init__(f"value {value} was put more than once{more}: only a search can decide this history")
        self.value = value
        self.others = others


@dataclass(frozen=True, slots=True)
class Columns:
    """One row per operation. All columns have the same length; rows need no order.

    ``puts``: a write or an enqueue (else a read or a dequeue). ``value``: what was put or got; of a get of
    unknown outcome it means nothing. ``failed``: certainly did not happen."""

    puts: Flags
    value: Ints
    inv: Ints
    ret: Ints
    failed: Flags

    def __len__(self) -> int:
        return len(self.value)

    def rows(self, wanted: Sequence[int] | Ints) -> Columns:
        """Returns only these rows, in this order."""
        at = np.asarray(wanted, dtype=np.int64)
        return Columns(self.puts[at], self.value[at], self.inv[at], self.ret[at], self.failed[at])


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One culprit. ``rows``: the operations that prove it, in order of invocation: at most six of a register,
    two to four of a queue, or for its rule NOT_EMPTY the answer and the enqueues and dequeues of the fewest
    values that cover it."""

    rule: StrEnum
    """A ``Rule`` of wrackline.checkers.exact.register or of wrackline.checkers.exact.queue."""
    value: int
    """Of the culprit: what a queue gave wrongly, or never, NOTHING for an empty answer; of a register's zones
    the value whose zone reaches over the other's."""
    other: int | None
    """One value that it contradicts; for a queue's rule LOST, one that overtook it."""
    contradicted: int
    """How many values it contradicts (0 for the rules about one value)."""
    rows: tuple[int, ...]


def columns(rows: Iterable[tuple[bool, int, int, int] | tuple[bool, int, int, int, bool]]) -> Columns:
    """Makes columns from tuples (puts, value, inv, ret[, failed])."""
    table = np.array([(*row, False)[:5] for row in rows], dtype=np.int64).reshape(-1, 5)
    return Columns(table[:, 0] != 0, table[:, 1], table[:, 2], table[:, 3], table[:, 4] != 0)


def refuse_repeats(values: Ints) -> None:
    """Raises RepeatedValue."""
    ordered = np.sort(values)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(again):
        raise RepeatedValue(int(again[0]), len(np.unique(again)) - 1)


def find(keys: Ints, wanted: Ints) -> Ints:
    """Returns for each of ``wanted`` its position in ``keys`` (ascending, distinct); -1 where it is not
    there."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)


def by_invocation(table: Columns, rows: Iterable[int]) -> tuple[int, ...]:
    """The rows in the order of their invocations."""
    return tuple(sorted(rows, key=lambda row: (int(table.inv[row]), row)))


def never_put(table: Columns, gets: Ints, order: Ints) -> list[tuple[int, ...]]:
    """The rows that prove each value among these gets, which nobody put: a put that failed, if there is one,
    and the get that comes first by ``order``."""
    failed = np.flatnonzero(table.puts & table.failed)
    failed = first_of_each(table.value[failed], failed, table.inv[failed])
    firsts = first_of_each(table.value[gets], gets, order[gets])
    puts = find(table.value[failed], table.value[firsts]).tolist()
    return [
        (row,) if at < 0 else (int(failed[at]), row) for row, at in zip(firsts.tolist(), puts, strict=True)
    ]


def first_of_each(keys: Ints, rows: Ints, order: Ints) -> Ints:
    """Returns for each distinct key the row that comes first by ``order``; sorted by key."""
    by = np.lexsort((order, keys))
    first = np.ones(len(by), dtype=bool)
    first[1:] = keys[by][1:] != keys[by][:-1]
    return np.asarray(rows[by][first], dtype=np.int64)
