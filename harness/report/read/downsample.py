"""A bounded choice of rows that keeps those that stand out: of each cell of a grid, the one that counts
most.

The grid becomes coarser as more rows come; while all rows fit, all are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wrackline.harness.report.read.columns import Ints


class Downsampler:
    """The sampler keeps at most ``limit`` rows of structured arrays. ``cell(rows, level)``: which cell of
    the grid each row is in; with every level the grid has about half as many cells. ``worth(rows)``: what
    counts in a cell."""

    def __init__(
        self,
        limit: int,
        cell: Callable[[NDArray[np.void], int], Ints],
        worth: Callable[[NDArray[np.void]], NDArray[Any]],
    ) -> None:
        self._limit, self._cell, self._worth = limit, cell, worth
        self._level = -1
        self._kept: list[NDArray[np.void]] = []
        self._count = 0
        self.seen = 0
        """How many rows there were."""

    def add(self, rows: NDArray[np.void]) -> None:
        self.seen += len(rows)
        self._count += len(rows)
        if len(rows):
            self._kept.append(rows)
        if self._count > 3 * self._limit:
            self._thin()

    def rows(self) -> NDArray[np.void] | None:
        """Returns the rows that were kept; None when there were none."""
        if self._count > self._limit or self._level >= 0:
            self._thin()
        return np.concatenate(self._kept) if self._kept else None

    def _thin(self) -> None:
        rows = np.concatenate(self._kept)
        self._level = max(self._level, 0)
        chosen = self._best(rows)
        while len(chosen) > self._limit:
            self._level += 1
            chosen = self._best(rows)
        self._kept, self._count = [rows[chosen]], len(chosen)

    def _best(self, rows: NDArray[np.void]) -> Ints:
        cells = self._cell(rows, self._level)
        order = np.lexsort((-self._worth(rows), cells))
        first = np.r_[True, np.diff(cells[order]) != 0]
        return np.sort(order[first])
