"""The core's part of a disk error: the log directory goes offline, whoever waits is told, the process
ends."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from tests.broker.core.solo import Solo, T, log_of
from wrackline.broker.core.dispatcher import DISK_FAILURE
from wrackline.broker.model.effects import Append, Exit, Reply
from wrackline.broker.model.events import DiskFailed
from wrackline.broker.model.metadata.records import PartitionRecord
from wrackline.broker.model.types import TopicPartition


def test_all_partitions_go_offline_and_whoever_waits_is_told_first() -> None:
    solo = Solo()
    solo.metadata(PartitionRecord(1, solo.replica.topic_id, (1, 2, 3), (1, 2, 3), 1, 0, partition_epoch=0))
    waiting = solo.produce(b"x")
    polling = solo.fetch(-1, 0, max_wait_ms=5_000)
    effects = solo.handle(DiskFailed(TopicPartition("t", 1), "No space left on device"))
    assert solo.result(waiting).error is ErrorCode.kafka_storage_error
    assert solo.result(polling).error is ErrorCode.kafka_storage_error
    kinds = [type(effect) for effect in effects]
    assert kinds.index(Reply) < kinds.index(Exit)
    assert kinds[-1] is Exit
    assert solo.exits[0].code == DISK_FAILURE
    assert "t-1" in solo.exits[0].reason
    assert solo.replica.failed
    assert solo.produce(b"y") not in solo.replies, "nothing is served after the end"


def test_with_the_defect_the_leader_goes_on_after_the_hole() -> None:
    solo = Solo(log=log_of([0]), isr=(1,), min_isr=1, defects=("continue_after_io_error",))
    solo.handle(DiskFailed(T, "Input/output error"))
    assert solo.exits == []
    solo.produce(b"x", acks=1)
    assert any(isinstance(effect, Append) and effect.base_offset == 1 for effect in solo.effects)
