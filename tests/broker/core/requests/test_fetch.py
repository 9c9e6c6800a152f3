"""Reads at the leader, its followers played by hand (docs/protocol.md 2.2)."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from tests.broker.core.solo import TOPIC_ID, Solo, T, log_of
from wrackline.broker.model.batches import batch
from wrackline.broker.model.messages.requests import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    ProducePartition,
    ProduceRequest,
)
from wrackline.broker.model.types import LogSlice, TopicPartition


def test_readers_see_what_is_committed_and_followers_everything() -> None:
    solo = Solo()
    solo.produce(b"a")
    solo.produce(b"b")
    solo.fetch(2, 2)
    solo.fetch(3, 1)
    assert [h.base_offset for h, _ in batch.split(solo.fetched(-1, 0).records)] == [0]
    assert [h.base_offset for h, _ in batch.split(solo.fetched(2, 0).records)] == [0, 1]
    assert solo.fetched(-1, 2).error is ErrorCode.none, "above the high watermark, inside the log: wait"
    assert solo.fetched(-1, 3).error is ErrorCode.offset_out_of_range
    assert solo.fetched(-1, -1).error is ErrorCode.offset_out_of_range


def test_epochs_of_the_request_are_checked_first() -> None:
    solo = Solo(leader_epoch=5)
    assert solo.fetched(2, 0, leader_epoch=4).error is ErrorCode.fenced_leader_epoch
    assert solo.fetched(2, 0, leader_epoch=6).error is ErrorCode.unknown_leader_epoch
    assert solo.fetched(9, 0, leader_epoch=5).error is ErrorCode.unknown_leader_epoch
    assert solo.fetched(1, 0, leader_epoch=5).error is ErrorCode.unknown_leader_epoch, (
        "in the leader's own name"
    )
    assert solo.replica.leading.followers[2].leo == -1


def test_a_long_poll_is_answered_by_data_by_min_bytes_or_by_time() -> None:
    solo = Solo(isr=(1, 2))
    consumer, follower = solo.fetch(-1, 0, max_wait_ms=500), solo.fetch(2, 0, max_wait_ms=500)
    greedy = solo.fetch(-1, 0, max_wait_ms=500, min_bytes=10_000)
    solo.produce(b"a")
    assert follower in solo.replies
    assert consumer not in solo.replies, "not committed yet"
    solo.fetch(2, 1)
    assert consumer in solo.replies
    assert greedy not in solo.replies
    solo.wait(501)
    assert isinstance(solo.result(greedy).records, LogSlice)


def test_the_byte_limit_of_a_request_covers_all_its_partitions() -> None:
    from wrackline.broker.model.metadata.records import PartitionRecord

    solo = Solo(isr=(1,), min_isr=1)
    solo.metadata(PartitionRecord(1, TOPIC_ID, (1,), (1,), 1, 0, 0))
    other = TopicPartition("t", 1)
    for tp in (T, other):
        data = batch.build([b"x" * 500], 0, -1, 0)
        solo.ask(ProduceRequest(1, 1_000, (ProducePartition(tp, data),)))
    parts = tuple(FetchPartition(tp, 0, 1 << 20) for tp in (T, other))
    response: Any = solo.replies[solo.ask(FetchRequest(0, 1, 100, parts))]
    first, second = response.partitions
    assert first.records.at_least_one
    assert second.records == b""
    assert second.high_watermark == 1


def test_end_of_an_epoch() -> None:
    solo = Solo(log=log_of([1, 1, 3]), leader_epoch=4)
    ends = {1: (1, 2), 2: (1, 2), 3: (3, 3), 4: (4, 3), 0: (0, 0), 9: (-1, -1)}
    for epoch, end in ends.items():
        part = OffsetForLeaderEpochPartition(T, epoch)
        result = solo.result(solo.ask(OffsetForLeaderEpochRequest((part,))))
        assert (result.leader_epoch, result.end_offset) == end


def test_a_diverging_fetch_updates_nothing() -> None:
    """docs/protocol.md 2.2.4: the follower's state stays unknown, so nothing is committed by it."""
    solo = Solo(log=log_of([1, 1]), leader_epoch=3)
    result = solo.fetched(2, 2, last_epoch=2)
    assert result.diverging == EpochEndOffset(1, 2)
    assert result.records == b""
    assert solo.replica.leading.followers[2].leo == -1
    assert solo.fetched(2, 2, last_epoch=7).error is ErrorCode.offset_out_of_range
