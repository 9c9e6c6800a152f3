"""The follower, its leader played by hand: what it asks, what it accepts, where it cuts
(docs/protocol.md 2.3, 2.11)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.solo import EPOCHS, TOPIC_ID, Solo, T, change, log_of
from wrackline.broker.model.batches import batch
from wrackline.broker.model.effects import Send
from wrackline.broker.model.events import (
    DiskFailed,
    Flushed,
    LogCut,
    LogsClosed,
    SendFailed,
    StopRequested,
    TimerFired,
)
from wrackline.broker.model.messages.controller import BrokerHeartbeatResponse
from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    Refused,
)
from wrackline.broker.model.metadata.records import PartitionRecord, RemoveTopicRecord, TopicRecord
from wrackline.broker.model.types import NO_LEADER, FlushMode, TopicPartition


def follower(epochs: list[int], leader_epoch: int = 3, **more: Any) -> Solo:
    return Solo(2, log=log_of(epochs, value="f"), leader=1, leader_epoch=leader_epoch, **more)


def asked(solo: Solo, channel: str = "fetcher-0") -> tuple[Send, Any]:
    send = solo.sent(channel)
    assert isinstance(send.request, FetchRequest)
    (part,) = send.request.partitions
    return send, part


def answer(solo: Solo, send: Send, **fields: Any) -> None:
    solo.answer(send, FetchResponse((FetchResult(T, **fields),)))


def records(offset: int, epoch: int, *values: bytes) -> bytes:
    return batch.build(values or (b"x",), offset, epoch, 0)


# --- divergence (docs/protocol.md 2.3) -------------------------------------------------------------------


VECTORS: list[tuple[list[int], int, list[int], EpochEndOffset | None, int]] = [
    ([1, 1, 1, 1], 2, [1, 1], None, 2),
    ([1, 1, 2, 2], 2, [1, 1], None, 2),
    ([1, 1], 2, [1, 1, 1, 1], EpochEndOffset(1, 2), 2),
    ([1, 1], 3, [1, 1, 2, 2], EpochEndOffset(1, 2), 2),
    ([1, 1, 3, 3], 3, [1, 1, 2, 2], EpochEndOffset(1, 2), 2),
    ([1, 1], 3, [1, 2], EpochEndOffset(1, 2), 1),
    ([1, 3], 3, [2, 2], EpochEndOffset(1, 1), 0),
]
"""A to G: the leader's epochs by offset, its current one, the follower's epochs, the answer, the cut."""


@pytest.mark.parametrize(("leader_epochs", "current", "own", "diverging", "cut"), VECTORS, ids="ABCDEFG")
def test_divergence_vectors(
    leader_epochs: list[int], current: int, own: list[int], diverging: EpochEndOffset | None, cut: int
) -> None:
    """Leader and follower are real brokers; afterwards the follower catches up to the leader's very log."""
    leader = Solo(1, log=log_of(leader_epochs), leader_epoch=current)
    solo = follower(own, current)
    result = solo.fetch_from(leader)
    assert result.diverging == diverging
    if diverging is not None:
        assert solo.replica.log.leo == cut
    for _ in range(4):
        solo.fetch_from(leader)
    assert solo.disk.logs[T].epochs_of_offsets() == leader_epochs
    assert solo.disk.logs[T].values()[cut:] == leader.disk.logs[T].values()[cut:]
    scan = [entry for entry in leader.disk.logs[T].epochs if entry.start_offset < len(leader_epochs)]
    assert list(solo.disk.logs[T].epochs) == scan


def test_an_epoch_in_which_nothing_was_written_is_dropped_too() -> None:
    """KAFKA-10706: the cache is cut even when the log is not shortened, or the divergence never ends."""
    leader = Solo(1, log=log_of([1, 1]), leader_epoch=4)
    solo = Solo(2, log=log_of([1, 1]), leader=2, leader_epoch=3)
    assert [tuple(entry) for entry in solo.disk.logs[T].epochs] == [(1, 0), (3, 2)]
    solo.metadata(change(leader=1))
    assert solo.fetch_from(leader).diverging == EpochEndOffset(1, 2)
    assert [tuple(entry) for entry in solo.disk.logs[T].epochs] == [(1, 0)]
    assert solo.fetch_from(leader).diverging is None


