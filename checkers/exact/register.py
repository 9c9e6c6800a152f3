"""Is a read/write register with unique writes linearizable? Gibbons & Korach's zones in numpy, O(n log n).

A value's *cluster* is its write and the reads that returned it; f is the earliest return in it, s the latest
invocation. Where f < s the register held the value throughout [f, s]: a *forward* zone. Else the whole
cluster fits at any one point of its *backward* zone [s, f]. The history is linearizable if and only if no two
forward zones overlap, no backward zone lies strictly inside a forward one, and every value read was written,
by a write that did not fail and was invoked before the read returned. (Gibbons & Korach, "Testing Shared
Memories", SIAM J. Comput. 26(4), 1997.)

Hence a history is wrong only where two values, or a read and its write, are wrong by themselves: a witness
has at most six operations. In the judge the same functions look at some values (``clusters_of``:
wrackline.checkers.engine.objects.values) and at an interval of time (``overlaps``:
wrackline.checkers.engine.objects.times) at once.
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
    Flags,
    Ints,
    by_invocation,
    find,
    first_of_each,
    never_put,
    refuse_repeats,
)


class Rule(StrEnum):
    GARBAGE = "garbage"
    """A value was read that nobody wrote."""
    ABORTED = "aborted"
    """A value was read whose write had certainly failed."""
    FUTURE = "future"
    """A read returned a value before the write of it was invoked."""
    TWO_AT_ONCE = "two at once"
    """The register must have held two values at one time."""
    INSIDE = "inside"
    """A value came and went while the register must have held another all the time."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """One row per value that was held; ``first`` and ``last`` are the rows of the earliest return and the
    latest invocation, ``write`` that of the write (-1: the initial value's)."""

    value: Ints
    write: Ints
    first: Ints
    last: Ints
    f: Ints
    s: Ints

    def witness(self, table: Columns, *which: int) -> tuple[int, ...]:
        rows = {int(column[at]) for at in which for column in (self.write, self.first, self.last)} - {-1}
        return by_invocation(table, rows)


def check_register(table: Columns, *, initial: int = NOTHING) -> list[Contradiction]:
    """Returns the contradictions in a register's history; there are none if and only if it is
    linearizable. One contradiction per culprit.

    Raises RepeatedValue when two writes that did not fail have the same value, or one has the initial
    value."""
    result, clusters = clusters_of(table, initial=initial)
    return result + _zones(table, clusters)


def clusters_of(table: Columns, *, initial: int = NOTHING) -> tuple[list[Contradiction], Clusters]:
    """Returns (the contradictions of each value by itself, what is known of each value). Needs the
    operations of each value together, but not all values. Raises RepeatedValue."""
    writes = np.flatnonzero(table.puts & ~table.failed)
    writes = writes[np.argsort(table.value[writes], kind="stable")]
    refuse_repeats(np.append(table.value[writes], initial))
    reads = np.flatnonzero(~table.puts & ~table.failed & (table.ret != NEVER))
    at = find(table.value[writes], table.value[reads])
    is_initial = table.value[reads] == initial
    unwritten = (at < 0) & ~is_initial
    early = np.zeros(len(reads), dtype=bool)
    early[at >= 0] = table.ret[reads[at >= 0]] < table.inv[writes[at[at >= 0]]]
    result = _unwritten(table, reads[unwritten]) + _future(table, reads[early], writes[at[early]])
    clusters = _clusters(table, writes, reads[~unwritten & ~early], at[~unwritten & ~early], initial)
    return result, clusters


def _unwritten(table: Columns, reads: Ints) -> list[Contradiction]:
    """One contradiction per value, with the first read of it."""
    return [
        Contradiction(
            Rule.GARBAGE if len(rows) == 1 else Rule.ABORTED, int(table.value[rows[-1]]), None, 0, rows
        )
        for rows in never_put(table, reads, table.ret)
    ]


def _future(table: Columns, reads: Ints, writes: Ints) -> list[Contradiction]:
    firsts = first_of_each(table.value[reads], np.arange(len(reads)), table.ret[reads])
    return [
        Contradiction(Rule.FUTURE, int(table.value[reads[at]]), None, 0, (int(reads[at]), int(writes[at])))
        for at in firsts.tolist()
    ]


def _clusters(table: Columns, writes: Ints, reads: Ints, at: Ints, initial: int) -> Clusters:
    """Builds the cluster of each write: its value's operations. ``at``: of each read, the place of its
    write in ``writes``; -1 for the initial value."""
    count = len(writes)
    place = np.where(at < 0, count, at)
    # The initial value is one more write, long before everything; without a row of its own.
    f = np.append(table.ret[writes], BEFORE)
    s = np.append(table.inv[writes], BEFORE)
    first, last = np.append(writes, -1), np.append(writes, -1)
    np.minimum.at(f, place, table.ret[reads])
    np.maximum.at(s, place, table.inv[reads])
    is_first = table.ret[reads] == f[place]
    is_last = table.inv[reads] == s[place]
    first[place[is_first]] = reads[is_first]
    last[place[is_last]] = reads[is_last]
    read = np.zeros(count + 1, dtype=bool)
    read[place] = True
    # A write of unknown outcome that nobody read can be left out, and so can an initial value that nobody
    # read.
    held = read | np.append(table.ret[writes] != NEVER, False)
    values = np.append(table.value[writes], initial)
    return Clusters(values[held], np.append(writes, -1)[held], first[held], last[held], f[held], s[held])


def _zones(table: Columns, clusters: Clusters) -> list[Contradiction]:
    result = []
    for rule, one, other, count in overlaps(clusters.f, clusters.s):
        values = int(clusters.value[one]), int(clusters.value[other])
        result.append(Contradiction(rule, *values, count, clusters.witness(table, one, other)))
    return result


def overlaps(f: Ints, s: Ints) -> Iterator[tuple[Rule, int, int, int]]:
    """Yields (the rule, a forward zone that reaches over others, the first that it contradicts, how many it
    does), as rows of ``f`` and ``s``: zones in order of their start, each against the forward zone before it
    that reaches furthest.

    All that zones must know of those that start earlier is that one zone: put among them it stands for all
    of them."""
    if not len(f):
        return
    forward: Flags = f < s
    start, end = np.minimum(f, s), np.maximum(f, s)
    # Of zones that start together the backward ones first: none is inside.
    order = np.lexsort((forward, start))
    reach = np.where(forward[order], end[order], BEFORE)
    furthest = np.maximum.accumulate(reach)
    holder = np.maximum.accumulate(np.where(reach == furthest, np.arange(len(order)), 0))
    before, by = np.append(BEFORE, furthest[:-1]), np.append(0, holder[:-1])
    limit = np.where(forward[order], start[order], end[order])
    bad = np.flatnonzero(before > limit)
    culprits, first, counts = np.unique(by[bad], return_index=True, return_counts=True)
    for one, other, count in np.stack([order[culprits], order[bad[first]], counts], axis=1).tolist():
        yield Rule.TWO_AT_ONCE if forward[other] else Rule.INSIDE, one, other, count
