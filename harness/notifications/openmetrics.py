"""The outcome of a night, as metrics: a file for the textfile collector of node_exporter.

The text is OpenMetrics. It is the older format of Prometheus as well, which that collector reads: there are
gauges only, without times of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from wrackline.checkers.findings import Meaning, Verdict
from wrackline.harness.notifications.run_summary import NOT_MADE, RunSummary
from wrackline.harness.records import METRICS
from wrackline.history.store.folder import whole_file

_WHAT_RAN = ("night", "case", "system", "version", "profile")


@dataclass(frozen=True, slots=True)
class Ended:
    """The night itself. Times in seconds."""

    name: str
    at_s: float
    """When it ended: seconds since 1970."""
    spent_s: float
    """How long the harness was at work on it."""
    budget_s: float


def write(path: Path, night: Ended, summaries: Sequence[RunSummary]) -> Path:
    """Replaced whole: the collector never sees half of it. Others may read it. Raises OSError."""
    with whole_file(path) as part:
        part.write_bytes(text(night, summaries))
        part.chmod(0o644)  # node_exporter is another user
    return path


def text(night: Ended, summaries: Sequence[RunSummary]) -> bytes:
    """The metrics of docs/ci.md."""
    registry = CollectorRegistry()
    registry.register(_Once([*_of_night(night, summaries), *_of_runs(night, summaries)]))
    made: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return made


class _Once:
    """The collector that the registry asks for metrics."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def _of_night(night: Ended, summaries: Sequence[RunSummary]) -> Iterator[Metric]:
    def gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"wrackline_night_{name}", what, labels=("night",))
        family.add_metric((night.name,), value)
        return family

    yield gauge("end_timestamp_seconds", "When the last night ended, in seconds since 1970.", night.at_s)
    yield gauge("spent_seconds", "How long the last night was at work.", night.spent_s)
    yield gauge("budget_seconds", "How long it might have been.", night.budget_s)
    yield gauge(
        "new_violations", "Violations that no night before has shown.", sum(each.new for each in summaries)
    )
    broken = [each.record.incident_counts.get(Meaning.VIOLATION, 0) for each in summaries if each.record]
    yield gauge("incidents", "Incidents of the last night that contracts forbid.", sum(broken))
    runs = GaugeMetricFamily(
        "wrackline_night_runs", "Runs of the last night, by their verdict.", labels=("night", "verdict")
    )
    counts = Counter(_word(each) for each in summaries)
    for word in (*(verdict.value for verdict in Verdict), NOT_MADE):
        runs.add_metric((night.name, word), counts[word])
    yield runs


def _of_runs(night: Ended, summaries: Sequence[RunSummary]) -> Iterator[Metric]:
    verdicts = GaugeMetricFamily(
        "wrackline_run_verdict",
        "1 for the verdict that a run of the last night came to.",
        labels=(*_WHAT_RAN, "verdict"),
    )
    for each in summaries:
        verdicts.add_metric((*_what_ran(night, each), _word(each)), 1)
    yield verdicts
    for name, what in METRICS.items():
        scale = 1e-3 if name.endswith("_ms") else 1.0
        help_text = f"{what.replace(', ms', ', s')}; of a run of the last night."
        family = GaugeMetricFamily(f"wrackline_run_{_in_seconds(name)}", help_text, labels=_WHAT_RAN)
        for each in summaries:
            if each.record is not None and name in each.record.metrics:
                family.add_metric(_what_ran(night, each), each.record.metrics[name] * scale)
        yield family


def _in_seconds(name: str) -> str:
    """Prometheus has seconds everywhere, and says so in the name."""
    for suffix, instead in (("_ms", "_seconds"), ("_per_s", "_per_second"), ("_in_s", "_in_seconds")):
        if name.endswith(suffix):
            return name.removesuffix(suffix) + instead
    return name


def _what_ran(night: Ended, each: RunSummary) -> tuple[str, ...]:
    record = each.record
    about = (record.system, record.version, record.profile) if record else ("", "", "")
    return (night.name, each.name, *about)


def _word(each: RunSummary) -> str:
    return each.verdict.value if each.verdict else NOT_MADE
