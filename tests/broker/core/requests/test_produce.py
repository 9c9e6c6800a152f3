"""Produce requests at the leader, its followers played by hand: acknowledgements, producers, batches."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from crc32c import crc32c
from kio.schema.errors import ErrorCode

from tests.broker.core.solo import TOPIC_ID, Solo, T, change, log_of
from wrackline.broker.model.batches import batch
from wrackline.broker.model.events import RequestCancelled
from wrackline.broker.model.messages.requests import ProducePartition, ProduceRequest
from wrackline.broker.model.metadata.records import PartitionRecord
from wrackline.broker.model.types import TopicPartition

# --- acknowledgements (docs/protocol.md 2.1) -------------------------------------------------------------


def test_acks_all_waits_for_every_member() -> None:
    solo = Solo()
    request = solo.produce(b"a", b"b")
    solo.fetch(2, 2)
    assert request not in solo.replies
    solo.fetch(3, 2)
    result = solo.result(request)
    assert (result.error, result.base_offset) == (ErrorCode.none, 0)


def test_acks_all_below_min_isr_is_refused_and_nothing_is_appended() -> None:
    """K28: 19."""
    solo = Solo(isr=(1,))
    assert solo.result(solo.produce(b"a")).error is ErrorCode.not_enough_replicas
    assert solo.replica.log.leo == 0


def test_waiting_requests_fail_when_the_isr_falls_below_min_isr() -> None:
    """C5, error 20: at once, not by time-out."""
    solo = Solo(isr=(1, 2))
    request = solo.produce(b"a")
    solo.metadata(change(isr=(1,)))
    assert solo.result(request).error is ErrorCode.not_enough_replicas_after_append
    assert solo.replica.high_watermark == 0


def test_waiting_requests_may_be_left_to_time_out_instead() -> None:
    """C5, the other reading."""
    solo = Solo(isr=(1, 2), pending_on_shrink="timeout")
    request = solo.produce(b"a", timeout_ms=700)
    solo.metadata(change(isr=(1,)))
    assert request not in solo.replies
    solo.wait(701)
    assert solo.result(request).error is ErrorCode.request_timed_out


def test_a_lost_leadership_fails_what_waits_and_sends_readers_on() -> None:
    solo = Solo()
    produce, poll = solo.produce(b"a"), solo.fetch(-1, 0, max_wait_ms=500)
    solo.metadata(change(leader=2))
    assert solo.result(produce).error is ErrorCode.not_leader_or_follower
    moved = solo.result(poll)
    assert moved.error is ErrorCode.not_leader_or_follower
    assert moved.current_leader.leader_id == 2
    again = solo.result(solo.produce(b"b"))
    assert again.error is ErrorCode.not_leader_or_follower
    assert again.current_leader.leader_epoch == 1


def test_one_request_over_two_partitions_is_answered_when_both_are_decided() -> None:
    solo = Solo(isr=(1, 2))
    solo.metadata(PartitionRecord(1, TOPIC_ID, (1,), (1,), 1, 0, 0))
    other = TopicPartition("t", 1)
    data = batch.build([b"x"], 0, -1, 0)
    request = solo.ask(ProduceRequest(-1, 30_000, (ProducePartition(T, data), ProducePartition(other, data))))
    assert request not in solo.replies, "partition 1 needs nobody, partition 0 needs broker 2"
    solo.fetch(2, 1)
    response: Any = solo.replies[request]
    assert [part.error for part in response.partitions] == [ErrorCode.none, ErrorCode.none]


def test_acks_zero_has_no_answer_and_hangs_up_on_an_error() -> None:
    solo = Solo()
    assert solo.replies[solo.produce(b"a", acks=0)] is None
    solo.metadata(change(leader=2))
    request = solo.produce(b"b", acks=0)
    assert [e.close for e in solo.effects if getattr(e, "request_id", None) == request] == [True]


@pytest.mark.parametrize("acks", [2, -2, 7])
def test_other_acks_are_refused(acks: int) -> None:
    solo = Solo()
    assert solo.result(solo.produce(b"a", acks=acks)).error is ErrorCode.invalid_required_acks
    assert solo.replica.log.leo == 0


def test_a_request_whose_asker_is_gone_is_forgotten() -> None:
    solo = Solo()
    gone, poll = solo.produce(b"a"), solo.fetch(-1, 0, max_wait_ms=500)
    solo.handle(RequestCancelled(gone))
    solo.handle(RequestCancelled(poll))
    solo.fetch(2, 1)
    solo.fetch(3, 1)
    assert solo.replica.high_watermark == 1
    assert gone not in solo.replies
    assert poll not in solo.replies


# --- idempotent producers (docs/protocol.md 2.1.3) -------------------------------------------------------


def idempotent(values: list[bytes], sequence: int, epoch: int = 0, producer: int = 9) -> bytes:
    data = bytearray(batch.build(values, 0, -1, 0))
    struct.pack_into(">qhi", data, 43, producer, epoch, sequence)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def send_idempotent(solo: Solo, *args: Any, **more: Any) -> Any:
    data = idempotent(*args, **more)
    return solo.result(solo.ask(ProduceRequest(1, 1_000, (ProducePartition(T, data),))))


def test_a_retry_is_answered_with_its_first_offset_and_not_appended() -> None:
    solo = Solo()
    for sequence in range(5):
        assert send_idempotent(solo, [b"a"], sequence).base_offset == sequence
    for sequence in range(5):
        assert send_idempotent(solo, [b"a"], sequence).base_offset == sequence
    assert solo.replica.log.leo == 5
    send_idempotent(solo, [b"a", b"b"], 5)
    assert send_idempotent(solo, [b"a"], 0).error is ErrorCode.out_of_order_sequence_number, (
        "sixth batch back"
    )


def test_gaps_and_old_epochs_are_refused() -> None:
    solo = Solo()
    send_idempotent(solo, [b"a", b"b"], 0)
    assert send_idempotent(solo, [b"d"], 3).error is ErrorCode.out_of_order_sequence_number
    assert send_idempotent(solo, [b"c"], 2).base_offset == 2
    assert send_idempotent(solo, [b"d"], 5, epoch=1).error is ErrorCode.out_of_order_sequence_number
    assert send_idempotent(solo, [b"d"], 0, epoch=1).base_offset == 3
    assert send_idempotent(solo, [b"e"], 3, epoch=0).error is ErrorCode.invalid_producer_epoch


def test_sequences_wrap_around() -> None:
    solo = Solo()
    assert send_idempotent(solo, [b"a"], 0x7FFFFFFF).base_offset == 0
    assert send_idempotent(solo, [b"b"], 0).base_offset == 1


def test_a_new_leader_knows_the_retry_from_its_log() -> None:
    """The producer state comes with the batches, also through recovery."""
    log = log_of([])
    data = batch.stamp(idempotent([b"a"], 4), 0, 0)
    log.batches, log.leo = [(batch.parse_header(data), data)], 1
    solo = Solo(log=log, leader_epoch=1)
    assert send_idempotent(solo, [b"a"], 4).base_offset == 0
    assert solo.replica.log.leo == 1


# --- what may not enter the log -----------------------------------------------------------------------------


def test_bad_batches_are_refused_and_leave_nothing() -> None:
    solo = Solo(max_message_bytes=200)
    good = batch.build([b"x"], 0, -1, 0)
    bent = bytearray(good)
    bent[-1] ^= 1
    cases = {
        bytes(bent): ErrorCode.corrupt_message,
        good[:-1]: ErrorCode.corrupt_message,
        b"": ErrorCode.invalid_record,
        good + good: ErrorCode.invalid_record,
        batch.build([b"y" * 300], 0, -1, 0): ErrorCode.message_too_large,
    }
    for data, error in cases.items():
        request = solo.ask(ProduceRequest(1, 1_000, (ProducePartition(T, data),)))
        assert solo.result(request).error is error
    assert solo.replica.log.leo == 0
    unknown = ProducePartition(TopicPartition("nope", 0), good)
    response = solo.ask(ProduceRequest(1, 1_000, (unknown,)))
    assert solo.result(response).error is ErrorCode.unknown_topic_or_partition
