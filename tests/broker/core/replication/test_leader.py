"""The leader, its followers played by hand: high watermark, ISR, proposals."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.solo import EPOCHS, TOPIC_ID, Solo, T, change, log_of, register
from wrackline.broker.model.messages.controller import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from wrackline.broker.model.messages.requests import EARLIEST, LATEST
from wrackline.broker.model.metadata.records import BrokerRegistrationChangeRecord, ConfigRecord


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

    follower.fetch_from(leader)
    assert table() == (0, 0, 0, 0, 0)
    leader.produce(b"m")
    assert table() == (1, 0, 0, 0, 0)
    follower.fetch_from(leader)
    assert table() == (1, 0, 0, 1, 0)
    follower.fetch_from(leader)
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


def test_a_quiet_follower_at_the_end_does_not_lag() -> None:
    solo = Solo()
    solo.fetch(2, 0)
    solo.fetch(3, 0)
    solo.wait(60_000)
    assert not solo.has_sent("controller-alter")


def test_silence_counts_against_a_follower_from_the_first_record_it_does_not_fetch() -> None:
    """C16: until then only its broker's heartbeats can tell that it is gone."""
    solo = Solo()
    solo.fetch(2, 0)
    solo.fetch(3, 0)
    solo.wait(60_000)
    solo.produce(b"a")
    solo.fetch(2, 1)
    solo.wait(solo.config.replica_lag_time_max_ms / 2)
    _, request = proposal(solo)
    assert [broker for broker, _ in request.partitions[0].isr] == [1, 2]


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


def new_leader() -> Solo:
    """B15: broker 1 was a follower that knew less committed than it holds; now it leads."""
    solo = Solo(leader=2, isr=(1, 2), log=log_of([0, 0]), high_watermark=1)
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
