"""What an active controller owes is noticed at once, where one line of the controller is wrong."""

from __future__ import annotations

import pytest

from wrackline.simulator.mutants.command import all_mutations, outcome_of

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
    places = [
        one for one in all_mutations(CONTROLLER + file) if source in one.source and one.change == change
    ]
    outcome = outcome_of(places[-1], {"drills": drill, "runs": 20, "cpu_s": 60})
    assert outcome.oracle == oracle, outcome.line
