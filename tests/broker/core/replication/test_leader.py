"""The leader, its followers played by hand: high watermark, ISR, proposals, acknowledgements."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from crc32c import crc32c
from kio.schema.errors import ErrorCode

from tests.broker.core.solo import EPOCHS, TOPIC_ID, Solo, T, change, log_of, register
from wrackline.broker.model import batch
from wrackline.broker.model.controller_messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from wrackline.broker.model.events import RequestCancelled
from wrackline.broker.model.messages import (
    EARLIEST,
    LATEST,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    ProducePartition,
    ProduceRequest,
)
from wrackline.broker.model.records import BrokerRegistrationChangeRecord, ConfigRecord, PartitionRecord
from wrackline.broker.model.types import LogSlice, TopicPartition
from wrackline.broker.rules.profile import profile


def proposal(solo: Solo) -> tuple[Any, AlterPartitionRequest]:
    send = solo.sent("controller-alter")
    assert isinstance(send.request, AlterPartitionRequest)
    return send, send.request


def accept(solo: Solo, send: Any, isr: tuple[int, ...], partition_epoch: int) -> None:
    result = AlterPartitionResult(
        T,
        TOPIC_ID,
        leader_id=1,
        leader_epoch=solo.replica.leader_epoch,
        isr=isr,
        partition_epoch=partition_epoch,
    )
    solo.answer(send, AlterPartitionResponse(partitions=(result,)))


def refuse(solo: Solo, send: Any, error: ErrorCode) -> None:
    solo.answer(send, AlterPartitionResponse(partitions=(AlterPartitionResult(T, TOPIC_ID, error),)))


# --- high watermark (docs/protocol.md 2.4, 1.4) -----------------------------------------------------------


def test_high_watermark_takes_two_rounds_to_reach_the_follower() -> None:
    """H11: the table of leader LEO, HW, remote LEO and the follower's LEO, HW."""
    leader = Solo(isr=(1, 2), replicas=(1, 2), log=log_of([]))
    follower = Solo(2, isr=(1, 2), replicas=(1, 2), log=log_of([]))

    def table() -> tuple[int, ...]:
        remote = leader.replica.leading.followers[2].leo
        follows = follower.replica
        return (
            leader.replica.log.leo,
            leader.replica.high_watermark,
            remote,
            follows.log.leo,
            follows.high_watermark,
        )

    def one_round() -> None:
        send = follower.sent("fetcher-0")
        assert isinstance(send.request, FetchRequest)
        result = leader.result(leader.ask(replace(send.request, max_wait_ms=0)))
        if isinstance(result.records, LogSlice):
            result = replace(result, records=leader.disk.read(result.records))
        follower.answer(send, FetchResponse((result,)))

    one_round()
    assert table() == (0, 0, 0, 0, 0)
    leader.produce(b"m")
    assert table() == (1, 0, 0, 0, 0)
    one_round()
    assert table() == (1, 0, 0, 1, 0)
    one_round()
    assert table() == (1, 1, 1, 1, 1)


def test_high_watermark_is_the_least_of_all_members_and_never_falls() -> None:
    """H05, H20."""
    solo = Solo()
    for value in (b"a", b"b", b"c"):
        solo.produce(value)
    solo.fetch(2, 3)
    assert solo.replica.high_watermark == 0, "broker 3 has not fetched: unknown is not nothing to wait for"
    solo.fetch(3, 2)
    assert solo.replica.high_watermark == 2
    solo.fetch(3, 1)
    assert solo.replica.high_watermark == 2
    solo.fetch(3, 3)
    assert solo.replica.high_watermark == 3


def test_the_answer_to_a_fetch_carries_the_high_watermark_that_fetch_made() -> None:
    """H06."""
    solo = Solo(isr=(1, 2))
    solo.produce(b"a")
    assert solo.fetched(2, 1).high_watermark == 1


def test_high_watermark_is_frozen_below_min_isr() -> None:
    """R14, I18: a lone leader takes acks=1 but commits nothing."""
    solo = Solo(isr=(1,))
    request = solo.produce(b"a", acks=1)
    assert solo.result(request).error is ErrorCode.none
    assert (solo.replica.log.leo, solo.replica.high_watermark) == (1, 0)
    assert solo.fetched(-1, 0).records == b""


def test_a_sole_member_commits_at_once_when_min_isr_is_one() -> None:
    """K31, K48."""
    solo = Solo(isr=(1,), min_isr=1, log=log_of([0, 0]))
    assert solo.replica.high_watermark == 2
    assert solo.result(solo.produce(b"a")).error is ErrorCode.none
    assert solo.replica.high_watermark == 3


def test_a_lower_min_isr_lets_the_high_watermark_move() -> None:
    solo = Solo(isr=(1,))
    solo.produce(b"a", acks=1)
    solo.metadata(ConfigRecord("topic", "t", "min.insync.replicas", "1"))
    assert solo.replica.high_watermark == 1


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


