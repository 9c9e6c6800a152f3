"""Limits that a specification sets (``contract.thresholds``), compared with what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.runs import Fault, Phase, Place, Run
from wrackline.checkers.verdict.measures import metrics
from wrackline.checkers.verdict.measures.metrics import Figures

PERIODS = ("healthy", "faults")
PERCENTILES = ("p50", "p95", "p99")
LEFT_OUT = "left_out"
"""May be set too: the limit for the share of the load that is left out during faults
(wrackline.checkers.verdict.measures.load)."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold that a specification may set. ``measure`` gives None where there was nothing to measure."""

    name: str
    what: str
    unit: str
    measure: Callable[[Run, Figures], float | None]
    at_least: bool = False

    def is_met(self, measured: float, limit: float) -> bool:
        return measured >= limit if self.at_least else measured <= limit

    def described(self, measured: float, limit: float) -> str:
        bound = "at least" if self.at_least else "at most"
        return f"{self.what}: {measured:g}{self.unit}, {bound} {limit:g}{self.unit} was asked for"


def _main(run: Run) -> Phase | None:
    return next(
        (phase for phase in run.phases if phase.name == "main" and phase.end_ns > phase.begin_ns), None
    )


def _latency(period: str, percentile: str) -> Callable[[Run, Figures], float | None]:
    return lambda _, figures: figures.latency.get(period, {}).get(f"{percentile}_ms")


def _longest_gap_s(_: Run, figures: Figures) -> float | None:
    """Returns the longest gap in seconds; gaps that began before the first ack or were open at the end
    count, too, where a fault touches them."""
    gaps = [gap for *_, gap in figures.gaps.values()]
    if figures.longest_gap_ns is not None:
        gaps.append(figures.longest_gap_ns)
    return max(gaps) / 1e9 if gaps else None


def _records_per_s(run: Run, figures: Figures) -> float | None:
    main = _main(run)
    if main is None:
        return None
    segments = phases.segments_between(run, main.begin_ns, main.end_ns)
    acked = sum(one.acked for (_, segment), one in figures.written.items() if segment in segments)
    return round(acked / (main.end_ns - main.begin_ns) * 1e9, 3)


def _operations(run: Run, figures: Figures, main: Phase) -> list[metrics.Outcomes]:
    """Returns the outcomes of the main phase by kind of operation, without ``assign``, which nobody asks
    for at a rate."""
    counts = metrics.counted(run, figures, main.begin_ns, main.end_ns)
    return [one for f, one in counts.items() if f != "assign"]


def _operations_per_s(run: Run, figures: Figures) -> float | None:
    main = _main(run)
    if main is None:
        return None
    done = sum(one.ok for one in _operations(run, figures, main))
    return round(done / (main.end_ns - main.begin_ns) * 1e9, 3)


def _recovery_s(run: Run, figures: Figures) -> float | None:
    """The slowest partition after any fault: from the fault's end until its longest gap in acks is over, and
    until metadata shows its full ISR again (where that had shrunk). Infinite where it never came back."""
    times = [
        _recovered_ns(run, figures, fault, place) - fault.ended_ns
        for fault in run.faults
        if fault.ended_ns is not None
        for place in run.places
    ]
    return round(max(0.0, max(times)) / 1e9, 3) if times else None


def _recovered_ns(run: Run, figures: Figures, fault: Fault, place: Place) -> float:
    end = float(fault.ended_ns or 0)
    last, first, gap = figures.gaps.get((fault.id, place), (None, None, 0))
    # Clients are stopped in the last gap: it tells something where it is longer than the acks before it.
    if gap and first is None and last is not None and gap > last - end:
        return float("inf")
    shrank, full_ns = metrics.isr_under(run, fault, place)
    if shrank and full_ns is None:
        return float("inf")
    return max(end, first or 0, full_ns or 0)


def _isr_changes(run: Run, _: Figures) -> float | None:
    """Returns the number of ISR changes of the partition with most."""
    told = run.isrs or {place: [one.isr for one in run.cluster.get(place, ())] for place in run.places}
    changes = [sum(set(one) != set(other) for one, other in pairwise(isrs)) for isrs in told.values()]
    return max(changes) if changes else None


THRESHOLDS: Mapping[str, Threshold] = {
    one.name: one
    for one in (
        *(
            Threshold(
                f"latency_ms.{period}.{percentile}",
                f"{percentile} of the latency of sends {when}",
                " ms",
                _latency(period, percentile),
            )
            for period, when in zip(PERIODS, ("without a fault", "under faults"), strict=True)
            for percentile in PERCENTILES
        ),
        Threshold("longest_gap_s", "the longest time a partition went without an ack", " s", _longest_gap_s),
        Threshold(
            "recovery_s",
            "the time after a fault's end until every partition had recovered",
            " s",
            _recovery_s,
        ),
        Threshold("isr_changes", "the changes of a partition's ISR", "", _isr_changes),
        Threshold("records_per_s", "records acknowledged a second", "", _records_per_s, at_least=True),
        Threshold(
            "operations_per_s", "operations that succeeded a second", "", _operations_per_s, at_least=True
        ),
    )
}
