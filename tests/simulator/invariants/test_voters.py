"""What voters owe each other, and each server its copy of the metadata, is noticed at once, where one line of
the broker is wrong."""

from __future__ import annotations

import pytest

from wrackline.simulator.mutants.command import all_mutations, outcome_of

_LEFT_OUT = "is left out"
_TIMER = "self._ctx.out.append(SetTimer(parked.timer"


@pytest.mark.parametrize(
    ("oracle", "file", "source", "change", "drill"),
    [
        ("voter", "core/quorum/voter.py", "ctx.ask(voter, request, ctx.config", _LEFT_OUT, "quorum"),
        ("voter", "core/quorum/leader.py", "fetched: bool = False", "False becomes True", "quorum"),
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
    places = [one for one in all_mutations(file) if source in one.source and one.change == change]
    outcome = outcome_of(places[-1], {"drills": drill, "runs": 8, "cpu_s": 60})
    assert outcome.oracle == oracle, outcome.line
