"""Is one partition's history linearizable? The exact rules of docs/linearizability.md 3.2 in plain numpy, O(n
log n).

The object: an append-only log with contiguous offsets from ``start``. An append that took effect is at one
offset for ever; a read shows records that are there; an end offset is the log's length at one moment of its
operation. Times are positions in the one order of events (indexes), and an append of unknown outcome has
``ret = NEVER``.

The checks of wrackline.checkers.anomalies.visibility find the same by other means. Each is the test
of the other, and brute force over small histories is the test of both.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
NOWHERE = -1


class Rule(StrEnum):
    TWO_VALUES = "two values"
    """One offset, two values."""
    TWO_OFFSETS = "two offsets"
    """One value, two offsets."""
    GARBAGE = "garbage"
    """A value that nobody sent."""
    ABORTED = "aborted"
    """A value whose send had certainly failed."""
    LATE = "late"
    """Invoked after the log was known to have grown past its place."""
    HOLE = "hole"
    """A read that covered a range shows nothing at an offset in it."""
    UNFILLED = "unfilled"
    """More offsets without known content than appends without known place that could fill them."""
    NO_PLACE = "no place"
    """Acknowledged without an offset, seen nowhere, and every place that it could have is another's."""


@dataclass(frozen=True, slots=True)
class Append:
    """``offset`` is NOWHERE where the client was told none (it may have been acknowledged all the same);
    ``ret`` is NEVER where the outcome is unknown."""

    value: int
    inv: int
    ret: int = NEVER
    offset: int = NOWHERE
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """One record shown by a read that returned at ``ret``."""

    ret: int
    offset: int
    value: int


@dataclass(frozen=True, slots=True)
class End:
    """An operation that asked for the end: nothing was at ``offset``, which is the end, when it was invoked,
    and everything below was there when it returned."""

    inv: int
    ret: int
    offset: int


@dataclass(frozen=True, slots=True)
class Violation:
    rule: Rule
    offset: int
    """The smallest offset where the rule is broken (the value, for rules about values)."""


def check_log(
    appends: Sequence[Append],
    reads: Sequence[Read],
    ends: Sequence[End],
    *,
    start: int = 0,
    covered: tuple[int, int] | None = None,
    holes: bool = True,
) -> list[Violation]:
    """Returns the violations in a partition's history; there are none if and only if it is linearizable.

    ``covered``: a range of offsets [from, to) that one read covered whole: what it does not show there is not
    there. ``holes``: offsets are contiguous, so that whatever is below a known end must be some append."""
    seen_offset, seen_value, seen_ret = _seen(appends, reads)
    result = [
        *_agreement(seen_offset, seen_value),
        *_provenance(appends, seen_value),
        *_windows(appends, ends, seen_offset, seen_value, seen_ret),
    ]
    if holes and covered is not None:
        result += _holes(reads, covered)
    elif holes:
        result += _unfilled(appends, ends, seen_offset, seen_value, seen_ret, start)
    return result


