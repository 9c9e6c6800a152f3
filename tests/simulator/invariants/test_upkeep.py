"""What a server owes by the clock and at its end is noticed, where one line of it is wrong."""

from __future__ import annotations

import pytest

from tests.simulator.deviations import outcome_of_line

LIFE, PERIODIC = "broker/core/lifecycle.py", "broker/core/controller/periodic.py"


@pytest.mark.parametrize(
    ("oracle", "file", "source", "change", "drill"),
    [
        ("timer", "broker/core/maintenance.py", 'repeat("isr-shrink"', "is left out", "producer_ids"),
        (
            "checkpoint",
            "broker/core/maintenance.py",
            "self.write(Checkpoint.RECOVERY_POINT",
            "is left out",
            "silent_broker",
        ),
        ("retention", "broker/core/maintenance.py", "if not settings.retains_all", "without not", "laggard"),
        ("heartbeat", LIFE, "if response.is_fenced != self._fenced:", "!= becomes ==", "producer_ids"),
        ("end", "broker/core/broker.py", "Exit(0,", "0 becomes 1", "controlled_shutdown"),
        ("idle log", PERIODIC, "if draft.next_offset == self._end_at_noop:", "== becomes !=", "rest"),
        (
            "drill",
            "broker/rules/placement/growth.py",
            "if gap >= -1:",
            ">= becomes >",
            "growth_of_a_topic",
        ),
        (
            "drill",
            "broker/core/controller/decisions/features.py",
            "if image.level is None and not",
            "without 'image.configs'",
            "refused_features",
        ),
    ],
)
def test_a_wrong_line_is_noticed(oracle: str, file: str, source: str, change: str, drill: str) -> None:
    outcome = outcome_of_line(file, source, change, drill, 12)
    assert outcome.oracle == oracle, outcome.line
