"""Administrators change settings, leaders, partitions and brokers at the controller (docs/protocol.md 2.8,
2.16)."""

from __future__ import annotations

from collections import Counter

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import Driver, T
from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, NewTopic
from wrackline.broker.model.metadata.records import PartitionChangeRecord
from wrackline.broker.model.types import NO_LEADER, Placement, TopicPartition

CLUSTER = a.Resource(a.BROKER, "")
TOPIC = a.Resource(a.TOPIC, "t")


@pytest.fixture
def three() -> Driver:
    return started()


def started(**changes: object) -> Driver:
    driver = Driver(**changes)  # type: ignore[arg-type]
    driver.start(1, 2, 3)
    driver.create()
    return driver


def configure(driver: Driver, resource: a.Resource, **values: str | None) -> ErrorCode:
    changes = tuple(
        a.ConfigChange(name.replace("_", "."), a.AlterOp.DELETE if value is None else a.AlterOp.SET, value)
        for name, value in values.items()
    )
    response = driver.ask(a.IncrementalAlterConfigsRequest((a.AlteredResource(resource, changes),)))
    assert isinstance(response, a.IncrementalAlterConfigsResponse)
    return response.resources[0].error


def elect(driver: Driver, kind: a.ElectionType, *tps: TopicPartition) -> list[ErrorCode]:
    response = driver.ask(a.ElectLeadersRequest(int(kind), tps or None, 1_000))
    assert isinstance(response, a.ElectLeadersResponse)
    return [done.error for done in response.partitions]


# --- MinISR and the ELR (B32, KAFKA-16540) ---------------------------------------------------------------


@pytest.mark.parametrize("resource", [TOPIC, CLUSTER])
def test_a_changed_min_isr_clears_the_elr(three: Driver, resource: a.Resource) -> None:
    """The schedule of B32: ISR=[1], ELR=[2]; with MinISR=1 broker 1 commits alone, so 2 must not be
    elected."""
    three.alter([1, 3])
    three.alter([1])
    assert three.state() == (1, {1}, {3}, set())
    assert configure(three, resource, min_insync_replicas="1") is ErrorCode.none
    assert three.state() == (1, {1}, set(), set())
    assert three.controller.committed.min_isr(T) == 1
    three.let_expire(1)
    assert three.state()[:2] == (NO_LEADER, set()), "no leader until 1 returns"


def test_while_the_isr_is_too_small_who_was_eligible_stays_a_candidate(three: Driver) -> None:
    """Cleared as Kafka does, and yet one lossy shutdown more loses nothing: recovery compares the logs."""
    three.alter([1])
    configure(three, TOPIC, min_insync_replicas="3")
    assert three.state() == (1, {1}, set(), {2, 3})
    three.alter([1, 2, 3])
    assert three.state() == (1, {1, 2, 3}, set(), set())


def test_the_config_and_what_follows_are_one_batch_with_a_new_partition_epoch(three: Driver) -> None:
    """An ISR proposal by the old MinISR is refused: leader and controller count alike (KAFKA-16540)."""
    before = three.partition()
    configure(three, TOPIC, min_insync_replicas="3")
    assert three.partition().partition_epoch == before.partition_epoch + 1
    assert three.partition().leader_epoch == before.leader_epoch
    result = three.alter([1, 2], partition_epoch=before.partition_epoch)
    assert result.error is ErrorCode.invalid_update_version
    assert isinstance(three.disk.records()[-1], PartitionChangeRecord)


def test_settings_that_mean_nothing_for_a_partition_leave_it_alone(three: Driver) -> None:
    before = three.partition()
    configure(three, TOPIC, retention_ms="5")
    configure(three, CLUSTER, min_insync_replicas="2")
    assert three.partition() == before
    configure(three, TOPIC, min_insync_replicas="7")
    configure(three, TOPIC, min_insync_replicas="3")
    assert three.partition().partition_epoch == before.partition_epoch + 1, "effectively 3 both times"


def test_what_clients_set_for_the_cluster_survives_the_controller(three: Driver) -> None:
    configure(three, CLUSTER, min_insync_replicas="1")
    three.restart()
    assert three.controller.committed.min_isr(T) == 1
    configure(three, CLUSTER, min_insync_replicas=None)
    assert three.controller.committed.min_isr(T) == 2, "as its file says"


