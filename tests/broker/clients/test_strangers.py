"""A stranger who says that it is a node of the cluster: what it says must not count.

With both followers frozen, two Fetch requests in their names once made the leader believe that they had the
record, and acks=all was acknowledged with one copy.
"""

from __future__ import annotations

import signal
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from kio.schema.errors import ErrorCode

from tests.broker.clients.logs import end_offset, produce
from tests.broker.clients.loopback import CLUSTER_ID, Cluster, Node, free_ports, wait_for
from tests.broker.wire.entities import make
from tests.broker.wire.samples import asked, request_frame
from wrackline.broker.model.batches.batch import split
from wrackline.broker.wire.api import Api, Listener
from wrackline.broker.wire.apis import BY_KEY
from wrackline.broker.wire.proof import ClusterSecret
from wrackline.broker.wire.schema import request_schema, response_schema

pytestmark = pytest.mark.real

PATIENT = {"replica_lag_time_max_ms": 600_000}
"""Who is frozen stays in the ISR."""
WRONG = ClusterSecret(b"not of this cluster", CLUSTER_ID)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("strangers")
    keys = {"session_timeout_ms": 600_000}
    with Cluster(folder, broker_keys=PATIENT, controller_keys=keys) as running:
        running.create_topic("t")
        yield running


def fetch_of(replica: int, topic: str, offset: int) -> bytes:
    """Version 4: whoever asks for an offset has all before it."""
    schema = request_schema(1, 4)
    part = make(schema, "FetchPartition", partition=0, fetch_offset=offset, partition_max_bytes=1_000)
    entity = make(
        schema,
        "FetchRequest",
        replica_id=replica,
        max_wait=timedelta(0),
        min_bytes=0,
        max_bytes=1_000,
        isolation_level=0,
        topics=(make(schema, "FetchTopic", topic=topic, partitions=(part,)),),
    )
    return request_frame(1, 4, schema.write(entity), flexible=False)


def say(port: int, frame: bytes, greeting: bytes = b"") -> bytes:
    """What comes back until the other side has nothing more to say, or has closed the connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(greeting + struct.pack(">i", len(frame)) + frame)
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(10)
        said = b""
        try:
            while some := sock.recv(65_536):
                said += some
        except ConnectionResetError:
            pass  # it did not read what we sent
        return said


def ask(port: int, frame: bytes) -> bytes:
    """The answer, however long it takes."""
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        sock.sendall(struct.pack(">i", len(frame)) + frame)
        [size] = struct.unpack(">i", sock.recv(4, socket.MSG_WAITALL))
        return sock.recv(size, socket.MSG_WAITALL)


def said_since(node: Node, before: int, what: str) -> bool:
    return what in node.log.read_text()[before:]


def asked_ways(leader: Node, liars: Sequence[int]) -> dict[str, tuple[int, bytes, int]]:
    """(port, what is said first, in whose name), by way."""
    known = leader.secret.greeting(9)
    ways = {}
    for liar in liars:
        ways[f"clients {liar}"] = leader.port, b"", liar
        ways[f"nodes {liar}, no proof"] = leader.replication_port, b"", liar
        ways[f"nodes {liar}, a wrong secret"] = leader.replication_port, WRONG.greeting(liar), liar
        ways[f"nodes {liar}, proof of another node"] = leader.replication_port, known, liar
    return ways


def test_two_frames_of_a_stranger_do_not_make_acks_all_lie(cluster: Cluster) -> None:
    leader = cluster.brokers[cluster.leader("t")]
    frozen = [node for node in cluster.brokers.values() if node is not leader]
    before = len(produce(cluster.bootstrap, "t", [b"a", b"b"]))
    outcomes: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        outcomes.append(error)

    for node in frozen:
        node.signal(signal.SIGSTOP)
    try:
        settings = {"bootstrap.servers": leader.address, "acks": "all", "message.timeout.ms": 4_000}
        producer = Producer({**settings, "log_level": 0})
        producer.produce("t", b"alone", on_delivery=delivered)
        while not outcomes:
            producer.poll(0.1)
            for port, greeting, liar in asked_ways(leader, [node.node_id for node in frozen]).values():
                say(port, fetch_of(liar, "t", before + 1), greeting)
        assert outcomes[0] is not None, "acknowledged with one copy"
        assert end_offset(leader.address, "t") == before
    finally:
        for node in frozen:
            node.signal(signal.SIGCONT)
    assert produce(cluster.bootstrap, "t", [b"again"]), "the nodes themselves are believed"
    log = leader.log.read_text()
    for node in frozen:
        assert f"a client sent Fetch in the name of node {node.node_id}" in log
        assert f"node 9 sent Fetch in the name of node {node.node_id}" in log
    assert "Fetch is for nodes of the cluster" in log
    assert "no proof of a node of this cluster" in log


@pytest.mark.parametrize("api", [one for one in BY_KEY.values() if not one.open_on], ids=lambda one: one.name)
def test_what_nodes_ask_each_other_closes_the_connection_of_a_stranger(cluster: Cluster, api: Api) -> None:
    """Everywhere, and the node's log says so."""
    assert api.sent is not None
    schema = request_schema(api.key, api.sent)
    frame = request_frame(api.key, api.sent, schema.write(asked(api.key, schema)), flexible=schema.flexible)
    broker, controller = cluster.brokers[1], cluster.controller
    for node, port, listener in (
        (broker, broker.port, Listener.CLIENT),
        (broker, broker.replication_port, Listener.REPLICATION),
        (controller, controller.port, Listener.CONTROLLER),
    ):
        before = len(node.log.read_text())
        assert say(port, frame) == b""
        known = listener in api.nodes_on
        why = f"{api.name} is for nodes" if known else f"(API key {api.key}) is not served on the listener"
        wait_for("the line in the log", partial(said_since, node, before, why))


def test_a_broker_with_another_secret_does_not_come_in(cluster: Cluster, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("another secret of as many letters")
    keys = {"controllers": cluster.voters, "secret_file": str(other)}
    node = Node(8, "broker", free_ports(1)[0], tmp_path / "n8", keys)
    before = len(cluster.controller.log.read_text())
    node.start()
    refusal = "no proof of a node of this cluster: is its secret_file the same?"
    wait_for("the refusal", partial(said_since, cluster.controller, before, refusal))
    wait_for(
        "its own word", partial(said_since, node, 0, "it does not take our proof that we are of the cluster")
    )
    assert 8 not in cluster.admin().list_topics(timeout=5).brokers
    node.kill()


def test_who_asks_for_the_id_of_another_producer_gets_another_id(cluster: Cluster) -> None:
    """By the version of InitProducerId that names an id and its epoch, so that the owner is not fenced."""
    leader = cluster.brokers[cluster.leader("t")]
    outcomes: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": leader.address, "enable.idempotence": True, "log_level": 0})
    for turn in (b"before", b"after"):
        producer.produce("t", turn, on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(20) == 0
        log = next((leader.data_dir / "t-0").glob("*.log")).read_bytes()
        *_, (last, _) = split(log)
        schema = request_schema(22, 4)
        entity = replace(asked(22, schema), producer_id=last.producer_id, producer_epoch=last.producer_epoch)
        said = ask(leader.port, request_frame(22, 4, schema.write(entity), flexible=True))
        answer = response_schema(22, 4).read(said, 5)
        assert answer.error_code is ErrorCode.none
        assert answer.producer_id != last.producer_id
    assert outcomes == [None, None]
