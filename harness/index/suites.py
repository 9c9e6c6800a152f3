"""Suites across and nights down: what became of every run, and how often a suite fails.

A suite is a specification, whatever its seed and settings; a night's runs of it lie in one cell. Repeats and
twins, which a violation brings about, are counted apart: they would make a suite look worse than it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from wrackline.harness.index.baseline import Share, share
from wrackline.harness.index.runs import Run, group_runs
from wrackline.nemesis.follow.coverage import merged, summary

_TIME: Final = re.compile(r"-\d{8}T\d{6}Z$")


@dataclass(frozen=True, slots=True)
class Cell:
    runs: tuple[Run, ...]
    again: Share | None
    """Of the repeats of its violations with the same seed, so many violated as well."""


@dataclass(frozen=True, slots=True)
class NightRow:
    name: str
    began: str
    cells: Mapping[str, Cell]
    """By suite; one that was not run that night is absent."""
    bad: int
    of: int
    followed: str = ""
    """How many states of the cluster, and pairs with a fault, its runs have reached."""

    @property
    def label(self) -> str:
        """The name without the time behind it, which stands beside it."""
        return _TIME.sub("", self.name)


@dataclass(frozen=True, slots=True)
class Suite:
    """The results of a specification over all nights."""

    name: str
    runs: tuple[Run, ...]
    """Oldest first, without repeats and twins."""
    failed: Share
    """Of the runs that say something about the system."""
    nothing: int
    """Runs that say nothing: inconclusive, hosts that failed, damaged."""
    flips: int
    """How often a case came out otherwise than the time before, under the same version."""
    flaky: Share
    """Of the runs of cases that came out both ways under one version, those in the smaller part."""

    @property
    def is_flaky(self) -> bool:
        return self.flaky.count > 0


def grid(runs: Sequence[Run]) -> list[NightRow]:
    """Latest night first."""
    rows = [_row(name, of) for name, of in group_runs(runs, lambda run: run.night).items()]
    return sorted(rows, key=lambda row: (row.began, row.name), reverse=True)


def _row(name: str, runs: Sequence[Run]) -> NightRow:
    own = [run for run in runs if not run.record.follow_up]
    suites = group_runs(runs, lambda run: run.record.name)
    return NightRow(
        name=name,
        began=min(run.record.started_at for run in runs),
        cells={suite: _cell(of) for suite, of in sorted(suites.items())},
        bad=sum(run.good is False for run in own),
        of=len(own),
        followed=summary(merged([run.record.coverage for run in own])),
    )


def _cell(runs: Sequence[Run]) -> Cell:
    repeats = [run for run in runs if run.record.follow_up.startswith("repeat") and run.good is not None]
    return Cell(
        tuple(run for run in runs if not run.record.follow_up),
        share(sum(run.good is False for run in repeats), len(repeats)) if repeats else None,
    )


def suites(runs: Sequence[Run]) -> list[Suite]:
    """The one that fails most often first."""
    own = (run for run in runs if not run.record.follow_up)
    result = [_suite(name, of) for name, of in group_runs(own, lambda run: run.record.name).items()]
    return sorted(result, key=lambda one: (-one.failed.value, -one.flaky.count, one.name))


def _suite(name: str, runs: Sequence[Run]) -> Suite:
    telling = [run for run in runs if run.good is not None]
    # Of one case, system and seed: in these runs nothing but chance is different.
    groups = group_runs(telling, lambda run: (run.record.case, run.system, run.record.seed or 0))
    ways = [_ways(of) for of in groups.values()]
    return Suite(
        name=name,
        runs=tuple(runs),
        failed=share(sum(run.good is False for run in telling), len(telling)),
        nothing=len(runs) - len(telling),
        flips=sum(flips for flips, _ in ways),
        flaky=share(sum(fewer for _, fewer in ways), len(telling)),
    )


def _ways(runs: Sequence[Run]) -> tuple[int, int]:
    """Returns how often the outcome changed from one run to the next, and how many runs are in the smaller
    part."""
    outcomes = [run.good for run in runs]
    fewer = min(Counter(outcomes).values()) if len(set(outcomes)) > 1 else 0
    return sum(before != after for before, after in pairwise(outcomes)), fewer
