"""Is a FIFO queue with unique values linearizable? Bad patterns of one or two values in numpy, O(n log n).

With a value's enqueue [ei, er] and dequeue [di, dr], the history is linearizable if and only if

* no value is dequeued twice, before its enqueue was invoked, or without an enqueue that may have happened;
* no value a is overtaken: where b was enqueued after a (ei(b) > er(a)), a's dequeue began before b's
  returned;
* an answer "empty" has a moment at which no value is surely in the queue, that is, between er and di of it.

Operations of unknown outcome: an enqueue that was never dequeued is left out. A dequeue may have taken any
value that nobody else got: the i-th such value by er is given to the i-th such dequeue by invocation. That is
exact: what must be gone by some moment is always the values enqueued before another moment, a beginning of
that order.

In the judge the same functions look at some values (``lives_of``: wrackline.checkers.engine.objects.values)
and at an interval of time (``overtaken``, ``covered``: wrackline.checkers.engine.objects.times) at once.

(Bad patterns: Henzinger, Sezgin & Vafeiadis, CONCUR 2013; Bouajjani et al., ICALP 2015. tests/checkers holds
this module against brute force, and against Knossos where there is one.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from wrackline.checkers.exact.operations import (
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
class Contradiction:
    """One culprit. ``rows``: the operations that prove it, in order of invocation. Two to four, or for
    NOT_EMPTY the answer and the enqueues and dequeues of the fewest values that cover it."""

    rule: Rule
    value: int
    """Of the culprit: what came out wrongly, or never. NOTHING for an empty answer."""
    other: int | None
    """A value that was overtaken by it; for LOST, one that overtook it."""
    contradicted: int
    """How many values it overtook."""
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lives:
    """One row per value that was surely in the queue at some time."""

    put: Ints
    """Rows."""
    got: Ints
    """Rows; -1 where nobody got it."""
    ei: Ints
    er: Ints
    di: Ints
    dr: Ints


def check_queue(table: Columns) -> list[Contradiction]:
    """Returns the contradictions in a queue's history; there are none if and only if it is linearizable.
    One contradiction per culprit.

    Raises RepeatedValue when two enqueues that did not fail have the same value."""
    found, lives = lives_of(table)
    gets = np.flatnonzero(~table.puts & ~table.failed)
    unsure = np.sort(table.inv[gets[table.ret[gets] == NEVER]])
    left = lives.got < 0
    lives.di[left] = taken_by_unsure(lives.er[left], unsure)
    empty = gets[(table.ret[gets] != NEVER) & (table.value[gets] == NOTHING)]
    return found + _order(table, lives) + _empty(table, lives, empty)


def lives_of(table: Columns) -> tuple[list[Contradiction], Lives]:
    """Returns (the contradictions of each value by itself, when each value was in the queue). Needs the
    operations of each value together, but not all values; empty answers and dequeues of unknown outcome
    say nothing here. Raises RepeatedValue."""
    puts = np.flatnonzero(table.puts & ~table.failed)
    puts = puts[np.argsort(table.value[puts], kind="stable")]
    refuse_repeats(table.value[puts])
    known = np.flatnonzero(~table.puts & ~table.failed & (table.ret != NEVER) & (table.value != NOTHING))
    at = find(table.value[puts], table.value[known])
    firsts = first_of_each(table.value[known], known, table.inv[known])
    found = _unknown(table, known[at < 0]) + _twice(table, known, firsts)
    lives, early = _lives(table, puts, firsts)
    return found + early, lives


def _unknown(table: Columns, gets: Ints) -> list[Contradiction]:
    failed = np.flatnonzero(table.puts & table.failed)
    failed = first_of_each(table.value[failed], failed, table.inv[failed])
    firsts = first_of_each(table.value[gets], gets, table.inv[gets])
    found = []
    for row, at in zip(firsts.tolist(), find(table.value[failed], table.value[firsts]).tolist(), strict=True):
        rows = (row,) if at < 0 else (int(failed[at]), row)
        rule = Rule.GARBAGE if at < 0 else Rule.ABORTED
        found.append(Contradiction(rule, int(table.value[row]), None, 0, _sorted(table, rows)))
    return found


def _twice(table: Columns, gets: Ints, firsts: Ints) -> list[Contradiction]:
    others = np.setdiff1d(gets, firsts, assume_unique=True)
    seconds = first_of_each(table.value[others], others, table.inv[others])
    by_value = find(table.value[firsts], table.value[seconds])
    return [
        Contradiction(Rule.TWICE, int(table.value[row]), None, 0, _sorted(table, (int(firsts[at]), row)))
        for row, at in zip(seconds.tolist(), by_value.tolist(), strict=True)
    ]


def _lives(table: Columns, puts: Ints, firsts: Ints) -> tuple[Lives, list[Contradiction]]:
    """``puts`` and ``firsts`` are sorted by value."""
    at = find(table.value[firsts], table.value[puts])
    got = np.full(len(puts), -1, dtype=np.int64)
    got[at >= 0] = firsts[at[at >= 0]]
    di = np.where(got >= 0, table.inv[got], NEVER)
    dr = np.where(got >= 0, table.ret[got], NEVER)
    ei, er = table.inv[puts], table.ret[puts]
    early = dr < ei
    found = [
        Contradiction(Rule.FUTURE, int(table.value[p]), None, 0, _sorted(table, (int(p), int(g))))
        for p, g in zip(puts[early].tolist(), got[early].tolist(), strict=True)
    ]
    keep = ~early & ((got >= 0) | (er != NEVER))
    return Lives(puts[keep], got[keep], ei[keep], er[keep], di[keep], dr[keep]), found


def taken_by_unsure(er: Ints, unsure: Ints, before: int = 0) -> Ints:
    """When the dequeues of unknown outcome (``unsure``: their invocations, ascending) took the values that
    nobody got at the earliest; NEVER for those that are left over. ``before``: so many values went in before
    these."""
    taken = np.full(len(er), NEVER)
    first = np.argsort(er, kind="stable")[: max(0, len(unsure) - before)]
    taken[first] = unsure[before : before + len(first)]
    return taken


def _order(table: Columns, lives: Lives) -> list[Contradiction]:
    late, by = overtaken(lives.er, lives.di, lives.ei, lives.dr)
    lost = lives.got[late] < 0
    return _lost(table, lives, late[lost], by[lost]) + _overtaken(table, lives, late[~lost], by[~lost])


def overtaken(er: Ints, di: Ints, ei: Ints, dr: Ints) -> tuple[Ints, Ints]:
    """Nobody may return with b before a's dequeue began, where b went in after a was in: (the a that are
    wrong, rows of ``er`` and ``di``; for each the b that returned first, a row of ``ei`` and ``dr``).

    All that must be known of values that go in later still is the one that comes out first: put among the
    others it stands for all of them."""
    if not len(er) or not len(ei):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    by_start = np.argsort(ei, kind="stable")
    returned = dr[by_start][::-1]
    soonest = np.minimum.accumulate(returned)
    holder = np.maximum.accumulate(np.where(returned == soonest, np.arange(len(by_start)), 0))
    soonest, holder = soonest[::-1], (len(by_start) - 1 - holder)[::-1]
    after = np.searchsorted(ei[by_start], er, side="right")
    there = after < len(by_start)
    deadline = np.full(len(er), NEVER)
    deadline[there] = soonest[after[there]]
    late = np.flatnonzero(di > deadline)
    return late, by_start[holder[after[late]]]


def first_overtaken(late: Ints, by: Ints, ei: Ints) -> tuple[Ints, Ints, Ints]:
    """Returns (the values that overtook, for each of them the value that it overtook and that went in
    first, how many it overtook); ``ei``: of each of ``late``."""
    order = np.argsort(ei, kind="stable")
    culprits, first, counts = np.unique(by[order], return_index=True, return_counts=True)
    return culprits, late[order[first]], counts


def _lost(table: Columns, lives: Lives, late: Ints, by: Ints) -> list[Contradiction]:
    found = []
    for a, b in zip(late.tolist(), by.tolist(), strict=True):
        rows = (int(lives.put[a]), int(lives.put[b]), int(lives.got[b]))
        values = int(table.value[lives.put[a]]), int(table.value[lives.put[b]])
        found.append(Contradiction(Rule.LOST, *values, 1, _sorted(table, rows)))
    return found


def _overtaken(table: Columns, lives: Lives, late: Ints, by: Ints) -> list[Contradiction]:
    culprits, first, counts = first_overtaken(late, by, lives.ei[late])
    found = []
    for b, a, count in zip(culprits.tolist(), first.tolist(), counts.tolist(), strict=True):
        rows = (int(lives.put[a]), int(lives.got[a]), int(lives.put[b]), int(lives.got[b]))
        values = int(table.value[lives.put[b]]), int(table.value[lives.put[a]])
        found.append(Contradiction(Rule.OVERTAKEN, *values, count, _sorted(table, rows)))
    return found


def _empty(table: Columns, lives: Lives, empty: Ints) -> list[Contradiction]:
    found = []
    for at, cover in covered(lives.er, lives.di, table.inv[empty], table.ret[empty]):
        row = int(empty[at])
        rows = [row, *lives.put[cover].tolist(), *lives.got[cover].tolist()]
        found.append(
            Contradiction(
                Rule.NOT_EMPTY,
                NOTHING,
                int(table.value[lives.put[cover[0]]]),
                len(cover),
                _sorted(table, tuple(one for one in rows if one >= 0)),
            )
        )
    return found


def covered(er: Ints, di: Ints, inv: Ints, ret: Ints) -> Iterator[tuple[int, Ints]]:
    """An answer "empty" (inv, ret) is wrong when the times (er, di) in which values were surely inside cover
    it without a gap: (row of the answer, rows of the fewest values that do).

    All that must be known of times that begin earlier is the one that lasts longest."""
    inside = np.flatnonzero(er < di)
    inside = inside[np.argsort(er[inside], kind="stable")]
    if not len(inside) or not len(inv):
        return
    start, end = er[inside], di[inside]
    reach = np.maximum.accumulate(end)
    longest = np.maximum.accumulate(np.where(end == reach, np.arange(len(end)), 0))
    # Open intervals: where one ends and the next begins at one moment, that moment is free.
    begins = np.append(True, start[1:] >= reach[:-1])
    blocks = np.flatnonzero(begins)
    until = reach[np.append(blocks[1:], len(inside)) - 1]
    at = np.searchsorted(start[blocks], inv, side="left") - 1
    bad = (at >= 0) & (until[np.maximum(at, 0)] > ret)
    for row in np.flatnonzero(bad).tolist():
        cover: list[int] = []
        reached = int(inv[row])
        while not cover or reached <= ret[row]:
            cover.append(int(longest[np.searchsorted(start, reached, side="left") - 1]))
            reached = int(end[cover[-1]])
        yield row, inside[cover]


def _sorted(table: Columns, rows: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(rows, key=lambda row: (int(table.inv[row]), row)))


__all__ = ["BEFORE", "Contradiction", "Rule", "check_queue"]
