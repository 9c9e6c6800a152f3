"""Whatever one client or four hundred ask, a broker bounds its answers, its memory and its descriptors."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from tests.broker.clients.logs import consume, produce
from tests.broker.clients.loopback import Cluster, Node, wait_for
from tests.broker.wire.entities import make
from wrackline.broker.model.batches import batch
from wrackline.broker.server.config import parse
from wrackline.broker.wire.schema import request_schema, response_schema

pytestmark = pytest.mark.real

OPEN_FILES = 300
IDLE = 400
CAP_BYTES = 2_000_000
EVERYTHING = 2**31 - 1


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker and a controller that may open 300 files each."""
    keys = {"fetch_max_bytes": CAP_BYTES, "max_message_bytes": 3_000_000}
    cluster = Cluster(
        tmp_path_factory.mktemp("small"),
        brokers=1,
        broker_keys=keys,
        controller_keys={"min_insync_replicas": 1},
    )
    for node in cluster.nodes:
        node.open_files = OPEN_FILES
    with cluster:
        yield cluster
        assert [node.node_id for node in cluster.nodes if not node.running] == []


def frame(key: int, version: int, correlation: int, body: bytes) -> bytes:
    head = struct.pack(">hhih", key, version, correlation, -1)
    return struct.pack(">i", len(head) + len(body)) + head + body


def fetch(topic: str, correlation: int = 1, *, partitions: int = 1, max_bytes: int = EVERYTHING) -> bytes:
    schema = request_schema(1, 4)
    parts = tuple(
        make(schema, "FetchPartition", partition=at, fetch_offset=0, partition_max_bytes=max_bytes)
        for at in range(partitions)
    )
    request = make(
        schema,
        "FetchRequest",
        replica_id=-1,
        max_wait=timedelta(0),
        min_bytes=1,
        max_bytes=EVERYTHING,
        isolation_level=0,
        topics=(make(schema, "FetchTopic", topic=topic, partitions=parts),),
    )
    return frame(1, 4, correlation, schema.write(request))


def answer(sock: socket.socket) -> tuple[int, bytes]:
    """(correlation, body) of the next answer."""
    size, correlation = struct.unpack(">ii", exactly(sock, 8))
    return correlation, exactly(sock, size - 4)


