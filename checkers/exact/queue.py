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
and at an interval of time (``disordered``, ``covered``: wrackline.checkers.engine.objects.times) at once.

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
    Contradiction,
    Ints,
    by_invocation,
    find,
    first_of_each,
    never_put,
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
    result, lives = lives_of(table)
    gets = np.flatnonzero(~table.puts & ~table.failed)
    unsure = np.sort(table.inv[gets[table.ret[gets] == NEVER]])
    left = lives.got < 0
    lives.di[left] = taken_by_unsure(lives.er[left], unsure)
    empty = gets[(table.ret[gets] != NEVER) & (table.value[gets] == NOTHING)]
    return result + _order(table, lives) + _empty(table, lives, empty)


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
    result = _unknown(table, known[at < 0]) + _twice(table, known, firsts)
    lives, early = _lives(table, puts, firsts)
    return result + early, lives


def _unknown(table: Columns, gets: Ints) -> list[Contradiction]:
    return [
        Contradiction(
            Rule.GARBAGE if len(rows) == 1 else Rule.ABORTED,
            int(table.value[rows[-1]]),
            None,
            0,
            by_invocation(table, rows),
        )
        for rows in never_put(table, gets, table.inv)
    ]


def _twice(table: Columns, gets: Ints, firsts: Ints) -> list[Contradiction]:
    others = np.setdiff1d(gets, firsts, assume_unique=True)
    seconds = first_of_each(table.value[others], others, table.inv[others])
    first = firsts[find(table.value[firsts], table.value[seconds])]
    return [
        Contradiction(Rule.TWICE, int(table.value[row]), None, 0, by_invocation(table, (row, before)))
        for row, before in zip(seconds.tolist(), first.tolist(), strict=True)
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
    result = [
        Contradiction(Rule.FUTURE, int(table.value[p]), None, 0, by_invocation(table, (int(p), int(g))))
        for p, g in zip(puts[early].tolist(), got[early].tolist(), strict=True)
    ]
    keep = ~early & ((got >= 0) | (er != NEVER))
    return Lives(puts[keep], got[keep], ei[keep], er[keep], di[keep], dr[keep]), result


def taken_by_unsure(er: Ints, unsure: Ints, before: int = 0) -> Ints:
    """When the dequeues of unknown outcome (``unsure``: their invocations, ascending) took the values that
    nobody got at the earliest; NEVER for those that are left over. ``before``: so many values went in before
    these."""
    taken = np.full(len(er), NEVER)
    first = np.argsort(er, kind="stable")[: max(0, len(unsure) - before)]
    taken[first] = unsure[before : before + len(first)]
    return taken


def _order(table: Columns, lives: Lives) -> list[Contradiction]:
    every, result = np.arange(len(lives.put)), []
    for rule, one, other, count in disordered(lives, every, every):
        culprit, against = table.value[lives.put[list(culprit_first(rule, one, other))]].tolist()
        rows = {int(column[at]) for at in (one, other) for column in (lives.put, lives.got)} - {-1}
        result.append(Contradiction(rule, culprit, against, count, by_invocation(table, rows)))
    return result


def culprit_first(rule: Rule, late: int, by: int) -> tuple[int, int]:
    """The value to blame, and the other: one that never came out, or one that overtook."""
    return (late, by) if rule is Rule.LOST else (by, late)


def disordered(lives: Lives, asked: Ints, entries: Ints) -> Iterator[tuple[Rule, int, int, int]]:
    """Yields (the rule, a value among ``asked`` that was overtaken, one among ``entries`` that overtook it,
    how many that one overtook), as rows of ``lives``. Of those that one overtook it is the first to go in."""
    late, by = overtaken(lives.er[asked], lives.di[asked], lives.ei[entries], lives.dr[entries])
    late, by = asked[late], entries[by]
    lost = lives.got[late] < 0
    for one, other in np.stack([late[lost], by[lost]], axis=1).tolist():
        yield Rule.LOST, one, other, 1
    late, by = late[~lost], by[~lost]
    order = np.argsort(lives.ei[late], kind="stable")
    culprits, first, counts = np.unique(by[order], return_index=True, return_counts=True)
    for one, other, count in np.stack([late[order[first]], culprits, counts], axis=1).tolist():
        yield Rule.OVERTAKEN, one, other, count


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


def _empty(table: Columns, lives: Lives, empty: Ints) -> list[Contradiction]:
    result = []
    for at, cover in covered(lives.er, lives.di, table.inv[empty], table.ret[empty]):
        row = int(empty[at])
        rows = [row, *lives.put[cover].tolist(), *lives.got[cover].tolist()]
        result.append(
            Contradiction(
                Rule.NOT_EMPTY,
                NOTHING,
                int(table.value[lives.put[cover[0]]]),
                len(cover),
                by_invocation(table, [one for one in rows if one >= 0]),
            )
        )
    return result


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


__all__ = ["BEFORE", "Contradiction", "Rule", "check_queue"]
