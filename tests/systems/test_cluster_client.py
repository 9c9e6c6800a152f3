"""The cluster client asks over real sockets brokers that answer, are silent, hang up, or talk nonsense."""

from __future__ import annotations

import io
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from kio.schema.api_versions.v0 import response as api_versions
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import response as metadata
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta

from tests.broker.clients.loopback import START_S, wait_for
from tests.broker.clients.loopback import Cluster as RealCluster
from wrackline.fleets.base import Host, PowerSwitch, Remote
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import NoAnswer, ProtocolError, Unreadable
from wrackline.systems.base import DeployError, Node, TopicSpec
from wrackline.systems.cluster_client import ClusterClient, named_by_most

pytestmark = pytest.mark.real

Answerer = Callable[[bytes], bytes | None]
"""Request frame (without length) -> response frame; None hangs up; an exception in it is the test's."""


class FakeBroker:
    """A TCP server on loopback that answers frames."""

    def __init__(self, answer: Answerer) -> None:
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.asked = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            while head := connection.recv(4):
                (length,) = struct.unpack(">i", head)
                self.asked += 1
                answer = self._answer(connection.recv(length, socket.MSG_WAITALL))
                if answer is None:
                    return
                connection.sendall(struct.pack(">i", len(answer)) + answer)

    def close(self) -> None:
        self._server.close()


def framed(request: bytes, response: object, *, flexible: bool) -> bytes:
    out = io.BytesIO()
    out.write(request[4:8] + (b"\0" if flexible else b""))
    entity_writer(type(response))(out, response)  # type: ignore[type-var]
    return out.getvalue()


def knows(*, leader: int = 1, epoch: int = 1, delay_s: float = 0.0) -> Answerer:
    """A broker that knows one topic of one partition, and not the API that shows the ELR."""

    def answer(request: bytes) -> bytes:
        time.sleep(delay_s)
        (key,) = struct.unpack(">h", request[:2])
        if key == 18:
            apis = (api_versions.ApiVersion(api_key=i16(3), min_version=i16(0), max_version=i16(12)),)
            response: object = api_versions.ApiVersionsResponse(error_code=ErrorCode.none, api_keys=apis)
            return framed(request, response, flexible=False)
        partition = metadata.MetadataResponsePartition(
            error_code=ErrorCode.none,
            partition_index=i32(0),
            leader_id=BrokerId(leader),
            leader_epoch=i32(epoch),
            replica_nodes=(BrokerId(1), BrokerId(2)),
            isr_nodes=(BrokerId(leader),),
        )
        topic = metadata.MetadataResponseTopic(
            error_code=ErrorCode.none, name=TopicName("log"), topic_id=None, partitions=(partition,)
        )
        brokers = tuple(
            metadata.MetadataResponseBroker(node_id=BrokerId(number), host="x", port=i32(1))
            for number in (2, 1)
        )
        response = metadata.MetadataResponse(
            throttle_time=i32Timedelta.parse(timedelta()),
            brokers=brokers,
            controller_id=BrokerId(2),
            topics=(topic,),
        )
        return framed(request, response, flexible=True)

    return answer


def silent(_: bytes) -> bytes:
    time.sleep(3600)
    return b""


class Loopback:
    name = "loopback"
    hosts: tuple[Host, ...] = ()
    power: PowerSwitch

    def up(self) -> None: ...

    def down(self) -> None: ...

    def remote(self, host: Host) -> Remote:
        raise NotImplementedError

    @contextmanager
    def entered(self) -> Iterator[None]:
        yield


@contextmanager
def cluster(*answers: Answerer) -> Iterator[tuple[ClusterClient, list[FakeBroker]]]:
    brokers = [FakeBroker(answer) for answer in answers]
    nodes = [
        Node(number, Host(f"n{number}", "127.0.0.1"), frozenset({"broker"}), broker.port)
        for number, broker in enumerate(brokers, 1)
    ]
    client = ClusterClient(Loopback(), nodes, ())
    try:
        yield client, brokers
    finally:
        client.close()
        for broker in brokers:
            broker.close()


def test_one_answer_is_enough_and_the_newest_epoch_wins() -> None:
    with cluster(knows(leader=1, epoch=3), knows(leader=2, epoch=4)) as (client, _):
        state = client.describe()
        assert (state.brokers, state.controller) == ((1, 2), 2)
        assert (state.partitions[0].leader, state.partitions[0].isr) == (2, (2,))


def test_a_silent_broker_holds_up_neither_this_question_nor_the_next() -> None:
    with cluster(silent, knows(epoch=7)) as (client, _):
        begin = time.monotonic()
        for _ in range(5):
            assert client.describe().partitions[0].leader_epoch == 7
        assert time.monotonic() - begin < 4.5


def test_many_askers_at_once_all_get_an_answer() -> None:
    with cluster(knows(delay_s=0.05)) as (client, brokers):
        found: list[int] = []

        def ask() -> None:
            found.append(client.describe().partitions[0].leader)

        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert found == [1] * 20
        assert brokers[0].asked < 20, "those who waited shared an answer"


