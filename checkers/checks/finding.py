"""Findings: the operations that prove one, and a plain sentence (docs/anomalies.md section 10).

A sentence begins with a capital letter, unless it begins with the name of a partition, and ends without a
full stop. The faults that were in force around it follow in ``finished``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from wrackline.checkers.checks.about import MAX_FAULTS, AboutLog, AboutRun
from wrackline.checkers.findings import FAULTS_IN_FORCE, NO_FAULT_IN_FORCE

MAX_OPERATIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The fields that a check gives for one finding. Indexes are those of events; times are nanoseconds
    from the start of the run."""

    anomaly: str
    log: AboutLog | None
    """The partition that it concerns; None: none."""
    offset: int | None = None
    value: int | None = None
    """Below 0 it is none."""
    operations: Sequence[int | None]
    """Indexes of the events that prove it; the smallest eight are kept, without None."""
    where: str | None = None
    sentence: str
    since_ns: int | None
    until_ns: int | None = None
    """Faults in force between these are named with it; until None: to the end of the run."""


def finished(found: Finding, run: AboutRun) -> dict[str, Any]:
    """Makes the finding a row of the common schema (wrackline.checkers.findings.FINDINGS)."""
    value, log = found.value, found.log
    return {
        "test_id": run.info.test_id,
        "anomaly": found.anomaly,
        "topic": None if log is None else log.topic,
        "partition": None if log is None else log.partition,
        "offset": found.offset,
        "value": None if value is None or value < 0 else value,
        "operations": _smallest(found.operations),
        "where": found.where,
        "explanation": f"{found.sentence}.{_faults(found, run)}",
        "since_ns": found.since_ns,
        "until_ns": found.until_ns,
    }


def _smallest(operations: Iterable[int | None]) -> list[int]:
    return sorted({int(one) for one in operations if one is not None})[:MAX_OPERATIONS]


def _faults(found: Finding, run: AboutRun) -> str:
    when = "at that time or later" if found.until_ns is None else "around that time"
    texts = run.in_force(found.since_ns, found.until_ns)
    if not texts:
        return NO_FAULT_IN_FORCE % when
    more = len(texts) - MAX_FAULTS
    rest = f" and {more} more" if more > 0 else ""
    return FAULTS_IN_FORCE % (when, ", ".join(texts[:MAX_FAULTS]), rest)


def known(*numbers: int | None) -> int | None:
    """Gives the first of the numbers that is not None."""
    return next((number for number in numbers if number is not None), None)


def least(*numbers: int | None) -> int | None:
    """Gives the smallest of the numbers that is not None."""
    return min((number for number in numbers if number is not None), default=None)


def seconds(ns: int | None) -> str | None:
    """Spells a time: ``12.318 s``, ``1,204.006 s``; None where the time is."""
    return None if ns is None else f"{ns / 1e9:,.3f} s"


def apart(earlier: int | None, later: int | None) -> tuple[str | None, str | None]:
    """Spells two times as ``seconds`` does; in nanoseconds where the milliseconds are the same."""
    short = seconds(earlier), seconds(later)
    if earlier is None or later is None or short[0] != short[1]:
        return short
    return f"{earlier / 1e9:,.9f} s", f"{later / 1e9:,.9f} s"
