"""What voters owe each other, and each server its copy of the metadata, is noticed at once, where one line of
the broker is wrong."""

from __future__ import annotations

import pytest

from tests.simulator.deviations import outcome_of_line

_LEFT_OUT = "is left out"
_TIMER = "self._ctx.out.append(SetTimer(parked.timer"


@pytest.mark.parametrize(
    ("oracle", "file", "source", "change", "drill"),
    [
        ("voter", "core/quorum/voter.py", "ctx.ask(voter, request, ctx.config", _LEFT_OUT, "quorum"),
        ("voter", "core/quorum/leader.py", "fetched: bool = False", "False becomes True", "quorum"),
        ("voter", "core/quorum/voter.py", "if request.epoch > self.epoch:", "> becomes >=", "quorum"),
        (
            "idle",
            "core/quorum/snapshot_fetching.py",
            "self._give_download_up(None)",
            _LEFT_OUT,
            "return_by_snapshot",
        ),
        ("voter", "core/quorum/leader.py", _TIMER, _LEFT_OUT, "silent_broker"),
        (
            "snapshot",
            "rules/placement/snapshots.py",
            ">= limit.records",
            ">= becomes >",
            "return_by_snapshot",
        ),
    ],
)
def test_a_wrong_line_is_noticed(oracle: str, file: str, source: str, change: str, drill: str) -> None:
    outcome = outcome_of_line(file, source, change, drill, 8, place=-1)
    assert outcome.oracle == oracle, outcome.line
