"""Marks: tests of candidates in numpy that leave the few rows which some check wants to see.

The checks bring their marks (wrackline.checkers.checks.registry). The engine is handed all of them with
its context, on the driver and in every task of Spark, and looks none of them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.inputs.broken import part_of_the_judge
from wrackline.checkers.inputs.table import Bools, Ints

Test = Callable[[Candidate[Ints]], Bools]
Unfilled = frozenset[int]
"""Logs with offsets that nobody saw the content of."""
TestByValue = Callable[[Candidate[Ints], Unfilled], Bools]


@dataclass(frozen=True, slots=True)
class Alone:
    """A test by value that needs to know nothing besides the rows."""

    test: Test

    def __call__(self, rows: Candidate[Ints], _: Unfilled) -> Bools:
        return self.test(rows)


@dataclass(frozen=True, slots=True)
class Mark:
    """A test of candidates. ``at_place``: where the places of one range are judged; ``by_value``: where all
    places of a value are, which then has the last word. A mark without either is set by whoever makes the
    row.

    Both are functions at the top of a module: they go to Spark's workers by their names."""

    name: str
    at_place: Test | None = None
    by_value: TestByValue | None = None

    def running(self, test: Test | TestByValue) -> AbstractContextManager[None]:
        """Names the mark where its test raises."""
        where = test.test if isinstance(test, Alone) else test
        return part_of_the_judge(f"mark {self.name}", where.__module__)


class Marks:
    """All marks of an analysis. Each is one bit of the column ``marks`` of candidates; the bits are in the
    order of the names."""

    def __init__(self, every: Iterable[Mark]) -> None:
        self._every = tuple(sorted(every, key=lambda mark: mark.name))
        self._bits = {mark.name: 1 << number for number, mark in enumerate(self._every)}

    def bit(self, name: str) -> int:
        """Raises KeyError where no check brings this mark."""
        return self._bits[name]

    def bits(self, names: Iterable[str]) -> int:
        """Returns the bits of several marks together."""
        return sum(map(self.bit, names))

    def at_places(self, rows: Candidate[Ints]) -> Ints:
        """The marks of claims: places, and end offsets asked for."""
        result = np.zeros(len(rows), dtype=np.int64)
        for mark in self._every:
            if mark.at_place is not None:
                with mark.running(mark.at_place):
                    result |= np.where(mark.at_place(rows), self.bit(mark.name), 0)
        return result

    def by_value(self, rows: Candidate[Ints], unfilled: Unfilled) -> Ints:
        """The marks, now that all is known of each value."""
        result = rows.marks.copy()
        for mark in self._every:
            if mark.by_value is not None:
                bit = self.bit(mark.name)
                with mark.running(mark.by_value):
                    result = np.where(mark.by_value(rows, unfilled), result | bit, result & ~bit)
        return result

    def counted(self, rows: Candidate[Ints]) -> dict[str, int]:
        """Mark -> how many rows have it, where any has."""
        counts = {name: int((rows.marks & bit != 0).sum()) for name, bit in self._bits.items()}
        return {name: count for name, count in counts.items() if count}
