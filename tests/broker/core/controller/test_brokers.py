"""Brokers register, send heartbeats, expire and shut down: docs/protocol.md 2.7, R12, R15, R36, C14, C15."""

from __future__ import annotations

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import CLUSTER, Driver, T
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from wrackline.broker.model.metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from wrackline.broker.model.types import NO_LEADER


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_the_broker_epoch_is_the_offset_of_the_registration(driver: Driver) -> None:
    for broker in (1, 2):
        epoch = driver.register(broker).broker_epoch
        record = driver.disk.records()[epoch]
        assert isinstance(record, RegisterBrokerRecord)
        assert (record.broker_id, record.broker_epoch, record.fenced) == (broker, epoch, True)


def test_the_same_incarnation_keeps_its_epoch_and_writes_only_what_is_new(driver: Driver) -> None:
    me = UUID(int=77)
    first = driver.register(1, incarnation=me)
    driver.beat(1)
    leo = driver.disk.leo
    assert driver.register(1, incarnation=me) == first
    assert driver.disk.leo == leo
    moved = driver.ask(BrokerRegistrationRequest(1, CLUSTER, me, "elsewhere", 9092))
    assert moved == first
    broker = driver.controller.committed.brokers[1]
    assert (broker.host, broker.fenced, broker.epoch) == ("elsewhere", False, first.broker_epoch)
    assert broker.registration_offset == leo


def test_another_cluster_is_refused(driver: Driver) -> None:
    response = driver.ask(BrokerRegistrationRequest(1, "other", UUID(int=1), "n1", 9092))
    assert response == BrokerRegistrationResponse(ErrorCode.inconsistent_cluster_id)


def test_r12_a_new_incarnation_waits_until_the_old_one_is_fenced(driver: Driver) -> None:
    driver.start(1, 2, 3)
    driver.create()
    assert driver.register(1).error is ErrorCode.duplicate_broker_registration
    assert driver.state()[0] == 1
    driver.let_expire(1)
    assert driver.register(1).error is ErrorCode.none
    assert driver.state() == (2, {2, 3}, set(), set())


def test_an_incarnation_that_is_still_fenced_can_be_replaced_at_once(driver: Driver) -> None:
    first = driver.register(1)
    second = driver.register(1)
    assert second.broker_epoch > first.broker_epoch


def test_c15_taking_over_from_an_expired_incarnation_makes_the_changes_of_a_fencing_in_the_same_batch(
    driver: Driver,
) -> None:
    driver.start(1, 2, 3)
    driver.create()
    driver.alter([1, 2])
    driver.now_ms += driver.config.session_timeout_ms
    batches = len(driver.disk.batches)
    epoch = driver.register(1).broker_epoch
    assert driver.state() == (2, {2}, set(), {1})
    assert len(driver.disk.batches) == batches + 1
    kinds = [type(record) for record in driver.disk.records()[epoch - 1 :]]
    assert kinds == [PartitionChangeRecord, RegisterBrokerRecord]


@pytest.mark.parametrize("clean", [True, False])
def test_r15_only_an_unclean_shutdown_costs_the_place_in_the_elr(driver: Driver, clean: bool) -> None:
    driver.start(1, 2, 3)
    driver.create()
    driver.alter([1, 2])
    driver.let_expire(2)
    assert driver.state() == (1, {1}, {2}, set())
    driver.register(2, previous=driver.epochs[2] if clean else -1)
    assert driver.state() == (1, {1}, {2} if clean else set(), set() if clean else {2})


def test_c14_a_clean_shutdown_of_an_earlier_uptime_proves_nothing(driver: Driver) -> None:
    driver.start(1, 2, 3)
    driver.create()
    older = driver.epochs[2]
    driver.let_expire(2)
    driver.start(2)
    driver.alter([1, 3])
    driver.alter([1, (2, driver.epochs[2])])
    driver.let_expire(2)
    assert driver.state() == (1, {1}, {2}, set())
    driver.register(2, previous=older)
    assert driver.state() == (1, {1}, set(), {2})


def test_a_heartbeat_of_another_uptime_is_stale(driver: Driver) -> None:
    driver.start(1)
    for broker, epoch in ((1, driver.epochs[1] - 1), (1, driver.epochs[1] + 1), (9, 0)):
        response = driver.ask(BrokerHeartbeatRequest(broker, epoch, 100, False, False))
        assert response == BrokerHeartbeatResponse(ErrorCode.stale_broker_epoch)


def test_a_broker_is_unfenced_only_after_it_has_read_its_own_registration(driver: Driver) -> None:
    epoch = driver.register(1).broker_epoch
    early = driver.beat(1, offset=epoch - 1)
    assert (early.is_caught_up, early.is_fenced) == (False, True)
    starting = driver.beat(1, offset=epoch, fence=True)
    assert (starting.is_caught_up, starting.is_fenced) == (True, True)
    ready = driver.beat(1, offset=epoch)
    assert (ready.is_caught_up, ready.is_fenced) == (True, False)