def _seen(appends: Sequence[Append], reads: Sequence[Read]) -> tuple[Ints, Ints, Ints]:
    """(offset, value, when it was known) of every ack and every record read."""
    rows = [(a.offset, a.value, a.ret) for a in appends if a.offset >= 0]
    rows += [(r.offset, r.value, r.ret) for r in reads]
    at = {r.value: r.offset for r in sorted(reads, key=lambda read: -read.offset)}  # of copies the lowest
    # Acknowledged without an offset: where it is, a read says; that it is there, the acknowledgement.
    rows += [
        (at[a.value], a.value, a.ret) for a in appends if a.offset < 0 and a.ret != NEVER and a.value in at
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


def _agreement(offset: Ints, value: Ints) -> list[Violation]:
    """Rule 1: one value per offset and one offset per value."""
    result = []
    for rule, by, other in ((Rule.TWO_VALUES, offset, value), (Rule.TWO_OFFSETS, value, offset)):
        order = np.lexsort((other, by))
        same, differs = np.diff(by[order]) == 0, np.diff(other[order]) != 0
        bad = by[order][1:][same & differs]
        if len(bad):
            result.append(Violation(rule, int(bad.min())))
    return result


def _provenance(appends: Sequence[Append], value: Ints) -> list[Violation]:
    """Rule 2: each value seen was sent, and not by a send that failed."""
    sent = np.array([a.value for a in appends], dtype=np.int64)
    failed = np.array([a.value for a in appends if a.failed], dtype=np.int64)
    result = []
    garbage, aborted = np.setdiff1d(value, sent), np.intersect1d(value, failed)
    if len(garbage):
        result.append(Violation(Rule.GARBAGE, int(garbage.min())))
    if len(aborted):
        result.append(Violation(Rule.ABORTED, int(aborted.min())))
    return result


def _upper_bounds(ends: Sequence[End], offset: Ints, ret: Ints) -> tuple[Ints, Ints]:
    """(offsets, ascending; the earliest time at which the log was known to have that offset or a larger
    one)."""
    below = np.array([(e.offset - 1, e.ret) for e in ends if e.offset > 0], dtype=np.int64).reshape(-1, 2)
    offsets = np.concatenate([offset, below[:, 0]])
    times = np.concatenate([ret, below[:, 1]])
    order = np.argsort(offsets, kind="stable")
    return offsets[order], np.minimum.accumulate(times[order][::-1])[::-1]


def _windows(
    appends: Sequence[Append], ends: Sequence[End], offset: Ints, value: Ints, ret: Ints
) -> list[Violation]:
    """Rule 3: nothing took place at an offset after the log was known to have grown to it or past it.

    Running maxima of lower bounds are not needed: if a bound at a smaller offset is too late, it is too late
    there."""
    offsets, known = _upper_bounds(ends, offset, ret)
    inv_of = {a.value: a.inv for a in appends}
    lower = [(o, inv_of[v]) for o, v in zip(offset.tolist(), value.tolist(), strict=True) if v in inv_of]
    lower += [(e.offset, e.inv) for e in ends]
    if not lower or not len(offsets):
        return []
    claims = np.array(lower, dtype=np.int64)
    at = np.searchsorted(offsets, claims[:, 0], side="left")
    there = at < len(offsets)
    late = np.zeros(len(claims), dtype=bool)
    late[there] = claims[there, 1] > known[at[there]]
    return [Violation(Rule.LATE, int(claims[late, 0].min()))] if late.any() else []


def _holes(reads: Sequence[Read], covered: tuple[int, int]) -> list[Violation]:
    """Rule 4 for a read that covered a range whole. ``reads`` then holds that read's records among others,
    and a record that another read showed there and this one did not is no content of the log."""
    start, end = covered
    there = np.unique(np.array([r.offset for r in reads], dtype=np.int64))
    missing = np.setdiff1d(np.arange(start, end), there)
    return [Violation(Rule.HOLE, int(missing.min()))] if len(missing) else []


def _unfilled(
    appends: Sequence[Append], ends: Sequence[End], offset: Ints, value: Ints, ret: Ints, start: int
) -> list[Violation]:
    """Rule 5: each unseen offset below a known end needs an append of its own whose place nobody knows,
    invoked no later than the offset was known to be taken; and one of these that was acknowledged needs a
    place: unseen, or past the known end, with nothing below it that was appended after the acknowledgement.

    Offsets in their order take, of what was invoked in time, what returned first. That is exact: both ends of
    an offset's window grow with the offset, so what is there for one offset is there for the next, and what
    is left over is what can wait longest. (Two of them never end up against real time: the one that had
    returned was there to be taken.)"""
    offsets, known = _upper_bounds(ends, offset, ret)
    placed = set(value.tolist())
    free = sorted(
        (a.inv, a.ret, a.value) for a in appends if not a.failed and a.offset < 0 and a.value not in placed
    )
    unseen = np.setdiff1d(np.arange(start, offsets[-1] + 1 if len(offsets) else start), offset)
    deadlines = known[np.searchsorted(offsets, unseen, side="left")].tolist()
    earliest = _earliest(appends, ends, offset, value)
    waiting: list[tuple[int, int]] = []
    at = 0
    for hole, deadline in zip(unseen.tolist(), deadlines, strict=True):
        while at < len(free) and free[at][0] <= deadline:
            heapq.heappush(waiting, free[at][1:])
            at += 1
        if not waiting:
            return [Violation(Rule.UNFILLED, hole)]
        returned, which = heapq.heappop(waiting)
        if returned < earliest(hole):
            return [Violation(Rule.NO_PLACE, which)]
    last = earliest(NEVER)
    left = [which for returned, which in waiting if returned < last]
    left += [which for _, returned, which in free[at:] if returned < last]
    return [Violation(Rule.NO_PLACE, min(left))] if left else []


def _earliest(
    appends: Sequence[Append], ends: Sequence[End], offset: Ints, value: Ints
) -> Callable[[int], int]:
    """Returns a function from an offset to the earliest time at which it can have been appended to:
    nothing below it was invoked later, and no end at or below it was asked for later."""
    inv_of = {a.value: a.inv for a in appends}
    bounds = [(o, inv_of[v]) for o, v in zip(offset.tolist(), value.tolist(), strict=True) if v in inv_of]
    table = np.array(bounds + [(e.offset, e.inv) for e in ends], dtype=np.int64).reshape(-1, 2)
    table = table[np.argsort(table[:, 0], kind="stable")]
    latest = np.maximum.accumulate(table[:, 1])

    def of(place: int) -> int:
        below = int(np.searchsorted(table[:, 0], place, side="right"))
        return int(latest[below - 1]) if below else -1

    return of
