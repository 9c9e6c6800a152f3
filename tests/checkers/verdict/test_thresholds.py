"""A specification sets thresholds, and what was measured is held against them."""

from __future__ import annotations

import dataclasses

import pytest

from tests.checkers.good_runs import PLACE, SECOND, decided, good_figures, good_run, missing, seen
from wrackline.checkers.findings import Verdict
from wrackline.checkers.inputs.runs import Run, Sample
from wrackline.checkers.verdict.measures.metrics import Figures


def judged_by(name: str, limit: float, run: Run | None = None, figures: Figures | None = None) -> str:
    """The detail of the condition, with what it came to."""
    run = run or good_run()
    run.info = dataclasses.replace(run.info, thresholds={name: limit})
    figures = figures or good_figures(run)
    figures.latency = {"healthy": {"p99_ms": 40.0}, "faults": {"p50_ms": 900.0}}
    figures.longest_gap_ns = 3 * SECOND
    figures.gaps = {("f1", PLACE): (20 * SECOND, 31 * SECOND, 11 * SECOND)}
    [row] = [one for one in decided(run, figures)["conditions"] if one["name"] == f"threshold {name}"]
    return f"{'met' if row['ok'] else 'missed'}: {row['detail']}"


@pytest.mark.parametrize(
    ("name", "limit", "expected"),
    [
        (
            "latency_ms.healthy.p99",
            40,
            "met: p99 of the latency of sends without a fault: 40 ms, at most 40 ms",
        ),
        (
            "latency_ms.healthy.p99",
            39,
            "missed: p99 of the latency of sends without a fault: 40 ms, at most 39 ms",
        ),
        (
            "latency_ms.faults.p50",
            500,
            "missed: p50 of the latency of sends under faults: 900 ms, at most 500 ms",
        ),
        ("latency_ms.faults.p95", 500, "missed: p95 of the latency of sends under faults: there was nothing"),
        ("longest_gap_s", 10, "missed: the longest time a partition went without an ack: 11 s, at most 10 s"),
        ("longest_gap_s", 11, "met: "),
        (
            "recovery_s",
            6,
            "met: the time after a fault's end until every partition had recovered: 6 s, at most 6 s",
        ),
        ("recovery_s", 5.9, "missed: "),
        ("nope", 3, "missed: there is no such threshold; there are latency_ms.healthy.p50, "),
    ],
)
def test_a_threshold(name: str, limit: float, expected: str) -> None:
    assert judged_by(name, limit).startswith(expected)


def test_rates_are_of_the_main_phase() -> None:
    """Three segments of 1,000 records each, and of 3,000 operations, in 60 s; the drain is none of it."""
    run = good_run(rate=100.0)
    assert judged_by("records_per_s", 50, run).startswith(
        "met: records acknowledged a second: 50, at least 50"
    )
    assert judged_by("records_per_s", 51, run).startswith("missed")
    assert judged_by("operations_per_s", 150, run).startswith("met: operations that succeeded a second: 150")


@pytest.mark.parametrize(
    ("last_s", "gap_s", "expected"),
    [(20, 40, ["threshold recovery_s"]), (39, 15, ["threshold recovery_s"]), (40, 14, [])],
)
def test_a_partition_that_never_came_back_misses_any_limit(
    last_s: int, gap_s: int, expected: list[str]
) -> None:
    """The fault ends at 25 s. Whoever is silent when clients are stopped, and was not before, is back."""
    run = good_run()
    figures = good_figures(run)
    run.info = dataclasses.replace(run.info, thresholds={"recovery_s": 1_000})
    figures.gaps = {("f1", PLACE): (last_s * SECOND, None, gap_s * SECOND)}
    assert missing(run, figures) == expected


def test_a_partition_whose_isr_was_full_again_late_or_never() -> None:
    run = good_run()
    figures = good_figures(run)
    run.info = dataclasses.replace(run.info, thresholds={"recovery_s": 6})
    seen(run, leader=2, isr=(2, 3))
    assert missing(run, figures) == ["threshold recovery_s"]
    run.cluster[PLACE].append(Sample(31 * SECOND, 2, 1, (1, 2, 3), (1, 2, 3)))
    assert missing(run, figures) == []
    run.cluster[PLACE][-1] = Sample(31 * SECOND + 10**7, 2, 1, (1, 2, 3), (1, 2, 3))
    assert missing(run, figures) == ["threshold recovery_s"]


def test_changes_of_the_isr_are_counted_by_what_the_system_wrote_down_or_else_by_its_metadata() -> None:
    run = good_run()
    both, one = (1, 2), (1,)
    shown = [Sample(at, 1, 1, isr, (1, 2)) for at, isr in enumerate([both, both, one, both])]
    run.cluster = {PLACE: shown, ("log", 7): shown[:3]}
    assert judged_by("isr_changes", 2, run).startswith("met: the changes of a partition's ISR: 2, at most 2")
    assert judged_by("isr_changes", 1, run).startswith("missed")
    run.isrs = {PLACE: [both, one, both, (2, 1), one]}
    assert judged_by("isr_changes", 2, run).startswith("missed: the changes of a partition's ISR: 3, ")


def test_a_missed_threshold_makes_a_run_inconclusive() -> None:
    run = good_run(thresholds={"longest_gap_s": 1.0})
    figures = good_figures(run)
    figures.longest_gap_ns = 2 * SECOND
    assert decided(run, figures)["verdict"] == Verdict.INCONCLUSIVE
