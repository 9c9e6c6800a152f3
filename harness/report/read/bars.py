"""Every operation as a bar of its process, in bounded memory: when there are too many, neighbours become one
bar that says how many it stands for. First those of one process and one outcome, then all of one lane."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush
from typing import Final

import numpy as np

from wrackline.harness.report.read.columns import OK, OPERATION, Ints, Table

BARS: Final = 80_000
SEVERAL: Final = 255
"""``f`` of a bar whose operations are of several kinds."""
BAR: Final = np.dtype(
    [("operation", OPERATION), ("stands_for", np.int64), ("bad", np.int64), ("until", np.int64)]
)
"""``operation``: the first one, with the largest number that any has for its outcome; ``stands_for``: how
many operations the bar is, ``bad``: how many of them were not ``ok``; ``until``: when the last ended (of one
that was never completed: when it began)."""


class Bars:
    """``cited``: indexes of rows whose operations keep a bar of their own."""

    def __init__(self, end_ns: int, cited: Collection[int], limit: int = BARS) -> None:
        self._limit, self._end_ns = limit, max(end_ns, 1)
        self._cited = np.array(sorted(cited), np.int64)
        self._gap_ns = 0
        """Bars that are closer to each other are merged; 0: none is."""
        self._by_lane = False
        self._held: list[Table] = []
        self._count = 0
        self.operations = 0

    def add(self, operations: Table) -> None:
        rows = np.zeros(len(operations), BAR)
        rows["operation"], rows["stands_for"] = operations, 1
        rows["bad"] = operations["outcome"] != OK
        rows["until"] = np.maximum(operations["end"], operations["begin"])
        self.operations += len(rows)
        if self._gap_ns:
            rows = self._merged(rows)
        self._held.append(rows)
        self._count += len(rows)
        if self._count > 3 * self._limit:
            self._gather(2 * self._limit)

    def rows(self) -> Table:
        """Rows of BAR in the order of lanes and begins, at most as many as the limit."""
        self._gather(self._limit)
        return self._held[0]

    def _gather(self, limit: int) -> None:
        rows = np.concatenate([*self._held, np.zeros(0, BAR)])
        if len(rows) > limit:
            rows = self._merged(rows, limit)
        if len(rows) > limit and not self._by_lane:
            self._by_lane, self._gap_ns = True, 0
            rows = self._merged(rows, limit)
        self._held, self._count = [rows], len(rows)

    def _merged(self, rows: Table, limit: int | None = None) -> Table:
        """``limit``: bridge gaps just as wide as it takes that so many are left, and remember how wide that
        is."""
        of = rows["operation"]
        key = lanes(of["process"], of["begin"], rows["until"]) if self._by_lane else of["process"]
        order = np.lexsort((of["begin"], key))
        rows, key = rows[order], key[order]
        of = rows["operation"]
        joins = key[1:] == key[:-1]
        if not self._by_lane:
            joins &= (of["outcome"][1:] == of["outcome"][:-1]) & (of["end"][:-1] >= 0)
        alone = np.isin(of["index"], self._cited) | np.isin(of["begun"], self._cited)
        joins &= ~alone[1:] & ~alone[:-1]
        gaps = of["begin"][1:] - rows["until"][:-1]
        if limit is not None and joins.any():
            bridged = np.sort(gaps[joins])
            widest = bridged[min(len(rows) - limit, len(bridged)) - 1]
            self._gap_ns = max(int(widest), self._gap_ns, 1)
        joins &= gaps <= self._gap_ns
        starts = np.flatnonzero(np.r_[True, ~joins]) if len(rows) else np.zeros(0, np.int64)
        merged = rows[starts]
        if len(merged) == len(rows):
            return rows
        for name in ("stands_for", "bad"):
            merged[name] = np.add.reduceat(rows[name], starts)
        merged["until"] = np.maximum.reduceat(rows["until"], starts)
        least, most = (how.reduceat(of["f"], starts) for how in (np.minimum, np.maximum))
        merged["operation"]["f"] = np.where(least == most, least, SEVERAL)
        merged["operation"]["outcome"] = np.maximum.reduceat(of["outcome"], starts)
        several = merged["stands_for"] > 1
        merged["operation"]["end"][several] = merged["until"][several]
        return merged


def lanes(processes: Ints, begins: Ints, ends: Ints) -> Ints:
    """The lane of each bar, from 0: a process keeps its lane, and one that begins when another has ended
    takes its lane over, as Jepsen's processes take over from those that crashed."""
    known, where = np.unique(processes, return_inverse=True)
    first = np.full(len(known), np.iinfo(np.int64).max)
    last = np.full(len(known), -1)
    np.minimum.at(first, where, begins)
    np.maximum.at(last, where, ends)
    lane = np.zeros(len(known), np.int64)
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    used = 0
    order = np.argsort(first, kind="stable")
    for process, begin, end in zip(order.tolist(), first[order].tolist(), last[order].tolist(), strict=True):
        while busy and busy[0][0] < begin:
            heappush(free, heappop(busy)[1])
        if free:
            lane[process] = heappop(free)
        else:
            lane[process], used = used, used + 1
        heappush(busy, (end, int(lane[process])))
    lowest = np.full(used, np.iinfo(np.int64).max)
    np.minimum.at(lowest, lane, known)
    rank = np.empty(used, np.int64)
    rank[np.argsort(lowest)] = np.arange(used)  # in the order of their processes
    return np.asarray(rank[lane][where.reshape(-1)])
