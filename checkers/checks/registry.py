"""The register of checks: each anomaly's name, family, nearest Jepsen name and meaning, and how it is found.

A check has two parts. *Marks* are tests of candidates in numpy that run wherever the rows are: they leave
the few rows that matter. The check itself is a function that makes findings of the rows of one partition
(wrackline.checkers.checks.places). It is called only where one of its marks was seen. What an anomaly says
of a whole group or transaction is found by a walk instead (wrackline.checkers.checks.walks).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache

from wrackline.checkers.checks.explained_by import BY_ORDER, IN_ANY_ORDER, ExplainedBy
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.checks.installed import installed
from wrackline.checkers.checks.places import Places
from wrackline.checkers.checks.walks import Walk
from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.marks import Mark, Marks, Test, TestByValue
from wrackline.checkers.inputs.table import Ints
from wrackline.checkers.verdict.anomaly import Anomaly, Family, Promise
from wrackline.plugins.registry import Group, load_all

Find = Callable[[Places], Iterator[Finding]]
Wanted = Callable[[Candidate[Ints]], Ints]
"""Rows -> the index of an event for each; NONE for none."""


def completion(rows: Candidate[Ints]) -> Ints:
    """Asks for the event that says what became of the send (a ``Wanted``)."""
    return rows.complete_index


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Anomaly):
    """An anomaly and how it is found."""

    find: Find | None = None
    """None: ``walk`` finds it."""
    marks: tuple[str, ...] = ()
    words_of: Wanted | None = None
    """Which events the check wants to read the words of (``Places.words``)."""
    walk: Walk | None = None
    explained_by: ExplainedBy = BY_ORDER

    def applies(self, counts: Mapping[str, int]) -> bool:
        """Says whether there is a row for it to look at. ``counts``: mark -> rows that have it."""
        return self.find is not None and any(counts.get(mark) for mark in self.marks)


_CHECKS: dict[str, Check] = {}
_MARKS: dict[str, Mark] = {}


def check(
    name: str,
    family: str,
    jepsen: str,
    meaning: str,
    *,
    marks: Sequence[str],
    breaks: Promise | None = None,
    rests_on_final_read: bool = False,
    rests_on_replicas: bool = False,
    right_then_wrong: bool = False,
    rests_on_acks: bool = False,
    words_of: Wanted | None = None,
    explained_by: ExplainedBy = BY_ORDER,
) -> Callable[[Find], Find]:
    """Registers the decorated function as the check for an anomaly (wrackline.checkers.verdict.anomaly says
    what its contract and its incidents go by). The function is called with the rows of one partition of a run
    that have one of the marks, wherever they are: so it must be at the top of a module. Raises ValueError for
    a name that is taken."""

    def register(find: Find) -> Find:
        _register(
            Check(
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
                words_of=words_of,
                explained_by=explained_by,
            )
        )
        return find

    return register


@dataclass(frozen=True, slots=True)
class WalkAnomaly:
    """The properties of an anomaly that a walk finds, as ``check`` takes them: what a walk has gone
    through contradicts itself in any order."""

    meaning: str
    breaks: Promise | None = None
    explained_by: ExplainedBy = IN_ANY_ORDER
    jepsen: str = "–"
    rests_on_final_read: bool = False
    rests_on_replicas: bool = False
    right_then_wrong: bool = False


def found_by(walk: Walk, family: str, anomalies: Mapping[str, WalkAnomaly]) -> None:
    """Registers the anomalies of one family that a walk finds. Raises ValueError for a name that is taken."""
    for name, result in anomalies.items():
        _register(
            Check(
                name=name,
                family=family,
                walk=walk,
                **{one.name: getattr(result, one.name) for one in fields(result)},
            )
        )


def _register(one: Check) -> None:
    if one.name in _CHECKS:
        raise ValueError(f"two checks are called {one.name}")
    _CHECKS[one.name] = one


def mark(name: str, at_place: Test | None = None, by_value: TestByValue | None = None) -> str:
    """Registers a mark (wrackline.checkers.engine.marks.Mark); returns its name. Raises ValueError where
    Spark's workers could not be given it."""
    if name in _MARKS:
        raise ValueError(f"two marks are called {name}")
    result = Mark(name, at_place, by_value)
    try:
        pickle.dumps(result)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"mark {name}: its tests must be functions at the top of a module ({error})"
        ) from error
    _MARKS[name] = result
    return name


@cache
def _load() -> None:
    load_all(Group.CHECKS)  # each module registers its own


def checks() -> Sequence[Check]:
    """Lists all checks, in the order of docs/anomalies.md."""
    _load()
    order = {str(family): number for number, family in enumerate(Family)}
    return tuple(sorted(_CHECKS.values(), key=lambda one: order.get(one.family, len(order))))


def walks() -> Sequence[Walk]:
    """Lists the walks that some anomaly is found by."""
    return tuple({one.walk.name: one.walk for one in checks() if one.walk is not None}.values())


def anomalies() -> dict[str, Anomaly]:
    """Gives all anomalies by name, in the order of docs/anomalies.md."""
    return {one.name: one for one in checks()}


def explained_by() -> dict[str, ExplainedBy]:
    """Maps each anomaly to what explains its findings."""
    return {one.name: one.explained_by for one in checks()}


def names() -> tuple[str, ...]:
    return tuple(one.name for one in checks())


def not_looked_for() -> tuple[str, ...]:
    """Anomalies that are installed and that nothing here looks for: they are not registered, or one of their
    marks is not, so that no row would ever have it."""
    result = {one.name for one in checks() if all(mark in _MARKS for mark in one.marks)}
    return tuple(name for name in dict.fromkeys((*installed(), *names())) if name not in result)


@cache
def marks() -> Marks:
    """Gives the marks of all checks."""
    _load()
    return Marks(_MARKS.values())
