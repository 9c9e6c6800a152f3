"""The controller tests an AlterPartition in the order of the table of docs/protocol.md 2.6."""

from __future__ import annotations

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import Driver, T
from wrackline.broker.model.messages.controller import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)


@pytest.fixture
def three() -> Driver:
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create()
    driver.alter([1, 2])
    return driver


def test_an_accepted_change_answers_with_the_new_partition(three: Driver) -> None:
    before = three.partition()
    result = three.alter([1, 2, (3, three.epochs[3])])
    after = three.partition()
    assert result.error is ErrorCode.none
    assert (result.leader_id, result.leader_epoch) == (1, before.leader_epoch)
    assert set(result.isr) == set(after.isr) == {1, 2, 3}
    assert result.partition_epoch == after.partition_epoch == before.partition_epoch + 1


def test_a_change_to_what_already_is_writes_nothing(three: Driver) -> None:
    leo = three.disk.leo
    result = three.alter([2, 1])
    assert result.error is ErrorCode.none
    assert result.partition_epoch == three.partition().partition_epoch
    assert three.disk.leo == leo


@pytest.mark.parametrize("broker_epoch", [-1, 0, 999])
def test_a_request_of_another_uptime_is_refused_whole(three: Driver, broker_epoch: int) -> None:
    item = AlterPartitionItem(T, three.partition().topic_id, 0, 1, ((1, -1),))
    response = three.ask(AlterPartitionRequest(1, broker_epoch, (item,)))
    assert response == AlterPartitionResponse(ErrorCode.stale_broker_epoch)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"topic_id": UUID(int=9)}, ErrorCode.unknown_topic_id),
        ({"tp": T._replace(partition=7)}, ErrorCode.unknown_topic_or_partition),
        ({"partition_epoch": 99, "leader_epoch": -1}, ErrorCode.not_controller),
        ({"leader_epoch": -1, "partition_epoch": 0}, ErrorCode.fenced_leader_epoch),
        ({"partition_epoch": 0, "isr": ()}, ErrorCode.invalid_update_version),
        ({"isr": ((1, -1), (2, -1), (3, 0))}, ErrorCode.ineligible_replica),
    ],
)
def test_refusals(three: Driver, changes: dict[str, object], error: ErrorCode) -> None:
    """And the order of the tests: a later row would also fail those before it. All are in golden/isr.txt."""
    before, leo = three.partition(), three.disk.leo
    epoch = three.epochs[1]
    fields: dict[str, object] = {
        "tp": T,
        "topic_id": before.topic_id,
        "leader_epoch": before.leader_epoch,
        "partition_epoch": before.partition_epoch,
        "isr": ((1, -1), (2, -1), (3, -1)),
        **changes,
    }
    response = three.ask(AlterPartitionRequest(1, epoch, (AlterPartitionItem(**fields),)))  # type: ignore[arg-type]
    assert isinstance(response, AlterPartitionResponse)
    assert response.partitions[0].error is error
    assert (three.partition(), three.disk.leo) == (before, leo)


def test_a_fenced_a_leaving_and_an_unregistered_replica_are_ineligible(three: Driver) -> None:
    three.let_expire(3)
    assert three.alter([1, 2, 3]).error is ErrorCode.ineligible_replica
    three.beat(3)
    assert three.alter([1, 2, 3]).error is ErrorCode.none
    three.create("led-by-3", replicas=[3, 2, 1])
    assert not three.beat(3, stop=True).should_shut_down
    assert three.state() == (1, {1, 2}, set(), set())
    assert three.alter([1, 2, 3]).error is ErrorCode.ineligible_replica


def test_b19_a_replica_that_restarted_since_its_fetches_is_ineligible(three: Driver) -> None:
    old = three.epochs[3]
    three.let_expire(3)
    three.start(3)
    assert three.alter([1, 2, (3, old)]).error is ErrorCode.ineligible_replica
    assert three.alter([1, 2, (3, three.epochs[3])]).error is ErrorCode.none


def test_a_recovering_leader_recovers_alone_and_then_takes_others_in(three: Driver) -> None:
    three.create("loose", unclean_leader_election_enable="true")
    tp = T._replace(topic="loose")
    three.alter([1], tp=tp)
    three.let_expire(2, 3)
    three.let_expire(1)
    three.register(1)
    three.register(2)
    three.register(3)
    three.beat(3)
    assert three.state(tp)[0] == 3
    assert three.partition(tp).leader_recovery_state == 1
    three.beat(1)
    refused = three.alter([3, 1], tp=tp, leader_recovery_state=1)
    assert refused.error is ErrorCode.invalid_request
    assert three.alter([3], tp=tp).error is ErrorCode.none
    assert three.partition(tp).leader_recovery_state == 0


def test_several_partitions_are_judged_one_by_one_in_one_batch(three: Driver) -> None:
    three.create("u")
    batches = len(three.disk.batches)
    items = []
    for tp in (T, T._replace(topic="u")):
        p = three.partition(tp)
        items.append(AlterPartitionItem(tp, p.topic_id, p.leader_epoch, p.partition_epoch, ((1, -1),)))
    bad = AlterPartitionItem(T, items[0].topic_id, -1, 0, ((1, -1),))
    response = three.ask(AlterPartitionRequest(1, three.epochs[1], (items[0], bad, items[1])))
    assert isinstance(response, AlterPartitionResponse)
    errors = [result.error for result in response.partitions]
    assert errors == [ErrorCode.none, ErrorCode.fenced_leader_epoch, ErrorCode.none]
    assert len(three.disk.batches) == batches + 1
