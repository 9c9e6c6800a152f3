"""A condition that a run must meet besides its findings, so that it can pass."""

from __future__ import annotations

from dataclasses import dataclass

from wrackline.checkers.inputs.runs import Run

NOT_ON_RECORD = "not on record: the run was not made by this harness, or by an older version"
MOST = 5


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    ok: bool
    detail: str


Met = tuple[bool, str]
"""Whether a run meets a condition, and the detail."""


def unless(wrong: list[str], otherwise: str) -> Met:
    """Tells that a condition is met unless something is wrong."""
    return not wrong, listed(wrong) or otherwise


def unknown(run: Run, why: str) -> Met:
    """Tells that a condition is not met since the run has no record of it; ``why``: of a run of ours."""
    return False, NOT_ON_RECORD if run.info.plan is None else why


def listed(texts: list[str]) -> str:
    """The first of these, and how many more there are; empty when there are none."""
    more = f"; and {len(texts) - MOST} more" if len(texts) > MOST else ""
    return "; ".join(texts[:MOST]) + more
