"""The controller reassigns replicas record by record (docs/protocol.md 2.10, C11); K54 is tested with real
brokers."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import Driver, T
from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.types import NO_LEADER, ReassignRule, TopicPartition


def five(**changes: object) -> Driver:
    driver = Driver(**changes)  # type: ignore[arg-type]
    driver.start(1, 2, 3, 4, 5)
    driver.create()
    return driver


@pytest.fixture
def cluster() -> Driver:
    return five()


def reassign(driver: Driver, target: Iterable[int] | None, tp: TopicPartition = T) -> ErrorCode:
    wanted = None if target is None else tuple(target)
    response = driver.ask(a.AlterPartitionReassignmentsRequest((a.Reassignment(tp, wanted),), 1_000))
    assert isinstance(response, a.AlterPartitionReassignmentsResponse)
    assert response.error is ErrorCode.none
    return response.partitions[0].error


def ongoing(driver: Driver) -> list[a.OngoingReassignment]:
    response = driver.ask(a.ListPartitionReassignmentsRequest(None, 1_000))
    assert isinstance(response, a.ListPartitionReassignmentsResponse)
    return list(response.partitions)


def assignment(driver: Driver) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    p = driver.partition()
    return p.replicas, p.adding, p.removing


def test_it_begins_by_growing_and_changes_nothing_else(cluster: Driver) -> None:
    before = cluster.partition()
    assert reassign(cluster, [4, 5, 1]) is ErrorCode.none
    after = cluster.partition()
    assert assignment(cluster) == ((4, 5, 1, 2, 3), (4, 5), (2, 3))
    assert (after.isr, after.leader, after.leader_epoch) == (before.isr, before.leader, before.leader_epoch)
    assert after.partition_epoch == before.partition_epoch + 1
    assert ongoing(cluster) == [a.OngoingReassignment(T, (4, 5, 1, 2, 3), (4, 5), (2, 3))]


def test_it_completes_with_the_isr_change_that_makes_it_complete(cluster: Driver) -> None:
    reassign(cluster, [4, 5, 1])
    cluster.alter([1, 2, 3, 4])
    assert assignment(cluster)[1:] == ((4, 5), (2, 3))
    before = cluster.partition()
    result = cluster.alter([1, 2, 3, 4, 5])
    after = cluster.partition()
    assert assignment(cluster) == ((4, 5, 1), (), ())
    assert set(after.isr) == {1, 4, 5}
    assert (after.leader, after.leader_epoch) == (1, before.leader_epoch + 1), "kept, in a new epoch"
    assert after.partition_epoch == before.partition_epoch + 1
    assert (result.error, result.leader_epoch) == (ErrorCode.none, after.leader_epoch)
    assert ongoing(cluster) == []


def test_a_leader_that_is_removed_is_told_that_another_leads(cluster: Driver) -> None:
    reassign(cluster, [4, 5])
    cluster.alter([1, 2, 3, 4])
    result = cluster.alter([1, 2, 3, 4, 5])
    assert result.error is ErrorCode.new_leader_elected
    assert cluster.state() == (4, {4, 5}, set(), set())
    assert assignment(cluster) == ((4, 5), (), ())


def test_removing_only_is_one_record(cluster: Driver) -> None:
    before = cluster.partition()
    assert reassign(cluster, [2, 1]) is ErrorCode.none
    after = cluster.partition()
    assert assignment(cluster) == ((2, 1), (), ())
    assert cluster.state() == (1, {1, 2}, set(), set())
    assert after.partition_epoch == before.partition_epoch + 1
    assert after.leader_epoch == before.leader_epoch + 1


def test_another_order_is_no_reason_for_a_new_leader_epoch(cluster: Driver) -> None:
    before = cluster.partition()
    reassign(cluster, [3, 2, 1])
    after = cluster.partition()
    assert after.replicas == (3, 2, 1)
    assert (after.leader, after.leader_epoch) == (1, before.leader_epoch)
    reassign(cluster, [3, 2, 1])
    assert cluster.partition() == after, "what is so already needs no record"


def test_it_waits_for_min_isr_in_what_remains(cluster: Driver) -> None:
    """B36: ISR=[1], 4 joins; [4] alone must not be all that holds what is committed."""
    cluster.alter([1])
    assert cluster.state() == (1, {1}, {2, 3}, set())
    reassign(cluster, [2, 3, 4])
    cluster.alter([1, 4])
    assert assignment(cluster) == ((2, 3, 4, 1), (4,), (1,))
    cluster.alter([1, 4, 2])
    assert assignment(cluster) == ((2, 3, 4), (), ())
    assert cluster.state()[1:] == ({2, 4}, set(), set())


@pytest.mark.parametrize(
    ("rule", "isr", "complete"),
    [
        (ReassignRule.D4, [1, 4], False),
        (ReassignRule.D4, [1, 2, 4], True),
        (ReassignRule.ALL_TARGETS, [1, 2, 4], False),
        (ReassignRule.ALL_TARGETS, [1, 2, 3, 4], True),
        (ReassignRule.ADDING_ONLY, [1, 4], True),
    ],
)
def test_the_configured_rule_says_when_a_reassignment_is_complete(
    rule: ReassignRule, isr: list[int], complete: bool
) -> None:
    driver = five(reassign_rule=rule)
    driver.alter([b for b in isr if b != 4])
    reassign(driver, [2, 3, 4])
    driver.alter(isr)
    assert (driver.partition().adding == ()) is complete


def test_cancelling_goes_back_to_the_first_replicas(cluster: Driver) -> None:
    reassign(cluster, [4, 5, 1])
    cluster.alter([1, 2, 3, 4])
    before = cluster.partition()
    assert reassign(cluster, None) is ErrorCode.none
    after = cluster.partition()
    assert (set(after.replicas), after.adding, after.removing) == ({1, 2, 3}, (), ())
    assert set(after.isr) == {1, 2, 3}
    assert (after.leader, after.leader_epoch) == (1, before.leader_epoch + 1)
    assert reassign(cluster, None) is ErrorCode.no_reassignment_in_progress


def test_what_is_committed_on_the_new_replicas_stops_a_cancellation(cluster: Driver) -> None:
    reassign(cluster, [1, 4, 5])
    cluster.alter([1, 2, 3, 4])
    cluster.alter([1, 4])
    assert reassign(cluster, None) is ErrorCode.invalid_replica_assignment
    assert assignment(cluster) == ((1, 4, 5, 2, 3), (4, 5), (2, 3)), "as it was"
    cluster.alter([1, 4, 2])
    assert reassign(cluster, None) is ErrorCode.none
    assert set(cluster.partition().isr) == {1, 2}


def test_a_topic_that_takes_losses_can_always_cancel() -> None:
    driver = Driver()
    driver.start(1, 2, 3, 4)
    driver.create(unclean_leader_election_enable="true")
    reassign(driver, [4])
    driver.alter([1, 2, 3])
    driver.alter([1])
    assert reassign(driver, None) is ErrorCode.none
    assert driver.state()[:2] == (1, {1})


def test_a_new_target_replaces_the_old_one(cluster: Driver) -> None:
    reassign(cluster, [1, 2, 4])
    cluster.alter([1, 2, 3, 4])
    # 4 was added in the meantime: that one is complete; go on from there.
    assert assignment(cluster) == ((1, 2, 4), (), ())
    reassign(cluster, [1, 3, 5])
    assert assignment(cluster) == ((1, 3, 5, 2, 4), (3, 5), (2, 4))
    cluster.alter([1, 2, 4, 3])
    reassign(cluster, [1, 2, 5])
    assert assignment(cluster) == ((1, 2, 5, 4), (5,), (4,))
    assert set(cluster.partition().isr) == {1, 2, 4}, "3 was only being added"
    reassign(cluster, None)
    assert set(cluster.partition().replicas) == {1, 2, 4}


def test_min_isr_does_not_count_who_is_being_added(cluster: Driver) -> None:
    """One replica, min.insync.replicas 2, effectively 1: to grow must not stop the writers."""
    cluster.create("one", replicas=[1])
    tp = TopicPartition("one", 0)
    image = cluster.controller.committed
    reassign(cluster, [1, 2, 3], tp)
    assert image.min_isr(tp) == 1
    cluster.alter([1, 2], tp=tp)
    assert image.min_isr(tp) == 1
    cluster.alter([1, 2, 3], tp=tp)
    assert image.min_isr(tp) == 2
    assert cluster.partition(tp).adding == ()


def test_a_reassignment_completes_although_the_removed_broker_is_fenced(cluster: Driver) -> None:
    reassign(cluster, [4, 2, 3])
    cluster.let_expire(1)
    assert cluster.state()[:2] == (2, {2, 3}), "the first of the target that is in the ISR"
    cluster.alter([2, 3, 4])
    assert assignment(cluster) == ((4, 2, 3), (), ())


def test_an_unclean_election_takes_an_empty_newcomer_last() -> None:
    driver = Driver()
    driver.start(1, 2, 3, 4)
    driver.create(unclean_leader_election_enable="true")
    reassign(driver, [4, 3])
    driver.alter([1, 2])
    driver.let_expire(1)
    driver.let_expire(2)
    assert driver.state()[:2] == (3, {3}), "not 4, though it comes first in the target"
    assert driver.partition().adding == (4,)


@pytest.mark.parametrize("target", [[], [1, 1, 2], [1, 2, 9]])
def test_invalid_targets_are_refused(cluster: Driver, target: list[int]) -> None:
    assert reassign(cluster, target) is ErrorCode.invalid_replica_assignment
    assert assignment(cluster) == ((1, 2, 3), (), ())


def test_unknown_partitions(cluster: Driver) -> None:
    missing = TopicPartition("t", 7)
    assert reassign(cluster, [1], missing) is ErrorCode.unknown_topic_or_partition
    response = cluster.ask(a.ListPartitionReassignmentsRequest((missing, T), 1_000))
    assert isinstance(response, a.ListPartitionReassignmentsResponse)
    assert response.partitions == ()


def test_a_reassignment_survives_a_restart_of_the_controller(cluster: Driver) -> None:
    reassign(cluster, [4, 5, 1])
    cluster.restart()
    assert assignment(cluster) == ((4, 5, 1, 2, 3), (4, 5), (2, 3))


def test_a_leaderless_partition_waits() -> None:
    driver = five()
    driver.let_expire(1)
    driver.let_expire(2)
    driver.let_expire(3)
    assert driver.state() == (NO_LEADER, set(), {2, 3}, set())
    assert reassign(driver, [4, 5, 1]) is ErrorCode.none
    assert driver.partition().leader == NO_LEADER
    assert assignment(driver)[1] == (4, 5)
