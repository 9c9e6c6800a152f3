"""Three controllers, apart from the brokers or in their processes, are killed under load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kio.schema.describe_quorum.v2.response import Node as Controller
from kio.schema.describe_quorum.v2.response import PartitionData

from tests.broker.clients.logs import produce
from tests.broker.clients.loopback import Cluster, Node, wait_for
from tests.broker.clients.test_failures import under_load
from wrackline.broker.admin import cli
from wrackline.broker.admin.client import AdminClient

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.apart]


def epochs_led(node: Node) -> list[int]:
    """By the controller of this process, in all its lives."""
    lines = [json.loads(line) for line in node.trace.read_text().splitlines() if '"raft_role"' in line]
    return [line["epoch"] for line in lines if line["role"] == "leader"]


def test_the_active_controller_is_killed_under_load_and_everything_goes_on(tmp_path: Path) -> None:
    with under_load(tmp_path, controllers=3) as (cluster, writer):
        for round_ in range(2):
            old = cluster.active_controller()
            old.kill()
            new = cluster.active_controller()
            assert new is not old
            cluster.create_topic(f"after-{round_}")
            writer.wait_for_more()
            # A broker that dies now is fenced, and comes back, under the new controller.
            victim = cluster.brokers[cluster.leader("log")]
            victim.kill()
            wait_for("another leader", lambda gone=victim: cluster.leader("log") != gone.node_id)
            writer.wait_for_more()
            victim.start()
            old.start()
            cluster.wait_isr("log")
        writer.finish()
        led = [epoch for node in cluster.controllers.values() for epoch in epochs_led(node)]
        assert len(set(led)) == len(led) >= 3, f"two leaders of one epoch: {led}"
        states = [json.loads((n.data_dir / "quorum-state").read_text()) for n in cluster.controllers.values()]
        assert max(state["leaderEpoch"] for state in states) == max(led)


def test_combined_processes_are_killed_and_stopped_under_load(tmp_path: Path) -> None:
    with under_load(tmp_path, combined=True) as (cluster, writer):
        old = cluster.active_controller()
        old.kill()
        writer.wait_for_more()
        assert cluster.active_controller() is not old
        old.start()
        cluster.wait_isr("log")
        active = cluster.active_controller()
        assert active.stop() == 0, active.log.read_text()[-2_000:]
        assert (active.data_dir / ".kafka_cleanshutdown").exists()
        writer.wait_for_more()
        active.start()
        cluster.wait_isr("log")
        writer.wait_for_more()


def test_everything_is_killed_at_once_and_the_quorum_remembers(tmp_path: Path) -> None:
    with under_load(tmp_path, combined=True) as (cluster, writer):
        for node in cluster.nodes:
            node.kill()
        for node in cluster.nodes:
            node.start()
        cluster.wait_registered()
        cluster.wait_isr("log")
        writer.wait_for_more()
        writer.finish()
        led = [epoch for node in cluster.controllers.values() for epoch in epochs_led(node)]
        assert len(set(led)) == len(led)


SOON = {
    "metadata_log_max_records_between_snapshots": 20,
    "metadata_log_segment_bytes": 2_048,
    "quorum_fetch_snapshot_max_bytes": 1_024,
}


def quorum_of(cluster: Cluster) -> tuple[PartitionData, tuple[Controller, ...]]:
    running = [("127.0.0.1", node.port) for node in cluster.brokers.values() if node.running]
    with AdminClient(running) as client:
        return client.quorum()


def ends_of(cluster: Cluster) -> dict[int, int]:
    """Node -> how far its metadata log reaches."""
    found, _ = quorum_of(cluster)
    return {each.replica_id: each.log_end_offset for each in (*found.current_voters, *found.observers)}


def snapshots_of(node: Node) -> list[int]:
    """Where the snapshots on disk end."""
    folder = node.data_dir / "__cluster_metadata-0"
    return sorted(int(path.name[:20]) for path in folder.glob("*.checkpoint"))


def log_start_of(node: Node) -> int:
    folder = node.data_dir / "__cluster_metadata-0"
    return min((int(path.name[:20]) for path in folder.glob("*.log")), default=0)


def loaded(node: Node) -> bool:
    return '"kind":"snapshot_load"' in node.trace.read_text()


def test_who_was_killed_and_away_for_long_fetches_a_snapshot(tmp_path: Path) -> None:
    keys = {**SOON, "noop_interval_ms": 100}
    with Cluster(tmp_path, controllers=3, controller_keys=keys, broker_keys=SOON) as cluster:
        cluster.create_topic("before")
        active = cluster.active_controller()
        voter = next(node for node in cluster.controllers.values() if node is not active)
        broker = cluster.brokers[3]
        ends = ends_of(cluster)
        for node in (voter, broker):
            node.kill()
        wait_for(
            "a log that begins after theirs end",
            lambda: log_start_of(active) > max(ends[voter.node_id], ends[3]),
            60,
        )
        assert len(snapshots_of(active)) in (2, 3), "old ones are removed"
        cluster.create_topic("while", replicas=2)
        for node in (voter, broker):
            node.start()
        cluster.wait_registered()
        cluster.wait_isr("before")
        wait_for("both level", lambda: min(ends_of(cluster).values()) > ends[3] + 40, 60)
        wait_for("both loaded", lambda: loaded(voter) and loaded(broker), 60)
        assert not loaded(active)
        for node in cluster.nodes:
            node.kill()
        for node in cluster.nodes:
            node.start()
        cluster.wait_registered()
        cluster.wait_isr("before")
        assert {"before", "while"} <= cluster.admin().list_topics(timeout=5).topics.keys()
        produce(cluster.bootstrap, "before", [b"x"])
        assert all(log_start_of(node) > 0 for node in cluster.controllers.values())


def test_the_quorum_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(tmp_path, controllers=3) as cluster:
        active = cluster.active_controller()
        wait_for("everyone heard of", lambda: min(ends_of(cluster).values()) >= 0)
        found, nodes = quorum_of(cluster)
        assert found.leader_id == active.node_id
        assert [each.replica_id for each in found.current_voters] == [101, 102, 103]
        assert [each.replica_id for each in found.observers] == [1, 2, 3]
        assert all(each.replica_directory_id is not None for each in found.current_voters)
        assert {node.node_id: node.listeners[0].port for node in nodes} == {
            node_id: node.port for node_id, node in cluster.controllers.items()
        }
        client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","), client_id="tests")
        try:
            (told,) = client.describe_metadata_quorum()["topics"][0]["partitions"]
        finally:
            client.close()
        assert told["error"] is None
        assert told["leader_id"] == active.node_id
        assert told["leader_epoch"] >= found.leader_epoch
        assert told["high_watermark"] >= found.high_watermark
        assert [each["replica_id"] for each in told["current_voters"]] == [101, 102, 103]
        assert [each["replica_id"] for each in told["observers"]] == [1, 2, 3]
        assert all(each["last_fetch_timestamp"] > 1_600_000_000_000 for each in told["observers"])
        assert cli.main(["--bootstrap", cluster.bootstrap, "quorum"]) == 0
        printed = capsys.readouterr().out
        assert f"leader {active.node_id}  epoch" in printed
        assert printed.count("observer") == 3
        active.kill()
        wait_for("another leader", lambda: quorum_of(cluster)[0].leader_id != active.node_id)
