"""A cluster grows under load, and replicas are reassigned under a kill, through our own command line."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.broker.clients.logs import consume
from tests.broker.clients.loopback import Cluster, wait_for
from wrackline.broker.admin.cli import main
from wrackline.broker.rules.placement.topics import REPLICATION_RATE

pytestmark = pytest.mark.real


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path) as running:
        yield running


class Load:
    """Writes to all partitions until it is told to stop; what was acknowledged, by partition and offset."""

    def __init__(self, cluster: Cluster, topic: str, partitions: int) -> None:
        self.acked: list[dict[int, bytes]] = [{} for _ in range(partitions)]
        self._topic, self._partitions = topic, partitions
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                "delivery.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0, "records without an outcome"

    def _run(self) -> None:
        at = 0
        while not self._stop.wait(0.005):
            for partition in range(self._partitions):
                self._producer.produce(
                    self._topic, b"%d" % at, partition=partition, on_delivery=self._delivered
                )
                at += 1
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acked[message.partition() or 0][message.offset() or 0] = bytes(message.value() or b"")

    @property
    def count(self) -> int:
        return sum(map(len, self.acked))

    def check(self, cluster: Cluster) -> None:
        """Everything that was acknowledged is there, where it was acknowledged."""
        for partition, acked in enumerate(self.acked):
            assert acked
            got = dict(
                consume(cluster.bootstrap, self._topic, max(acked) + 1, partition=partition, timeout_s=30)
            )
            lost = {offset for offset, value in acked.items() if got.get(offset) != value}
            assert not lost, f"partition {partition}: {sorted(lost)[:10]} of {len(acked)}"


def admin(cluster: Cluster, *arguments: str) -> int:
    live = ",".join(node.address for node in cluster.brokers.values() if node.running)
    return main(["--bootstrap", live, *arguments])


def described(cluster: Cluster, capsys: pytest.CaptureFixture[str], topic: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert admin(cluster, "describe", topic, "--json") == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
def test_two_more_brokers_take_their_share_under_load(
    growing: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert admin(growing, "create", "t", "--partitions", "10", "--replication-factor", "3") == 0
    growing.wait_isr("t", partitions=10)
    with Load(growing, "t", 10) as load:
        wait_for("some load", lambda: load.count > 500)
        growing.add_broker(4)
        growing.add_broker(5)
        assert admin(growing, "add-brokers", "4", "5", "--at-a-time", "3") == 0
        now = load.count
        wait_for("more load", lambda: load.count > now + 500)
    assert "12 replicas are copied" in capsys.readouterr().out, "6 to each: 30 over 5"
    found = described(growing, capsys, "t")
    held = Counter(broker for p in found for broker in p["replicas"])  # type: ignore[attr-defined]
    assert set(held.values()) == {6}
    assert all(set(p["isr"]) == set(p["replicas"]) for p in found)  # type: ignore[call-overload]
    assert all(not p["adding"] and not p["removing"] for p in found)
    leading = Counter(p["leader"] for p in found)
    assert set(leading) == {1, 2, 3, 4, 5}
    assert set(leading.values()) == {2}
    load.check(growing)


@pytest.mark.slow
def test_the_leader_dies_while_the_partition_moves(
    growing: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    growing.add_broker(4)
    assert admin(growing, "create", "t", "--partitions", "1", "--config", "min.insync.replicas=2") == 0
    growing.wait_isr("t")
    leader = growing.leader("t")
    stays = sorted({1, 2, 3} - {leader})
    target = f"t:0=4,{stays[0]},{stays[1]}"
    # Slow enough that the leader is sure to die in the middle of it.
    assert admin(growing, "config", "--cluster", "--set", "follower.replication.throttled.rate=20000") == 0
    with Load(growing, "t", 1) as load:
        wait_for("some load", lambda: load.count > 2_000)
        assert admin(growing, "reassign", "--no-wait", target) == 0
        capsys.readouterr()
        assert admin(growing, "list-reassignments") == 0
        assert "adding 4" in capsys.readouterr().out
        growing.brokers[leader].kill()
        assert admin(growing, "config", "--cluster", "--delete", "follower.replication.throttled.rate") == 0
        wait_for(
            "the end of it",
            lambda: (
                set(growing.describe("t")[0].replicas) == {4, *stays}
                and not described(growing, capsys, "t")[0]["adding"]
            ),
            30,
        )
        now = load.count
        wait_for("load after it", lambda: load.count > now + 100)
    load.check(growing)
    growing.brokers[leader].start()
    folder = growing.brokers[leader].data_dir / "t-0"
    wait_for("the log of the removed replica to go", lambda: not folder.exists())


@pytest.mark.slow
def test_the_active_controller_dies_while_partitions_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path, controllers=3) as cluster:
        assert admin(cluster, "create", "t", "--partitions", "4", "--replication-factor", "1") == 0
        assert admin(cluster, "config", "--topic", "t", "--set", "min.insync.replicas=1") == 0
        with Load(cluster, "t", 4) as load:
            wait_for("some load", lambda: load.count > 1_000)
            # All three replicas for all, a few kilobytes a second: it takes a while.
            assert admin(cluster, "config", "--cluster", "--set", f"{REPLICATION_RATE}=20000") == 0
            assert admin(cluster, "reassign", "--no-wait", *(f"t:{p}=1,2,3" for p in range(4))) == 0
            cluster.active_controller().kill()
            assert admin(cluster, "config", "--cluster", "--delete", REPLICATION_RATE) == 0
            assert admin(cluster, "partitions", "t", "5") == 0
            wait_for(
                "the end of it",
                lambda: all(
                    p["partition"] == 4 or (len(p["isr"]) == 3 and not p["adding"])  # type: ignore[arg-type]
                    for p in described(cluster, capsys, "t")
                ),
                30,
            )
        load.check(cluster)


def test_the_admin_commands_create_move_elect_and_describe(
    growing: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert admin(growing, "create", "t", "--partitions", "2", "--replication-factor", "2") == 0
    growing.wait_isr("t", partitions=2, size=2)
    assert admin(growing, "partitions", "t", "3") == 0
    growing.wait_isr("t", partitions=3, size=2)
    assert admin(growing, "reassign", "t:0=3,2", "--stall-timeout", "20") == 0
    assert admin(growing, "elect", "t:0") == 0
    capsys.readouterr()
    assert admin(growing, "describe", "t") == 0
    out = capsys.readouterr().out
    assert "t:0  leader 3" in out
    assert "ELR -" in out
    assert admin(growing, "cancel") == 0
    assert "0 reassignments cancelled" in capsys.readouterr().out
    assert admin(growing, "rebalance", "--dry-run") == 0
    assert "t:0=1,2  # now 3,2" in capsys.readouterr().out
    assert admin(growing, "config", "--topic", "t", "--set", "retention.ms=77") == 0
    assert "retention.ms=77  (topic)" in capsys.readouterr().out
    assert admin(growing, "unregister", "2") == 1
    assert "stop it first" in capsys.readouterr().err
    assert admin(growing, "delete", "t") == 0
    assert admin(growing, "delete", "t") == 1
    assert "unknown_topic_or_partition" in capsys.readouterr().err
