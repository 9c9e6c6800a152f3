"""How long partitions could not be written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checkers.good_runs import SECOND, good_run
from tests.checkers.histories import TOPIC, info
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.verdict.measures.metrics import Figures, Written
from wrackline.checkers.verdict.measures.outage import outage

ONE, OTHER = (TOPIC, 0), (TOPIC, 1)
Ends = tuple[float | None, float | None]


def run_of(*places: Place) -> Run:
    """A fault from 20 to 25 s; clients work until 60 s."""
    topic = replace(info().topics[0], partitions=len(places))
    return good_run(topics=(topic,))


def figures_of(gaps: dict[tuple[str, Place], Ends], *, refused: int = 30) -> Figures:
    """``gaps``: from the last ack before to the first after, in seconds."""
    figures = Figures(acked_records=1_000)
    for (fault, place), ends in gaps.items():
        last, first = (None if end is None else int(end * SECOND) for end in ends)
        figures.gaps[fault, place] = (last, first, (first or 60 * SECOND) - (last or 0))
        figures.written[place, 2] = Written(50, 50 - refused)
    return figures


@pytest.mark.parametrize(
    ("gaps", "told"),
    [
        ({}, ""),
        ({("f1", ONE): (21.0, 21.9), ("f1", OTHER): (21.0, 21.9)}, ""),
        (
            {("f1", ONE): (20.5, 28.0), ("f1", OTHER): (20.7, 28.5)},
            "no partition could be written for 7.3 s",
        ),
        ({("f1", ONE): (21.0, 21.2), ("f1", OTHER): (20.0, 24.0)}, "log-1 could not be written for 4.0 s"),
        ({("f1", OTHER): (20.0, 24.0)}, "log-1 could not be written for 4.0 s"),
        ({("f1", ONE): (20.0, 23.0), ("f1", OTHER): (24.0, 26.0)}, "log-0 could not be written for 3.0 s"),
        (
            {("f1", ONE): (20.0, 23.0), ("f2", ONE): (30.0, 34.0), ("f1", OTHER): (31.0, 36.0)},
            "no partition could be written for 3.0 s",
        ),
        (
            {("f1", ONE): (20.0, 40.0), ("f1", OTHER): (21.0, 23.0)},
            "log-0 could not be written for 20.0 s, and no partition for 2.0 s",
        ),
        (
            {("f1", ONE): (21.0, None), ("f1", OTHER): (22.0, None)},
            "no partition could be written for 38.0 s",
        ),
    ],
)
def test_the_time_in_which_nothing_was_acknowledged(gaps: dict[tuple[str, Place], Ends], told: str) -> None:
    assert outage(run_of(ONE, OTHER), figures_of(gaps)) == told


def test_a_single_partition_is_named() -> None:
    figures = figures_of({("f1", ONE): (20.5, 28.0)})
    assert outage(run_of(ONE), figures) == "log-0 could not be written for 7.5 s"


def test_who_was_not_tried_was_not_out() -> None:
    assert outage(run_of(ONE), figures_of({("f1", ONE): (20.5, 28.0)}, refused=0)) == ""
