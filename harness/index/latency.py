"""Latency by node and partition, beside what it was in the runs before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wrackline.harness.index.baseline import Band, band
from wrackline.harness.index.runs import Run
from wrackline.harness.index.trends import Series
from wrackline.harness.report.read.latency import Latency, Spread

_BEFORE: Final = 30


@dataclass(frozen=True, slots=True)
class Place:
    """A node or a partition in one run."""

    name: str
    spread: Spread
    expected: Band | None
    """Of its 99th percentile."""

    @property
    def before(self) -> float | None:
        return self.expected.middle if self.expected else None

    @property
    def outside(self) -> bool:
        return self.expected is not None and self.spread.p99_ms > self.expected.high


@dataclass(frozen=True, slots=True)
class Places:
    """The latencies by node and partition of the latest run of a series, or of any run."""

    run: Run
    series: Series | None
    tables: tuple[tuple[str, tuple[Place, ...]], ...]
    """``node`` and ``partition``, each with its places; one without is left out."""

    @property
    def most_ms(self) -> float:
        return max(place.spread.p99_ms for _, places in self.tables for place in places)


def places(run: Run, series: Series | None) -> Places | None:
    """Returns the latencies of a run by node and partition; None where nothing was measured."""
    if run.latency is None or not run.latency.partitions:
        return None
    before = _before(run, series)
    tables = (
        ("node", _table(run.latency.nodes, [one.nodes for one in before])),
        ("partition", _table(run.latency.partitions, [one.partitions for one in before])),
    )
    return Places(run, series, tuple((kind, rows) for kind, rows in tables if rows))


def latest(series: Sequence[Series]) -> list[Places]:
    """Returns the places of the latest run of each series that has a history."""
    made = []
    for one in series:
        run = next((run for run in reversed(one.runs) if run.latency and run.latency.partitions), None)
        result = places(run, one) if run else None
        if result:
            made.append(result)
    return made


def _before(run: Run, series: Series | None) -> list[Latency]:
    if series is None:
        return []
    at = next((number for number, one in enumerate(series.runs) if one is run), 0)
    return [one.latency for one in series.runs[max(0, at - _BEFORE) : at] if one.latency]


def _table(now: Mapping[str, Spread], before: Sequence[Mapping[str, Spread]]) -> tuple[Place, ...]:
    return tuple(
        Place(name, spread, band([past[name].p99_ms for past in before if name in past]))
        for name, spread in now.items()
    )
