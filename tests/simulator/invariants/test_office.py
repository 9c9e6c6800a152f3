"""What an active controller owes is noticed at once, where one line of the controller is wrong."""

from __future__ import annotations

import pytest

from tests.simulator.deviations import outcome_of_line

CONTROLLER = "broker/core/controller/"
RECOVERY = CONTROLLER + "unclean_recovery.py"


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


@pytest.mark.parametrize(
    ("file", "source", "change"),
    [
        (RECOVERY, "if any(key in self._attempts and", "without 'self._attempts[key].lacks(broker)'"),
        (RECOVERY, "peer.not_before_ms = now_ms + backoff_ms", "becomes 'now_ms - backoff_ms'"),
        (RECOVERY, "peer.failures = min(", "is left out"),
        ("broker/rules/leadership/recovery.py", "window_over and answered > 0", "is becomes is not"),
    ],
)
def test_a_wrong_pace_of_recoveries_is_noticed(file: str, source: str, change: str) -> None:
    outcome = outcome_of_line(file, source, change, "partition_without_a_leader", 20)
    assert outcome.oracle == "recovery", outcome.line