def exactly(sock: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = sock.recv(min(count, 1 << 20))
        assert part, "closed"
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def connect(node: Node, timeout_s: float = 20.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", node.port), timeout_s)


def memory(node: Node) -> int:
    """Resident bytes."""
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def fill(
    cluster: Cluster, topic: str, *, partitions: int = 1, megabytes: int = 5, size: int = 100_000
) -> None:
    cluster.create_topic(topic, partitions=partitions, replicas=1)
    for partition in range(partitions):
        values = [b"%06d" % at + bytes(size) for at in range(megabytes * 1_000_000 // size)]
        acked = produce(cluster.bootstrap, topic, values, partition=partition, message_max_bytes=2_900_000)
        assert len(acked) == len(values)


# --- fetch.max.bytes ---------------------------------------------------------------------------------------


def test_the_defaults_are_kafkas() -> None:
    settings = parse(
        {
            "role": "broker",
            "node_id": 1,
            "cluster_id": "c",
            "host": "h",
            "port": 1,
            "replication_port": 3,
            "secret_file": "s",
            "data_dir": "d",
            "controllers": ["101@h:2"],
        }
    )
    assert settings.node.fetch_max_bytes == 57_671_680
    assert settings.node.replica_fetch_response_max_bytes == 10_485_760  # type: ignore[union-attr]
    assert settings.shell.connections_max_idle_ms == 600_000
    assert settings.shell.max_connections == 2**31 - 1


def test_a_fetch_is_given_no_more_than_the_brokers_limit(small: Cluster) -> None:
    fill(small, "wide", partitions=3)
    with connect(small.brokers[1]) as sock:
        sock.sendall(fetch("wide", partitions=3))
        _, body = answer(sock)
        assert CAP_BYTES / 2 < len(body) < CAP_BYTES + 10_000
        sock.sendall(fetch("wide", partitions=3, max_bytes=400_000))
        _, body = answer(sock)
        assert 900_000 < len(body) < 1_210_000, "and of each partition no more than asked"


def test_a_batch_larger_than_the_limit_is_given_all_the_same(small: Cluster) -> None:
    fill(small, "big", partitions=2, megabytes=5, size=2_500_000)
    with connect(small.brokers[1]) as sock:
        sock.sendall(fetch("big", partitions=2))
        _, body = answer(sock)
    entity = response_schema(1, 4).read(body, 0)
    records = [part.records or b"" for part in entity.responses[0].partitions]
    assert [len(list(batch.split(bytes(one)))) for one in records] == [1, 0]


# --- a client that does not read ----------------------------------------------------------------------------


@pytest.mark.timeout(120)
def test_a_client_that_does_not_read_its_answers_is_not_answered_further(small: Cluster) -> None:
    fill(small, "flood", megabytes=3)
    node, count = small.brokers[1], 150
    before = memory(node)
    with connect(node) as deaf:
        deaf.sendall(b"".join(fetch("flood", number) for number in range(count)))
        with connect(node) as other:
            for number in range(10):
                began = time.monotonic()
                other.sendall(frame(18, 0, number, b""))
                assert answer(other)[0] == number
                assert time.monotonic() - began < 20
        time.sleep(0.5)
        assert memory(node) - before < 60_000_000, f"{count * CAP_BYTES} bytes were asked for"
        for number in range(count):
            correlation, body = answer(deaf)
            assert correlation == number
            assert len(body) > CAP_BYTES / 2


def test_a_long_line_of_requests_is_worked_off_with_others_between(small: Cluster) -> None:
    node = small.brokers[1]
    schema = request_schema(3, 1)
    ask = schema.write(make(schema, "MetadataRequest", topics=None))
    with connect(node) as busy, connect(node) as other:
        count = 3_000
        busy.sendall(b"".join(frame(3, 1, number, ask) for number in range(count)))
        began = time.monotonic()
        other.sendall(frame(18, 0, 1, b""))
        assert answer(other)[0] == 1
        waited = time.monotonic() - began
        for number in range(count):
            assert answer(busy)[0] == number
        assert waited < max(0.3, (time.monotonic() - began) / 2)


# --- connections --------------------------------------------------------------------------------------------


@pytest.mark.timeout(180)
def test_four_hundred_idle_connections_do_no_harm(small: Cluster) -> None:
    """With 300 descriptors: clients that come later are served, logs are made, the disk is well."""
    node = small.brokers[1]
    with ExitStack() as held:
        for _ in range(IDLE):
            held.enter_context(connect(node))
        time.sleep(1.2)
        small.create_topic("crowded", partitions=20, replicas=1)
        values = [b"%d" % number for number in range(50)]
        for partition in (0, 19):
            assert len(produce(small.bootstrap, "crowded", values, partition=partition)) == 50
        assert [value for _, value in consume(small.bootstrap, "crowded", 50, partition=19)] == values
        assert len(list(Path(f"/proc/{node.process.pid}/fd").iterdir())) < OPEN_FILES  # type: ignore[union-attr]
    said = node.log.read_text()
    assert "disk" not in said
    assert "Too many open files" not in said
    told = [line for line in said.splitlines() if "connections are open, the limit" in line]
    assert 0 < len(told) < 10
    small.create_topic("calm", replicas=1)
    assert len(produce(small.bootstrap, "calm", values)) == 50


@pytest.mark.timeout(180)
def test_more_partitions_than_files_that_may_be_open(tmp_path: Path) -> None:
    """With 128 descriptors 32 are for logs."""
    cluster = Cluster(tmp_path, brokers=1, controller_keys={"min_insync_replicas": 1})
    for node in cluster.nodes:
        node.open_files = 128
    with cluster:
        topics = [f"many-{number}" for number in range(5)]
        for topic in topics:
            cluster.create_topic(topic, partitions=10, replicas=1)
        for topic in (topics[0], topics[4], topics[2], topics[0]):
            assert produce(cluster.bootstrap, topic, [b"x"], partition=9)
        assert [value for _, value in consume(cluster.bootstrap, topics[0], 2, partition=9)] == [b"x", b"x"]
        assert cluster.brokers[1].stop() == 0
        cluster.brokers[1].start()
        cluster.wait_registered()
        assert [value for _, value in consume(cluster.bootstrap, topics[2], 1, partition=9)] == [b"x"]


def test_a_silent_connection_is_closed_and_a_busy_one_is_not(tmp_path: Path) -> None:
    keys = {"connections_max_idle_ms": 1_500}
    with Cluster(
        tmp_path, brokers=1, broker_keys=keys, controller_keys={"min_insync_replicas": 1}
    ) as cluster:
        node = cluster.brokers[1]
        with connect(node) as silent, connect(node) as busy:
            began = time.monotonic()
            closed_after = None
            for number in range(200):
                busy.sendall(frame(18, 0, number, b""))
                assert answer(busy)[0] == number
                silent.settimeout(0.1)
                try:
                    assert silent.recv(1) == b""
                except TimeoutError:
                    continue
                except ConnectionResetError:
                    pass
                closed_after = time.monotonic() - began
                break
            assert closed_after is not None
            assert closed_after >= 1.4
            busy.sendall(frame(18, 0, 7, b""))
            assert answer(busy)[0] == 7
        wait_for("the line in the log", lambda: "idle for 2 s" in node.log.read_text())


def test_a_node_that_may_open_too_few_files_says_so(tmp_path: Path) -> None:
    node = Node(101, "controller", 9_093, tmp_path, {"controllers": ["101@127.0.0.1:9093"]})
    node.open_files = 100
    node.start()
    assert node.wait() == 2
    assert "raise ulimit -n" in node.log.read_text().splitlines()[-1]