def test_a_diverging_answer_moves_no_high_watermark() -> None:
    """KAFKA-14704, B27."""
    solo = follower([1, 2])
    send, _ = asked(solo)
    answer(solo, send, diverging=EpochEndOffset(1, 1), high_watermark=2)
    assert (solo.replica.log.leo, solo.replica.high_watermark) == (1, 0)


# --- asking and accepting -----------------------------------------------------------------------------------


def test_what_a_follower_asks() -> None:
    """K13."""
    solo = follower([1, 1, 2])
    send, part = asked(solo)
    assert send.destination == 1
    assert (part.fetch_offset, part.last_fetched_epoch, part.current_leader_epoch) == (3, 2, 3)
    assert isinstance(send.request, FetchRequest)
    assert (send.request.replica_id, send.request.broker_epoch) == (2, 1)


def test_records_are_appended_as_they_are_and_asked_on_from() -> None:
    solo = follower([])
    send, _ = asked(solo)
    data = records(0, 2, b"a", b"b") + records(2, 3, b"c")
    answer(solo, send, records=data + records(3, 3)[:-1], high_watermark=9)
    assert b"".join(kept for _, kept in solo.disk.logs[T].batches) == data, "the cut-off batch comes later"
    assert solo.replica.high_watermark == 3
    _, part = asked(solo)
    assert (part.fetch_offset, part.last_fetched_epoch) == (3, 3)


def test_the_high_watermark_of_a_follower_may_fall() -> None:
    """C9."""
    solo = follower([1, 1])
    answer(solo, asked(solo)[0], high_watermark=2)
    assert solo.replica.high_watermark == 2
    answer(solo, asked(solo)[0], high_watermark=1)
    assert solo.replica.high_watermark == 1


def test_an_empty_answer_keeps_the_last_fetched_epoch() -> None:
    """KAFKA-15510, B26."""
    solo = follower([1, 1])
    answer(solo, asked(solo)[0], high_watermark=2)
    assert asked(solo)[1].last_fetched_epoch == 1


def test_an_overtaken_answer_to_a_former_offset_changes_nothing() -> None:
    """B23: same leader, same epoch, but what it answers has been had meanwhile."""
    solo = follower([])
    late, _ = asked(solo)
    solo.metadata(PartitionRecord(1, TOPIC_ID, (1, 2), (1, 2), 1, 3, 0))
    overtaking = solo.sent("fetcher-0.1")
    answer(solo, overtaking, records=records(0, 3), high_watermark=1)
    assert solo.replica.log.leo == 1
    assert solo.replica.high_watermark <= 1
    answer(solo, late, records=records(0, 3), high_watermark=0)
    assert (solo.replica.log.leo, solo.replica.high_watermark) == (1, 1)


def test_an_overtaken_answer_to_a_log_that_was_cut_since_changes_nothing() -> None:
    """Same leader, same epoch, same end: but the record before it is another one (the seed 703253)."""
    solo = follower([1])
    late, _ = asked(solo)
    solo.metadata(PartitionRecord(1, TOPIC_ID, (1, 2), (1, 2), 1, 3, 0))
    answer(solo, solo.sent("fetcher-0.1"), diverging=EpochEndOffset(1, 0), high_watermark=0)
    assert solo.replica.log.leo == 0
    answer(solo, solo.sent("fetcher-0.1"), records=records(0, 3), high_watermark=1)
    answer(solo, late, diverging=EpochEndOffset(1, 0), high_watermark=1)
    assert (solo.replica.log.leo, solo.replica.log.epochs.latest) == (1, 3)


def test_an_overtaken_answer_lowers_no_high_watermark() -> None:
    """A session tells a high watermark once: what an older answer lowers, no later one raises again."""
    solo = follower([1])
    late, _ = asked(solo)
    solo.metadata(PartitionRecord(1, TOPIC_ID, (1, 2), (1, 2), 1, 3, 0))
    answer(solo, solo.sent("fetcher-0.1"), high_watermark=1)
    assert solo.replica.high_watermark == 1
    answer(solo, late, high_watermark=0)
    assert solo.replica.high_watermark == 1


def test_a_batch_of_a_later_leader_is_not_taken() -> None:
    """KAFKA-18723."""
    solo = follower([])
    answer(solo, asked(solo)[0], records=records(0, 3) + records(1, 4), high_watermark=2)
    assert solo.replica.log.leo == 1
    assert solo.replica.high_watermark == 1


