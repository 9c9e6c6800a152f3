"""The order in which a night makes its runs: what failed lately, then what was never run, then what has not
been run for longest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wrackline.harness.nights.journal import read
from wrackline.harness.records import JOURNAL

LATELY = 5
"""So many nights back a failure counts."""


@dataclass(frozen=True, slots=True)
class Before:
    """The knowledge of earlier nights on a run."""

    failed: bool
    """It did not come out well in one of the last nights."""
    last: int
    """How many nights ago it was made."""


def nights(folder: Path, name: str) -> list[Path]:
    """The folders of the nights of this name, oldest first: their names end with the time."""
    return sorted(path.parent for path in folder.glob(f"{name}-2*/{JOURNAL}"))


def before(earlier: Sequence[Path]) -> dict[str, Before]:
    """Returns the earlier results by the run's name. ``earlier``: folders of nights, oldest first."""
    known: dict[str, Before] = {}
    for ago, night in enumerate(reversed(earlier), start=1):
        for name, result in read(night).results.items():
            failed = ago <= LATELY and not result.good
            there = known.get(name)
            known[name] = Before(failed or (there is not None and there.failed), there.last if there else ago)
    return known


def ordered(names: Iterable[str], known: dict[str, Before]) -> list[str]:
    """Orders the names; those that are alike stay in their order."""

    def rank(name: str) -> tuple[int, int]:
        there = known.get(name)
        if there is None:
            return 1, 0
        return (0, 0) if there.failed else (2, -there.last)

    return sorted(names, key=rank)
