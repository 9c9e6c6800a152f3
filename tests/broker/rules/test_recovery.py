"""The rules of unclean recovery: the best log wins, and which answers count (docs/protocol.md 2.9)."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.controller import ReplicaLogInfo
from wrackline.broker.model.types import RecoveryStrategy
from wrackline.broker.rules.leadership.election import Recovery
from wrackline.broker.rules.leadership.recovery import LogEnd, RecoveryRules, Verdict

ENDS = [
    ({1: (4, 9), 2: (5, 3)}, 2),  # a later epoch beats a longer log
    ({1: (5, 3), 2: (5, 4), 3: (4, 90)}, 2),
    ({3: (5, 4), 2: (5, 4)}, 2),  # tie: the lowest id
    ({2: (-1, 0), 3: (0, 1)}, 3),
    ({3: (-1, 0)}, 3),
]


@pytest.mark.parametrize(("ends", "winner"), ENDS)
def test_the_best_log_wins(ends: dict[int, tuple[int, int]], winner: int) -> None:
    assert RecoveryRules().winner(LogEnd(b, 0, *end) for b, end in ends.items()) == winner


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(-1, 3), st.integers(0, 3)),
        min_size=1,
        unique_by=lambda e: e[0],
    )
)
def test_nobody_has_a_better_log_than_the_winner(ends: list[tuple[int, int, int]]) -> None:
    winner = RecoveryRules().winner(LogEnd(b, 0, epoch, leo) for b, epoch, leo in ends)
    (best,) = (end for end in ends if end[0] == winner)
    assert all(
        (epoch, leo) < best[1:] or ((epoch, leo) == best[1:] and b >= winner) for b, epoch, leo in ends
    )


@pytest.mark.parametrize(
    ("broker_epoch", "current_leader_epoch", "error", "verdict"),
    [
        (9, 5, ErrorCode.none, Verdict.COUNTS),
        (8, 5, ErrorCode.none, Verdict.ASK_AGAIN),
        (8, 6, ErrorCode.none, Verdict.ASK_AGAIN),
        (9, 6, ErrorCode.none, Verdict.ABORT),
        (9, 4, ErrorCode.none, Verdict.ASK_AGAIN),
        (9, 5, ErrorCode.kafka_storage_error, Verdict.UNUSABLE),
        (8, 5, ErrorCode.kafka_storage_error, Verdict.ASK_AGAIN),
        (-1, 5, ErrorCode.none, Verdict.ASK_AGAIN),
    ],
)
def test_which_answers_count(
    broker_epoch: int, current_leader_epoch: int, error: ErrorCode, verdict: Verdict
) -> None:
    info = ReplicaLogInfo(UUID(int=1), 0, 3, current_leader_epoch, 10, error)
    assert RecoveryRules().judge(info, broker_epoch, registered_epoch=9, leader_epoch=5) is verdict


def test_only_balanced_inspects_and_only_when_nobody_is_missing() -> None:
    rules, ready, waiting = RecoveryRules(), Recovery((2, 3), ()), Recovery((2, 3), (3,))
    assert rules.may_inspect(RecoveryStrategy.BALANCED, ready)
    assert not rules.may_inspect(RecoveryStrategy.BALANCED, waiting)
    assert not rules.may_inspect(RecoveryStrategy.BALANCED, Recovery((), ()))
    assert not rules.may_inspect(RecoveryStrategy.MANUAL, ready)
