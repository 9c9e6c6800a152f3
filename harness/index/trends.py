"""Each figure over time, beside the noise of its past.

A series is what may be compared: the runs of a suite on one system, with one profile, workload, acks and
fleet. The version is left free, so that a new one can be seen; seeds, repeats and nights are its noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wrackline.harness.index.baseline import Band, band, label
from wrackline.harness.index.runs import Run, group_runs
from wrackline.harness.records import METRICS

HIGHER_IS_BETTER: Final = frozenset({"acknowledged", "read", "operations", "acknowledged_per_s"})


@dataclass(frozen=True, slots=True)
class Point:
    run: Run
    value: float
    expected: Band | None
    """From the runs before it; None while there are too few."""

    @property
    def outside(self) -> bool:
        return self.expected is not None and self.expected.outside(self.value)

    @property
    def sigmas(self) -> float:
        """Returns how many half-widths of the band the value is away from the middle; negative: below."""
        if self.expected is None or self.expected.high == self.expected.middle:
            return 0.0
        return (self.value - self.expected.middle) / (self.expected.high - self.expected.middle)


@dataclass(frozen=True, slots=True)
class Trend:
    metric: str
    points: tuple[Point, ...]

    @property
    def label(self) -> str:
        return label(self.metric)

    @property
    def marked(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.outside)


@dataclass(frozen=True, slots=True)
class Series:
    suite: str
    settings: str
    """``wrackline kip966, acks=all, netns``"""
    runs: tuple[Run, ...]
    trends: tuple[Trend, ...]


def series(runs: Sequence[Run]) -> list[Series]:
    """Returns the series of runs, by suite and settings. Of runs that were judged; twins and smaller ones
    are other experiments."""
    measured = (run for run in runs if run.record.verdict is not None and run.record.metrics and _alike(run))
    by_series = group_runs(measured, series_of)
    return [Series(*key, tuple(of), tuple(_trends(of))) for key, of in sorted(by_series.items())]


def _alike(run: Run) -> bool:
    return not run.record.follow_up or run.record.follow_up.startswith("repeat")


def series_of(run: Run) -> tuple[str, str]:
    """Returns the suite and the settings of the series that a run belongs to."""
    return run.record.name, settings(run)


def settings(run: Run) -> str:
    one = run.record
    system = " ".join(part for part in (one.system, one.profile) if part)
    acks = f"acks={one.acks}" if one.acks else ""
    parts = (system, one.workload if one.workload != "log" else "", acks, one.fleet, "+".join(one.defects))
    return ", ".join(part for part in parts if part)


def _trends(runs: Sequence[Run]) -> list[Trend]:
    result = []
    for metric in METRICS:
        measured = [run for run in runs if metric in run.record.metrics]
        values = [run.record.metrics[metric] for run in measured]
        points = [Point(run, values[at], band(values[:at])) for at, run in enumerate(measured)]
        if points:
            result.append(Trend(metric, tuple(points)))
    return result


@dataclass(frozen=True, slots=True)
class News:
    """A figure of a run that is outside of its past."""

    series: Series
    trend: Trend
    point: Point

    @property
    def worse(self) -> bool:
        higher = self.point.sigmas > 0
        return higher is not (self.trend.metric in HIGHER_IS_BETTER)


def news(found: Sequence[Series]) -> list[News]:
    """Latest run first, and of a run the farthest outside first."""
    made = [News(one, trend, point) for one in found for trend in one.trends for point in trend.marked]
    by_distance = sorted(made, key=lambda each: -abs(each.point.sigmas))
    return sorted(by_distance, key=lambda each: each.point.run.record.started_at, reverse=True)