def test_alter_configs_replaces_all_settings_of_a_resource_and_of_no_other(three: Driver) -> None:
    configure(three, TOPIC, min_insync_replicas="3", retention_ms="5")
    configure(three, CLUSTER, min_insync_replicas="1")
    change = a.ConfigChange("retention.ms", a.AlterOp.SET, "7")
    wrong = a.ConfigChange("retention.ms", a.AlterOp.SET, "soon")
    for changes, error in (((wrong,), ErrorCode.invalid_config), ((change,), ErrorCode.none)):
        response = three.ask(a.AlterConfigsRequest((a.AlteredResource(TOPIC, changes),)))
        assert isinstance(response, a.IncrementalAlterConfigsResponse)
        assert response.resources[0].error is error
        kept = {"min.insync.replicas": "3", "retention.ms": "5"}
        assert three.controller.committed.configs["topic", "t"] == (
            kept if error is not ErrorCode.none else {"retention.ms": "7"}
        )
    assert three.controller.committed.min_isr(T) == 1


def only_the_unclean_one_is_left(driver: Driver) -> None:
    """1 has registered again after an unclean shutdown; 2 and 3, which are eligible, are fenced."""
    driver.alter([1])
    driver.let_expire(1)
    driver.register(1)
    driver.let_expire(2)
    driver.let_expire(3)
    assert driver.state() == (NO_LEADER, set(), {2, 3}, {1})


def test_unclean_election_switched_on_elects_at_once(three: Driver) -> None:
    only_the_unclean_one_is_left(three)
    three.beat(1)
    assert three.partition().leader == NO_LEADER
    configure(three, TOPIC, unclean_leader_election_enable="true")
    assert three.partition().leader == 1


@pytest.mark.parametrize(
    ("resource", "values", "error"),
    [
        (TOPIC, {"cleanup_policy": "compact"}, ErrorCode.invalid_config),
        (TOPIC, {"no_such_thing": "1"}, ErrorCode.invalid_config),
        (a.Resource(a.TOPIC, "nope"), {"retention_ms": "1"}, ErrorCode.unknown_topic_or_partition),
        (CLUSTER, {"retention_ms": "1"}, ErrorCode.invalid_config),
        (a.Resource(a.BROKER, "1"), {"min_insync_replicas": "1"}, ErrorCode.invalid_request),
        (a.Resource(8, "x"), {}, ErrorCode.invalid_request),
    ],
)
def test_settings_that_are_refused(
    three: Driver, resource: a.Resource, values: dict[str, str], error: ErrorCode
) -> None:
    leo = three.disk.leo
    assert configure(three, resource, **values) is error
    assert three.disk.leo == leo


def test_appending_to_a_list_setting_is_refused(three: Driver) -> None:
    change = a.ConfigChange("cleanup.policy", a.AlterOp.APPEND, "compact")
    response = three.ask(a.IncrementalAlterConfigsRequest((a.AlteredResource(TOPIC, (change,)),)))
    assert isinstance(response, a.IncrementalAlterConfigsResponse)
    assert response.resources[0].error is ErrorCode.invalid_config


# --- elections ----------------------------------------------------------------------------------------------


def test_the_preferred_leader_is_elected_when_it_is_in_the_isr(three: Driver) -> None:
    three.let_expire(1)
    three.beat(1)
    assert three.state()[:2] == (2, {2, 3})
    assert elect(three, a.ElectionType.PREFERRED, T) == [ErrorCode.preferred_leader_not_available]
    three.alter([2, 3, 1])
    epoch = three.partition().leader_epoch
    assert elect(three, a.ElectionType.PREFERRED, T) == [ErrorCode.none]
    assert (three.partition().leader, three.partition().leader_epoch) == (1, epoch + 1)
    assert elect(three, a.ElectionType.PREFERRED, T) == [ErrorCode.election_not_needed]
    assert elect(three, a.ElectionType.PREFERRED) == [], "for all: nothing to tell"
    missing = T._replace(partition=9)
    assert elect(three, a.ElectionType.PREFERRED, missing) == [ErrorCode.unknown_topic_or_partition]


