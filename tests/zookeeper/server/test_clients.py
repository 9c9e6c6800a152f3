"""Brokers of profile zk08 as processes, with a real ZooKeeper: clients are served by who has won the race."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.broker.clients.logs import consume, produce
from tests.broker.clients.loopback import Cluster, Node, free_ports, wait_for
from tests.zookeeper.server.carriers import real_server
from wrackline.broker.model.coordination import Create
from wrackline.zookeeper.core.administration import create_cluster
from wrackline.zookeeper.systems.servers.session import password_of

pytestmark = [pytest.mark.real, pytest.mark.slow]


class OnZooKeeper(Cluster):
    """Three brokers without controllers."""

    def __init__(self, folder: Path, port: int) -> None:
        self._admin = None
        self.controllers = {}
        self.zookeeper = KazooClient(f"127.0.0.1:{port}")
        self.zookeeper.start()
        for one in create_cluster((1, 2, 3)):
            assert isinstance(one, Create)
            self.zookeeper.create(one.path, one.data)
        keys = {
            "profile": "zk08",
            "controllers": [],
            "zookeeper_connect": f"127.0.0.1:{port}",
            "zookeeper_session_timeout_ms": 2_000,
            "replica_lag_time_max_ms": 1_500,
            "replica_fetch_backoff_ms": 100,
            "high_watermark_checkpoint_interval_ms": 300,
        }
        ports = free_ports(3)
        self.brokers = {
            number: Node(number, "broker", ports[number - 1], folder / f"n{number}", keys)
            for number in (1, 2, 3)
        }

    def close(self) -> None:
        super().close()
        self.zookeeper.stop()
        self.zookeeper.close()

    def leads(self, topic: str) -> int:
        """-1: nobody."""
        try:
            return int(self.zookeeper.get(f"/brokers/topics/{topic}/0/leader")[0])
        except NoNodeError:
            return -1

    def isr(self, topic: str) -> set[int]:
        return {int(one) for one in self.zookeeper.get(f"/brokers/topics/{topic}/0/ISR")[0].split(b",")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnZooKeeper]:
    with real_server() as port, OnZooKeeper(tmp_path_factory.mktemp("zk08"), port) as made:
        yield made  # type: ignore[misc]


def values(first: int) -> list[bytes]:
    return [b"value-%d" % number for number in range(first, first + 100)]


def end_session(cluster: OnZooKeeper, session: int) -> None:
    """Whoever knows a session's id and password may take it over, and close it."""
    servers = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    thief = KazooClient(servers, client_id=(session, password_of(session)))
    thief.start()
    assert thief.client_id[0] == session
    thief.stop()
    thief.close()


def owner(cluster: OnZooKeeper, path: str) -> int:
    """The session that the node belongs to; 0: there is no such node."""
    stat = cluster.zookeeper.exists(path)
    return 0 if stat is None else int(stat.ephemeralOwner)


def test_it_serves_clients_through_kills_and_the_end_of_a_session(cluster: OnZooKeeper) -> None:
    cluster.create_topic("log", min_insync_replicas="2")
    assert cluster.leads("log") == 1, "the preferred replica has a head start"
    acked = produce(cluster.bootstrap, "log", values(0))

    cluster.brokers[1].kill()
    wait_for("another leader", lambda: cluster.leads("log") in (2, 3))
    acked |= produce(cluster.bootstrap, "log", values(100))

    cluster.brokers[1].start()
    wait_for("the preferred replica to lead again", lambda: cluster.leads("log") == 1)
    wait_for("all in the ISR", lambda: cluster.isr("log") == {1, 2, 3})
    acked |= produce(cluster.bootstrap, "log", values(200))

    before = owner(cluster, "/brokers/ids/1")
    end_session(cluster, before)
    wait_for("another session", lambda: owner(cluster, "/brokers/ids/1") not in (0, before))
    assert cluster.brokers[1].running
    wait_for("all in the ISR", lambda: cluster.leads("log") > 0 and cluster.isr("log") == {1, 2, 3})
    acked |= produce(cluster.bootstrap, "log", values(300))
    assert len(acked) == 400
    assert [value for _, value in consume(cluster.bootstrap, "log", 400)] == sorted(
        acked, key=acked.__getitem__
    )

    assert cluster.brokers[2].stop() == 0
    assert not owner(cluster, "/brokers/ids/2"), "a clean shutdown closes the session at once"
