"""Topic settings take effect on a running broker, and records can be deleted (KIP-107)."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.driver import Cluster, T
from tests.broker.core.solo import Solo, log_of
from tests.broker.core.solo import T as ST
from wrackline.broker.model.effects import ConfigureLog, Flush, MoveLogStart, Retain
from wrackline.broker.model.events import Flushed, LogStartMoved
from wrackline.broker.model.messages.requests import (
    EARLIEST,
    UP_TO_HIGH_WATERMARK,
    DeleteRecordsRequest,
    FetchPartition,
    FetchRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from wrackline.broker.model.metadata.records import ConfigRecord
from wrackline.broker.model.types import EpochEntry, LogOverrides, TopicPartition


def configure(solo: Solo, **settings: str | None) -> None:
    solo.metadata(
        *(ConfigRecord("topic", "t", key.replace("_", "."), value) for key, value in settings.items())
    )


def flushed(solo: Solo) -> list[int]:
    return [flush.upto for flush in solo.flushes if flush.tp == ST]


# --- settings -----------------------------------------------------------------------------------------------


def test_settings_of_the_disk_reach_it_when_they_change_and_only_then() -> None:
    solo = Solo()
    assert not any(isinstance(effect, ConfigureLog) for effect in solo.effects)
    configure(solo, segment_bytes="2048", segment_ms="60000")
    wanted = LogOverrides(segment_bytes=2048, segment_ms=60_000)
    assert [e for e in solo.effects if isinstance(e, ConfigureLog)] == [ConfigureLog(ST, wanted)]
    configure(solo, retention_ms="5")
    assert not any(isinstance(effect, ConfigureLog) for effect in solo.effects)
    configure(solo, segment_bytes=None, segment_ms=None)
    assert [e for e in solo.effects if isinstance(e, ConfigureLog)] == [ConfigureLog(ST, LogOverrides())]


def test_flush_messages_1_flushes_every_write_before_it_counts() -> None:
    """The topic's own R01, whatever the broker's flush mode; from the moment it is set."""
    solo = Solo(isr=(1,), min_isr=1)
    solo.produce(b"a", acks=1)
    assert flushed(solo) == []
    assert solo.replica.high_watermark == 1
    configure(solo, flush_messages="1")
    assert flushed(solo) == [1]
    solo.handle(Flushed(ST, 1))
    waiting = solo.produce(b"b")
    assert waiting not in solo.replies
    assert solo.replica.high_watermark == 1
    solo.handle(Flushed(ST, 2))
    assert solo.result(waiting).error is ErrorCode.none


def test_flush_messages_counts_records() -> None:
    solo = Solo(isr=(1,), min_isr=1)
    configure(solo, flush_messages="3")
    solo.produce(b"a", b"b", acks=1)
    assert flushed(solo) == []
    solo.produce(b"c", acks=1)
    assert flushed(solo) == [3]


def test_flush_ms_flushes_what_has_waited_that_long() -> None:
    solo = Solo(isr=(1,), min_isr=1)
    configure(solo, flush_ms="250")
    solo.produce(b"a", acks=1)
    solo.wait(249)
    assert flushed(solo) == []
    solo.wait(2)
    assert flushed(solo) == [1]
    solo.handle(Flushed(ST, 1))
    solo.wait(1_000)
    assert len(flushed(solo)) == 1, "nothing more to flush"


def test_a_follower_of_a_topic_that_flushes_every_write_acknowledges_only_what_is_on_disk() -> None:
    c = Cluster()
    c.create_topic(configs={"flush.messages": "1"})
    c.flushing = False
    call = c.produce(1, b"x", timeout_ms=400)
    c.run(300)
    assert not call.done
    assert c.replica(2).log.leo == 1
    assert [c.replica(node).high_watermark for node in (1, 2, 3)] == [0, 0, 0]


def test_retention_asks_the_disk_and_only_what_is_committed_may_go() -> None:
    solo = Solo(log=log_of([0] * 8), high_watermark=5, log_retention_check_interval_ms=1_000)
    solo.wait(1_000)
    assert not any(isinstance(effect, Retain) for effect in solo.effects)
    configure(solo, retention_bytes="100", retention_ms="2000")
    seen: list[Any] = []
    handle = solo.handle
    solo.handle = lambda event: seen.extend(handle(event)) or solo.effects  # type: ignore[method-assign, func-returns-value]
    solo.wait(1_000)
    assert [effect for effect in seen if isinstance(effect, Retain)] == [Retain(ST, 100, 2_000, 5)]
    solo.handle(LogStartMoved(ST, 4))
    assert solo.replica.log.log_start == 4
    assert solo.replica.log.epochs.entries == (EpochEntry(0, 4),)
    assert solo.fetched(-1, 3).error is ErrorCode.offset_out_of_range


# --- delete records -----------------------------------------------------------------------------------------


def delete(c: Cluster, node: int, offset: int, **more: Any) -> Any:
    request = DeleteRecordsRequest(((T, offset),), more.get("timeout_ms", 5_000))
    return c.answer(node, request).partitions[0]


def filled() -> Cluster:
    c = Cluster()
    c.create_topic()
    for number in range(10):
        assert c.produced(1, b"m%d" % number).error is ErrorCode.none
    return c


def test_records_are_deleted_on_every_replica_and_stay_deleted() -> None:
    c = filled()
    result = delete(c, 1, 6)
    assert (result.error, result.low_watermark) == (ErrorCode.none, 6)
    assert [c.replica(node).log.log_start for node in (1, 2, 3)] == [6, 6, 6]
    assert c.values(2) == [b"m6", b"m7", b"m8", b"m9"]
    part = FetchPartition(T, 5, 1 << 20)
    assert (
        c.answer(1, FetchRequest(0, 1, 1 << 20, (part,))).partitions[0].error is ErrorCode.offset_out_of_range
    )
    earliest = ListOffsetsRequest((ListOffsetsPartition(T, EARLIEST),))
    assert c.answer(1, earliest).partitions[0].offset == 6
    c.kill(1)
    c.until(lambda: c.leader() in (2, 3))
    c.boot(1)
    c.until(lambda: c.isr() == {1, 2, 3})
    assert c.replica(1).log.log_start == 6
    heir = c.leader()
    c.until(lambda: c.replica(heir).leader is not None)
    assert c.answer(heir, earliest).partitions[0].offset == 6
    assert c.produced(heir, b"m10").base_offset == 10


def test_everything_committed_can_be_deleted_and_writing_goes_on() -> None:
    c = filled()
    assert delete(c, 1, UP_TO_HIGH_WATERMARK).low_watermark == 10
    assert c.values(1) == c.values(2) == c.values(3) == []
    assert c.produced(1, b"next").base_offset == 10
    c.run(300)
    assert c.values(3) == [b"next"]


def test_a_smaller_offset_than_was_deleted_is_no_error_and_brings_nothing_back() -> None:
    c = filled()
    assert delete(c, 1, 6).low_watermark == 6
    assert delete(c, 1, 2).low_watermark == 6
    assert c.replica(1).log.log_start == 6


@pytest.mark.parametrize("offset", [11, -2])
def test_an_offset_outside_is_refused(offset: int) -> None:
    assert delete(filled(), 1, offset).error is ErrorCode.offset_out_of_range


def test_only_the_leader_deletes() -> None:
    c = filled()
    assert delete(c, 2, 3).error is ErrorCode.not_leader_or_follower
    request = DeleteRecordsRequest(((TopicPartition("no", 0), 1),), 100)
    assert c.answer(1, request).partitions[0].error is ErrorCode.unknown_topic_or_partition


def test_a_replica_that_does_not_follow_makes_it_time_out_a_dead_one_does_not() -> None:
    c = filled()
    c.cut(1, 3)
    assert delete(c, 1, 4, timeout_ms=300).error is ErrorCode.request_timed_out
    c.fence(3)
    assert delete(c, 1, 4).error is ErrorCode.none


def test_a_follower_that_was_away_begins_where_the_leader_begins() -> None:
    c = filled()
    c.kill(3)
    c.until(lambda: 3 not in c.isr())
    for number in range(10, 15):
        assert c.produced(1, b"m%d" % number).error is ErrorCode.none
    assert delete(c, 1, 13).error is ErrorCode.none
    c.boot(3)
    c.until(lambda: c.isr() == {1, 2, 3})
    assert c.values(3) == [b"m13", b"m14"]
    assert c.replica(3).log.log_start == 13


def test_a_log_start_is_written_down_before_it_is_told() -> None:
    solo = Solo(log=log_of([0] * 8), isr=(1,), min_isr=1, high_watermark=8, replicas=(1,))
    request = solo.ask(DeleteRecordsRequest(((ST, 3),), 100))
    kinds = [type(effect).__name__ for effect in solo.effects]
    assert kinds.index(MoveLogStart.__name__) < kinds.index("Reply")
    assert solo.replies[request] is not None
    assert not any(isinstance(effect, Flush) for effect in solo.effects)
