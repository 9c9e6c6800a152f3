"""A history answers questions without being read as a whole."""

from __future__ import annotations

import pytest

from tests.harness.report import synthetic_run
from wrackline.checkers.explain.operations import pair
from wrackline.history.excerpts import History
from wrackline.history.model import Type

S = synthetic_run.S


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    run_dir = synthetic_run.write_run(tmp_path_factory.mktemp("runs") / synthetic_run.TEST_ID)
    return History([run_dir / "history.parquet"])


def test_the_history_answers_without_reading_more_than_asked(history: History) -> None:
    rows = history.by_index([5, 9, 10**9])
    assert sorted(rows) == [5, 9]
    window = history.between(20 * S, 21 * S, 10_000)
    assert 100 < len(window) < 400
    assert all(e.event.process >= 0 for e in window)
    assert len(history.between(20 * S, 21 * S, 7)) == 7
    drains = [e for e in history.between(54 * S, 55 * S, 100) if e.event.f == "drain" and e.records]
    assert drains
    assert all(e.records > 1_000 and len(e.event.records) == 8 for e in drains)


def test_an_operation_that_outlives_the_window_is_still_found(history: History) -> None:
    window = pair(history.between(int(12.6 * S), int(12.7 * S), 10_000))
    late = [op for op in window if op.end_ns is not None and op.end_ns > 13 * S]
    assert late
    assert all(op.begin_ns <= 12.7 * S for op in late)


def test_an_invocation_finds_its_completion(history: History) -> None:
    invokes = [e.event for e in history.between(30 * S, int(30.1 * S), 1_000) if e.event.type is Type.INVOKE]
    found = history.completions(invokes)
    assert len(found) == len(invokes) > 3
    for invoke in invokes:
        done = found[invoke.index].event
        assert done.process == invoke.process
        assert done.time_ns - (done.latency_ns or 0) == invoke.time_ns
