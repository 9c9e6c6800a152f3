"""Topic names may leave no room for what Kafka appends when it deletes a log (NAME_MAX is 255 bytes)."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from tests.broker.clients.logs import consume, produce
from tests.broker.clients.loopback import Cluster, wait_for

pytestmark = pytest.mark.real

LENGTHS = (213, 214, 230, 249)


def test_topics_with_long_names_are_deleted_and_every_node_lives_and_starts(tmp_path: Path) -> None:
    """Node 1 is away when they are deleted: it finds their logs at its next start."""
    names = [letter * length for letter, length in zip("abcd", LENGTHS, strict=True)]
    with Cluster(tmp_path) as cluster:
        for name in names:
            cluster.create_topic(name)
            produce(cluster.bootstrap, name, [b"x"])
        away = cluster.brokers[1]
        away.kill()
        for name in names:
            wait_for(f"{len(name)} characters deleted", lambda topic=name: deleted(cluster, topic), 40)
        for node_id in (2, 3):
            wait_for(f"node {node_id} without the logs", lambda n=node_id: not left(cluster, n))
        assert left(cluster, 1) == {f"{name}-0" for name in names}, "it was away"
        away.start()
        cluster.wait_registered()
        wait_for("node 1 without the logs", lambda: not left(cluster, 1))
        assert [node.node_id for node in cluster.nodes if not node.running] == []
        cluster.create_topic("after")
        produce(cluster.bootstrap, "after", [b"y"])
        assert consume(cluster.bootstrap, "after", 1) == [(0, b"y")]


def deleted(cluster: Cluster, topic: str) -> bool:
    """Asked until it is so: the client may ask a node that is away first."""
    if topic not in cluster.admin().list_topics(timeout=5).topics:
        return True
    try:
        cluster.admin().delete_topics([topic], request_timeout=10)[topic].result(15)
    except KafkaException:
        return False
    return True


def left(cluster: Cluster, node_id: int) -> set[str]:
    """Directories of logs in the data directory, also of those that are being deleted."""
    there = cluster.brokers[node_id].data_dir.iterdir()
    return {path.name for path in there if path.is_dir() and not path.name.startswith("__cluster_metadata")}