def test_a_silent_broker_is_fenced_after_the_session_timeout_and_not_before(driver: Driver) -> None:
    driver.start(1)
    driver.run_until(driver.now_ms + driver.config.session_timeout_ms - 1)
    assert driver.image_broker_active(1)
    driver.run_until(driver.now_ms + 1)
    assert not driver.image_broker_active(1)
    assert not driver.beat(1).is_fenced


def test_heartbeats_keep_the_session_alive(driver: Driver) -> None:
    driver.start(1)
    for _ in range(10):
        driver.run_until(driver.now_ms + driver.config.session_timeout_ms - 1)
        driver.beat(1)
    assert driver.image_broker_active(1)


def test_r36_brokers_that_expire_together_are_fenced_one_by_one(driver: Driver) -> None:
    driver.start(1, 2, 3)
    driver.create()
    driver.now_ms += 10 * driver.config.session_timeout_ms
    states = []
    for _ in range(3):
        driver.fire("sessions")
        states.append(driver.state())
    assert states == [
        (2, {2, 3}, set(), set()),
        (3, {3}, {2}, set()),
        (NO_LEADER, set(), {2, 3}, set()),
    ]
    assert "sessions" not in driver.timers


def test_a_restarted_controller_gives_every_unfenced_broker_a_whole_session(driver: Driver) -> None:
    driver.start(1, 2)
    driver.let_expire(2)
    driver.now_ms += 3_600_000
    driver.restart()
    assert driver.register(1).error is ErrorCode.duplicate_broker_registration
    driver.run_until(driver.now_ms + driver.config.session_timeout_ms - 1)
    assert driver.image_broker_active(1)
    driver.run_until(driver.now_ms + 1)
    assert not driver.image_broker_active(1)


def test_controlled_shutdown_moves_leaders_then_waits_until_every_active_broker_knows(
    driver: Driver,
) -> None:
    driver.start(1, 2, 3)
    driver.create()
    before = driver.disk.leo - 1
    assert not driver.beat(1, stop=True).should_shut_down
    assert driver.state() == (2, {2, 3}, set(), set())
    assert driver.controller.committed.brokers[1].in_controlled_shutdown
    driver.beat(2, offset=driver.disk.leo - 1)
    driver.beat(3, offset=before)
    waiting = driver.beat(1, stop=True)
    assert (waiting.should_shut_down, waiting.is_fenced) == (False, False)
    driver.beat(3, offset=driver.disk.leo - 1)
    done = driver.beat(1, stop=True)
    assert (done.should_shut_down, done.is_fenced) == (True, True)
    assert driver.controller.committed.brokers[1].fenced
    assert driver.register(1, previous=driver.epochs[1]).error is ErrorCode.none
    assert [k for k in driver.kinds() if k in ("shutdown", "fence")] == ["shutdown", "fence"]


def test_a_follower_may_shut_down_at_once_and_leaves_the_isr(driver: Driver) -> None:
    driver.start(1, 2, 3)
    driver.create()
    assert driver.beat(3, stop=True).should_shut_down
    assert driver.state() == (1, {1, 2}, set(), set())


def test_the_last_member_that_shuts_down_cleanly_leads_again_when_it_is_back(driver: Driver) -> None:
    driver.start(1, 2)
    driver.create(replicas=[1, 2])
    driver.alter([1])
    assert not driver.beat(1, stop=True).should_shut_down
    assert driver.state() == (2, {2}, {1}, set())
    driver.beat(2)
    assert driver.beat(1, stop=True).should_shut_down
    driver.let_expire(2)
    driver.register(1, previous=driver.epochs[1])
    driver.beat(1)
    assert driver.state() == (1, {1}, {2}, set())


def test_producer_ids_come_in_blocks_that_nobody_else_gets(driver: Driver) -> None:
    driver.start(1, 2)
    blocks = []
    for broker in (1, 2, 1):
        block = driver.ask(AllocateProducerIdsRequest(broker, driver.epochs[broker]))
        assert isinstance(block, AllocateProducerIdsResponse)
        blocks.append((block.producer_id_start, block.producer_id_len))
        driver.restart()
    assert blocks == [(0, 1000), (1000, 1000), (2000, 1000)]
    stale = driver.ask(AllocateProducerIdsRequest(1, driver.epochs[1] + 1))
    assert stale == AllocateProducerIdsResponse(ErrorCode.stale_broker_epoch)


def test_fencing_writes_the_partition_changes_before_the_fence(driver: Driver) -> None:
    driver.start(1, 2, 3)
    driver.create()
    driver.let_expire(1)
    change, fence = driver.disk.records()[-2:]
    assert isinstance(change, PartitionChangeRecord)
    assert isinstance(fence, BrokerRegistrationChangeRecord)
    assert fence.fenced
    assert T in {p.tp for p in driver.controller.committed.partitions()}
