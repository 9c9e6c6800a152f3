"""Fetch sessions at the follower (KIP-227, docs/protocol.md 2.13), and several fetchers side by side."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.solo import TOPIC_ID, Solo, T, change, log_of
from wrackline.broker.core.replication.fetching.fetcher_session import FetcherSession, Wishes
from wrackline.broker.model.effects import Send
from wrackline.broker.model.events import SendFailed
from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ForgottenPartition,
)
from wrackline.broker.model.metadata.records import PartitionChangeRecord, PartitionRecord
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.rules.leadership.sessions import INITIAL_EPOCH, SessionRules

T1 = TopicPartition("t", 1)


def follower() -> Solo:
    return Solo(2, leader=1)


def test_a_follower_asks_in_full_once_and_then_only_for_changes() -> None:
    solo = follower()
    first = solo.sent("fetcher-0", FetchRequest)
    asked = asked_in(first)
    assert (asked.session_id, asked.session_epoch) == (0, 0)
    assert [p.tp for p in asked.partitions] == [T]
    solo.answer(first, FetchResponse((), session_id=7))
    second = asked_in(solo.sent("fetcher-0", FetchRequest))
    assert (second.session_id, second.session_epoch) == (7, 1)
    assert second.partitions == ()
    assert dict(second.session_topics) == {TOPIC_ID: "t"}


@pytest.mark.parametrize(
    "error", [ErrorCode.fetch_session_id_not_found, ErrorCode.invalid_fetch_session_epoch]
)
def test_a_lost_session_is_replaced_at_once(error: ErrorCode) -> None:
    solo = follower()
    solo.answer(solo.sent("fetcher-0", FetchRequest), FetchResponse((), session_id=7))
    solo.answer(solo.sent("fetcher-0", FetchRequest), FetchResponse((), error))
    again = asked_in(solo.sent("fetcher-0", FetchRequest))
    assert (again.session_id, again.session_epoch, len(again.partitions)) == (7, 0, 1)


def test_a_lost_connection_ends_the_session() -> None:
    solo = follower()
    solo.answer(solo.sent("fetcher-0", FetchRequest), FetchResponse((), session_id=7))
    asked = solo.sent("fetcher-0", FetchRequest)
    solo.handle(SendFailed(asked.correlation, 1, "cut"))
    solo.wait(2_000)
    again = asked_in(solo.sent("fetcher-0", FetchRequest))
    assert (again.session_epoch, len(again.partitions)) == (0, 1)


def newest_to(solo: Solo, destination: int) -> Send:
    sent = [s for s in solo.sends if s.channel.startswith("fetcher-0") and s.destination == destination]
    return max(sent, key=lambda send: send.correlation)


def asked_in(send: Send) -> Any:
    assert isinstance(send.request, FetchRequest)
    return send.request


def test_a_partition_that_left_is_forgotten_at_the_leader() -> None:
    solo = Solo(2, leader=1, num_replica_fetchers=1)
    solo.metadata(PartitionRecord(1, TOPIC_ID, (1, 2), (1, 2), 1, 0, partition_epoch=0))
    newest = newest_to(solo, 1)
    assert {p.tp for p in asked_in(newest).partitions} == {T, T1}
    solo.metadata(change(leader=3, isr=(2, 3)))
    solo.answer(newest, FetchResponse((), session_id=9))
    asked = asked_in(newest_to(solo, 1))
    assert (asked.session_id, asked.session_epoch, asked.partitions) == (9, 1, ())
    assert asked.forgotten == (ForgottenPartition(T, TOPIC_ID),)


def test_a_partition_that_was_away_when_its_answer_came_is_asked_for_in_a_new_session() -> None:
    """The leader takes what it told for known: in the old session an idle partition's high watermark came
    never."""
    solo = Solo(2, leader=1, log=log_of([0, 0]), high_watermark=1)
    solo.answer(solo.sent("fetcher-0", FetchRequest), FetchResponse((), session_id=7))
    late = newest_to(solo, 1)
    solo.metadata(change(leader=3, isr=(2, 3)))
    told = FetchResult(T, high_watermark=2, last_stable_offset=2, log_start=0, topic_id=TOPIC_ID)
    solo.answer(late, FetchResponse((told,), session_id=7))
    assert solo.replica.high_watermark == 1, "the answer is to another state"
    solo.metadata(change(leader=1, isr=(1, 2)))
    asked = asked_in(newest_to(solo, 1))
    assert (asked.session_id, asked.session_epoch) == (7, 0)
    assert [p.tp for p in asked.partitions] == [T]


# --- several fetchers ---------------------------------------------------------------------------------------


def test_with_several_fetchers_every_partition_is_in_exactly_one() -> None:
    """I16, over leader changes: by the channel each full fetch goes out on."""
    solo = Solo(2, leader=1, num_replica_fetchers=3)
    others = [TopicPartition("t", number) for number in range(1, 12)]
    solo.metadata(
        *(
            PartitionRecord(tp.partition, TOPIC_ID, (1, 2, 3), (1, 2, 3), 1, 0, partition_epoch=0)
            for tp in others
        )
    )
    assert {len(home) for home in homes(solo).values()} == {1}
    assert len(homes(solo)) == 12
    assert {channel for home in homes(solo).values() for _, channel in home} == {
        "fetcher-0",
        "fetcher-1",
        "fetcher-2",
    }, "all of them have work"
    moved = [tp.partition for tp in others[::2]]
    solo.metadata(*(PartitionChangeRecord(number, TOPIC_ID, leader=3) for number in moved))
    for send in list(solo.sends):
        if isinstance(send.request, FetchRequest) and send.channel.startswith("fetcher"):
            solo.sends.remove(send)
            solo.answer(send, FetchResponse(()))
    now = homes(solo)
    assert {len(home) for home in now.values()} == {1}
    assert {tp.partition for tp, home in now.items() if {to for to, _ in home} == {3}} == set(moved)


def homes(solo: Solo) -> dict[TopicPartition, set[tuple[int, str]]]:
    """Partition -> (destination, fetcher) of the newest request of each fetcher."""
    newest: dict[tuple[int, str], FetchRequest] = {}
    for send in sorted(solo.sends, key=lambda send: send.correlation):
        if isinstance(send.request, FetchRequest) and send.channel.startswith("fetcher"):
            newest[send.destination, send.channel.partition(".")[0]] = send.request
    found: dict[TopicPartition, set[tuple[int, str]]] = {}
    for home, request in newest.items():
        for wanted in request.partitions:
            found.setdefault(wanted.tp, set()).add(home)
    return found


def test_the_slot_of_a_partition_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from wrackline.broker.core.replication.fetching.fetcher import slot_of; "
        "from wrackline.broker.model.types import TopicPartition as T;"
        "print([slot_of(T('topic', n), 5) for n in range(20)])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(seen) == 1


def test_the_answer_to_a_request_does_not_bring_back_a_session_that_was_reset_meanwhile() -> None:
    """A partition came while the request was under way: what the leader has then is not known."""
    session = FetcherSession(SessionRules(), outlives_stay=False)
    part = FetchPartition(TopicPartition("t", 1), 0, 100)
    session.ask((part,))
    session.not_taken()
    session.answered(FetchResponse((), session_id=7))
    assert session.ask((part,)) == Wishes(7, INITIAL_EPOCH, (part,))
