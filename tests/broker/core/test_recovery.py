"""Unclean recovery with real brokers and a real controller in virtual time: docs/protocol.md 2.9, B11,
R33-R35."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.driver import CONTROLLER, Cluster, T
from tests.broker.core.solo import EPOCHS, TOPIC_ID, Solo, change
from wrackline.broker.model.messages.controller import (
    AlterPartitionResponse,
    AlterPartitionResult,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER, TopicPartition
from wrackline.broker.rules.leadership.recovery import LogEnd, RecoveryRules
from wrackline.broker.rules.profile import Rules

BROKERS = (1, 2, 3)


def partition(c: Cluster, tp: TopicPartition = T) -> PartitionImage:
    found = c.controller.committed.partition(tp)
    assert found is not None
    return found


def full(c: Cluster, tp: TopicPartition = T, size: int = 3) -> bool:
    return len(c.isr(tp)) == size and partition(c, tp).leader_recovery_state == 0


class WorstLog(RecoveryRules):
    """So that the tests below are seen to fail when the choice is wrong."""

    def winner(self, ends: Iterable[LogEnd]) -> int:
        return max(ends, key=lambda end: (-end.last_written_epoch, -end.leo)).broker


def b11(rules: Rules) -> tuple[Cluster, list[bytes]]:
    """B11 and R35: all lose power at once, 1 keeps nothing, 2 everything, 3 one record; 2 comes back last."""
    c = Cluster(start=False)
    c.rules = rules
    for node in c.nodes:
        c.boot(node)
    c.until(lambda: c.unfenced() == {1, 2, 3})
    c.create_topic()
    acked = [b"m%d" % i for i in range(5)]
    assert all(c.produced(1, value).error is ErrorCode.none for value in acked)
    c.power(1, {T: 0})
    c.power(2, {T: 5})
    c.power(3, {T: 1})
    c.until(lambda: not c.unfenced())
    assert (partition(c).leader, set(partition(c).elr)) == (NO_LEADER, {2, 3})
    for node in (1, 3):
        c.boot(node)
        c.until(lambda node=node: node in c.unfenced())
        c.run(3_000)
        assert c.leader() == NO_LEADER, "the last candidate is waited for"
    assert (set(partition(c).elr), set(partition(c).last_known_elr)) == ({2}, {3})
    c.boot(2)
    c.until(lambda: full(c))
    return c, acked


def test_b11_the_replica_that_kept_everything_is_waited_for_and_elected() -> None:
    c, acked = b11(Rules())
    assert c.leader() == 2
    c.until(lambda: all(c.values(node) == acked for node in BROKERS))
    told = [line for line in c.traced("recovery", CONTROLLER) if line["winner"] is not None]
    assert [(line["tp"], line["candidates"], line["winner"]) for line in told] == [("t-0", [2, 3], 2)]
    assert "possible data loss" in told[0]["why"]
    assert c.produced(2, b"after").base_offset == 5


def test_b11_with_a_wrong_choice_acknowledged_records_are_lost() -> None:
    c, acked = b11(replace(Rules(), recovery=WorstLog()))
    assert c.leader() == 3
    assert c.values(3) == acked[:1]


@pytest.mark.parametrize("controller_too", [False, True])
def test_killing_everyone_at_once_loses_nothing(controller_too: bool) -> None:
    c = Cluster()
    c.create_topic("t", (1, 2, 3), (2, 3, 1), (3, 1, 2))
    c.create_topic("lone", (2,))
    tps = [TopicPartition("t", number) for number in range(3)]
    values = {tp: [b"%d.%d" % (tp.partition, i) for i in range(4)] for tp in tps}
    lone = TopicPartition("lone", 0)
    for tp in tps:
        for value in values[tp]:
            assert c.produced(c.leader(tp), value, tp=tp).error is ErrorCode.none
    assert c.produced(2, b"only", tp=lone).error is ErrorCode.none
    for node in BROKERS:
        c.kill(node)
    if controller_too:
        c.kill(CONTROLLER)
        c.boot(CONTROLLER)
        c.until(lambda: c.controller.committed.partition(lone) is not None)
    for node in BROKERS:
        c.boot(node)
    c.until(lambda: all(c.leader(tp) == NO_LEADER for tp in (*tps, lone)))
    c.until(lambda: all(full(c, tp) for tp in tps) and full(c, lone, 1))
    for tp in tps:
        c.until(lambda tp=tp: all(c.values(node, tp) == values[tp] for node in BROKERS))
        c.until(lambda tp=tp: c.replica(c.leader(tp), tp).leader is not None)
        assert c.produced(c.leader(tp), b"after", tp=tp).base_offset == 4
    assert c.values(2, lone) == [b"only"]
    assert c.produced(2, b"after", tp=lone).base_offset == 1


def test_answers_that_are_lost_are_asked_for_again() -> None:
    c = Cluster()
    c.create_topic()
    c.produced(1, b"m")
    for node in BROKERS:
        c.kill(node)
    c.hold(lambda m: isinstance(m.body, GetReplicaLogInfoResponse) and m.source == 3)
    for node in BROKERS:
        c.boot(node)
    c.until(lambda: len(c.held) >= 2)
    assert c.leader() == NO_LEADER
    c.drop_held()
    c.until(lambda: full(c))


def test_what_a_broker_tells_of_its_logs() -> None:
    c = Cluster()
    c.create_topic()
    topic_id = partition(c).topic_id
    c.produced(1, b"m")
    c.kill(1)
    c.until(lambda: c.leader() == 2)
    c.until(lambda: c.replica(2).leader is not None)
    nowhere = UUID(int=4711)
    asked = GetReplicaLogInfoRequest(((topic_id, 0), (nowhere, 0)))
    epoch = c.controller.committed.brokers[2].epoch
    # The new leader has noted its epoch and written nothing in it.
    assert c.replica(2).log.epochs.latest == 1
    assert c.answer(2, asked) == GetReplicaLogInfoResponse(
        epoch,
        (
            ReplicaLogInfo(topic_id, 0, last_written_leader_epoch=0, current_leader_epoch=1, leo=1),
            ReplicaLogInfo(nowhere, 0, error=ErrorCode.unknown_topic_id),
        ),
    )
    c.produced(2, b"n")
    first = c.answer(2, asked).entries[0]
    assert (first.last_written_leader_epoch, first.leo) == (1, 2)
    many = c.answer(2, GetReplicaLogInfoRequest(tuple((topic_id, number) for number in range(1_001))))
    assert (len(many.entries), many.has_more) == (1_000, True)


def test_a_leader_says_again_that_it_is_recovered_when_it_was_refused() -> None:
    solo = Solo(isr=(1, 2))
    solo.metadata(change(leader=1, isr=(1,), leader_recovery_state=1))
    sent = solo.sent("controller-alter")
    (item,) = sent.request.partitions  # type: ignore[union-attr]
    assert (item.isr, item.leader_recovery_state) == (((1, EPOCHS[1]),), 0)
    refused = AlterPartitionResult(T, TOPIC_ID, ErrorCode.ineligible_replica)
    solo.answer(sent, AlterPartitionResponse(partitions=(refused,)))
    assert not solo.has_sent("controller-alter")
    solo.wait(solo.config.replica_lag_time_max_ms / 2)
    again = solo.sent("controller-alter")
    accepted = AlterPartitionResult(
        T, TOPIC_ID, leader_id=1, leader_epoch=1, isr=(1,), partition_epoch=item.partition_epoch + 1
    )
    solo.answer(again, AlterPartitionResponse(partitions=(accepted,)))
    solo.wait(solo.config.replica_lag_time_max_ms)
    assert not solo.has_sent("controller-alter"), "once is enough"


def test_a_broker_that_is_not_registered_has_no_epoch_to_answer_with() -> None:
    c = Cluster()
    c.create_topic()
    topic_id = partition(c).topic_id
    c.kill(2)
    c.cut(2, CONTROLLER)
    c.boot(2)
    told = c.answer(2, GetReplicaLogInfoRequest(((topic_id, 0),)))
    assert told.broker_epoch == -1
    assert told.entries[0].current_leader_epoch == -1
