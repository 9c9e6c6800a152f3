"""Metrics of real brokers: what clients and followers asked, what lacks a replica, what the loop does."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker.clients.logs import consume, produce
from tests.broker.clients.loopback import Cluster, Node, free_ports, wait_for
from tests.broker.clients.metrics import metrics

pytestmark = [pytest.mark.real, pytest.mark.slow]


def with_metrics(nodes: list[Node]) -> dict[int, int]:
    """The port of each, which is read at its start."""
    ports = dict(zip((node.node_id for node in nodes), free_ports(len(nodes)), strict=True))
    for node in nodes:
        assert node.stop() == 0
        node.config.write_text(f"{node.config.read_text()}metrics_port = {ports[node.node_id]}\n")
        node.start()
    return ports


def test_what_a_broker_tells(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        ports = with_metrics(list(cluster.brokers.values()))
        cluster.wait_registered()
        cluster.create_topic("log", min_insync_replicas="3")
        cluster.wait_isr("log")
        leader = cluster.leader("log")
        follower, other = (node for node in cluster.brokers if node != leader)
        produce(cluster.bootstrap, "log", [b"a", b"b"])
        assert len(consume(cluster.bootstrap, "log", 2)) == 2
        idempotent = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
        idempotent.produce("log", b"c")
        assert idempotent.flush(20) == 0
        found = metrics(ports[leader])
        produces, fetches = (f'part="broker",api="{name}"' for name in ("Produce", "Fetch"))
        assert found[f"requests_count{{{produces}}}"] >= 2
        assert found[f"request_bytes_count{{{produces}}}"] > 100
        assert found[f"answers_count{{{produces}}}"] == found[f"requests_count{{{produces}}}"]
        assert found[f"answer_time_us_count{{{produces}}}"] > 0
        assert found[f'answers_count{{{fetches},by="client"}}'] >= 1
        assert found[f'answer_bytes_count{{{fetches},by="node"}}'] > 0
        assert (found["partition_count"], found["leader_count"], found["producer_count"]) == (1, 1, 1)
        assert found["under_replicated_partition_count"] == 0
        assert found["loop_silence_longest_ms"] >= 0
        assert metrics(ports[follower])["leader_count"] == 0
        cluster.brokers[other].kill()
        cluster.wait_isr("log", size=2)
        lacking = "under_replicated_partition_count"
        wait_for("a replica to be missed", lambda: metrics(ports[leader])[lacking] == 1)
        assert metrics(ports[leader])["under_min_isr_partition_count"] == 1
        refused = Producer({"bootstrap.servers": cluster.bootstrap, "message.timeout.ms": 1_500})
        refused.produce("log", b"d")
        refused.flush(20)
        assert (
            metrics(ports[leader])[f'partition_errors_count{{{produces},error="not_enough_replicas"}}'] >= 1
        )


def test_a_combined_node_has_one_page(tmp_path: Path) -> None:
    with Cluster(tmp_path, brokers=1, combined=True) as cluster:
        [node] = cluster.brokers.values()
        ports = with_metrics([node])
        cluster.wait_registered()
        found = metrics(ports[node.node_id])
        assert found["active_controller_count"] == 1
        assert found["partition_count"] == 0
        heard = 'requests_count{part="controller",api="BrokerHeartbeat"}'
        wait_for("heartbeats", lambda: metrics(ports[node.node_id]).get(heard, 0) > 0)
