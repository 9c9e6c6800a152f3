"""Real nodes are sent wrong frames: a connection may end by them, a node may not."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.clients.loopback import Cluster, Node, wait_for
from tests.broker.clients.under_fire import Shot, UnderFire
from tests.broker.wire.mutations import Readers, cases, mutated
from wrackline.broker.wire.api import Listener

pytestmark = pytest.mark.real

SEED = 2
BUDGET_S = 10.0
UNKNOWN_TAG = bytes.fromhex("0003000900000007000268330000000000013400")
NULL_ARRAY = bytes.fromhex("000000030000000700026833ffffffff00001388ffffffff")
HUGE_COUNT = bytes.fromhex("00140004000000070002683300ffffffff0f000003e800")
NO_COORDINATORS = bytes.fromhex("000a000400000007000268330000ffffffff0f00")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("small")
    with Cluster(folder, brokers=1, controller_keys={"min_insync_replicas": 1}) as running:
        yield running
        assert all(node.running for node in running.nodes)


def answer(node: Node, frame: bytes) -> bytes:
    """b"" when the connection was closed over it."""
    with socket.create_connection(("127.0.0.1", node.port), 5) as sock:
        sock.settimeout(10)
        sock.sendall(struct.pack(">i", len(frame)) + frame)
        size = sock.recv(4, socket.MSG_WAITALL)
        return sock.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL) if size else b""


@pytest.mark.parametrize("role", ["broker", "controller"])
@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (NULL_ARRAY, "ProduceRequest v3: topic_data is null"),
        (HUGE_COUNT, "DeleteTopicsRequest v4: topic_names has a length of 4294967294, and 5 bytes are left"),
        (NO_COORDINATORS, "FindCoordinatorRequest v4: coordinator_keys has a length of 4294967294"),
    ],
    ids=["a null array", "a huge count", "a huge count in what is not served"],
)
def test_a_frame_that_cannot_be_read_ends_its_connection(
    small: Cluster, role: str, frame: bytes, says: str
) -> None:
    node = small.controller if role == "controller" else small.brokers[1]
    before = len(node.log.read_text())
    assert answer(node, frame) == b""
    expected = says if role == "broker" or frame == HUGE_COUNT else "is not served on the listener CONTROLLER"
    wait_for("the line in the log", lambda: expected in node.log.read_text()[before:])
    said = node.log.read_text()[before:].splitlines()
    assert len([line for line in said if "closing the connection" in line]) == 1
    assert not any("Traceback" in line for line in said)
    assert node.running


def test_an_unknown_tagged_field_is_skipped(small: Cluster) -> None:
    for node in small.nodes:
        found = answer(node, UNKNOWN_TAG)
        assert found[:5] == struct.pack(">iB", 7, 0), "an answer, with its header of a flexible version"


def test_the_longest_name_of_a_topic_is_refused_in_words_that_fit(small: Cluster) -> None:
    """Version 4 of CreateTopics has strings of 32,767 bytes, and the refusal quotes the name."""
    name = b"x" * 32_767
    head = struct.pack(">hhih", 19, 4, 7, -1)
    topic = struct.pack(">h", len(name)) + name + struct.pack(">ihii", 1, 1, 0, 0)
    for node in small.nodes:
        found = answer(node, head + struct.pack(">i", 1) + topic + struct.pack(">ib", 5_000, 0))
        assert name in found
        assert found[-1_010:].endswith(b"x...")
        assert node.running


def test_mutations_of_real_requests_end_no_node(tmp_path: Path) -> None:
    every, readers = cases(), Readers()
    frames = [case.frame for of in every.values() for case in of]
    requests = [api for api, of in every.items() if of[0].request is None]
    draw = random.Random(SEED)
    target = UnderFire(tmp_path)
    target.start()
    try:
        deadline, number, sent = time.monotonic() + BUDGET_S, 0, 0
        while time.monotonic() < deadline:
            number += 1
            case, frame = mutated(every[draw.choice(requests)], frames, SEED, number)
            for listener in readers.understood(case, frame) or [draw.choice(list(Listener))]:
                target.fire(Shot(listener, number, frame))
                sent += 1
            assert target.hits() == []
        assert target.hits(at_last=True) == []
        assert sent > 100
    finally:
        target.close()
