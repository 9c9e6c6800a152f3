"""Retention of runs that passed: first all but their history and verdict go, then they themselves.

What did not pass is kept, whole. So is whatever may still be needed by someone: a run that is being recorded,
one that nobody has judged, every run of a night that may go on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path

import orjson

from wrackline.harness.nights.journal import read
from wrackline.harness.nights.night import NIGHT_JSON
from wrackline.harness.nights.order import nights
from wrackline.harness.notifications.spec import Keeping
from wrackline.harness.records import GOOD, JOURNAL, Record, State, records
from wrackline.harness.report.read.files import CAMPAIGN
from wrackline.history.store.folder import WAL

SHRUNK = ("nodes", "report.html", "explanations.json", "junit.xml", "harness.log")
"""What is removed first. `wrackline report` writes the second to fourth again."""
NOTE = "pruned.txt"
_LATELY_S = 3600.0
"""A run that somebody was at work on so lately is left alone: it may be judged again just now."""
_DAY_S = 86_400.0


class Does(StrEnum):
    SHRINK = "shrink"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Step:
    """The step that retention takes with one run."""

    folder: Path
    does: Does
    bytes: int
    """That it makes room for."""
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...]
    before: int
    """Bytes of all runs."""
    kept: int
    """Of those that did not pass, and of those that may not be touched."""
    over: int
    """By so much all that is left is still more than may be kept."""

    @property
    def freed(self) -> int:
        return sum(step.bytes for step in self.steps)

    def __str__(self) -> str:
        counts = {does: sum(step.does is does for step in self.steps) for does in Does}
        told = (
            f"{counts[Does.SHRINK]} runs shrunk, {counts[Does.REMOVE]} removed, {_mb(self.freed)} of "
            f"{_mb(self.before)} freed"
        )
        if self.over:
            told += f"; still {_mb(self.over)} more than max_gb: {_mb(self.kept)} did not pass, or are in use"
        return told


def prune(results: Path, keeping: Keeping) -> Plan:
    """Plan it, and do it. Raises OSError."""
    made = plan(results, keeping)
    carry_out(made)
    return made


def plan(results: Path, keeping: Keeping, *, now_s: float | None = None) -> Plan:
    """Returns what would be done with the runs below a folder. ``now_s``: seconds since 1970. Raises
    OSError."""
    now_s = time.time() if now_s is None else now_s
    total = kept = 0
    passed: list[_Passed] = []
    may_go_on = cache(_may_go_on)
    for one in records(results):  # the oldest first
        folder = Path(str(one.folder)).resolve()
        size = _size(folder)
        total += size
        if not _may_be_pruned(one, folder, now_s) or may_go_on(folder.parents[1]):
            kept += size
            continue
        has_history = not (folder / CAMPAIGN).exists()  # from which what is removed is written again
        extra = sum(_size(folder / name) for name in SHRUNK) if has_history else 0
        passed.append(_Passed(folder, size, extra, (now_s - _made_at(one)) / _DAY_S))
    steps = {each.folder: step for each in passed if (step := _for_its_age(each, keeping))}
    over = 0
    if keeping.max_gb is not None:
        over = _within(round(keeping.max_gb * 1e9), total, passed, steps)
    return Plan(tuple(steps.values()), total, kept, over)


@dataclass(frozen=True, slots=True)
class _Passed:
    folder: Path
    bytes: int
    extra: int
    """Bytes of what is removed first."""
    days: float
    """How old it is."""


def _for_its_age(one: _Passed, keeping: Keeping) -> Step | None:
    if keeping.drop_days is not None and one.days > keeping.drop_days:
        return Step(one.folder, Does.REMOVE, one.bytes, f"passed, older than {keeping.drop_days:g} days")
    if one.days > keeping.days and one.extra:
        return Step(one.folder, Does.SHRINK, one.extra, f"passed, older than {keeping.days:g} days")
    return None


def _within(most: int, total: int, passed: Sequence[_Passed], steps: dict[Path, Step]) -> int:
    """Further steps, oldest runs first, until no more than ``most`` bytes are left; returns by how much that
    does not succeed."""
    left = total - sum(step.bytes for step in steps.values())
    for does in Does:
        for one in passed:
            if left <= most:
                return 0
            gain = one.bytes if does is Does.REMOVE else one.extra
            already = steps[one.folder].bytes if one.folder in steps else 0
            if gain > already:
                why = f"passed, and all together has more than {most / 1e9:g} GB"
                steps[one.folder] = Step(one.folder, does, gain, why)
                left -= gain - already
    return max(left - most, 0)


def carry_out(made: Plan) -> None:
    """Raises OSError; what was done until then is done."""
    for step in made.steps:
        if step.does is Does.REMOVE:
            shutil.rmtree(step.folder)
            continue
        # First: whoever finds the run half-shrunk reads why.
        (step.folder / NOTE).write_text(
            f"{', '.join(SHRUNK)} were removed by `wrackline prune` ({step.why}); the history is whole, and "
            f"`wrackline report {step.folder.name}` writes the report again.\n"
        )
        for name in SHRUNK:
            path = step.folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _may_be_pruned(one: Record, folder: Path, now_s: float) -> bool:
    return (
        one.state is State.JUDGED
        and one.verdict in GOOD
        and not Path(str(one.folder)).is_symlink()
        and not (folder / WAL).exists()
        and now_s - _written_at(folder) > _LATELY_S
    )


def _may_go_on(here: Path) -> bool:
    """Tells whether a folder is one of a night or a bisection that is not at its end. Of nights of one name
    only the last one goes on."""
    if not (here / JOURNAL).exists() or read(here).over:
        return False
    name = _name(here)
    return not name or nights(here.parent, name)[-1] == here


def _name(here: Path) -> str:
    """Returns the name of a night; empty where it is none, or cannot be read."""
    try:
        return str(orjson.loads((here / NIGHT_JSON).read_bytes())["night"]["name"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return ""


def _made_at(one: Record) -> float:
    """When the run began, in seconds since 1970; where it does not say so, when it was written."""
    try:
        return datetime.fromisoformat(one.started_at).timestamp()
    except ValueError:
        return _written_at(Path(str(one.folder)))


def _written_at(folder: Path) -> float:
    return max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return sum(_size(below) for below in path.iterdir())
    return path.lstat().st_size if path.exists() else 0


def _mb(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
