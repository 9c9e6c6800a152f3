"""Fetch sessions at the server (KIP-227, docs/protocol.md 2.13), and with the follower's side together."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.driver import Cluster
from tests.broker.core.solo import TOPIC_ID, Solo, T, log_of
from wrackline.broker.model.batches import batch
from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ForgottenPartition,
    ProducePartition,
    ProduceRequest,
)
from wrackline.broker.model.metadata.records import PartitionRecord, TopicRecord
from wrackline.broker.model.types import TopicPartition

T1 = TopicPartition("t", 1)
FULL, CLOSE = 0, -1


def two_partitions(**changes: Any) -> Solo:
    """A leader of t-0 (two records, all committed) and of t-1 (empty)."""
    solo = Solo(log=log_of([0, 0]), isr=(1,), min_isr=1, high_watermark=2, **changes)
    solo.metadata(PartitionRecord(1, TOPIC_ID, (1,), (1,), 1, 0, partition_epoch=0))
    return solo


def part(tp: TopicPartition, offset: int) -> FetchPartition:
    return FetchPartition(tp, offset, 1 << 20)


def ask(
    solo: Solo,
    session: tuple[int, int],
    *parts: FetchPartition,
    forgotten: tuple[ForgottenPartition, ...] = (),
    wait_ms: int = 0,
    replica: int = -1,
) -> int:
    request = FetchRequest(wait_ms, 1, 1 << 20, parts, replica, -1, *session, forgotten)
    return solo.ask(request)


def answer(solo: Solo, session: tuple[int, int], *parts: FetchPartition, **more: Any) -> FetchResponse:
    response = solo.replies[ask(solo, session, *parts, **more)]
    assert isinstance(response, FetchResponse)
    return response


def told(response: FetchResponse) -> list[TopicPartition]:
    assert response.error is ErrorCode.none
    return [result.tp for result in response.partitions]


# --- at the server ------------------------------------------------------------------------------------------


def test_only_what_changed_is_answered() -> None:
    solo = two_partitions()
    first = answer(solo, (0, FULL), part(T, 2), part(T1, 0))
    assert told(first) == [T, T1], "a full request is answered in full"
    session = first.session_id
    assert session > 0
    assert told(answer(solo, (session, 1))) == []
    solo.produce(b"x", acks=1)
    assert told(answer(solo, (session, 2))) == [T]
    assert told(answer(solo, (session, 3), part(T, 3))) == [], (
        "its high watermark is known from the last answer"
    )
    assert told(answer(solo, (session, 4), part(T, 2))) == [T], "asked anew from before the end"


def test_partitions_come_and_go() -> None:
    solo = two_partitions()
    session = answer(solo, (0, FULL), part(T, 0)).session_id
    assert told(answer(solo, (session, 1), part(T1, 0))) == [T, T1]
    gone = (ForgottenPartition(T),)
    assert told(answer(solo, (session, 2), forgotten=gone)) == []
    solo.produce(b"x", acks=1)
    assert told(answer(solo, (session, 3))) == []
    last = answer(solo, (session, 4), forgotten=(ForgottenPartition(T1),))
    assert last.session_id == 0, "with nothing left in it the session ends"
    assert answer(solo, (session, 5)).error is ErrorCode.fetch_session_id_not_found


def test_a_topic_that_is_known_by_its_id_alone_gets_its_name_later() -> None:
    """A follower may know of a topic before its leader does; its request has no name for it on arrival."""
    solo = two_partitions()
    later = UUID(int=78)
    unnamed = FetchPartition(TopicPartition("", 0), 0, 1 << 20, topic_id=later)
    first = answer(solo, (0, FULL), part(T, 2), unnamed)
    assert [one.error for one in first.partitions] == [ErrorCode.none, ErrorCode.unknown_topic_id]
    [still] = answer(solo, (first.session_id, 1)).partitions
    assert (still.error, still.topic_id) == (ErrorCode.unknown_topic_id, later)
    solo.metadata(TopicRecord("later", later), PartitionRecord(0, later, (1,), (1,), 1, 0, partition_epoch=0))
    [found] = answer(solo, (first.session_id, 2)).partitions
    assert (found.error, found.tp) == (ErrorCode.none, TopicPartition("later", 0))
    assert told(answer(solo, (first.session_id, 3))) == []


def test_an_error_is_told_every_time_and_its_end_too() -> None:
    solo = two_partitions()
    session = answer(solo, (0, FULL), part(T, 2), part(T1, 9)).session_id
    for epoch in (1, 2):
        response = answer(solo, (session, epoch))
        assert [(r.tp, r.error) for r in response.partitions] == [(T1, ErrorCode.offset_out_of_range)]
    assert told(answer(solo, (session, 3), part(T1, 0))) == [T1]
    assert told(answer(solo, (session, 4))) == []


def test_after_a_divergence_the_high_watermark_is_told_again() -> None:
    """A follower takes nothing but the divergence from such an answer; the partition may then stay idle."""
    solo = two_partitions()
    behind = FetchPartition(T, 5, 1 << 20, last_fetched_epoch=0)
    first = answer(solo, (0, FULL), behind)
    assert first.partitions[0].diverging is not None
    again = answer(solo, (first.session_id, 1), FetchPartition(T, 2, 1 << 20, last_fetched_epoch=0))
    assert [(r.diverging, r.high_watermark) for r in again.partitions] == [(None, 2)]


def test_a_partition_that_was_served_comes_last_in_the_next_answer() -> None:
    solo = two_partitions()
    session = answer(solo, (0, FULL), part(T, 0), part(T1, 0)).session_id
    solo.ask(_produce_to(T1))
    assert told(answer(solo, (session, 1), part(T, 0))) == [T1, T]


def _produce_to(tp: TopicPartition) -> Any:
    return ProduceRequest(1, 1_000, (ProducePartition(tp, batch.build([b"y"], 0, -1, 0)),))


def test_wrong_ids_and_epochs_are_refused_and_change_nothing() -> None:
    solo = two_partitions()
    session = answer(solo, (0, FULL), part(T, 2)).session_id
    for wrong in (2, 1_000_000):
        refused = answer(solo, (session, wrong), part(T, 0))
        assert (refused.error, refused.partitions) == (ErrorCode.invalid_fetch_session_epoch, ())
    assert answer(solo, (session + 1, 1)).error is ErrorCode.fetch_session_id_not_found
    assert answer(solo, (0, 1)).error is ErrorCode.fetch_session_id_not_found
    stranger = answer(solo, (session, 1), replica=2)
    assert stranger.error is ErrorCode.fetch_session_id_not_found, "another's session"
    assert told(answer(solo, (session, 1))) == []


def test_a_full_request_replaces_the_session_and_a_final_one_ends_it() -> None:
    solo = two_partitions()
    first = answer(solo, (0, FULL), part(T, 2)).session_id
    second = answer(solo, (first, FULL), part(T, 2)).session_id
    assert second not in (0, first)
    assert answer(solo, (first, 1)).error is ErrorCode.fetch_session_id_not_found
    last = answer(solo, (second, CLOSE), part(T, 0))
    assert (told(last), last.session_id) == ([T], 0)
    assert answer(solo, (second, 1)).error is ErrorCode.fetch_session_id_not_found
    assert answer(solo, (0, CLOSE), part(T, 0)).session_id == 0


def test_a_parked_request_of_a_session_wakes_by_any_of_its_partitions() -> None:
    solo = two_partitions()
    session = answer(solo, (0, FULL), part(T, 2), part(T1, 0)).session_id
    parked = ask(solo, (session, 1), wait_ms=500)
    assert parked not in solo.replies
    solo.produce(b"x", acks=1)
    response = solo.replies[parked]
    assert isinstance(response, FetchResponse)
    assert told(response) == [T]


def test_a_request_given_up_is_not_answered_out_of_its_session() -> None:
    """Its owner asked again: what the late answer told would count as known and never be said again."""
    solo = two_partitions()
    session = answer(solo, (0, FULL), part(T, 2), part(T1, 0)).session_id
    late = ask(solo, (session, 1), wait_ms=500)
    again = ask(solo, (session, 2), wait_ms=500)
    solo.produce(b"x", acks=1)
    lost, good = solo.replies[late], solo.replies[again]
    assert isinstance(lost, FetchResponse)
    assert (lost.error, lost.partitions) == (ErrorCode.invalid_fetch_session_epoch, ())
    assert isinstance(good, FetchResponse)
    assert told(good) == [T]


def test_a_deleted_topic_can_be_forgotten() -> None:
    """By its id: its name is not known any more."""
    solo = two_partitions()
    gone = UUID(int=5)
    wanted = FetchPartition(TopicPartition("", 0), 0, 1 << 20, topic_id=gone)
    session = answer(solo, (0, FULL), part(T, 2), wanted).session_id
    again = answer(solo, (session, 1))
    assert [result.error for result in again.partitions] == [ErrorCode.unknown_topic_id]
    forgotten = (ForgottenPartition(TopicPartition("", 0), gone),)
    assert told(answer(solo, (session, 2), forgotten=forgotten)) == []


# --- slots --------------------------------------------------------------------------------------------------


def test_without_slots_nobody_has_a_session() -> None:
    solo = two_partitions(max_incremental_fetch_session_cache_slots=0)
    assert answer(solo, (0, FULL), part(T, 2)).session_id == 0


def test_an_idle_session_makes_room_a_busy_one_does_not() -> None:
    solo = two_partitions(
        max_incremental_fetch_session_cache_slots=2, min_incremental_fetch_session_eviction_ms=1_000
    )
    idle = answer(solo, (0, FULL), part(T, 2)).session_id
    busy = answer(solo, (0, FULL), part(T, 2)).session_id
    assert answer(solo, (0, FULL), part(T, 2)).session_id == 0, "both are young"
    solo.wait(900)
    answer(solo, (busy, 1))
    solo.wait(200)
    assert answer(solo, (0, FULL), part(T, 2)).session_id > 0
    assert answer(solo, (busy, 2)).error is ErrorCode.none
    assert answer(solo, (idle, 1)).error is ErrorCode.fetch_session_id_not_found


# --- together -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [0, 1, 1_000])
def test_replication_works_with_any_number_of_slots(slots: int) -> None:
    c = Cluster(max_incremental_fetch_session_cache_slots=slots)
    c.create_topic("t", (1, 2, 3), (1, 2, 3), (2, 3, 1))
    for number in range(20):
        tp = TopicPartition("t", number % 3)
        assert c.produced(c.leader(tp), b"m%d" % number, tp=tp).error is ErrorCode.none
    c.run(300)
    for number in range(3):
        tp = TopicPartition("t", number)
        assert c.values(1, tp) == c.values(2, tp) == c.values(3, tp)
        marks = {c.replica(node, tp).high_watermark for node in (1, 2, 3)}
        assert marks == {c.replica(1, tp).log.leo}, "the last mark reaches followers of idle partitions too"


def test_a_restarted_leader_knows_no_session_and_followers_come_back() -> None:
    c = Cluster()
    c.create_topic()
    assert c.produced(1, b"a").error is ErrorCode.none
    c.kill(1)
    c.until(lambda: c.leader() in (2, 3))
    c.boot(1)
    c.until(lambda: c.isr() == {1, 2, 3})
    heir = c.leader()
    c.until(lambda: c.replica(heir).leader is not None)
    assert c.produced(heir, b"b").error is ErrorCode.none
    c.run(300)
    assert c.values(1) == c.values(2) == c.values(3) == [b"a", b"b"]
