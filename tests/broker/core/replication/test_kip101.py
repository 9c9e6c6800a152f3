"""Followers of profile kip101: they ask where their epoch ends, cut, ask again, and only then fetch (2.11,
H14, H15)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.solo import Solo, T, change, log_of
from wrackline.broker.model.events import SendFailed
from wrackline.broker.model.messages.requests import (
    FetchRequest,
    FetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResult,
)
from wrackline.broker.model.types import LogSlice

EPOCHS_CHANNEL = "fetcher-epochs"


def follower(epochs: list[int], leader_epoch: int = 3, **more: Any) -> Solo:
    return Solo(
        2, log=log_of(epochs, value="f"), leader=1, leader_epoch=leader_epoch, profile="kip101", **more
    )


def ask_on(leader: Solo, solo: Solo) -> OffsetForLeaderEpochResult:
    send = solo.sent(EPOCHS_CHANNEL, OffsetForLeaderEpochRequest)
    response = leader.replies[leader.ask(send.request)]
    assert isinstance(response, OffsetForLeaderEpochResponse)
    solo.answer(send, response)
    return response.partitions[0]


def fetch_on(leader: Solo, solo: Solo) -> None:
    send = solo.sent("fetcher-0")
    assert isinstance(send.request, FetchRequest)
    assert all(part.last_fetched_epoch == -1 for part in send.request.partitions)
    request = replace(send.request, max_wait_ms=0, session_id=0, session_epoch=-1)
    result = leader.result(leader.ask(request))
    if isinstance(result.records, LogSlice):
        result = replace(result, records=leader.disk.read(result.records))
    solo.answer(send, FetchResponse((result,)))


@pytest.mark.parametrize(
    ("leader_epochs", "current", "own", "cut", "questions"),
    [
        pytest.param([1, 1, 1, 1], 2, [1, 1], 2, 1, id="A"),
        pytest.param([1, 1, 2, 2], 2, [1, 1], 2, 1, id="B"),
        pytest.param([1, 1], 2, [1, 1, 1, 1], 2, 1, id="C"),
        pytest.param([1, 1], 3, [1, 1, 2, 2], 2, 1, id="D"),
        pytest.param([1, 1, 3, 3], 3, [1, 1, 2, 2], 2, 1, id="E"),
        pytest.param([1, 1], 3, [1, 2], 1, 1, id="F"),
        pytest.param([1, 3], 3, [2, 2], 0, 1, id="G"),
        pytest.param([1, 3, 5, 5], 5, [1, 2, 4, 4], 1, 2, id="asks again"),
    ],
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
        ask_on(leader, solo)
    assert solo.replica.log.leo == cut
    assert not solo.has_sent(EPOCHS_CHANNEL)
    for _ in range(4):
        fetch_on(leader, solo)
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
