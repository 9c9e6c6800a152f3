"""The register of checks: each anomaly's name, family, nearest Jepsen name and meaning, and how it is found.

A check has two parts. *Marks* are tests of candidates in numpy that run wherever the rows are: they leave
the few rows that matter. The check itself is a function that makes findings of rows in Spark,
which says what those rows mean; it is planned only where one of its marks was seen. A check that reads other
tables names the kinds of operations (``f``) that it ``needs``, and is left out where no run has them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, TypeVar

from pyspark.sql import Column, DataFrame

from wrackline.checkers.anomalies.explained_by import BY_ORDER, ExplainedBy
from wrackline.checkers.anomalies.installed import installed
from wrackline.checkers.engine.frames import Frame, Int, Long, Text
from wrackline.checkers.engine.marks import Mark, Marks, Test, TestByValue
from wrackline.checkers.engine.tables import CandidateOfRun, Tables
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.anomaly import Anomaly, Family, Promise
from wrackline.plugins.registry import Group, load_all

T = TypeVar("T", bound=Table[Column])


@dataclass(frozen=True, slots=True)
class Finding(Table[Column]):
    """What a check says of one finding (wrackline.checkers.anomalies.evidence.findings)."""

    run: Int
    log: Long
    anomaly: Text
    topic: Text
    partition: Int
    offset: Long
    value: Long
    operations: Annotated[Column, "array<bigint>"]
    """Indexes of events."""
    where: Text
    sentence: Text
    since_ns: Long
    until_ns: Long
    """Faults in force between these are named with it; null: to the end of the run."""
    leader_ns: Long
    """Whoever led at that time is named in the sentence; null: nobody."""


Findings = Frame[Finding]
"""What a check returns."""


@dataclass
class Evidence:
    """What the checks read."""

    tables: Tables
    found: Frame[CandidateOfRun] | None = None
    """Candidates with at least one mark; None before they are found."""
    counts: dict[str, int] = field(default_factory=dict)
    """Mark -> how many rows have it."""
    contradictions: DataFrame | None = None
    """As they travel: what is wrong with registers and queues (wrackline.checkers.anomalies.object_evidence);
    None where no run has any."""
    shared: dict[str, Frame[Any]] = field(default_factory=dict)

    @property
    def candidates(self) -> Frame[CandidateOfRun]:
        assert self.found is not None, "a check that has marks is only planned where there are candidates"
        return self.found

    def once(self, name: str, made: Callable[[], Frame[T]]) -> Frame[T]:
        """A table that several checks read."""
        if name not in self.shared:
            self.shared[name] = made()
        return self.shared[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Anomaly):
    """An anomaly and how it is found. ``find`` gives findings (wrackline.checkers.anomalies.evidence)."""

    find: Callable[[Evidence], Findings]
    marks: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()
    explained_by: ExplainedBy = BY_ORDER

    def applies(self, evidence: Evidence) -> bool:
        """Whether there is anything for it to look at."""
        return any(evidence.counts.get(mark) for mark in self.marks) or any(
            self.needs & run.kinds for run in evidence.tables.runs
        )


_CHECKS: dict[str, Check] = {}
_MARKS: dict[str, Mark] = {}


def check(
    name: str,
    family: str,
    jepsen: str,
    meaning: str,
    *,
    breaks: Promise | None = None,
    rests_on_final_read: bool = False,
    rests_on_replicas: bool = False,
    right_then_wrong: bool = False,
    rests_on_acks: bool = False,
    marks: Sequence[str] = (),
    needs: Sequence[str] = (),
    explained_by: ExplainedBy = BY_ORDER,
) -> Callable[[Callable[[Evidence], Findings]], Callable[[Evidence], Findings]]:
    """Registers the decorated function as the check for an anomaly (wrackline.checkers.verdict.anomaly says
    what its contract and its incidents go by). Raises ValueError for a name that is taken."""

    def register(find: Callable[[Evidence], Findings]) -> Callable[[Evidence], Findings]:
        if name in _CHECKS:
            raise ValueError(f"two checks are called {name}")
        _CHECKS[name] = Check(
            name=name,
            family=family,
            jepsen=jepsen,
            meaning=meaning,
            breaks=breaks,
            rests_on_final_read=rests_on_final_read,
            rests_on_replicas=rests_on_replicas,
            right_then_wrong=right_then_wrong,
            rests_on_acks=rests_on_acks,
            find=find,
            marks=tuple(marks),
            needs=frozenset(needs),
            explained_by=explained_by,
        )
        return find

    return register


def mark(name: str, at_place: Test | None = None, by_value: TestByValue | None = None) -> str:
    """Registers a mark (wrackline.checkers.engine.marks.Mark); returns its name. Raises ValueError where
    Spark's workers could not be given it."""
    if name in _MARKS:
        raise ValueError(f"two marks are called {name}")
    found = Mark(name, at_place, by_value)
    try:
        pickle.dumps(found)
    except (pickle.PicklingError, AttributeError, TypeError) as wrong:
        raise ValueError(
            f"mark {name}: its tests must be functions at the top of a module ({wrong})"
        ) from wrong
    _MARKS[name] = found
    return name


@cache
def _load() -> None:
    load_all(Group.CHECKS)  # each module registers its own


def checks() -> Sequence[Check]:
    """All of them, in the order of docs/anomalies.md."""
    _load()
    order = {str(family): number for number, family in enumerate(Family)}
    return tuple(sorted(_CHECKS.values(), key=lambda one: order.get(one.family, len(order))))


def anomalies() -> dict[str, Anomaly]:
    """All of them by name, in the order of docs/anomalies.md."""
    return {one.name: one for one in checks()}


def explained_by() -> dict[str, ExplainedBy]:
    """Anomaly -> what explains its findings."""
    return {one.name: one.explained_by for one in checks()}


def names() -> tuple[str, ...]:
    return tuple(one.name for one in checks())


def not_looked_for() -> tuple[str, ...]:
    """Anomalies that are installed and that nothing here looks for: they are not registered, or one of their
    marks is not, so that no row would ever have it."""
    found = {one.name for one in checks() if all(mark in _MARKS for mark in one.marks)}
    return tuple(name for name in dict.fromkeys((*installed(), *names())) if name not in found)


@cache
def marks() -> Marks:
    """The marks of all checks."""
    _load()
    return Marks(_MARKS.values())


def bit_of(name: str) -> int:
    return marks().bit(name)
