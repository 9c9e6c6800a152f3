"""What a broker owes, and what it keeps, is noticed at once, where one line of the broker is wrong."""

from __future__ import annotations

import pytest

from tests.simulator.deviations import outcome_of_line
from wrackline.simulator.mutants.command import all_mutations, outcome_of

REPLICATION = "broker/core/replication/"
LEFT_OUT = "is left out"


@pytest.mark.parametrize(
    ("oracle", "file", "source", "change", "drill"),
    [
        ("wait", f"{REPLICATION}replica.py", "self.touch()", LEFT_OUT, "long_poll"),
        (
            "image",
            f"{REPLICATION}replica.py",
            "if self.settings.on_disk != before.on_disk:",
            "!= becomes ==",
            "settings_in_force",
        ),
        (
            "answer",
            f"{REPLICATION}alter_partition.py",
            "leader.answered(replica, item, result)",
            "arguments 2 and 3 in the other order",
            "laggard",
        ),
        (
            "answer",
            f"{REPLICATION}alter_partition.py",
            "if not overtaken or",
            "its branch is never taken",
            "laggard",
        ),
        ("answer", f"{REPLICATION}uplink.py", "if asked != self.controller_id:", "!= becomes ==", "quorum"),
        (
            "asleep",
            f"{REPLICATION}fetching/fetcher.py",
            "self._wake_at(self._pause_until)",
            LEFT_OUT,
            "silent_broker",
        ),
    ],
)
def test_a_wrong_line_is_noticed(oracle: str, file: str, source: str, change: str, drill: str) -> None:
    outcome = outcome_of_line(file, source, change, drill, 6)
    assert outcome.oracle == oracle, outcome.line


@pytest.mark.parametrize(
    ("oracle", "file", "source", "change", "seed"),
    [
        # Metadata that the leader has heard already, by the answer to an earlier proposal, ends none (B17).
        ("flapping", "partitions.py", "metadata.applies(", "or becomes and", 1),
        ("asleep", "alter_partition.py", "leader.proposal is item:", "its branch is never taken", 20),
        ("haste", "alter_partition.py", "if not self._changes.proposed", "without 'self._waiting'", 8),
    ],
)
def test_a_proposal_is_sent_until_it_is_decided(
    oracle: str, file: str, source: str, change: str, seed: int
) -> None:
    mutation = next(
        each
        for each in all_mutations(f"{REPLICATION}{file}")
        if source in each.source and each.change == change
    )
    outcome = outcome_of(mutation, {"seed": seed, "runs": 60, "cpu_s": 60})
    assert outcome.oracle == oracle, outcome.line
