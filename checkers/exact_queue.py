"""Is a FIFO queue with unique values linearizable? Bad patterns of one or two values in numpy, O(n log n).

With a value's enqueue [ei, er] and dequeue [di, dr], the history is linearizable if and only if

* no value is dequeued twice, before its enqueue was invoked, or without an enqueue that may have happened;
* no value a is overtaken: where b was enqueued after a (ei(b) > er(a)), a's dequeue began before b's returned;
* an answer "empty" has a moment at which no value is surely in the queue, that is, between er and di of it.

Operations of unknown outcome: an enqueue that was never dequeued is left out. A dequeue may have taken any value that
nobody else got: the i-th such value by er is given to the i-th such dequeue by invocation. That is exact: what must be
gone by some moment is always the values enqueued before another moment, a beginning of that order.

(Bad patterns: Henzinger, Sezgin & Vafeiadis, CONCUR 2013; Bouajjani et al., ICALP 2015. tests/checkers holds this
module against brute force, and against Knossos where there is one.)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from checkers.columns import (
    BEFORE,
    NEVER,
    NOTHING,
    Columns,
    Ints,
    find,
    first_of_each,
    refuse_repeats,
)


class Rule(StrEnum):
    GARBAGE = "garbage"
    """A value was dequeued that nobody enqueued."""
    ABORTED = "aborted"
    """A value was dequeued whose enqueue had certainly failed."""
    TWICE = "twice"
    """A value was dequeued twice."""
    FUTURE = "future"
    """A value was dequeued before its enqueue was invoked."""
    OVERTAKEN = "overtaken"
    """A value came out before one that had gone in earlier."""
    LOST = "lost"
    """A value never came out, though one that went in later did."""
    NOT_EMPTY = "not empty"
    """The queue was said to be empty, though at every moment of the answer some value was in it."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One culprit. ``rows``: the operations that prove it, in order of invocation. Two to four, or for NOT_EMPTY
    the answer and the enqueues and dequeues of the fewest values that cover it."""

    rule: Rule
    value: int
    """Of the culprit: what came out wrongly, or never. NOTHING for an empty answer."""
    other: int | None
    """A value that was overtaken by it; for LOST, one that overtook it."""
    contradicted: int
    """How many values it overtook."""
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Lives:
    """One row per value that was surely in the queue at some time."""

    put: Ints
    """Rows."""
    got: Ints
    """Rows; -1 where nobody got it."""
    ei: Ints
    er: Ints
    di: Ints
    dr: Ints


def check_queue(table: Columns) -> list[Breach]:
    """What is wrong with a queue's history; empty if and only if it is linearizable. One breach per culprit.

    Raises RepeatedValue when two enqueues that did not fail have the same value."""
    puts = np.flatnonzero(table.puts & ~table.failed)
    puts = puts[np.argsort(table.value[puts], kind="stable")]
    refuse_repeats(table.value[puts])
    gets = np.flatnonzero(~table.puts & ~table.failed)
    unsure = np.sort(table.inv[gets[table.ret[gets] == NEVER]])
    known = gets[table.ret[gets] != NEVER]
    empty = known[table.value[known] == NOTHING]
    known = known[table.value[known] != NOTHING]
    at = find(table.value[puts], table.value[known])
    firsts = first_of_each(table.value[known], known, table.inv[known])
    found = _unknown(table, known[at < 0]) + _twice(table, known, firsts)
    lives, early = _lives(table, puts, firsts, unsure)
    return found + early + _order(table, lives) + _empty(table, lives, empty)


def _unknown(table: Columns, gets: Ints) -> list[Breach]:
    failed = np.flatnonzero(table.puts & table.failed)
    failed = first_of_each(table.value[failed], failed, table.inv[failed])
    firsts = first_of_each(table.value[gets], gets, table.inv[gets])
    found = []
    for row, at in zip(firsts.tolist(), find(table.value[failed], table.value[firsts]).tolist(), strict=True):
        rows = (row,) if at < 0 else (int(failed[at]), row)
        rule = Rule.GARBAGE if at < 0 else Rule.ABORTED
        found.append(Breach(rule, int(table.value[row]), None, 0, _sorted(table, rows)))
    return found


def _twice(table: Columns, gets: Ints, firsts: Ints) -> list[Breach]:
    others = np.setdiff1d(gets, firsts, assume_unique=True)
    seconds = first_of_each(table.value[others], others, table.inv[others])
    by_value = find(table.value[firsts], table.value[seconds])
    return [
        Breach(Rule.TWICE, int(table.value[row]), None, 0, _sorted(table, (int(firsts[at]), row)))
        for row, at in zip(seconds.tolist(), by_value.tolist(), strict=True)
    ]


def _lives(table: Columns, puts: Ints, firsts: Ints, unsure: Ints) -> tuple[_Lives, list[Breach]]:
    """``puts`` and ``firsts`` are sorted by value; ``unsure``: invocations of dequeues of unknown outcome."""
    at = find(table.value[firsts], table.value[puts])
    got = np.full(len(puts), -1, dtype=np.int64)
    got[at >= 0] = firsts[at[at >= 0]]
    di = np.where(got >= 0, table.inv[got], NEVER)
    dr = np.where(got >= 0, table.ret[got], NEVER)
    ei, er = table.inv[puts], table.ret[puts]
    early = dr < ei
    found = [
        Breach(Rule.FUTURE, int(table.value[p]), None, 0, _sorted(table, (int(p), int(g))))
        for p, g in zip(puts[early].tolist(), got[early].tolist(), strict=True)
    ]
    keep = ~early & ((got >= 0) | (er != NEVER))
    lives = _Lives(puts[keep], got[keep], ei[keep], er[keep], di[keep], dr[keep])
    left = np.flatnonzero(lives.got < 0)
    left = left[np.argsort(lives.er[left], kind="stable")][: len(unsure)]
    lives.di[left] = unsure[: len(left)]
    return lives, found


def _order(table: Columns, lives: _Lives) -> list[Breach]:
    """Nobody may return with b before a's dequeue began, where b went in after a was in."""
    if not len(lives.ei):
        return []
    by_start = np.argsort(lives.ei, kind="stable")
    returned = lives.dr[by_start][::-1]
    soonest = np.minimum.accumulate(returned)
    holder = np.maximum.accumulate(np.where(returned == soonest, np.arange(len(by_start)), 0))
    soonest, holder = soonest[::-1], (len(by_start) - 1 - holder)[::-1]
    after = np.searchsorted(lives.ei[by_start], lives.er, side="right")
    there = after < len(by_start)
    deadline = np.full(len(lives.ei), NEVER)
    deadline[there] = soonest[after[there]]
    late = np.flatnonzero(lives.di > deadline)
    by = by_start[holder[after[late]]]
    lost = lives.got[late] < 0
    return _lost(table, lives, late[lost], by[lost]) + _overtaken(table, lives, late[~lost], by[~lost])


