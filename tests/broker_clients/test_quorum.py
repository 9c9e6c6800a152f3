"""Three controllers, apart from the brokers and in their processes: real processes, killed under load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from loopback import Cluster, Node, wait_for
from test_failures import Writer, check_everything_acked_is_there

pytestmark = pytest.mark.slow


def epochs_led(node: Node) -> list[int]:
    """By the controller of this process, in all its lives."""
    lines = [json.loads(line) for line in node.trace.read_text().splitlines() if '"raft_role"' in line]
    return [line["epoch"] for line in lines if line["role"] == "leader"]


def test_the_active_controller_is_killed_under_load_and_everything_goes_on(tmp_path: Path) -> None:
    with Cluster(tmp_path, controllers=3) as cluster:
        cluster.create_topic("log")
        writer = Writer(cluster.bootstrap, "log")
        writer.start()
        writer.wait_for_more()
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
        check_everything_acked_is_there(cluster, "log", writer.finish())
        led = [epoch for node in cluster.controllers.values() for epoch in epochs_led(node)]
        assert len(set(led)) == len(led) >= 3, f"two leaders of one epoch: {led}"
        states = [json.loads((n.data_dir / "quorum-state").read_text()) for n in cluster.controllers.values()]
        assert max(state["leaderEpoch"] for state in states) == max(led)


def test_combined_processes_are_killed_and_stopped_under_load(tmp_path: Path) -> None:
    with Cluster(tmp_path, combined=True) as cluster:
        cluster.create_topic("log")
        writer = Writer(cluster.bootstrap, "log")
        writer.start()
        writer.wait_for_more()
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
        check_everything_acked_is_there(cluster, "log", writer.finish())


def test_everything_is_killed_at_once_and_the_quorum_remembers(tmp_path: Path) -> None:
    with Cluster(tmp_path, combined=True) as cluster:
        cluster.create_topic("log")
        writer = Writer(cluster.bootstrap, "log")
        writer.start()
        writer.wait_for_more()
        for node in cluster.nodes:
            node.kill()
        for node in cluster.nodes:
            node.start()
        cluster.wait_registered()
        cluster.wait_isr("log")
        writer.wait_for_more()
        check_everything_acked_is_there(cluster, "log", writer.finish())
        led = [epoch for node in cluster.controllers.values() for epoch in epochs_led(node)]
        assert len(set(led)) == len(led)
