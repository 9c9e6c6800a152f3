"""Our broker runs on real hosts: it is deployed, asked, driven by a real client, broken on purpose, and read
from its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from wrackline.fleets.base import Remote
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.kafka_client.connection import Connection
from wrackline.systems.base import DeployError, TopicSpec
from wrackline.systems.common.on_hosts import on_each
from wrackline.systems.wrackline.bundle import build
from wrackline.systems.wrackline.system import WracklineSystem

pytestmark = pytest.mark.fleet
CONFIG = {"session_timeout_ms": 2_000, "heartbeat_interval_ms": 300, "log_level": "INFO"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetnsFleet]:
    with NetnsFleet(
        f"sysdep-{os.getpid()}", ("n1", "n2", "n3", "c1"), state_dir=tmp_path_factory.mktemp("fleet")
    ) as fleet:
        yield fleet


def system_on(fleet: NetnsFleet, cache: Path, **config: object) -> WracklineSystem:
    return WracklineSystem(
        fleet,
        brokers=("n1", "n2", "n3"),
        controllers=("c1",),
        cluster_id="test-deployment",
        config={**CONFIG, **config},
        bundle_cache=cache,
    )


@pytest.fixture(scope="module")
def system(fleet: NetnsFleet, bundle_cache: Path) -> Iterator[WracklineSystem]:
    system = system_on(fleet, bundle_cache)
    system.install()
    system.start_all()
    system.wait_ready()
    yield system
    system.close()


def produce(fleet: NetnsFleet, system: WracklineSystem, topic: str, values: list[bytes]) -> dict[int, bytes]:
    """Offset -> value, as acknowledged (acks=all) to a confluent-kafka producer."""
    acked: dict[int, bytes] = {}
    with fleet.entered():  # its threads are started in here, so they are in the fleet's network
        producer = Producer({"bootstrap.servers": system.bootstrap(), "acks": "all", "linger.ms": 1})
        for value in values:
            producer.produce(
                topic,
                value,
                key=b"k",
                partition=0,
                on_delivery=lambda _, m: acked.update({m.offset() or 0: m.value() or b""}),
            )
        assert producer.flush(20) == 0
    return acked


def test_every_node_runs_and_the_cluster_describes_itself(fleet: NetnsFleet, system: WracklineSystem) -> None:
    system.create_topic(TopicSpec("shape", 4, 3, {"min.insync.replicas": "2"}))
    state = system.describe()
    assert state.controller == 101
    assert state.brokers == (1, 2, 3)
    partitions = [one for one in state.partitions if one.topic == "shape"]
    assert [one.partition for one in partitions] == [0, 1, 2, 3]
    assert all(one.full_isr and sorted(one.replicas) == [1, 2, 3] for one in partitions)
    assert all(system.is_running(node) for node in system.nodes)
    with fleet.entered(), Connection(system.nodes[0].host.address, 9092) as connection:
        assert {one.broker_id for one in connection.describe_cluster().brokers} == {1, 2, 3}


def test_a_topic_is_created_once(system: WracklineSystem) -> None:
    system.create_topic(TopicSpec("once", 1, 3, {}))
    with pytest.raises(DeployError, match=r"once cannot be created.*topic_already_exists"):
        system.create_topic(TopicSpec("once", 1, 3, {}))
    with pytest.raises(DeployError, match=r"toomany cannot be created.*invalid_replication_factor"):
        system.create_topic(TopicSpec("toomany", 1, 9, {}))


def test_each_replicas_log_equals_what_was_acknowledged(fleet: NetnsFleet, system: WracklineSystem) -> None:
    system.create_topic(TopicSpec("copies", 1, 3, {"min.insync.replicas": "2"}))
    acked = produce(fleet, system, "copies", [f"value-{number}".encode() * 20 for number in range(300)])
    assert sorted(acked) == list(range(300))
    with fleet.entered():
        leader = system.describe().partition("copies", 0)
        assert leader is not None
        with Connection(system.nodes[leader.leader - 1].host.address, 9092) as connection:
            assert connection.list_offset("copies", 0) == 300
    for node in system.brokers:
        log = system.replica_log(node, "copies", 0)
        assert log.problem is None
        assert {one.offset: one.value for one in log.records} == acked
        assert (log.log_start, log.leo) == (0, 300)
        assert {one.key for one in log.records} == {b"k"}
        assert len({one.leader_epoch for one in log.records}) == 1
        assert all(one.timestamp_ms > 1_600_000_000_000 for one in log.records)


def test_a_node_is_killed_paused_restarted(system: WracklineSystem) -> None:
    node = system.brokers[2]
    first = system.pid(node)
    system.start(node)
    assert system.pid(node) == first, "starting a running node changes nothing"
    system.kill(node)
    assert not system.is_running(node)
    with pytest.raises(DeployError, match=r"n3 \(node 3\).*the node died"):
        system.create_topic(TopicSpec("late", 1, 3, {}), timeout_s=0)
    system.kill(node)
    system.start(node)
    second = system.pid(node)
    assert second not in (None, first)
    system.pause(node)
    system.resume(node)
    system.wait_ready(timeout_s=20)
    system.stop(node)
    assert not system.is_running(node)
    system.stop(node)
    system.start(node)
    system.wait_ready(timeout_s=20)


def test_the_effective_configuration_comes_from_the_running_node(system: WracklineSystem) -> None:
    assert "heartbeat_interval_ms = 300" in system.effective_config(system.brokers[0])
    assert "session_timeout_ms = 2000" in system.effective_config(system.controllers[0])


def test_logs_traces_and_listings_are_collected(system: WracklineSystem, tmp_path: Path) -> None:
    system.collect(tmp_path)
    for node in system.nodes:
        folder = tmp_path / node.host.name
        for name in ("broker.log", "trace.jsonl", "effective-config.toml", "listing.txt"):
            assert (folder / name).stat().st_size > 0, f"{folder.name}/{name}"
        assert not (folder / "missing.txt").exists()
    assert "shape-0/00000000000000000000.log" in (tmp_path / "n1" / "listing.txt").read_text()


def take_port(remote: Remote, seconds: float) -> None:
    """Another process listens on port 9092 of this host."""
    listen = f"import socket,time; s=socket.create_server(('0.0.0.0', 9092)); time.sleep({seconds})"
    wait = "for i in $(seq 200); do ss -ltn | grep -q :9092 && exit 0; sleep 0.02; done; exit 1"
    remote.run(f'setsid python3 -c "{listen}" >/dev/null 2>&1 </dev/null & echo $! >/tmp/squatter; {wait}')


def test_a_node_starts_when_its_port_is_free_a_moment_later(
    fleet: NetnsFleet, system: WracklineSystem
) -> None:
    """As after a kill: the kernel takes the process's memory first, and then what it has open."""
    node = system.brokers[1]
    system.stop(node)
    take_port(fleet.remote(node.host), 0.8)
    system.start(node)
    system.wait_ready(timeout_s=20)