def _lost(table: Columns, lives: _Lives, late: Ints, by: Ints) -> list[Breach]:
    found = []
    for a, b in zip(late.tolist(), by.tolist(), strict=True):
        rows = (int(lives.put[a]), int(lives.put[b]), int(lives.got[b]))
        values = int(table.value[lives.put[a]]), int(table.value[lives.put[b]])
        found.append(Breach(Rule.LOST, *values, 1, _sorted(table, rows)))
    return found


def _overtaken(table: Columns, lives: _Lives, late: Ints, by: Ints) -> list[Breach]:
    culprits, first, counts = np.unique(by, return_index=True, return_counts=True)
    found = []
    for b, a, count in zip(culprits.tolist(), late[first].tolist(), counts.tolist(), strict=True):
        rows = (int(lives.put[a]), int(lives.got[a]), int(lives.put[b]), int(lives.got[b]))
        values = int(table.value[lives.put[b]]), int(table.value[lives.put[a]])
        found.append(Breach(Rule.OVERTAKEN, *values, count, _sorted(table, rows)))
    return found


def _empty(table: Columns, lives: _Lives, empty: Ints) -> list[Breach]:
    """An answer is wrong when the times at which values were surely inside cover it without a gap."""
    inside = np.flatnonzero(lives.er < lives.di)
    inside = inside[np.argsort(lives.er[inside], kind="stable")]
    if not len(inside) or not len(empty):
        return []
    start, end = lives.er[inside], lives.di[inside]
    reach = np.maximum.accumulate(end)
    # Open intervals: where one ends and the next begins at one moment, that moment is free.
    begins = np.append(True, start[1:] >= reach[:-1])
    blocks = np.flatnonzero(begins)
    until = reach[np.append(blocks[1:], len(inside)) - 1]
    at = np.searchsorted(start[blocks], table.inv[empty], side="left") - 1
    bad = (at >= 0) & (until[np.maximum(at, 0)] > table.ret[empty])
    found = []
    for row in empty[bad].tolist():
        cover = _cover(start, end, int(table.inv[row]), int(table.ret[row]))
        rows = [row, *lives.put[inside[cover]].tolist(), *lives.got[inside[cover]].tolist()]
        found.append(
            Breach(
                Rule.NOT_EMPTY,
                NOTHING,
                int(table.value[lives.put[inside[cover[0]]]]),
                len(cover),
                _sorted(table, tuple(one for one in rows if one >= 0)),
            )
        )
    return found


def _cover(start: Ints, end: Ints, inv: int, ret: int) -> list[int]:
    """The fewest of the open intervals (sorted by start) that cover [inv, ret] together; they do."""
    chosen: list[int] = []
    reached, at, best = inv, 0, -1
    while not chosen or reached <= ret:
        limit = np.searchsorted(start, reached, side="left")
        if limit > at:
            furthest = at + int(np.argmax(end[at:limit]))
            best = furthest if best < 0 or end[furthest] > end[best] else best
            at = int(limit)
        chosen.append(best)
        reached = int(end[best])
    return chosen


def _sorted(table: Columns, rows: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(rows, key=lambda row: (int(table.inv[row]), row)))


__all__ = ["BEFORE", "Breach", "Rule", "check_queue"]