@pytest.mark.parametrize("damage", ["crc", "gap", "magic"])
def test_damaged_records_are_not_taken_and_asked_for_again(damage: str) -> None:
    solo = follower([])
    data = bytearray(records(1 if damage == "gap" else 0, 3))
    if damage != "gap":
        data[16 if damage == "magic" else -1] ^= 1
    answer(solo, asked(solo)[0], records=bytes(data), high_watermark=0)
    assert solo.replica.log.leo == 0
    assert not solo.has_sent("fetcher-0")
    solo.wait(1_001)
    assert asked(solo)[1].fetch_offset == 0


def test_an_end_inside_a_batch_of_the_leaders_takes_the_batch_whole() -> None:
    """H18."""
    solo = follower([1, 1])
    answer(solo, asked(solo)[0], records=records(1, 1, b"p", b"q", b"r"), high_watermark=0)
    send, part = asked(solo)
    assert part.fetch_offset == 1
    answer(solo, send, records=records(1, 1, b"p", b"q", b"r"), high_watermark=0)
    assert solo.disk.logs[T].values() == [b"f0e1", b"p", b"q", b"r"]


def test_a_truncation_that_took_a_batch_whole_is_known_before_the_next_answer() -> None:
    """H18, where the batch is the follower's own: the disk cuts no batch in two."""
    solo = follower([1, 1, 1])
    answer(solo, asked(solo)[0], diverging=EpochEndOffset(1, 2), high_watermark=2)
    late, part = asked(solo)
    assert (part.fetch_offset, solo.replica.log.leo) == (2, 2)
    solo.handle(LogCut(T, 1))
    assert solo.replica.log.leo == 1
    assert solo.replica.high_watermark <= 1
    answer(solo, late, records=records(2, 3), high_watermark=3)
    assert solo.replica.log.leo == 1, "the answer is to a question from before"
    assert asked(solo)[1].fetch_offset == 1


def test_refusals_pause_the_partition_and_a_dead_leader_the_fetcher() -> None:
    solo = follower([])
    answer(solo, asked(solo)[0], error=ErrorCode.unknown_leader_epoch)
    assert not solo.has_sent("fetcher-0")
    solo.wait(101)
    send, _ = asked(solo)
    solo.handle(SendFailed(send.correlation, 1, "refused"))
    solo.wait(999)
    assert not solo.has_sent("fetcher-0")
    solo.wait(2)
    assert solo.has_sent("fetcher-0")


def test_without_a_leader_nothing_is_fetched() -> None:
    solo = follower([])
    answer(solo, asked(solo)[0], error=ErrorCode.not_leader_or_follower)
    solo.metadata(change(leader=NO_LEADER))
    solo.wait(60_000)
    assert not [s for s in solo.sends if s.channel.startswith("fetcher")]


# --- out of range -------------------------------------------------------------------------------------------


def out_of_range(start: int, end: int) -> Solo:
    solo = follower([1, 1, 1])
    answer(solo, asked(solo)[0], error=ErrorCode.offset_out_of_range)
    for timestamp, offset in ((LATEST, end), (EARLIEST, start)):
        send = solo.sent("fetcher-offsets")
        assert isinstance(send.request, ListOffsetsRequest)
        assert send.request.partitions[0].timestamp == timestamp
        solo.answer(send, ListOffsetsResponse((ListOffsetsResult(T, offset=offset),)))
    return solo


def test_out_of_range_past_the_leaders_end_truncates() -> None:
    solo = out_of_range(0, 2)
    assert solo.replica.log.leo == 2
    assert asked(solo)[1].fetch_offset == 2


def test_out_of_range_before_the_leaders_start_begins_again_there() -> None:
    solo = out_of_range(7, 9)
    log = solo.replica.log
    assert (log.log_start, log.leo, solo.replica.high_watermark) == (7, 7, 7)
    assert solo.disk.logs[T].leo == 7
    assert asked(solo)[1].fetch_offset == 7


def test_out_of_range_by_a_race_drops_nothing() -> None:
    """KAFKA-2143, B38: by the time of the answer the leader has what we have."""
    solo = out_of_range(0, 3)
    assert solo.replica.log.leo == 3
    assert not solo.has_sent("fetcher-0")
    solo.wait(1_001)
    assert asked(solo)[1].fetch_offset == 3


