"""Nodes that end more than once, and one after another; and a real broker that gets another disk."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.nemesis.canaries import watched
from tests.nemesis.doubles import FakeFleet, FakeSystem, Recorded, cluster, context, node_look, partition
from tests.nemesis.load import missing, producing, started, wait_until
from tests.systems.kafka.conftest import READY_S, installed
from tests.systems.kafka.conftest import cluster as kafka_cluster
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.nemesis.executor import StepExecutor
from wrackline.nemesis.faults.processes import rolling
from wrackline.nemesis.faults.processes.restarts import CrashLoop, Rolling, RollingUpgradeSpec
from wrackline.nemesis.faults.steps import DescribeNode, FaultError, KillNode, ProbeLog, Roll, StepResult
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import DeployError, Node, TopicSpec
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.systems.wrackline.spec import WracklineSpec
from wrackline.systems.wrackline.system import WracklineSystem


def boots(system: WracklineSystem, host: str) -> list[str]:
    """The lines that a broker's own log has of its starts, with its incarnations."""
    [node] = [node for node in system.nodes if node.host.name == host]
    log = system.fleet.remote(node.host).run("cat /var/log/wrackline/broker.log").stdout
    return re.findall(r"broker \d+ starts: .*incarnation (\S+)", log)


@pytest.mark.nightly
@pytest.mark.fleet
@pytest.mark.slow
def test_a_real_broker_loses_its_disk_and_gets_all_back_and_all_are_restarted(
    tmp_path: Path, bundle_cache: Path
) -> None:
    """All in one: the cluster is what costs."""
    hosts = ("n1", "n2", "n3", "c1")
    with (
        NetnsFleet(f"again-{os.getpid()}", hosts, state_dir=tmp_path / "fleet", disk_mb=64) as fleet,
        started(fleet, bundle_cache, brokers=hosts[:3], controllers=hosts[3:]) as system,
    ):
        with watched(fleet) as canaries, producing(system) as under_way:
            for fault in (
                {"fault": "power-cut", "target": "n2", "disk": "wiped"},
                {"fault": "rolling-restart"},
            ):
                recorded = Recorded()
                planned = plan(load({"schedule": [{"at_s": 0, "duration_s": 1, **fault}]}), 1, 9.0)
                nemesis = Nemesis(planned, fleet, system, recorded, topics=("log",), canaries=canaries)
                nemesis.start()
                assert nemesis.wait(120)
                assert nemesis.stop_and_heal() == []
                recorded.assert_proved("f1")
        assert [len(set(boots(system, host))) for host in hosts[:3]] == [2, 3, 2]
        system.wait_ready()
        wait_until(
            lambda: (found := system.describe().partition("log", 0)) and found.full_isr, "the full ISR"
        )
        assert len(under_way.acked) > 100
        assert missing(system, under_way.acked) == {}
        wiped = system.replica_log(system.nodes[1], "log", 0)
        assert wiped.problem is None
        assert len(wiped.records) >= len(under_way.acked), "it got back what it had lost"


def produced(bootstrap: str) -> int:
    told: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce("log", b"x", on_delivery=lambda wrong, _: told.append(wrong))
    assert producer.flush(60) == 0
    return told.count(None)


@pytest.mark.nightly
@pytest.mark.fleet
@pytest.mark.slow
def test_brokers_of_kafka_become_another_version_one_by_one_and_one_gets_an_empty_disk() -> None:
    installed("4.4.0")
    with (
        kafka_cluster(("n1", "n2", "n3"), ("c1",), version="4.1.1") as system,
        watched(system.fleet) as canaries,
    ):
        system.create_topic(TopicSpec("log", 1, 3, {"min.insync.replicas": "2"}), timeout_s=READY_S)
        recorded = Recorded()
        faults = [
            {"at_s": 0, "duration_s": 0.5, "fault": "rolling-upgrade", "to": "4.4.0", "target": "n1,n2,n3"},
            {"at_s": 70, "duration_s": 2, "fault": "power-cut", "target": "n2", "disk": "wiped"},
        ]
        planned = plan(load({"schedule": faults}), 1, 150.0)
        nemesis = Nemesis(planned, system.fleet, system, recorded, topics=("log",), canaries=canaries)
        nemesis.start()
        assert nemesis.wait(300)
        assert nemesis.stop_and_heal() == []
        for fault_id in ("f1", "f2"):
            recorded.assert_proved(fault_id)
        for node in system.brokers:
            log = system.fleet.remote(node.host).run("cat /var/log/wrackline/broker.log").stdout
            versions = re.findall(r"Kafka version: (\S+)", log)
            assert {"4.1.1", "4.4.0"} == set(versions)
            assert versions[-1] == "4.4.0"
        system.wait_ready(timeout_s=READY_S)
        with system.fleet.entered():
            assert produced(system.bootstrap()) == 1


def test_a_crash_loop_is_as_many_processes_killed_as_were_asked_for() -> None:
    fault = CrashLoop(3)
    steps = fault.commands(context("n1")).do
    assert sum(isinstance(step, KillNode) for step in steps) == 3

    def proof(*kills: str, node: str = "None") -> bool:
        probe_log = ProbeLog(
            do=[StepResult(KillNode("n1", 1), kill) for kill in kills], active=[node_look("n1", node)]
        )
        return fault.prove(context("n1"), probe_log).proved

    assert proof("41 None", "52 None", "63 None")
    assert not proof("41 None", "52 None")
    assert not proof("41 None", "41 None", "63 None")
    assert not proof("41 None", "None None", "63 None"), "it had not come up"
    assert not proof("41 None", "52 None", "63 63")
    assert not proof("41 None", "52 None", "63 None", node="74 S"), "somebody has started it again"
    with pytest.raises(FaultError, match="does not run"):
        fault.commands(context("n1", pid=None))


