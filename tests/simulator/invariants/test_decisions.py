"""What a controller answers is noticed at once, where one line of its decision is wrong."""

from __future__ import annotations

import pytest

from tests.simulator.deviations import outcome_of_line

BROKERS, REGISTRATION = (
    "broker/core/controller/decisions/brokers.py",
    "broker/rules/leadership/registration.py",
)
ISR = "broker/rules/replication/isr.py"


@pytest.mark.parametrize(
    ("file", "source", "change", "drill"),
    [
        (REGISTRATION, "existing.fenced or", "without 'existing.in_controlled_shutdown'", "refused_brokers"),
        (REGISTRATION, "existing.fenced or", "or becomes and", "refused_brokers"),
        (ISR, "len(set(isr))", "without 'not set(isr) <= set(partition.replicas)'", "refused_brokers"),
        (ISR, "len(isr) > 1", "> becomes >=", "refused_brokers"),
        (ISR, "return epoch in (-1", "in becomes not in", "refused_brokers"),
        (BROKERS, "session.shutdown_offset = draft.next", "is left out", "shutdown_of_a_leader"),
        (BROKERS, "draft.add(ProducerIdsRecord", "is left out", "refused_brokers"),
        (
            "broker/rules/leadership/rebalance.py",
            "in partition.isr and",
            "and becomes or",
            "refused_brokers",
        ),
        (
            "broker/core/controller/decisions/reassignments.py",
            "if len(set(target)) != len(target):",
            "its branch is never taken",
            "moves_of_replicas",
        ),
    ],
)
def test_a_wrong_decision_is_noticed(file: str, source: str, change: str, drill: str) -> None:
    outcome = outcome_of_line(file, source, change, drill, 8)
    assert outcome.oracle == "decision", outcome.line
