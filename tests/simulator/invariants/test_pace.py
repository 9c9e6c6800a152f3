"""What is asked too often, too late or answered twice is noticed, where one line of the broker is wrong."""

from __future__ import annotations

import pytest

from tests.simulator.deviations import outcome_of_line


@pytest.mark.parametrize(
    ("oracle", "file", "source", "change", "drill"),
    [
        (
            "haste",
            "broker/core/replication/fetching/fetcher.py",
            "if now < self._pause_until:",
            "its branch is never taken",
            "silent_broker",
        ),
        (
            "haste",
            "broker/core/replication/fetching/fetcher.py",
            "lost = isinstance(response, FetchResponse)",
            "without 'response.error in _SESSION_ERRORS'",
            "answers_of_a_leader",
        ),
        (
            "idle",
            "broker/core/quorum/follower.py",
            "self._ctx.wait(RETRY, self._ctx.config.quorum_retry_backoff_ms, self._fetch)",
            "is left out",
            "quorum",
        ),
        (
            "twice",
            "broker/core/requests/delete_records.py",
            "self._waiting.pop(request_id, None)",
            "is left out",
            "deadlines",
        ),
        (
            "Q07",
            "broker/core/quorum/voter.py",
            "if granted and not request.pre_vote and self.state.voted_for",
            "without 'not request.pre_vote'",
            "quorum",
        ),
    ],
)
def test_a_wrong_line_is_noticed(oracle: str, file: str, source: str, change: str, drill: str) -> None:
    outcome = outcome_of_line(file, source, change, drill, 6)
    assert outcome.oracle == oracle, outcome.line