def test_an_operator_cannot_elect_where_somebody_leads_or_nobody_lives(three: Driver) -> None:
    assert elect(three, a.ElectionType.UNCLEAN, T) == [ErrorCode.election_not_needed]
    only_the_unclean_one_is_left(three)
    assert elect(three, a.ElectionType.UNCLEAN, T) == [ErrorCode.eligible_leaders_not_available]


def test_leaderships_come_back_by_themselves() -> None:
    driver = started(leader_imbalance_check_interval_ms=60_000, session_timeout_ms=10_000)
    driver.let_expire(1)
    driver.beat(1)
    driver.alter([2, 3, 1])
    assert driver.partition().leader == 2
    end = driver.now_ms + 61_000
    while driver.now_ms < end:
        for broker in (1, 2, 3):
            driver.beat(broker)
        driver.run_until(driver.now_ms + 5_000)
    assert driver.partition().leader == 1


def test_no_rebalance_where_it_is_switched_off() -> None:
    assert "imbalance" not in started(auto_leader_rebalance=False).timers


# --- partitions, placement, brokers -------------------------------------------------------------------------


def test_more_partitions_go_on_where_the_placement_ended() -> None:
    driver = Driver()
    driver.start(1, 2, 3, 4)
    driver.ask(CreateTopicsRequest((NewTopic("few", 3, 3),), 1_000))
    driver.ask(CreateTopicsRequest((NewTopic("many", 7, 3),), 1_000))
    response = driver.ask(a.CreatePartitionsRequest((a.NewPartitions("few", 7),), 1_000))
    assert isinstance(response, a.CreatePartitionsResponse)
    topics = driver.controller.committed.topics_by_name
    assert [p.replicas for p in topics["few"].partitions.values()] == [
        p.replicas for p in topics["many"].partitions.values()
    ]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (a.NewPartitions("t", 1), ErrorCode.invalid_partitions),
        (a.NewPartitions("nope", 2), ErrorCode.unknown_topic_or_partition),
        (a.NewPartitions("t", 2, ((1, 2),)), ErrorCode.invalid_replica_assignment),
        (a.NewPartitions("t", 2, ((1, 2, 2),)), ErrorCode.invalid_replica_assignment),
        (a.NewPartitions("t", 2, ((3, 1, 2),)), ErrorCode.none),
    ],
)
def test_more_partitions_checked(three: Driver, wanted: a.NewPartitions, error: ErrorCode) -> None:
    response = three.ask(a.CreatePartitionsRequest((wanted,), 1_000))
    assert isinstance(response, a.CreatePartitionsResponse)
    assert response.topics[0].error is error
    known = len(three.controller.committed.topics_by_name["t"].partitions)
    assert known == (2 if error is ErrorCode.none else 1)


def test_striped_placement_is_configuration() -> None:
    driver = Driver(placement=Placement.STRIPED)
    driver.start(1, 2, 3, 4)
    driver.ask(CreateTopicsRequest((NewTopic("many", 8, 2),), 1_000))
    partitions = driver.controller.committed.topics_by_name["many"].partitions.values()
    held = Counter(broker for p in partitions for broker in p.replicas)
    assert set(held.values()) == {4}


def test_an_unregistered_broker_is_forgotten_and_proves_nothing(three: Driver) -> None:
    response = three.ask(a.UnregisterBrokerRequest(3))
    assert isinstance(response, a.UnregisterBrokerResponse)
    assert response.error is ErrorCode.invalid_request, "it is running"
    three.alter([1, 3])
    three.alter([1])
    three.let_expire(3)
    assert 3 in three.state()[2]
    response = three.ask(a.UnregisterBrokerRequest(3))
    assert isinstance(response, a.UnregisterBrokerResponse)
    assert response.error is ErrorCode.none
    assert 3 not in three.controller.committed.brokers
    assert three.state() == (1, {1}, set(), {3}), "out of the ELR: who comes back may be another disk"
    response = three.ask(a.UnregisterBrokerRequest(3))
    assert isinstance(response, a.UnregisterBrokerResponse)
    assert response.error is ErrorCode.broker_id_not_registered
