"""A clock that leaps in the middle of a run is a row of its history, and the verdict names it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.checkers.good_runs import decided, good_run
from tests.checkers.histories import info
from wrackline.checkers.inputs.runs import load_run
from wrackline.harness.run.live.leaps import Leaps
from wrackline.history import Recorder

HOURS = 2 * 3600 * 1_000_000_000


@pytest.mark.parametrize("ahead", [HOURS, -HOURS, 600_000_000])
def test_a_leap_is_recorded_with_its_time_and_its_length(tmp_path: Path, ahead: int) -> None:
    shift = [0]
    with Recorder(tmp_path / "run", info()) as recorder:
        leaps = Leaps(recorder, lambda: time.time_ns() + shift[0])
        leaps.start()
        time.sleep(0.5)
        assert recorder.events == 0
        shift[0] = ahead
        deadline = time.monotonic() + 30
        while not recorder.events and time.monotonic() < deadline:
            time.sleep(0.05)
        leaps.stop()
    [(at, by)] = load_run(tmp_path / "run").course.leaps
    assert at > 0
    assert abs(by - ahead) < 400_000_000


def test_the_machines_own_clock_does_not_leap(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", info()) as recorder:
        leaps = Leaps(recorder)
        leaps.start()
        time.sleep(1.0)
        leaps.stop()
        assert recorder.events == 0


def test_the_verdict_names_the_leap_before_what_follows_from_it() -> None:
    run = good_run()
    assert decided(run)["verdict"] == "pass"
    run.course.leaps = [(12_300_000_000, HOURS)]
    verdict = decided(run)
    assert verdict["verdict"] == "inconclusive"
    assert "the harness's clock leapt 7,200 s ahead at 12.3 s" in verdict["headline"]


def test_a_leap_back_is_told_as_that() -> None:
    run = good_run()
    run.course.leaps = [(1_000_000_000, -HOURS)]
    assert "leapt 7,200 s back at 1.0 s" in decided(run)["headline"]
