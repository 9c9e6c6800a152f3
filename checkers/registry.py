"""The register of checks: each anomaly's name, family, nearest Jepsen name and meaning, and how it is found.

A check is told in two parts. *Marks* are tests of columns in numpy that run wherever the rows are: they leave
the few rows that matter. The check itself is a function from DataFrames to a DataFrame in the common schema,
which says what those rows mean; it is planned only where one of its marks was seen. A check that reads other
tables names the kinds of operations (``f``) that it ``needs``, and is left out where no run has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from wrackline.checkers.packets import Bools, Ints, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from wrackline.checkers.context import Context
    from wrackline.checkers.tables import Tables


class Family(StrEnum):
    """Each is a module of checkers."""

    LOSS = "loss"
    INTEGRITY = "integrity"
    ORDER = "order"
    VISIBILITY = "visibility"
    CYCLES = "cycles"
    TRANSACTIONS = "transactions"
    GROUPS = "groups"
    REGISTERS = "registers"
    QUEUES = "queues"


@dataclass
class Evidence:
    """What the checks read."""

    tables: Tables
    suspects: DataFrame
    """Rows of wrackline.checkers.suspects with at least one mark."""
    counts: dict[str, int] = field(default_factory=dict)
    """Mark -> how many rows have it."""
    breaches: DataFrame | None = None
    """Packets: what is wrong with registers and queues (wrackline.checkers.breaches); None where no run has
    any."""


@dataclass(frozen=True, slots=True)
class Check:
    """One anomaly. ``find`` gives findings (wrackline.checkers.evidence)."""

    name: str
    family: Family
    jepsen: str
    meaning: str
    find: Callable[[Evidence], DataFrame]
    marks: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()

    def applies(self, evidence: Evidence) -> bool:
        """Whether there is anything for it to look at."""
        return any(evidence.counts.get(mark) for mark in self.marks) or any(
            self.needs & run.kinds for run in evidence.tables.runs
        )


Test = Callable[[Rows], Bools]


@dataclass(frozen=True, slots=True)
class Mark:
    """A test of suspects. ``at_place``: where places are judged; ``by_value``: where all places of a value
    are, which then has the last word. A mark without either is set by whoever makes the row."""

    name: str
    at_place: Test | None = None
    by_value: Callable[[Rows, Context], Bools] | None = None


_CHECKS: dict[str, Check] = {}
_MARKS: dict[str, Mark] = {}


def check(
    name: str,
    family: Family,
    jepsen: str,
    meaning: str,
    *,
    marks: Sequence[str] = (),
    needs: Sequence[str] = (),
) -> Callable[[Callable[[Evidence], DataFrame]], Callable[[Evidence], DataFrame]]:
    """Registers the decorated function as the check for an anomaly."""

    def register(find: Callable[[Evidence], DataFrame]) -> Callable[[Evidence], DataFrame]:
        if name in _CHECKS:
            raise ValueError(f"two checks are called {name}")
        _CHECKS[name] = Check(name, family, jepsen, meaning, find, tuple(marks), frozenset(needs))
        return find

    return register


def mark(
    name: str, at_place: Test | None = None, by_value: Callable[[Rows, Context], Bools] | None = None
) -> str:
    """Registers a mark; returns its name."""
    if name in _MARKS:
        raise ValueError(f"two marks are called {name}")
    _MARKS[name] = Mark(name, at_place, by_value)
    return name


@cache
def _load() -> None:
    for family in Family:
        import_module(f"wrackline.checkers.{family}")  # each registers its own


def checks() -> Sequence[Check]:
    """All of them, in the order of docs/anomalies.md."""
    _load()
    families = list(Family)
    return tuple(sorted(_CHECKS.values(), key=lambda one: families.index(one.family)))


def names() -> tuple[str, ...]:
    return tuple(one.name for one in checks())


@cache
def marks() -> tuple[Mark, ...]:
    _load()
    return tuple(_MARKS[name] for name in sorted(_MARKS))


@cache
def bit_of(name: str) -> int:
    return 1 << [one.name for one in marks()].index(name)


def marked_at_places(rows: Rows) -> Ints:
    """The marks of claims: places, and end offsets asked for."""
    found = np.zeros(len(rows), dtype=np.int64)
    for one in marks():
        if one.at_place is not None:
            found |= np.where(one.at_place(rows), bit_of(one.name), 0)
    return found


def marked_by_value(rows: Rows, context: Context) -> Ints:
    """The marks, now that all is known of each value."""
    found = rows.marks.copy()
    for one in marks():
        if one.by_value is not None:
            bit = bit_of(one.name)
            found = np.where(one.by_value(rows, context), found | bit, found & ~bit)
    return found
