"""The controller creates, deletes and places topics: docs/protocol.md 2.16, Z03-Z07, C10."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import Driver, T
from wrackline.broker.model.messages.metadata import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewTopic,
)
from wrackline.broker.rules.placement.placement import PlacementRules

place = PlacementRules().place


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n), st.integers(1, 60))))
def test_replicas_are_distinct_and_leaders_even(given_: tuple[int, int, int]) -> None:
    n, factor, partitions = given_
    brokers = [10 * b for b in range(n)]
    placed = place(brokers, partitions, factor)
    assert all(len(set(replicas)) == factor for replicas in placed)
    assert [replicas[0] for replicas in placed] == [brokers[p % n] for p in range(partitions)]
    leaders = Counter(replicas[0] for replicas in placed)
    assert partitions < n or max(leaders.values()) - min(leaders.values()) <= 1


def test_z06_the_leaders_of_a_lost_broker_spread_over_all_others() -> None:
    placed = place(range(5), 20, 3)
    for lost in range(5):
        heirs = Counter(replicas[1] for replicas in placed if replicas[0] == lost)
        assert heirs == {b: 1 for b in range(5) if b != lost}


@pytest.fixture
def three() -> Driver:
    driver = Driver()
    driver.start(1, 2, 3)
    return driver


def create(driver: Driver, *topics: NewTopic, validate_only: bool = False) -> tuple[CreatedTopic, ...]:
    response = driver.ask(CreateTopicsRequest(topics, 1_000, validate_only))
    assert isinstance(response, CreateTopicsResponse)
    return response.topics


def test_a_new_topic_takes_the_defaults_of_the_cluster(three: Driver) -> None:
    (made,) = create(three, NewTopic("t"))
    assert (made.error, made.partitions, made.replication_factor) == (ErrorCode.none, 1, 3)
    p = three.partition()
    assert (p.topic_id, p.replicas, p.isr, p.leader) == (made.topic_id, (1, 2, 3), (1, 2, 3), 1)
    assert (p.leader_epoch, p.partition_epoch) == (0, 0)
    assert made.topic_id.int > 1


def test_a_topic_is_one_batch(three: Driver) -> None:
    batches = len(three.disk.batches)
    create(three, NewTopic("t", 12, 2, configs={"retention.ms": "1000"}))
    assert len(three.disk.batches) == batches + 1
    assert len(three.controller.committed.topics_by_name["t"].partitions) == 12


def test_only_live_brokers_get_replicas(three: Driver) -> None:
    three.let_expire(2)
    assert create(three, NewTopic("t", 1, 3))[0].error is ErrorCode.invalid_replication_factor
    create(three, NewTopic("t", 4, 2))
    replicas = {b for p in three.controller.committed.partitions() for b in p.replicas}
    assert replicas == {1, 3}


def test_fenced_brokers_of_an_assignment_start_outside_the_isr(three: Driver) -> None:
    three.let_expire(2)
    create(three, NewTopic("t", assignments={0: (2, 1, 3)}))
    assert three.state() == (1, {1, 3}, set(), set())
    assert three.partition().replicas == (2, 1, 3)


REFUSED = [
    (NewTopic("t", 0), ErrorCode.invalid_partitions),
    (NewTopic("t", -2), ErrorCode.invalid_partitions),
    (NewTopic("t", 2_000_000_000), ErrorCode.invalid_partitions),
    (NewTopic("t", 1, 4), ErrorCode.invalid_replication_factor),
    (NewTopic("t", 1, 0), ErrorCode.invalid_replication_factor),
    (NewTopic("t", 1, -2), ErrorCode.invalid_replication_factor),
    (NewTopic("", 1, 1), ErrorCode.invalid_topic_exception),
    (NewTopic("..", 1, 1), ErrorCode.invalid_topic_exception),
    (NewTopic("a/b", 1, 1), ErrorCode.invalid_topic_exception),
    (NewTopic("t\n", 1, 1), ErrorCode.invalid_topic_exception),
    (NewTopic("x" * 250, 1, 1), ErrorCode.invalid_topic_exception),
    (NewTopic("__cluster_metadata", 1, 1), ErrorCode.invalid_topic_exception),
    (NewTopic("a_b", 1, 1), ErrorCode.invalid_topic_exception),
    (NewTopic("a.b", 1, 1), ErrorCode.topic_already_exists),
    (NewTopic("t", configs={"no.such.key": "1"}), ErrorCode.invalid_config),
    (NewTopic("t", configs={"min.insync.replicas": "0"}), ErrorCode.invalid_config),
    (NewTopic("t", configs={"min.insync.replicas": "two"}), ErrorCode.invalid_config),
    (NewTopic("t", configs={"unclean.leader.election.enable": "yes"}), ErrorCode.invalid_config),
    (NewTopic("t", configs={"cleanup.policy": "compact"}), ErrorCode.invalid_config),
    (NewTopic("t", 1, assignments={0: (1,)}), ErrorCode.invalid_request),
    (NewTopic("t", assignments={1: (1,)}), ErrorCode.invalid_replica_assignment),
    (NewTopic("t", assignments={0: ()}), ErrorCode.invalid_replica_assignment),
    (NewTopic("t", assignments={0: (1, 1)}), ErrorCode.invalid_replica_assignment),
    (NewTopic("t", assignments={0: (1, 9)}), ErrorCode.invalid_replica_assignment),
    (NewTopic("t", assignments={0: (1, 2), 1: (1,)}), ErrorCode.invalid_replica_assignment),
]


@pytest.mark.parametrize(("topic", "error"), REFUSED)
def test_refusals_name_their_reason_and_write_nothing(
    three: Driver, topic: NewTopic, error: ErrorCode
) -> None:
    create(three, NewTopic("a.b", 1, 1))
    leo = three.disk.leo
    refused, _ = create(three, topic, NewTopic("fine", 1, 1), validate_only=True)
    assert refused.error is error
    assert refused.message
    assert three.disk.leo == leo


def test_a_refused_topic_does_not_stop_the_others_and_a_repeated_name_is_refused(three: Driver) -> None:
    results = create(three, NewTopic("t", 0), NewTopic("u", 1, 1), NewTopic("v", 1, 1), NewTopic("v", 1, 1))
    assert {r.name: r.error for r in results} == {
        "t": ErrorCode.invalid_partitions,
        "u": ErrorCode.none,
        "v": ErrorCode.invalid_request,
    }
    assert list(three.controller.committed.topics_by_name) == ["u"]


def test_all_replicas_fenced_is_no_place_to_start(three: Driver) -> None:
    three.let_expire(2, 3)
    refused = create(three, NewTopic("t", assignments={0: (2, 3)}))[0]
    assert refused.error is ErrorCode.invalid_replica_assignment


def test_validation_only_makes_nothing(three: Driver) -> None:
    leo = three.disk.leo
    (checked,) = create(three, NewTopic("t", 2, 2), validate_only=True)
    assert (checked.error, checked.partitions, checked.topic_id) == (ErrorCode.none, 2, UUID(int=0))
    assert three.disk.leo == leo


def test_settings_of_the_topic_win_over_those_of_the_cluster(three: Driver) -> None:
    create(three, NewTopic("t", 1, 3, configs={"min.insync.replicas": "1"}), NewTopic("u", 1, 3))
    image = three.controller.committed
    assert image.topic_config("t", "min.insync.replicas") == "1"
    assert (image.min_isr(T), image.min_isr(T._replace(topic="u"))) == (1, 2)


def delete(driver: Driver, *names: str, ids: tuple[UUID, ...] = ()) -> tuple[DeletedTopic, ...]:
    response = driver.ask(DeleteTopicsRequest(names, 1_000, ids))
    assert isinstance(response, DeleteTopicsResponse)
    return response.topics


def test_topics_are_deleted_by_name_or_id_and_a_new_one_of_the_name_has_another_id(three: Driver) -> None:
    ids = [
        made.topic_id for made in create(three, NewTopic("t", configs={"retention.ms": "5"}), NewTopic("u"))
    ]
    results = delete(three, "t", "nope", ids=(ids[1], UUID(int=9)))
    assert [(r.name, r.error) for r in results] == [
        ("t", ErrorCode.none),
        ("nope", ErrorCode.unknown_topic_or_partition),
        ("u", ErrorCode.none),
        (None, ErrorCode.unknown_topic_id),
    ]
    assert not list(three.controller.committed.partitions())
    (again,) = create(three, NewTopic("t"))
    assert again.topic_id not in ids
    assert three.controller.committed.topic_config("t", "retention.ms") is None
