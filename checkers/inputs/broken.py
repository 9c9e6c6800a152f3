"""A part of the judge that raises is named, and never the history blamed for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Final

from wrackline.checkers.inputs.runs import AnalysisError
from wrackline.errors import InfrastructureError
from wrackline.history import HistoryError
from wrackline.plugins.registry import OURS, Group, entries

_LONGEST: Final = 300


class JudgeBroken(InfrastructureError):
    """A check, or another step of the judge, raised. One line: which, in which module, what it raised."""


@contextmanager
def part_of_the_judge(what: str, module: str = "") -> Iterator[None]:
    """Raises JudgeBroken for whatever is raised inside, but for what files and Spark raise: disks that
    fail and memory that is short are no part of it. ``what``: as a reader knows it, ``the incidents``.
    ``module``: where it is; empty: where it raised."""
    try:
        yield
    except (JudgeBroken, AnalysisError, HistoryError, OSError):
        raise
    except Exception as error:  # what others wrote may raise anything
        if _is_of_spark(error):
            raise
        raise broken(what, module or _place(error), error) from error


def _is_of_spark(wrong: Exception) -> bool:
    """Tells whether Spark raised the error while it ran; a plan that makes no sense is a mistake of
    whoever made it."""
    kind = type(wrong)
    return kind.__module__.partition(".")[0] in ("pyspark", "py4j") and kind.__name__ != "AnalysisException"


def broken(what: str, module: str, wrong: BaseException | str) -> JudgeBroken:
    said = wrong if isinstance(wrong, str) else " ".join(f"{type(wrong).__name__}: {wrong}".split())
    return JudgeBroken(f"{what} ({module}) is broken: {said[:_LONGEST]}")


def told_by_a_worker(trace: str) -> str:
    """Returns what a worker of Spark reported as broken; empty: nothing."""
    match = re.search(rf"{JudgeBroken.__name__}: (.+)", trace)
    return match[1].strip() if match else ""


def _place(wrong: BaseException) -> str:
    """The last of our modules, or of those that bring checks, in which it was."""
    packages = {OURS, *(entry.package for entry in entries(Group.CHECKS))}
    names = [str(frame.f_globals.get("__name__", "")) for frame, _ in walk_tb(wrong.__traceback__)]
    own = [name for name in names if name.partition(".")[0] in packages and name != __name__]
    return own[-1] if own else names[-1] if names else "a place nobody knows"