@pytest.mark.usefixtures("system")
def test_what_goes_wrong_at_start_is_told_with_its_way_out(fleet: NetnsFleet, bundle_cache: Path) -> None:
    """In one host, after stopping its node: a taken port, a wrong key, a wrong Python."""
    wrong = system_on(fleet, bundle_cache, replica_lag_time_max=1)
    node = wrong.brokers[0]
    remote = fleet.remote(node.host)
    wrong.stop(node)
    take_port(remote, 60)
    try:
        with pytest.raises(
            DeployError, match=r"n1 \(node 1\).*port 9092 is taken by another process; end it"
        ):
            wrong.start(node)
    finally:
        remote.run("kill $(cat /tmp/squatter)")
    remote.put(wrong.config_for(node).encode(), "/etc/wrackline/broker.toml")
    with pytest.raises(
        DeployError, match=r"the node died: .*unknown key 'replica_lag_time_max'.*mend the conf"
    ):
        wrong.start(node)
    right = system_on(fleet, bundle_cache)
    remote.put(right.config_for(node).encode(), "/etc/wrackline/broker.toml")
    right.start(node)
    right.wait_ready(timeout_s=20)
    with pytest.raises(DeployError, match=r"a node runs there .*stop it first"):
        right.install()


@pytest.mark.usefixtures("system")
def test_a_full_system_disk_is_told(fleet: NetnsFleet, bundle_cache: Path) -> None:
    system = system_on(fleet, bundle_cache)
    node = system.controllers[0]
    remote = fleet.remote(node.host)
    system.stop(node)
    remote.run(
        "rm -rf /opt/wrackline && mkdir /opt/wrackline && mount -t tmpfs -o size=64k small /opt/wrackline"
    )
    try:
        with pytest.raises(DeployError, match=r"c1 .*(upload|put|write)"):
            on_each((node,), lambda one: system._install(one, build(bundle_cache), ""))
    finally:
        remote.run("umount /opt/wrackline")
        on_each((node,), lambda one: system._install(one, build(bundle_cache), ""))
        system.start(node)
        system.wait_ready(timeout_s=20)
