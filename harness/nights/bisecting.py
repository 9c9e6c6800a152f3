"""The first bad one of several versions, or commits, by halving.

A run on real hosts may miss what is there, so a version counts as good after several runs without a
violation, and as bad after one with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wrackline.checkers.findings import Verdict
from wrackline.harness.nights.driver import Driver, Limits, Say
from wrackline.harness.nights.journal import Journal, State
from wrackline.harness.nights.queue import Task


@dataclass(frozen=True, slots=True)
class Candidate:
    """One version, or one commit."""

    name: str
    text: str
    """The specification with it."""
    code: str = ""
    """The folder of the commit; empty where the specification says it all."""


@dataclass(frozen=True, slots=True)
class Found:
    """The state of the bisection."""

    good: int | None
    """Index of the newest that is known as good; None before the first one is."""
    bad: int | None
    probe: int | None
    """Which is looked at next; None when the answer is there."""

    @property
    def trouble(self) -> str:
        """Returns why there is no answer, when nothing is looked at any more; empty when there is one."""
        if self.good is None:
            return "the first one is bad already: begin with an older one"
        if self.bad is None:
            return "the last one shows no violation: there is nothing to look for, or more tries are needed"
        return ""


def look(candidates: Sequence[Candidate], state: State, tries: int) -> Found:
    """Both ends first: that one is good and the other bad is what the halving stands on."""
    last = len(candidates) - 1
    first_is_bad = is_bad(candidates[0], state, tries)
    if first_is_bad is None:
        return Found(None, None, 0)
    if first_is_bad:
        return Found(None, 0, None)
    last_is_bad = is_bad(candidates[last], state, tries)
    if last_is_bad is None:
        return Found(0, None, last)
    if not last_is_bad:
        return Found(last, None, None)
    good, bad = 0, last
    while bad - good > 1:
        middle = (good + bad) // 2
        match is_bad(candidates[middle], state, tries):
            case None:
                return Found(good, bad, middle)
            case True:
                bad = middle
            case False:
                good = middle
    return Found(good, bad, None)


def is_bad(candidate: Candidate, state: State, tries: int) -> bool | None:
    """Tells whether a candidate is bad; None: it takes more runs to say."""
    known = [state.results[name] for name in names(candidate, tries) if name in state.results]
    if any(one.verdict is Verdict.VIOLATION for one in known):
        return True
    return False if len(known) == tries else None


def names(candidate: Candidate, tries: int) -> list[str]:
    return [f"{candidate.name}~try-{number}" for number in range(1, tries + 1)]


class Bisector(Driver):
    """Makes the runs that it takes."""

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        candidates: Sequence[Candidate],
        *,
        tries: int,
        budget_s: float,
        master: str,
        say: Say,
    ) -> None:
        super().__init__(folder, journal, Limits(budget_s), master=master, say=say)
        self._candidates = candidates
        self._tries = tries

    @property
    def found(self) -> Found:
        return look(self._candidates, self.state, self._tries)

    def agenda(self) -> Iterable[Task]:
        """One at a time: a violation makes the other tries needless."""
        probe = self.found.probe
        if probe is None or self.state.made:
            return ()
        candidate = self._candidates[probe]
        next_name = next(name for name in names(candidate, self._tries) if name not in self.state.results)
        return (Task(next_name, candidate.text, candidate.code),)

    def account(self) -> str:
        result = self.found
        if result.probe is None:
            return f"{len(self.state.results)} runs, {self.spent}"
        left = "both ends" if result.bad is None else f"{result.bad - (result.good or 0) - 1} between"
        return f"{len(self.state.results)} runs, {left}, {self.spent}"
