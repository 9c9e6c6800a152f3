"""What a broker answers to those who read is noticed at once, where one line of the broker is wrong."""

from __future__ import annotations

import pytest

from wrackline.simulator.mutants.command import all_mutations, outcome_of

FETCH = "broker/core/requests/fetch.py"
OFFSETS = "broker/core/requests/offsets.py"


@pytest.mark.parametrize(
    ("file", "source", "change"),
    [
        (FETCH, "if end is None or part.fetch_offset < log.log_start:", "< becomes <="),
        ("broker/rules/replication/reads.py", "if log_start <= offset <= leo", "its first choice always"),
        (OFFSETS, "end = replica.high_watermark if consumer else log.leo", "its second choice always"),
        (OFFSETS, "consumer and not may_show", "its branch is never taken"),
        ("broker/core/requests/fetch_sessions.py", "session.take(request)", "is left out"),
    ],
)
def test_a_wrong_line_is_noticed(file: str, source: str, change: str) -> None:
    mutation = next(each for each in all_mutations(file) if source in each.source and each.change == change)
    outcome = outcome_of(mutation, {"seed": 1, "runs": 30, "cpu_s": 60})
    assert outcome.oracle == "read", outcome.line