def test_nodes_are_restarted_in_turn_and_the_isr_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = FakeFleet()
    system = FakeSystem(fleet)
    began: list[tuple[str, int]] = []

    def start(node: Node) -> None:
        began.append(("start", node.node_id))
        system.pids.pop(node.node_id)
        system.runs_as(node, 900 + node.node_id)
        system.state = cluster(partition(isr=[one for one in (1, 2, 3) if one != node.node_id]))
        threading.Timer(0.3, lambda: setattr(system, "state", cluster(partition()))).start()

    monkeypatch.setattr(system, "start", start)
    monkeypatch.setattr(system, "stop", lambda node, **_: began.append(("stop", node.node_id)))
    monkeypatch.setattr(rolling, "POLL_S", 0.02)
    hands = StepExecutor(fleet, system, ("log",))
    done = hands.carry_out(Roll("n1", (1, 2), None, 5.0))
    active = [hands.carry_out(DescribeNode(f"n{number}", number)) for number in (1, 2)]
    assert began == [("stop", 1), ("start", 1), ("stop", 2), ("start", 2)]
    lines = [line.split() for line in done.output.splitlines()]
    assert [line[0] for line in lines] == ["n1", "n2"]
    assert all(float(line[3]) >= 0.25 for line in lines)
    assert Rolling().prove(context("n1", "n2"), ProbeLog(do=[done], active=active)).proved
    with pytest.raises(FaultError, match="has one version only"):
        StepExecutor(fleet, system, ("log",)).carry_out(Roll("n1", (1,), "4.4.0", 5.0))


def test_a_node_after_which_the_isr_stays_short_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = FakeFleet()
    system = FakeSystem(fleet, cluster(partition(isr=[2, 3])))
    monkeypatch.setattr(rolling, "POLL_S", 0.02)
    with pytest.raises(DeployError, match=r"after the restart of n1 .* log-0 leader 1 ISR \[2, 3\]"):
        StepExecutor(fleet, system, ("log",)).carry_out(Roll("n1", (1, 2), None, 0.2))
    assert ("stop", 2) not in system.calls


def test_an_upgrade_is_proved_by_the_version_that_runs() -> None:
    def proof(*lines: str) -> bool:
        now = [node_look(line.split()[0], f"{line.split()[2]} S") for line in lines]
        probe_log = ProbeLog(do=[StepResult(Roll("n1", (1, 2), "4.4.0", 60), "\n".join(lines))], active=now)
        return Rolling("4.4.0").prove(context("n1", "n2"), probe_log).proved

    assert proof("n1 41 77 2.10 4.1.1 4.4.0", "n2 41 78 2.10 4.1.1 4.4.0")
    assert not proof("n1 41 77 2.10 4.1.1 4.4.0")
    assert not proof("n1 41 77 2.10 4.1.1 4.4.0", "n2 41 78 2.10 4.1.1 4.1.1")
    assert not proof("n1 41 77 2.10 4.1.1 4.4.0", "n2 41 41 2.10 4.1.1 4.4.0")


def test_an_upgrade_that_cannot_be_is_refused() -> None:
    fleet = NetnsSpec()
    to = RollingUpgradeSpec(fault="rolling-upgrade", to="4.4.0")
    assert to.target == "all"
    assert "nodes of profile kip966 cannot; there is: kraft35 to kip966, kip966 to kraft35, zk08" in str(
        to.refusal(fleet, WracklineSpec())
    )
    ours = RollingUpgradeSpec(fault="rolling-upgrade", to="kip966")
    assert ours.refusal(fleet, WracklineSpec(profile="kraft35")) is None
    on_zookeeper = KafkaSpec(version="1.1.1")
    assert "it has no ZooKeeper, 1.1.1 has" in str(to.refusal(NetnsSpec(zookeeper=1), on_zookeeper))
    assert "the nodes are of version 4.4.0 already" in str(to.refusal(fleet, KafkaSpec(version="4.4.0")))
    older = RollingUpgradeSpec(fault="rolling-upgrade", to="4.1.1")
    assert "give it one that both know, system.features: {metadata.version: LEVEL}" in str(
        older.refusal(fleet, KafkaSpec(version="4.4.0"))
    )
    backwards = RollingUpgradeSpec(fault="rolling-upgrade", to="2.8.2")
    assert "it needs ZooKeeper, 4.4.0 has none" in str(backwards.refusal(fleet, KafkaSpec(version="4.4.0")))
    for begun in (
        KafkaSpec(version="4.4.0", features={"metadata.version": 25}),
        KafkaSpec(version="4.4.0").with_level("metadata.version", 25),
        KafkaSpec(version="4.1.1").became("4.4.0"),
    ):
        assert older.refusal(fleet, begun) is None
    newest = RollingUpgradeSpec(fault="rolling-upgrade", to="newest")
    assert "is no version of Apache Kafka" in str(newest.refusal(fleet, KafkaSpec(version="4.1.1")))
