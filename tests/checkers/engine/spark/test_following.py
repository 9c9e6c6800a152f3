"""Somebody who waits for an analysis is told once a second what it is at and how far."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from wrackline.checkers.engine.spark import following
from wrackline.checkers.engine.spark.following import followed


class Tracker:
    """Two stages under way, one of which has just ended and is not known any more."""

    def getActiveStageIds(self) -> list[int]:
        return [3, 4]

    def getStageInfo(self, stage: int) -> Any:
        return SimpleNamespace(numTasks=12, numCompletedTasks=5) if stage == 3 else None


def test_it_says_what_it_is_at_and_how_many_parts_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.01)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=Tracker))
    said: list[str] = []
    with followed(spark, said.append) as at:
        at("3 runs, 1,234 events: reading")
        deadline = time.monotonic() + 10
        while len(said) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert said[0] == "3 runs, 1,234 events: reading"
    assert said[1] == "3 runs, 1,234 events: reading, 0 s, 5 of 12 parts done"
    after = len(said)
    time.sleep(0.05)
    assert len(said) == after, "nothing is told when it is over"
