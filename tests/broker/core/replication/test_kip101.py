"""Followers of profile kip101: they ask where their epoch ends, cut, ask again, and only then fetch (2.11,
H14, H15)."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.replication.test_following import VECTORS
from tests.broker.core.solo import Solo, T, change, log_of
from wrackline.broker.model.events import SendFailed
from wrackline.broker.model.messages.requests import (
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResult,
)

EPOCHS_CHANNEL = "fetcher-epochs"


def follower(epochs: list[int], leader_epoch: int = 3, **more: Any) -> Solo:
    return Solo(
        2, log=log_of(epochs, value="f"), leader=1, leader_epoch=leader_epoch, profile="kip101", **more
    )


@pytest.mark.parametrize(
    ("leader_epochs", "current", "own", "cut", "questions"),
    [
        *((leader, current, own, cut, 1) for leader, current, own, _, cut in VECTORS),
        ([1, 3, 5, 5], 5, [1, 2, 4, 4], 1, 2),
    ],
    ids=[*"ABCDEFG", "asks again"],
)
def test_followers_truncate_as_the_divergence_vectors_say(
    leader_epochs: list[int], current: int, own: list[int], cut: int, questions: int
) -> None:
    """Those of docs/protocol.md 2.3, and one in which the leader knows nothing of the follower's last epoch
    (KIP-279)."""
    leader = Solo(1, log=log_of(leader_epochs), leader_epoch=current)
    solo = follower(own, current)
    assert not solo.has_sent("fetcher-0"), "nothing is fetched before the answer"
    for _ in range(questions):
        solo.ask_epoch_end(leader)
    assert solo.replica.log.leo == cut
    assert not solo.has_sent(EPOCHS_CHANNEL)
    (part,) = solo.sends[-1].request.partitions  # type: ignore[union-attr]
    assert part.last_fetched_epoch == -1  # type: ignore[union-attr]
    for _ in range(4):
        solo.fetch_from(leader)
    assert solo.disk.logs[T].epochs_of_offsets() == leader_epochs
    assert solo.disk.logs[T].values()[cut:] == leader.disk.logs[T].values()[cut:]


def test_an_empty_log_has_nothing_to_ask() -> None:
    solo = follower([])
    assert not solo.has_sent(EPOCHS_CHANNEL)
    assert solo.has_sent("fetcher-0")


@pytest.mark.parametrize("how", ["lost", "refused"])
def test_a_question_without_answer_is_asked_again(how: str) -> None:
    solo = follower([1, 1])
    send = solo.sent(EPOCHS_CHANNEL)
    if how == "lost":
        solo.handle(SendFailed(send.correlation, 1, "timed out"))
    else:
        result = OffsetForLeaderEpochResult(T, ErrorCode.unknown_leader_epoch)
        solo.answer(send, OffsetForLeaderEpochResponse((result,)))
    assert not solo.has_sent("fetcher-0")
    solo.wait(1_500)
    assert solo.has_sent(EPOCHS_CHANNEL)
    assert not solo.has_sent("fetcher-0")
    assert solo.replica.log.leo == 2


def test_an_answer_of_a_former_leader_epoch_cuts_nothing() -> None:
    solo = follower([1, 1])
    late = solo.sent(EPOCHS_CHANNEL)
    solo.metadata(change(leader=3))
    solo.answer(
        late, OffsetForLeaderEpochResponse((OffsetForLeaderEpochResult(T, leader_epoch=1, end_offset=0),))
    )
    assert solo.replica.log.leo == 2
    assert solo.has_sent(EPOCHS_CHANNEL), "the new leader is asked"


def test_a_leader_that_knows_nothing_of_us_leaves_it_to_the_fetch() -> None:
    solo = follower([1, 1])
    solo.answer(solo.sent(EPOCHS_CHANNEL), OffsetForLeaderEpochResponse((OffsetForLeaderEpochResult(T),)))
    assert solo.replica.log.leo == 2
    assert solo.has_sent("fetcher-0")
