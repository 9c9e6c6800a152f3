"""Versions of Apache Kafka up to 2.8 with ZooKeeper servers, all of them real: one small cluster, more by
night."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.systems.kafka.conftest import READY_S, installed
from tests.zookeeper.systems.servers.driven import SEEN_S, produce, until
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.kafka_client.connection import Connection
from wrackline.systems.base import DeployError, Node, TopicSpec
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.zookeeper.systems.kafka.system import KafkaOnZooKeeper
from wrackline.zookeeper.systems.servers.session import password_of

pytestmark = [pytest.mark.fleet, pytest.mark.slow]


@contextmanager
def cluster(
    version: str, brokers: tuple[str, ...], zookeepers: tuple[str, ...], controllers: tuple[str, ...] = ()
) -> Iterator[KafkaOnZooKeeper]:
    """Ready; on hosts of its own."""
    installed(version)
    with (
        tempfile.TemporaryDirectory(prefix="wl-zk-", dir="/var/tmp") as state,
        NetnsFleet(
            f"zk-{os.getpid()}", (*brokers, *controllers, *zookeepers), state_dir=Path(state), disk_mb=128
        ) as fleet,
    ):
        system = KafkaOnZooKeeper(
            fleet,
            version=version,
            brokers=brokers,
            zookeepers=zookeepers,
            controllers=controllers,
            config={"replica.high.watermark.checkpoint.interval.ms": 300},
            start_s=READY_S,
        )
        try:
            system.install()
            system.start_all()
            system.wait_ready(timeout_s=READY_S)
            yield system
        finally:
            system.close()


def brokers_agree(system: KafkaOnZooKeeper) -> None:
    """Each broker, asked by itself in the newest Metadata that it speaks, says what ZooKeeper says."""
    wanted = [(one.leader, one.replicas, set(one.isr)) for one in system.describe().partitions]
    for node in system.brokers:
        deadline = time.monotonic() + SEEN_S
        while True:
            with system.fleet.entered(), Connection(node.host.address, node.port) as connection:
                seen = connection.cluster_state().partitions
            said = [(one.leader, one.replicas, set(one.isr)) for one in seen]
            if said == wanted:
                break
            assert time.monotonic() < deadline, (node, said, wanted)
            time.sleep(0.1)  # the controller tells the brokers a moment later


def one(nodes: tuple[Node, ...], node_id: int) -> Node:
    return next(node for node in nodes if node.node_id == node_id)


def dumped(system: KafkaOnZooKeeper, server: Node) -> str:
    """What the server says of its sessions."""
    with system.fleet.entered():
        asked = socket.create_connection((server.host.address, server.port), timeout=10)
    with asked, asked.makefile() as said:
        asked.sendall(b"dump")
        return said.read()


def lives_through_it(system: KafkaOnZooKeeper, version: str, tmp_path: Path) -> None:
    """Asked, driven, read, killed, led by another, and led as preferred again."""
    assert set(system.ensemble().values()) <= {"standalone", "leader", "follower"}
    system.create_topic(TopicSpec("log", 1, 2, {"min.insync.replicas": "1"}), timeout_s=READY_S)
    assert until(system, lambda seen: seen.full_isr).leader == 1
    if not version.startswith("0.9."):  # whose brokers neither answer ApiVersions nor hang up
        brokers_agree(system)
    acked = produce(system, 200, times=20, **KafkaSpec(version=version).client_settings())
    assert len(acked) == 200
    for node in system.brokers:
        log = system.replica_log(node, "log", 0)
        assert log.problem is None
        assert {record.offset: record.value for record in log.records} == acked

    first = one(system.brokers, 1)
    system.kill(first)
    assert until(system, lambda seen: seen.leader == 2).isr == (2,)
    system.start(first)  # which waits for the end of its old session
    until(system, lambda seen: seen.full_isr)
    system.admin.elect_preferred([("log", 0)], timeout_s=20)
    assert until(system, lambda seen: seen.leader == 1).leader_epoch >= 2

    system.collect(tmp_path)
    assert "broker.id=1" in (tmp_path / "n1" / "effective.properties").read_text()
    assert "clientPort=2181" in (tmp_path / "z1" / "effective.properties").read_text()
    assert not list(tmp_path.glob("*/missing.txt"))


def test_a_small_cluster_from_its_start_to_a_session_that_ends(tmp_path: Path) -> None:
    """All in one: the starts of JVMs are what costs."""
    with cluster("1.1.1", ("n1", "n2"), ("z1",), ("c1",)) as system:
        assert (system.describe().controller, system.describe().brokers) == (101, (1, 2))
        assert system.ensemble() == {201: "standalone"}
        lives_through_it(system, "1.1.1", tmp_path)

        # Asked of ZooKeeper itself, by its own words: the sessions that it has.
        [server] = system.zookeepers
        path = "/brokers/ids/2"
        before = system._session.ask(lambda asking: asking.stat(path), 5).ephemeralOwner
        pid = system.pid(one(system.brokers, 2))
        end = system.expire_session(one(system.brokers, 2))
        after = system._session.ask(lambda asking: asking.stat(path), 5).ephemeralOwner
        assert (end.node, end.before, end.after) == (path, before, after)
        assert before != after
        assert system.pid(one(system.brokers, 2)) == pid, "the process lived"
        said = dumped(system, server)
        assert f"{after:#x}" in said
        assert f"{before:#x}" not in said
        own = system._session._client.client_id  # type: ignore[union-attr]
        assert own[1] == password_of(own[0]), "as the server itself gave it"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "version",
    [
        "2.8.2",
        "2.7.2",
        "2.4.1",
        "2.3.1",
        "2.1.1",
        "2.0.1",
        "1.0.2",
        "0.11.0.3",
        "0.10.2.2",
        "0.9.0.1",
        "0.8.2.2",
    ],
)
def test_every_era(version: str, tmp_path: Path) -> None:
    with cluster(version, ("n1", "n2"), ("z1",)) as system:
        assert system.describe().controller in (1, 2)
        lives_through_it(system, version, tmp_path)


@pytest.mark.nightly
def test_an_ensemble_outlives_its_leader(tmp_path: Path) -> None:
    with cluster("1.1.1", ("n1", "n2"), ("z1", "z2", "z3")) as system:
        before = system.ensemble()
        assert sorted(before.values()) == ["follower", "follower", "leader"]
        lives_through_it(system, "1.1.1", tmp_path)
        leader = next(node_id for node_id, mode in before.items() if mode == "leader")
        system.kill(one(system.zookeepers, leader))
        deadline = time.monotonic() + SEEN_S
        while "leader" not in system.ensemble().values():
            assert time.monotonic() < deadline
            time.sleep(0.2)
        # A broker whose session has ended meanwhile comes back with another.
        until(system, lambda seen: seen.full_isr and seen.leader > 0)
        assert len(produce(system, 50, times=20, **KafkaSpec(version="1.1.1").client_settings())) == 50
        for server in system.zookeepers:
            system.kill(server)
        with pytest.raises(DeployError, match=r"no answer within 2 s .*; see that it runs"):
            system.describe(timeout_s=2)
