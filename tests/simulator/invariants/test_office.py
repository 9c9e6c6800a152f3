"""What an active controller owes is noticed at once, where one line of the controller is wrong."""

from __future__ import annotations

import pytest

from tests.simulator.deviations import outcome_of_line

CONTROLLER = "broker/core/controller/"


@pytest.mark.parametrize(
    ("oracle", "file", "source", "change", "drill"),
    [
        ("commit", "controller.py", "if last < self.log.high_watermark:", "< becomes <=", "life_of_a_topic"),
        ("session", "controller.py", "self._sessions_armed = False", "is left out", "silent_broker"),
        (
            "speculation",
            "unclean_recovery.py",
            "if partition is None or partition.leader != NO_LEADER:",
            "without 'partition.leader != NO_LEADER'",
            "partition_without_a_leader",
        ),
        (
            "leaderless",
            "decisions/brokers.py",
            "elect_leaderless(draft, broker.id)",
            "is left out",
            "partition_without_a_leader",
        ),
    ],
)
def test_a_wrong_line_is_noticed(oracle: str, file: str, source: str, change: str, drill: str) -> None:
    outcome = outcome_of_line(CONTROLLER + file, source, change, drill, 20, place=-1)
    assert outcome.oracle == oracle, outcome.line
