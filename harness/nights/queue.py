"""The queue of a night: the runs of the file, and what follows from a violation.

A violation is run again with its own seed, its twin is run beside it, and then it is made smaller. Whatever
runs is a task with a name that says all of that, so the journal alone decides what comes next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from wrackline.checkers.findings import Verdict
from wrackline.harness.nights.campaigns import CampaignRun
from wrackline.harness.nights.journal import Result, State
from wrackline.harness.nights.shrinking import Raw, faults_of, shrunk
from wrackline.harness.nights.spec import Night
from wrackline.harness.specification.spec import SpecError, validated

REPEAT, TWIN, SMALLER, SMALLEST = "repeat", "twin", "smaller", "smallest"


@dataclass(frozen=True, slots=True)
class Saved:
    """A run that the night wants, as it lies in the night's folder."""

    name: str
    text: str
    """Its specification, complete."""
    twin: str | None
    """That of its twin."""
    file: str = ""
    """What it was read from; a night of an older version does not say."""
    campaign: CampaignRun | None = None
    """None: it is a run of a specification."""


@dataclass(frozen=True, slots=True)
class Task:
    """A run that is to be made."""

    name: str
    """``CASE``, ``CASE~repeat-2``, ``CASE~twin``, ``CASE~smaller-0a1b2c3d-1``, ``CASE~smallest-3``."""
    text: str
    """Its specification."""
    code: str = ""
    """A folder with another version of us, which makes it; empty: this one."""


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest form of a violation so far."""

    raw: Raw
    """The smallest specification so far that shows it."""
    faults: tuple[int, int]
    """How many scheduled faults there were, and how many are left."""
    runs: int
    """How many runs that took."""
    shows: bool
    """Whether it showed at all with its faults at fixed times."""
    note: str
    """Why it ended there; empty while it goes on, and when nothing more can be taken away."""
    wanted: tuple[Task, ...] = ()
    """The runs that it takes to go on; none when it has ended."""


Replayed = Callable[[str], Raw]
"""A run's folder -> its specification with its faults as a schedule. Raises SpecError."""


def agenda(night: Night, cases: Sequence[Saved], state: State, replayed: Replayed) -> Iterator[Task]:
    """All that can be begun now, most wanted first: whether a violation shows again, and its twin, tells more
    than the next run of the file; making it smaller takes long, and comes last."""
    violations = [case for case in cases if case.campaign is None and _violates(state, case.name)]
    for case in violations:
        yield from _undone(state, again(case, night))
    yield from _undone(state, [Task(case.name, case.text) for case in cases])
    for case in violations:
        if night.shrink.runs and not any(True for _ in _undone(state, again(case, night))):
            yield from _undone(state, _smaller(case, night, state, replayed))


def again(case: Saved, night: Night) -> list[Task]:
    """The repetitions of a violation, and its twin."""
    tasks = [Task(f"{case.name}~{REPEAT}-{number}", case.text) for number in range(1, night.repeat + 1)]
    if night.twins and case.twin is not None:
        tasks.append(Task(f"{case.name}~{TWIN}", case.twin))
    return tasks


def _undone(state: State, tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if task.name not in state.results and task.name not in state.made]


def _violates(state: State, name: str) -> bool:
    result = state.results.get(name)
    return result is not None and result.violates


# --- making it smaller ------------------------------------------------------------------------------------


class _Wanted(Exception):
    """Raised when it takes more runs of this specification to go on."""

    def __init__(self, tasks: list[Task]) -> None:
        super().__init__()
        self.tasks = tasks


class _Spent(Exception):
    """Raised when as many runs as may be were made."""


class _Oracle:
    """Answers from the journal whether a specification shows the violation."""

    def __init__(self, case: Saved, night: Night, state: State) -> None:
        self._case, self._night, self._state = case, night, state
        self._of = frozenset(state.results[case.name].anomalies)
        self.best: Raw | None = None

    def shows(self, raw: Raw) -> bool:
        """Raises _Wanted, _Spent."""
        try:
            validated(dict(raw), "the smaller specification")
        except SpecError:
            return False  # its parts do not fit any more
        digest = hashlib.sha256(as_yaml(raw).encode()).hexdigest()[:8]
        prefix = f"{self._case.name}~{SMALLER}-{digest}-"
        made = [one for name, one in self._state.results.items() if name.startswith(prefix)]
        if any(self._is_it(one) for one in made):
            self.best = raw
            return True
        # A run that broke down says nothing about the specification.
        told = sum(one.verdict is not Verdict.INFRASTRUCTURE for one in made)
        if told >= self._night.shrink.tries:
            return False
        if runs_of(self._state, self._case.name) >= self._night.shrink.runs:
            raise _Spent
        raise _Wanted([Task(f"{prefix}{len(made) + 1}", as_yaml(raw))])

    def _is_it(self, result: Result) -> bool:
        return result.violates and bool(self._of & set(result.anomalies))


def runs_of(state: State, case: str) -> int:
    """Returns how many runs were spent on making a violation smaller."""
    return sum(name.startswith(f"{case}~{SMALLER}-") for name in (*state.results, *state.made))


def _smaller(case: Saved, night: Night, state: State, replayed: Replayed) -> list[Task]:
    result = smallest(case, night, state, replayed)
    if result is None:
        return []
    if result.wanted or not result.shows:
        return list(result.wanted)
    text = as_yaml(result.raw)
    return [Task(f"{case.name}~{SMALLEST}-{number}", text) for number in range(1, night.repeat + 1)]


def smallest(case: Saved, night: Night, state: State, replayed: Replayed) -> Smallest | None:
    """Returns the smallest form of a violation so far, or None where it cannot be tried."""
    try:
        start = replayed(state.results[case.name].run)
    except SpecError:
        return None
    oracle, note, expected = _Oracle(case, night, state), "", list[Task]()
    try:
        if not oracle.shows(start):
            count = len(faults_of(start))
            note = "with its faults at fixed times it did not show again"
            return Smallest(start, (count, count), runs_of(state, case.name), False, note)
        result = shrunk(start, oracle.shows)
    except _Wanted as more:
        result, expected = oracle.best or start, more.tasks
    except _Spent:
        result, note = oracle.best or start, f"{night.shrink.runs} runs were spent"
    counts = len(faults_of(start)), len(faults_of(result))
    spent = runs_of(state, case.name)
    return Smallest(result, counts, spent, oracle.best is not None, note, tuple(expected))


def as_yaml(raw: Any) -> str:
    return yaml.safe_dump(raw, sort_keys=False, allow_unicode=True)
