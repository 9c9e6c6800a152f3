"""One bit changes on one node's disk, two copies are good, and everything acknowledged can still be read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ElectionType, TopicPartition

from tests.broker.clients.logs import consume, produce
from tests.broker.clients.loopback import Cluster, wait_for

pytestmark = [pytest.mark.real, pytest.mark.slow]
DISK_FAILED = 3
RECORDS = [b"%06d" % n for n in range(2_000)]
T = TopicPartition("log", 0)
SEGMENT = f"{0:020d}.log"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("flips"), broker_keys={"segment_bytes": 16_384}) as running:
        running.create_topic("log")
        for at in range(0, len(RECORDS), 20):
            produce(running.bootstrap, "log", RECORDS[at : at + 20], linger_ms=200)
        yield running


def flip(path: Path, at: int) -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def tenth_batch(segment: Path) -> int:
    """Where it begins."""
    content, at = segment.read_bytes(), 0
    for _ in range(9):
        at += 12 + struct.unpack_from(">i", content, at + 8)[0]
    return at


def lead(cluster: Cluster, node_id: int) -> None:
    """Let the first replica lead, as it does by preference."""

    def asked() -> bool:
        if cluster.describe("log")[0].leader != node_id:
            cluster.admin().elect_leaders(ElectionType.PREFERRED, [T]).result(15)
        return bool(cluster.describe("log")[0].leader == node_id)

    wait_for(f"{node_id} to lead", asked, 30)


REGIONS = {
    "base offset": 7,
    "length": 11,
    "leader epoch": 15,
    "magic": 16,
    "CRC": 18,
    "attributes": 22,
    "payload": 70,
}


@pytest.mark.parametrize("field", REGIONS)
def test_a_bit_of_a_batch_of_a_node_that_is_down(cluster: Cluster, field: str) -> None:
    victim = cluster.describe("log")[0].replicas[0]
    node = cluster.brokers[victim]
    folder = node.data_dir / "log-0"
    lead(cluster, victim)
    before = set(folder.glob("*.damaged*"))
    assert node.stop() == 0
    flip(folder / SEGMENT, tenth_batch(folder / SEGMENT) + REGIONS[field])
    said = node.log.stat().st_size
    node.start()
    cluster.wait_isr("log")
    assert "DAMAGED log log-0" in node.log.read_text()[said:]
    assert set(folder.glob("*.damaged*")) > before, "put aside, not deleted"
    lead(cluster, victim)
    assert consume(cluster.bootstrap, "log", len(RECORDS), timeout_s=30) == list(enumerate(RECORDS))


@pytest.mark.parametrize("name", ["log-start-offset-checkpoint", "replication-offset-checkpoint"])
def test_a_bit_of_a_checkpoint(cluster: Cluster, name: str) -> None:
    """A log that starts 8 records later on who leads would take them from everybody."""
    victim = cluster.describe("log")[0].replicas[0]
    node = cluster.brokers[victim]
    assert node.stop() == 0
    path = node.data_dir / name
    at = path.read_bytes().index(b"log 0 ") + len(b"log 0 ")
    flip(path, at)
    said = node.log.stat().st_size
    node.start()
    cluster.wait_isr("log")
    assert f"{name}: its checksum is wrong" in node.log.read_text()[said:]
    lead(cluster, victim)
    assert consume(cluster.bootstrap, "log", len(RECORDS), timeout_s=30) == list(enumerate(RECORDS))


def test_a_bit_that_changes_while_the_node_leads(cluster: Cluster) -> None:
    """Nobody takes what it would send: it ends, another leads, and its next start mends it."""
    victim = cluster.describe("log")[0].replicas[0]
    node = cluster.brokers[victim]
    segment = node.data_dir / "log-0" / SEGMENT
    lead(cluster, victim)
    flip(segment, tenth_batch(segment) + REGIONS["payload"])
    assert consume(cluster.bootstrap, "log", len(RECORDS), timeout_s=40) == list(enumerate(RECORDS))
    assert node.wait() == DISK_FAILED
    told = node.log.read_text()
    assert "the CRC of the batch at" in told
    assert "its log directory is offline" in told
    node.start()
    cluster.wait_isr("log")
    lead(cluster, victim)
    assert consume(cluster.bootstrap, "log", len(RECORDS), timeout_s=30) == list(enumerate(RECORDS))


def test_an_unreadable_topic_id_costs_a_replica_its_copy_and_no_more(cluster: Cluster) -> None:
    """The log is put aside and fetched from the leader: three such in turn leave every replica in the ISR,
    and the one that leads then has every record."""
    preferred, *others = cluster.describe("log")[0].replicas
    for victim in (*others, preferred):
        node = cluster.brokers[victim]
        folder = node.data_dir / "log-0"
        assert node.stop() == 0
        content = {path.name: path.read_bytes() for path in folder.glob("*.log")}
        flip(folder / "partition.metadata", len("version: 0\ntopic_id: ") + 3)
        said = node.log.stat().st_size
        node.start()
        cluster.wait_registered()
        cluster.wait_isr("log")
        told = node.log.read_text()[said:]
        assert "log log-0 is offline, registering as after an unclean stop" in told
        (aside,) = node.data_dir.glob("log-0.*.damaged")
        assert "DAMAGED log log-0 is given up" in told
        assert f"It is in: {aside}" in told
        assert {path.name: path.read_bytes() for path in aside.glob("*.log")} == content
    lead(cluster, preferred)
    assert consume(cluster.bootstrap, "log", len(RECORDS), timeout_s=30) == list(enumerate(RECORDS))


def test_at_the_end_the_log_is_as_long_as_it_was(cluster: Cluster) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "tests", "log_level": 0})
    try:
        assert consumer.get_watermark_offsets(T, timeout=10) == (0, len(RECORDS))
    finally:
        consumer.close()