# --- ISR (docs/protocol.md 2.5, 2.6) ----------------------------------------------------------------------


def test_a_proposed_member_counts_at_once() -> None:
    """K44: while the answer is out, the high watermark needs old and new members (B17)."""
    solo = Solo(isr=(1, 2))
    solo.fetch(3, 0)
    send, request = proposal(solo)
    assert request.partitions[0].isr == ((1, EPOCHS[1]), (2, -1), (3, EPOCHS[3]))
    waiting = solo.produce(b"m1")
    solo.fetch(2, 1)
    assert solo.replica.high_watermark == 0
    assert waiting not in solo.replies
    accept(solo, send, (1, 2, 3), 1)
    assert solo.replica.high_watermark == 0
    solo.fetch(3, 1)
    assert solo.result(waiting).error is ErrorCode.none


def test_a_proposed_member_does_not_open_the_gate() -> None:
    """B13: with ISR {1} and MinISR 2 nothing is committed, though {1, 3} is proposed and both have the
    record."""
    solo = Solo(isr=(1,))
    solo.fetch(3, 0)
    assert solo.replica.leading.maximal == {1, 3}
    solo.produce(b"m", acks=1)
    solo.fetch(3, 1)
    assert solo.replica.high_watermark == 0
    accept(solo, proposal(solo)[0], (1, 3), 1)
    assert solo.replica.high_watermark == 1, "the committed ISR moves it without another fetch (KAFKA-13091)"


def test_what_is_committed_with_too_few_members_is_not_acknowledged() -> None:
    """docs/protocol.md 2.1.8, for profiles without the gate."""
    rules = profile("kip966").produce
    assert rules.on_commit(1, 2) is ErrorCode.not_enough_replicas_after_append
    assert rules.on_commit(2, 2) is ErrorCode.none


def test_without_the_maximal_isr_the_proposed_member_is_passed_by() -> None:
    """Defect no_maximal_isr, B17: m1 is acknowledged though the controller may elect broker 3, which lacks
    it."""
    solo = Solo(isr=(1, 2), defects=["no_maximal_isr"])
    solo.fetch(3, 0)
    waiting = solo.produce(b"m1")
    solo.fetch(2, 1)
    assert solo.result(waiting).error is ErrorCode.none


def lagging(solo: Solo) -> int:
    """Broker 3 falls silent behind the log end; the request waits for it."""
    solo.fetch(2, 0)
    solo.fetch(3, 0)
    waiting = solo.produce(b"m1")
    for _ in range(4):
        solo.wait(5_000)
        solo.fetch(2, 1)
    return waiting


def test_a_laggard_counts_until_the_controller_has_dropped_it() -> None:
    solo = Solo()
    waiting = lagging(solo)
    send, request = proposal(solo)
    assert [member for member, _ in request.partitions[0].isr] == [1, 2]
    assert solo.replica.leading.maximal == {1, 2, 3}
    assert waiting not in solo.replies
    accept(solo, send, (1, 2), 1)
    assert solo.result(waiting).error is ErrorCode.none


def test_shrink_before_commit_acknowledges_too_early() -> None:
    """Defect shrink_before_commit, B18."""
    solo = Solo(defects=["shrink_before_commit"])
    waiting = lagging(solo)
    assert solo.has_sent("controller-alter")
    assert solo.result(waiting).error is ErrorCode.none


def test_a_quiet_follower_at_the_end_does_not_lag() -> None:
    solo = Solo()
    solo.fetch(2, 0)
    solo.fetch(3, 0)
    solo.wait(60_000)
    assert not solo.has_sent("controller-alter")


@pytest.mark.parametrize(
    ("error", "rolled_back", "sent_again"),
    [
        (ErrorCode.ineligible_replica, True, False),
        (ErrorCode.operation_not_attempted, True, False),
        (ErrorCode.invalid_update_version, False, False),
        (ErrorCode.fenced_leader_epoch, False, False),
        (ErrorCode.unknown_server_error, False, True),
        (ErrorCode.not_controller, False, True),
    ],
)
def test_only_a_definite_refusal_narrows_the_maximal_isr(
    error: ErrorCode, rolled_back: bool, sent_again: bool
) -> None:
    """docs/protocol.md 2.6: after any other error the change may stand."""
    solo = Solo(isr=(1, 2))
    solo.fetch(3, 0)
    send, request = proposal(solo)
    refuse(solo, send, error)
    assert solo.replica.leading.maximal == ({1, 2} if rolled_back else {1, 2, 3})
    solo.wait(1_000)
    assert solo.has_sent("controller-alter") == sent_again
    if sent_again:
        assert proposal(solo)[1] == request


