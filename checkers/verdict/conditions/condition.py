"""A condition that a run must meet besides its findings, so that it can pass."""

from __future__ import annotations

from dataclasses import dataclass

NOT_ON_RECORD = "not on record: the run was not made by this harness, or by an older version"
MOST = 5


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    ok: bool
    detail: str


def listed(texts: list[str]) -> str:
    """The first of these, and how many more there are; empty when there are none."""
    more = f"; and {len(texts) - MOST} more" if len(texts) > MOST else ""
    return "; ".join(texts[:MOST]) + more