def test_a_broker_that_came_back_is_asked_on_a_new_connection() -> None:
    calls = [0]
    healthy = knows()

    def hangs_up_once(request: bytes) -> bytes | None:
        calls[0] += 1
        return None if calls[0] == 3 else healthy(request)

    with cluster(hangs_up_once) as (client, _):
        assert client.describe().partitions[0].leader == 1
        assert client.describe().partitions[0].leader == 1
        assert calls[0] > 3


def test_when_nobody_answers_everybody_is_named() -> None:
    with cluster(silent, lambda _: None, lambda _: b"\0\0\0\1nonsense") as (client, brokers):
        brokers[0].close()
        with pytest.raises(DeployError, match="no broker answers: ") as trouble:
            client.describe(timeout_s=2.5)
        for name in (
            "n1: ",
            "n2: MetadataRequest to 127.0.0.1:.*hung up",
            "n3: ApiVersionsRequest to .*malformed",
        ):
            trouble.match(name)


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (lambda request: b"\xff\xff\xff\xff" + request, "belongs to another request"),
        (lambda _: b"", "announced an answer of 0 bytes"),
        (lambda request: request[4:8], "malformed answer"),
        (lambda request: request[4:8] + b"\1\157\1x", "malformed answer"),
        (lambda request: request[4:8] + b"\0\0\0\0\0" + b"\xff" * 40, "malformed answer"),
        (lambda _: None, "the broker hung up"),
    ],
    ids=["other correlation", "no bytes", "header only", "unknown tag", "rubbish", "hang up"],
)
def test_an_answer_that_is_none_is_told_with_address_and_request(answer: Answerer, what: str) -> None:
    broker = FakeBroker(answer)
    try:
        with (
            Connection("127.0.0.1", broker.port, timeout_s=2.0) as connection,
            pytest.raises(ProtocolError, match=what) as trouble,
        ):
            connection.metadata()
        assert str(broker.port) in str(trouble.value)
        assert isinstance(trouble.value, Unreadable) == ("malformed" in what)
    finally:
        broker.close()


def test_a_whole_answer_has_a_time_however_steadily_it_comes() -> None:
    def trickle() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.sendall(struct.pack(">i", 1_000))
            while True:
                connection.sendall(b"\0")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=trickle, daemon=True).start()
        place = server.getsockname()
        begin = time.monotonic()
        with (
            Connection(*place, timeout_s=30.0, answer_s=0.5) as connection,
            pytest.raises(NoAnswer, match=rf"ApiVersionsRequest to 127\.0\.0\.1:{place[1]}: timed out"),
        ):
            connection.api_versions()
        assert time.monotonic() - begin < 5.0


def test_a_port_where_nobody_listens_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ProtocolError, match=f"cannot connect to 127.0.0.1:{port}"):
        Connection("127.0.0.1", port)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ((101, 101, 101), 101),
        ((101, 102, 102), 102),  # 101 was cut off and has not noticed
        ((ProtocolError("gone"), 103, 103), 103),
        ((None, 103, 103), 103),  # silent: the other two are a majority
        ((101, 102, 103), -1),
        ((ProtocolError("gone"), ProtocolError("gone"), 103), -1),
        ((None, None, 103), -1),
        ((-1, 102, -1), -1),
    ],
)
def test_the_active_controller_is_whom_a_majority_of_them_names(
    said: tuple[int | Exception | None, ...], named: int
) -> None:
    votes: list[Future[int]] = []
    for one in said:
        vote: Future[int] = Future()
        if isinstance(one, Exception):
            vote.set_exception(one)
        elif one is not None:
            vote.set_result(one)
        votes.append(vote)
    assert named_by_most(votes, time.monotonic() + 0.05) == named


def test_a_topic_waits_for_a_broker_that_is_fenced_and_a_wrong_one_is_refused_at_once(tmp_path: Path) -> None:
    with RealCluster(tmp_path, brokers=3) as running:
        nodes = [
            Node(number, Host(f"n{number}", "127.0.0.1"), frozenset({"broker"}), broker.port)
            for number, broker in running.brokers.items()
        ]
        with closing(ClusterClient(Loopback(), nodes, ())) as client:
            late = running.brokers[3]
            late.kill()
            wait_for("broker 3 to be fenced", lambda: 3 not in client.describe().brokers)
            with pytest.raises(
                DeployError, match=r"not created in time; .*invalid_replication_factor.* not fenced"
            ):
                client.create_topic(TopicSpec("never", 1, 3, {}), timeout_s=1.0)
            late.start()  # it needs longer than the first question
            client.create_topic(TopicSpec("log", 1, 3, {}), timeout_s=START_S)
            found = client.describe().partition("log", 0)
            assert found is not None
            assert set(found.isr) == {1, 2, 3}
            for wrong in (TopicSpec("wide", 1, 4, {}), TopicSpec("odd", 1, 3, {"no.such.setting": "1"})):
                with pytest.raises(DeployError, match=r"cannot be created: .*; mend the topic's settings"):
                    client.create_topic(wrong, timeout_s=START_S)