def test_metadata_settles_a_proposal_and_a_late_answer_is_ignored() -> None:
    """The slot is free again only with the answer (KAFKA-12686)."""
    solo = Solo(isr=(1, 2))
    solo.fetch(3, 0)
    send, _ = proposal(solo)
    solo.metadata(change(isr=(1,)))
    assert solo.replica.leading.maximal == {1}
    solo.fetch(2, 0)
    assert not solo.has_sent("controller-alter")
    accept(solo, send, (1, 2, 3), 1)
    assert solo.replica.leading.isr == {1}
    assert [member for member, _ in proposal(solo)[1].partitions[0].isr] == [1, 2]


def test_metadata_that_the_answer_brought_already_does_not_drop_the_next_proposal() -> None:
    """K46: an equal partition epoch is old news."""
    solo = Solo(isr=(1,))
    solo.fetch(2, 0)
    accept(solo, proposal(solo)[0], (1, 2), 1)
    solo.fetch(3, 0)
    assert solo.replica.leading.maximal == {1, 2, 3}
    solo.metadata(change(isr=(1, 2)))
    assert solo.replica.leading.maximal == {1, 2, 3}


def test_who_may_join() -> None:
    """K40, KIP-841, KIP-903: caught up, active, of the registered broker epoch."""
    solo = Solo(isr=(1, 2))
    solo.produce(b"a")
    solo.fetch(2, 1)
    solo.fetch(3, 0)
    assert not solo.has_sent("controller-alter"), "below the high watermark"
    solo.metadata(BrokerRegistrationChangeRecord(3, EPOCHS[3], fenced=True))
    solo.fetch(3, 1)
    assert not solo.has_sent("controller-alter"), "fenced"
    solo.metadata(register(3, 50))
    result = solo.fetched(3, 1)
    assert result.error is ErrorCode.not_leader_or_follower, "of a former life"
    assert not solo.has_sent("controller-alter")
    solo.fetch(3, 1, broker_epoch=51)
    assert not solo.has_sent("controller-alter"), "of a life the metadata does not know yet"
    solo.fetch(3, 1, broker_epoch=50)
    assert proposal(solo)[1].partitions[0].isr[-1] == (3, 50)


def new_leader(defects: tuple[str, ...] = ()) -> Solo:
    """B15: broker 1 was a follower that knew less committed than it holds; now it leads."""
    solo = Solo(leader=2, isr=(1, 2), log=log_of([0, 0]), high_watermark=1, defects=defects)
    solo.metadata(change(leader=1, isr=(1,)))
    assert solo.replica.leading.leso == 2
    return solo


def test_nobody_joins_before_the_log_end_at_election() -> None:
    """KAFKA-7128: record 1 may be committed although this leader's high watermark says 1."""
    solo = new_leader()
    solo.fetch(3, 1)
    assert not solo.has_sent("controller-alter")
    solo.fetch(3, 2)
    assert solo.has_sent("controller-alter")


def test_isr_no_leso_lets_an_incomplete_replica_in() -> None:
    solo = new_leader(("isr_no_leso",))
    solo.fetch(3, 1)
    assert solo.has_sent("controller-alter")


def test_a_new_leader_does_not_show_an_end_it_cannot_know() -> None:
    """KIP-207, B14: 78, or 5 for old clients; earliest is no question."""
    solo = new_leader()
    assert solo.list_offsets(LATEST).error is ErrorCode.offset_not_available
    old = solo.list_offsets(LATEST, knows_offset_not_available=False)
    assert old.error is ErrorCode.leader_not_available
    assert solo.list_offsets(EARLIEST).offset == 0
    assert solo.list_offsets(LATEST, replica_id=3).offset == 2
    accept(solo, _join(solo), (1, 3), 2)
    assert solo.list_offsets(LATEST).offset == 2


def _join(solo: Solo) -> Any:
    solo.fetch(3, 2)
    return proposal(solo)[0]


def test_a_new_leader_enters_its_epoch_before_it_writes() -> None:
    """KAFKA-7415."""
    solo = new_leader()
    assert [tuple(entry) for entry in solo.disk.logs[T].epochs] == [(0, 0), (1, 2)]


def test_reelected_in_a_new_epoch_keeps_members_only() -> None:
    """K50, B21."""
    solo = Solo(isr=(1, 2))
    solo.produce(b"a", acks=1)
    solo.fetch(2, 1)
    solo.fetch(3, 0)
    solo.metadata(change(leader=1, isr=(1, 2)))
    followers = solo.replica.leading.followers
    assert (followers[2].leo, followers[3].leo) == (1, -1)
    assert solo.replica.leader_epoch == 1
    assert solo.replica.leading.leso == 1


# --- reads (docs/protocol.md 2.2) ------------------------------------------------------------------------


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
    from wrackline.broker.model.records import PartitionRecord

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
