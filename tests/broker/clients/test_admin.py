"""Unmodified clients administer the cluster: librdkafka's AdminClient and kafka-python's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaTopicPartition

from tests.broker.clients.logs import consume, produce
from tests.broker.clients.loopback import Cluster, wait_for

pytestmark = pytest.mark.real


@pytest.fixture
def kafka_python(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","), client_id="tests")
    yield client
    client.close()


def only(futures: dict[object, object]) -> object:
    (future,) = futures.values()
    return future.result(15)  # type: ignore[attr-defined]


def test_more_partitions(cluster: Cluster) -> None:
    cluster.create_topic("grows", partitions=2)
    only(cluster.admin().create_partitions([NewPartitions("grows", 5)]))
    cluster.wait_isr("grows", partitions=5)
    assert [cluster.describe("grows")[p].replicas[0] for p in range(5)] == [1, 2, 3, 1, 2]
    produce(cluster.bootstrap, "grows", [b"x"], partition=4)
    assert consume(cluster.bootstrap, "grows", 1, partition=4) == [(0, b"x")]
    with pytest.raises(KafkaException, match="has 5"):
        only(cluster.admin().create_partitions([NewPartitions("grows", 5)]))


def test_settings_of_a_topic(cluster: Cluster) -> None:
    cluster.create_topic("settings", min_insync_replicas="2")
    resource = ConfigResource(ResourceType.TOPIC, "settings")
    seen = only(cluster.admin().describe_configs([resource]))
    assert seen["min.insync.replicas"].value == "2"  # type: ignore[index]
    assert seen["min.insync.replicas"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value  # type: ignore[index]

    def change(name: str, value: str | None, op: AlterConfigOpType = AlterConfigOpType.SET) -> None:
        entry = ConfigEntry(name, value, incremental_operation=op)
        wanted = ConfigResource(ResourceType.TOPIC, "settings", incremental_configs=[entry])
        only(cluster.admin().incremental_alter_configs([wanted]))

    change("min.insync.replicas", "3")
    seen = only(cluster.admin().describe_configs([resource]))
    assert seen["min.insync.replicas"].value == "3"  # type: ignore[index]
    change("min.insync.replicas", "", AlterConfigOpType.DELETE)
    seen = only(cluster.admin().describe_configs([resource]))
    assert seen["min.insync.replicas"].value == "2"  # type: ignore[index]
    assert seen["min.insync.replicas"].source == ConfigSource.STATIC_BROKER_CONFIG.value  # type: ignore[index]
    with pytest.raises(KafkaException, match="cleanup"):
        change("cleanup.policy", "compact")


def test_all_settings_of_a_topic_at_once(cluster: Cluster) -> None:
    """AlterConfigs: what is not named is gone."""
    cluster.create_topic("replaced", min_insync_replicas="3", retention_ms="5000")
    wanted = {"retention.ms": "7000", "unclean.recovery.strategy": "manual"}
    only(cluster.admin().alter_configs([ConfigResource(ResourceType.TOPIC, "replaced", wanted)]))
    seen = only(cluster.admin().describe_configs([ConfigResource(ResourceType.TOPIC, "replaced")]))
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert {name: each.value for name, each in seen.items() if each.source == own} == wanted  # type: ignore[attr-defined]
    assert seen["min.insync.replicas"].value == "2"  # type: ignore[index]
    bad = {"unclean.recovery.strategy": "careful"}
    with pytest.raises(KafkaException, match="it must be balanced"):
        only(cluster.admin().alter_configs([ConfigResource(ResourceType.TOPIC, "replaced", bad)]))


def test_settings_of_a_broker_can_be_read(cluster: Cluster) -> None:
    seen = only(cluster.admin().describe_configs([ConfigResource(ResourceType.BROKER, "2")]))
    assert seen["node.id"].value == "2"  # type: ignore[index]
    assert seen["heartbeat.interval.ms"].is_read_only  # type: ignore[index]


def test_preferred_leaders(cluster: Cluster, kafka_python: KafkaAdminClient) -> None:
    """Another order of the replicas prefers another leader; the election makes it lead."""
    cluster.create_topic("preferred")
    tp = KafkaTopicPartition("preferred", 0)
    before = cluster.leader("preferred")
    order = [*sorted({1, 2, 3} - {before}), before]
    kafka_python.alter_partition_reassignments({tp: order})
    wait_for("the new order", lambda: cluster.describe("preferred")[0].replicas == order)
    assert cluster.leader("preferred") == before
    future = cluster.admin().elect_leaders(ElectionType.PREFERRED, [TopicPartition("preferred", 0)])
    assert next(iter(future.result(15).values())) is None
    wait_for("the preferred leader", lambda: cluster.leader("preferred") == order[0])
    again = cluster.admin().elect_leaders(ElectionType.PREFERRED, [TopicPartition("preferred", 0)])
    error = next(iter(again.result(15).values()))
    assert error is not None
    assert "ELECTION_NOT_NEEDED" in repr(error)


def test_a_partition_moves_with_everything_in_it(cluster: Cluster, kafka_python: KafkaAdminClient) -> None:
    cluster.create_topic("moves", replicas=1)
    source = cluster.leader("moves")
    target = source % 3 + 1
    acked = produce(cluster.bootstrap, "moves", [b"%d" % i for i in range(500)])
    tp = KafkaTopicPartition("moves", 0)
    kafka_python.alter_partition_reassignments({tp: [target]})
    wait_for("the end of it", lambda: not kafka_python.list_partition_reassignments())
    wait_for("its place", lambda: cluster.describe("moves")[0].replicas == [target])
    assert cluster.leader("moves") == target
    assert consume(cluster.bootstrap, "moves", 500) == sorted((o, v) for v, o in acked.items())
    folder = cluster.brokers[source].data_dir / "moves-0"
    wait_for("the removed replica's log to go", lambda: not folder.exists())