# --- flush mode every-write (R01) ------------------------------------------------------------------------


def test_a_follower_fetches_on_only_after_its_flush() -> None:
    solo = follower([], flush_mode=FlushMode.EVERY_WRITE)
    answer(solo, asked(solo)[0], records=records(0, 3), high_watermark=0)
    assert [flush.upto for flush in solo.flushes if flush.tp == T] == [1]
    assert not solo.has_sent("fetcher-0"), "to fetch on is to acknowledge"
    solo.handle(Flushed(T, 1))
    assert asked(solo)[1].fetch_offset == 1


def test_a_follower_waits_for_no_flush_of_a_log_that_is_deleted() -> None:
    """Nobody hears of that flush, and the other partitions of the leader would be fetched no more."""
    solo = follower([], flush_mode=FlushMode.EVERY_WRITE, num_replica_fetchers=1)
    other, topic_id = TopicPartition("u", 0), UUID(int=78)
    partition = PartitionRecord(0, topic_id, (1, 2), (1, 2), 1, 0, partition_epoch=0)
    solo.metadata(TopicRecord("u", topic_id), partition)
    both = fetches(solo)[-1]
    assert {part.tp for part in both.request.partitions} == {T, other}  # type: ignore[union-attr]
    earlier = fetches(solo)
    solo.answer(both, FetchResponse((FetchResult(other, records=records(0, 0), high_watermark=0),)))
    assert [flush.upto for flush in solo.flushes if flush.tp == other] == [1]
    assert fetches(solo) == earlier, "the flush is waited for"
    solo.metadata(RemoveTopicRecord(topic_id))
    assert len(fetches(solo)) == len(earlier) + 1


def fetches(solo: Solo) -> list[Send]:
    return [send for send in solo.sends if send.channel.startswith("fetcher")]


def test_a_leader_commits_only_what_it_has_flushed() -> None:
    solo = Solo(isr=(1, 2), flush_mode=FlushMode.EVERY_WRITE)
    first = solo.produce(b"a")
    second = solo.produce(b"b")
    solo.fetch(2, 2)
    assert solo.replica.high_watermark == 0
    solo.handle(Flushed(T, 1))
    assert first in solo.replies
    assert second not in solo.replies
    assert [flush.upto for flush in solo.flushes if flush.tp == T] == [1, 2], "one flush at a time"
    solo.handle(Flushed(T, 2))
    assert second in solo.replies


def test_flush_by_count_and_by_interval() -> None:
    counted = Solo(flush_mode=FlushMode.EVERY_N_BATCHES, flush_messages=3)
    for _ in range(4):
        counted.produce(b"a", acks=1)
    assert [flush.upto for flush in counted.flushes if flush.tp == T] == [3]
    timed = Solo(flush_mode=FlushMode.EVERY_INTERVAL, flush_ms=50)
    timed.produce(b"a", acks=1)
    assert not [flush for flush in timed.flushes if flush.tp == T]
    timed.wait(51)
    assert [flush.upto for flush in timed.flushes if flush.tp == T] == [1]


def test_a_failed_disk_ends_the_broker_and_acknowledges_nothing() -> None:
    """KAFKA-10778."""
    solo = Solo()
    waiting = solo.produce(b"a")
    solo.handle(DiskFailed(T, "EIO"))
    assert solo.result(waiting).error is ErrorCode.kafka_storage_error
    assert solo.exits[0].code == 3
    assert "EIO" in solo.exits[0].reason


def test_nothing_is_written_once_the_logs_are_closed() -> None:
    """R09: what came after the flush and the signature would be lost, and taken for safe."""
    solo = Solo(isr=(1, 2), flush_mode=FlushMode.EVERY_WRITE)
    solo.produce(b"a", acks=1)
    solo.sends.clear()
    solo.handle(StopRequested())
    beat = solo.sent("controller")
    solo.answer(beat, BrokerHeartbeatResponse(ErrorCode.none, True, True, True))
    assert solo.disk.clean_epoch == EPOCHS[1]
    late = solo.produce(b"b", acks=1)
    assert isinstance(solo.replies[late], Refused)
    for event in (Flushed(T, 1), TimerFired("checkpoint-hw"), TimerFired("isr-shrink")):
        assert solo.handle(event) == []
    solo.handle(LogsClosed())
    assert solo.exits[0].code == 0
