"""Every operation of the client, put to our own broker over a real socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import getmembers, isfunction
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.describe_topic_partitions.v0 import response as pages
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from tests.broker.clients.logs import produce
from tests.broker.clients.loopback import Cluster, wait_for
from wrackline.kafka_client.connection import EARLIEST, PREFERRED, UNCLEAN, Connection, duration
from wrackline.kafka_client.model import ClusterState, ResourceType, TopicSpec
from wrackline.kafka_client.transport import HungUp, ProtocolError, Rejected, Transport

# ruff: noqa: ARG001 - every case is given the cluster and a connection

ASK_S = 10.0
NOBODY = ("nobody", 0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def asked(cluster: Cluster) -> Iterator[Connection]:
    with Connection("127.0.0.1", cluster.brokers[1].port, timeout_s=ASK_S) as connection:
        yield connection


def state(connection: Connection, topic: str) -> ClusterState:
    return connection.cluster_state([topic])


def made(connection: Connection, topic: str, partitions: int = 1, replicas: int = 3) -> None:
    """The topic with a leader and its full ISR."""
    connection.create_topic(TopicSpec(topic, partitions, replicas, {"retention.ms": "77"}), timeout_s=ASK_S)

    def served() -> bool:
        found = state(connection, topic).partitions
        return len(found) == partitions and all(one.leader > 0 and one.full_isr for one in found)

    wait_for(f"{topic} to be served", served)


def versions(cluster: Cluster, asked: Connection) -> None:
    assert asked.api_versions()[18] == (0, 4)
    assert (asked.newest(3, 12), asked.newest(3, 5), asked.newest(9999, 5)) == (12, 5, 0)


def feature_levels(cluster: Cluster, asked: Connection) -> None:
    found = asked.features()
    assert [one.name for one in found.supported_features] == ["metadata.version"]
    [level] = [one.max_version_level for one in found.finalized_features]
    asked.update_feature("metadata.version", level, timeout_s=ASK_S)
    asked.update_feature("metadata.version", 11, kind=2, validate_only=True, timeout_s=ASK_S)
    assert [one.max_version_level for one in asked.features().finalized_features] == [level]
    with pytest.raises(Rejected, match="no such feature") as rejected:
        asked.update_feature("nothing", 3, timeout_s=ASK_S)
    assert rejected.value.error is ErrorCode.invalid_update_version


def brokers_and_controllers(cluster: Cluster, asked: Connection) -> None:
    found = asked.describe_cluster().brokers
    assert {one.broker_id: one.port for one in found} == {n: one.port for n, one in cluster.brokers.items()}
    assert {one.node_id: one.port for one in asked.metadata(()).brokers} == {
        n: one.port for n, one in cluster.brokers.items()
    }
    with Connection("127.0.0.1", cluster.controller.port, timeout_s=ASK_S) as controller:
        assert controller.named_controller() == controller.active_controller() == 101


def coordinators(cluster: Cluster, asked: Connection) -> None:
    assert asked.find_coordinator("group", "readers") in cluster.brokers
    with pytest.raises(Rejected, match=r"FindCoordinator\(tx\) to 127\.0\.0\.1:\d+: "):
        asked.find_coordinator("transaction", "tx")
    with pytest.raises(Rejected, match=r"InitProducerId\(tx\) to .*: transactional_id_authorization_failed"):
        asked.init_producer_id("tx", transaction_timeout_s=60)
    assert asked.committed_offsets("readers", "t", [0, 1], require_stable=True) == {0: -1, 1: -1}
    made(asked, "shared", 1)
    with pytest.raises(HungUp):  # our broker does not speak the version that has share groups
        asked.find_share_coordinator("g", "shared", 0)


def groups(cluster: Cluster, asked: Connection) -> None:
    """Our own broker has none, and hangs up; tests/systems/kafka/test_workloads.py deletes real ones."""
    with pytest.raises(ProtocolError, match="DeleteGroupsRequest to"):
        asked.delete_group("readers")


def topics(cluster: Cluster, asked: Connection) -> None:
    made(asked, "grows", 2)
    [seen] = asked.metadata(["grows"]).topics
    [shown] = asked.describe_topics(["grows"])
    assert seen.topic_id == shown.topic_id is not None
    assert [one.place for one in shown.partitions] == [("grows", 0), ("grows", 1)]
    assert all(set(one.replicas) == {1, 2, 3} == set(one.isr) for one in shown.partitions)
    assert "grows" in {one.topic for one in asked.cluster_state().partitions}
    asked.create_partitions("grows", 3, timeout_s=ASK_S)
    wait_for("a third partition", lambda: len(state(asked, "grows").partitions) == 3)
    for again, error in (
        (lambda: asked.create_topic(TopicSpec("grows", 1, 1, {}), timeout_s=ASK_S), "topic_already_exists"),
        (lambda: asked.create_partitions("grows", 3, timeout_s=ASK_S), "invalid_partitions"),
    ):
        with pytest.raises(Rejected, match=f"to 127.0.0.1:[0-9]+: {error}"):
            again()
    asked.delete_topic("grows", timeout_s=ASK_S)
    wait_for("it to be gone", lambda: not state(asked, "grows").partitions)
    with pytest.raises(Rejected, match=r"DeleteTopics of grows to .*: unknown_topic_or_partition"):
        asked.delete_topic("grows", timeout_s=ASK_S)
    [gone] = asked.describe_topics(["grows"])
    assert gone.error is ErrorCode.unknown_topic_or_partition


def offsets(cluster: Cluster, asked: Connection) -> None:
    made(asked, "read")
    produce(cluster.bootstrap, "read", [b"1", b"2", b"3"])
    found = state(asked, "read").partition("read", 0)
    assert found is not None
    leader = cluster.brokers[found.leader]
    with Connection("127.0.0.1", leader.port, timeout_s=ASK_S) as there:
        assert (there.list_offset("read", 0), there.list_offset("read", 0, EARLIEST)) == (3, 0)
        assert there.list_offset("read", 0, leader_epoch=found.leader_epoch) == 3
        with pytest.raises(
            Rejected, match=r"^ListOffsets\(read-0\) to 127\.0\.0\.1:\d+: unknown_leader_epoch$"
        ):
            there.list_offset("read", 0, leader_epoch=found.leader_epoch + 1)


def settings(cluster: Cluster, asked: Connection) -> None:
    made(asked, "set")

    def given() -> dict[str, str | None]:
        return {
            one.name: one.value
            for one in asked.describe_configs(ResourceType.TOPIC, "set")
            if one.source == 1
        }

    assert given() == {"retention.ms": "77"}
    asked.alter_configs(ResourceType.TOPIC, "set", {"retention.ms": None, "min.insync.replicas": "3"})
    wait_for("the change", lambda: given() == {"min.insync.replicas": "3"})
    own = {one.name: one for one in asked.describe_configs(ResourceType.BROKER, "1")}
    assert (own["node.id"].value, own["node.id"].read_only, own["node.id"].given) == ("1", True, True)
    assert not {one.name: one for one in asked.describe_configs(ResourceType.TOPIC, "set")}[
        "cleanup.policy"
    ].given
    with pytest.raises(Rejected, match="unknown topic setting") as rejected:
        asked.alter_configs(ResourceType.TOPIC, "set", {"no.such.setting": "1"})
    assert (rejected.value.about, rejected.value.error) == (
        "change no.such.setting",
        ErrorCode.invalid_config,
    )
    with pytest.raises(Rejected, match=r"DescribeConfigs\(nobody\) to .*: unknown_topic_or_partition"):
        asked.describe_configs(ResourceType.TOPIC, "nobody")


def elections(cluster: Cluster, asked: Connection) -> None:
    made(asked, "led")
    for kind, why in ((PREFERRED, "leads already"), (UNCLEAN, "leads")):
        outcomes = asked.elect_leaders(kind, [("led", 0), NOBODY], timeout_s=ASK_S)
        assert (outcomes[0].message or "").endswith(why)
        assert [(place, error) for place, error, _ in outcomes] == [
            (("led", 0), ErrorCode.election_not_needed),
            (NOBODY, ErrorCode.unknown_topic_or_partition),
        ]
    assert asked.elect_leaders(UNCLEAN, None, timeout_s=ASK_S) == []


def reassignments(cluster: Cluster, asked: Connection) -> None:
    made(asked, "moves", replicas=2)
    slow = {"follower.replication.throttled.rate": "1"}
    asked.alter_configs(ResourceType.BROKER, "", slow)
    produce(cluster.bootstrap, "moves", [b"x" * 1000] * 20)
    before = state(asked, "moves").partitions[0].replicas
    [new] = {1, 2, 3} - set(before)
    targets = {("moves", 0): (before[0], new), NOBODY: None}
    outcomes = {one.place: one.error for one in asked.alter_reassignments(targets, timeout_s=ASK_S)}
    assert outcomes == {("moves", 0): ErrorCode.none, NOBODY: ErrorCode.unknown_topic_or_partition}
    [moving] = asked.list_reassignments(timeout_s=ASK_S)
    assert (moving.place, moving.adding, moving.removing) == (("moves", 0), (new,), (before[1],))
    assert set(moving.replicas) == {1, 2, 3}
    asked.alter_reassignments({("moves", 0): None}, timeout_s=ASK_S)
    wait_for("it to be cancelled", lambda: asked.list_reassignments(timeout_s=ASK_S) == [])
    asked.alter_configs(ResourceType.BROKER, "", dict.fromkeys(slow))


def quorum(cluster: Cluster, asked: Connection) -> None:
    """Our own voters are settled when a disk is formatted; `tests/systems/kafka` moves those of Kafka."""
    voters = asked.describe_quorum().voters
    assert [voter.node_id for voter in voters] == sorted(voter.node_id for voter in voters)
    assert len(voters) == 1
    for change in (
        lambda: asked.add_voter(voters[0], ("CONTROLLER", "127.0.0.1", 1), timeout_s=ASK_S),
        lambda: asked.remove_voter(voters[0]),
    ):
        with pytest.raises(ProtocolError):
            change()


def brokers_for_good(cluster: Cluster, asked: Connection) -> None:
    with pytest.raises(Rejected, match="broker 2 is running"):
        asked.unregister_broker(2)
    late = cluster.add_broker(4)
    assert late.stop() == 0
    wait_for("it to be fenced", lambda: 4 not in asked.cluster_state().brokers)
    asked.unregister_broker(4)
    with pytest.raises(Rejected) as rejected:
        asked.unregister_broker(4)
    assert rejected.value.error is ErrorCode.broker_id_not_registered


FAMILY: dict[Callable[[Cluster, Connection], None], str] = {
    versions: "api_versions newest",
    feature_levels: "features update_feature",
    brokers_and_controllers: "describe_cluster metadata named_controller active_controller",
    coordinators: "find_coordinator find_share_coordinator init_producer_id committed_offsets",
    topics: "create_topic create_partitions delete_topic describe_topics cluster_state",
    offsets: "list_offset",
    settings: "describe_configs alter_configs",
    groups: "delete_group",
    elections: "elect_leaders elect",
    reassignments: "alter_reassignments list_reassignments",
    quorum: "describe_quorum add_voter remove_voter",
    brokers_for_good: "unregister_broker",
}
"""Which operations each case is about."""


@pytest.mark.parametrize("case", FAMILY, ids=lambda case: case.__name__)
def test_an_operation_of_the_client(
    case: Callable[[Cluster, Connection], None], cluster: Cluster, asked: Connection
) -> None:
    case(cluster, asked)


def test_no_operation_is_left_out() -> None:
    operations = {name for name, _ in getmembers(Connection, isfunction) if not name.startswith("_")}
    inherited = {name for name, _ in getmembers(Transport, isfunction)}
    assert operations - inherited == {name for names in FAMILY.values() for name in names.split()}


class Paper(Connection):
    """Answers from a list, and keeps what it was asked."""

    address = "paper:9092"

    def __init__(self, *answers: Any) -> None:
        self.asked: list[Any] = []
        self._answers = list(answers)

    def request(self, payload: Any, _: Any) -> Any:
        self.asked.append(payload)
        return self._answers.pop(0)


def test_the_coordinator_of_a_share_group_is_asked_for_by_the_topics_id() -> None:
    paper = Paper(SimpleNamespace(coordinators=[SimpleNamespace(error_code=ErrorCode.none, node_id=2)]))
    topic = SimpleNamespace(topic_id=UUID(int=1))
    paper.metadata = lambda topics: SimpleNamespace(topics=[topic] * len(topics))  # type: ignore
    assert paper.find_share_coordinator("g:h", "log", 3) == 2
    [request] = paper.asked
    assert (request.key_type, request.coordinator_keys) == (2, ("g:h:AAAAAAAAAAAAAAAAAAAAAQ:3",))


def test_partitions_are_described_page_by_page() -> None:
    def page(topic: str, after: pages.Cursor | None) -> pages.DescribeTopicPartitionsResponse:
        found = pages.DescribeTopicPartitionsResponseTopic(
            error_code=ErrorCode.none, name=TopicName(topic), topic_id=None, partitions=()
        )
        return pages.DescribeTopicPartitionsResponse(
            throttle_time=duration(0), topics=(found,), next_cursor=after
        )

    paper = Paper(page("a", pages.Cursor(topic_name=TopicName("b"), partition_index=i32(7))), page("b", None))
    assert [topic.name for topic in paper.describe_topics(["b", "a"])] == ["a", "b"]
    first, second = paper.asked
    assert [one.name for one in first.topics] == [one.name for one in second.topics] == ["a", "b"]
    assert (first.cursor, second.cursor.topic_name, second.cursor.partition_index) == (None, "b", 7)


def test_a_controller_of_apache_kafka_is_asked_for_controllers() -> None:
    """At its port it refuses to name brokers (KIP-919)."""
    paper = Paper(SimpleNamespace(error_code=ErrorCode.none, controller_id=3))
    assert paper.active_controller() == 3
    assert [one.endpoint_type for one in paper.asked] == [2]


def test_an_answer_without_the_one_result_is_none() -> None:
    with pytest.raises(ProtocolError, match="of log to paper:9092: the answer does not speak of it"):
        Paper(SimpleNamespace(responses=())).delete_topic("log", timeout_s=1)
