"""The register of checks: each anomaly's name, family, nearest Jepsen name and meaning, and the query that finds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module

from pyspark.sql import Column, DataFrame

from checkers.tables import Tables


class Family(StrEnum):
    """Each is a module of checkers."""

    LOSS = "loss"
    INTEGRITY = "integrity"
    ORDER = "order"
    VISIBILITY = "visibility"


@dataclass
class Evidence:
    """What the checks read: the shared tables, and of the places only those that some check asks for."""

    tables: Tables
    suspects: DataFrame
    """Rows of the table of places (checkers.places) that answer to at least one check's ``when``."""
    steps: DataFrame
    """Reads that did not follow on the one before (checkers.order)."""
    witnesses: DataFrame
    """What the operations told that suspects are held against (checkers.witnesses)."""
    epochs: DataFrame
    """Where each leader epoch begins and ends in each log (checkers.integrity)."""


@dataclass(frozen=True, slots=True)
class Check:
    """One anomaly. ``find`` gives findings (checkers.evidence); ``when`` says which places it wants to see."""

    name: str
    family: Family
    jepsen: str
    meaning: str
    find: Callable[[Evidence], DataFrame]
    when: Callable[[], Column] | None = None


_CHECKS: dict[str, Check] = {}


def check(
    name: str, family: Family, jepsen: str, meaning: str, when: Callable[[], Column] | None = None
) -> Callable[[Callable[[Evidence], DataFrame]], Callable[[Evidence], DataFrame]]:
    """Registers the decorated function as the check for an anomaly."""

    def register(find: Callable[[Evidence], DataFrame]) -> Callable[[Evidence], DataFrame]:
        if name in _CHECKS:
            raise ValueError(f"two checks are called {name}")
        _CHECKS[name] = Check(name, family, jepsen, meaning, find, when)
        return find

    return register


def checks() -> Sequence[Check]:
    """All of them, in the order of anomalies.md."""
    for family in Family:
        import_module(f"checkers.{family}")  # each registers its own
    families = list(Family)
    return tuple(sorted(_CHECKS.values(), key=lambda one: families.index(one.family)))


def names() -> tuple[str, ...]:
    return tuple(one.name for one in checks())


def suspect() -> Column:
    """Whether any check wants to see a place."""
    wanted = [one.when() for one in checks() if one.when is not None]
    result = wanted[0]
    for condition in wanted[1:]:
        result = result | condition
    return result
