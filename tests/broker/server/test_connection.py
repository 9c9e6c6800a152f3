"""A connection takes up only so many of a client's requests before the client has read its answers."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from tests.broker.wire.entities import make
from wrackline.broker.core.requests.produce import PIECE_BYTES
from wrackline.broker.server.network.connection import Connection, PendingReply
from wrackline.broker.wire.codec import Codec
from wrackline.broker.wire.schema import request_schema

PENDING = 256


class Transport:
    """What asyncio's would do, as far as a Connection sees it."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.reading = True
        self.aborted = False
        self.on_write: Callable[[], None] = lambda: None

    def get_extra_info(self, _: str) -> Any:
        return None

    def write(self, data: bytes) -> None:
        self.sent.append(data)
        self.on_write()

    def writelines(self, parts: list[bytes]) -> None:
        for part in parts:
            self.write(part)

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def close(self) -> None: ...

    def abort(self) -> None:
        self.aborted = True


class RequestSink:
    def __init__(self) -> None:
        self.codec = Codec(names=lambda _: None)
        self.slots: list[PendingReply] = []
        self.room = True
        self.takes_s = 0.0
        self.answers: bytes | None = None
        """At once, when there is one."""

    def opened(self, _: Connection) -> bool:
        return self.room

    def active(self, _: Connection) -> None: ...
    def closed(self, _: Connection, unanswered: list[PendingReply]) -> None: ...

    def received(self, slot: PendingReply, client_host: str) -> None:  # noqa: ARG002
        self.slots.append(slot)
        time.sleep(self.takes_s)
        if self.answers is not None:
            slot.connection.answer(slot, self.answers)

    @property
    def handed(self) -> list[int]:
        return [slot.incoming.correlation for slot in self.slots if slot.incoming is not None]


def frame(key: int, version: int, correlation: int, body: bytes) -> bytes:
    head = struct.pack(">hhih", key, version, correlation, -1)
    return struct.pack(">i", len(head) + len(body)) + head + body


def metadata(correlation: int) -> bytes:
    schema = request_schema(3, 1)
    return frame(3, 1, correlation, schema.write(make(schema, "MetadataRequest", topics=())))


def fetch(correlation: int) -> bytes:
    schema = request_schema(1, 4)
    request = make(
        schema,
        "FetchRequest",
        replica_id=-1,
        max_wait=timedelta(0),
        min_bytes=1,
        max_bytes=9,
        isolation_level=0,
        topics=(),
    )
    return frame(1, 4, correlation, schema.write(request))


def produce(correlation: int, size: int) -> bytes:
    schema = request_schema(0, 3)
    part = make(schema, "PartitionProduceData", index=0, records=bytes(size))
    topic = make(schema, "TopicProduceData", name="t", partition_data=(part,))
    request = make(
        schema,
        "ProduceRequest",
        transactional_id=None,
        acks=1,
        timeout=timedelta(seconds=1),
        topic_data=(topic,),
    )
    return frame(0, 3, correlation, schema.write(request))


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn ends because the machine is busy."""
    monkeypatch.setattr("wrackline.broker.server.network.connection._TURN_S", 60.0)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def run(scenario: Callable[[RequestSink, Transport, Connection], Any]) -> None:
    async def inside() -> None:
        desk, transport = RequestSink(), Transport()
        connection = Connection(desk, 100_000_000)
        connection.connection_made(cast(asyncio.Transport, transport))
        await scenario(desk, transport, connection)

    asyncio.run(inside())


def test_a_chunk_of_requests_is_taken_up_as_far_as_there_is_room() -> None:
    async def scenario(desk: RequestSink, transport: Transport, connection: Connection) -> None:
        connection.data_received(b"".join(metadata(number) for number in range(1_000)))
        assert desk.handed == list(range(PENDING))
        connection.data_received(metadata(1_000))
        assert not transport.reading
        for done in range(1_001):
            connection.answer(desk.slots[done], b"a")
            await turns()
            assert len(desk.handed) == min(PENDING + done + 1, 1_001)
        assert desk.handed == list(range(1_001))
        assert transport.reading
        assert len(transport.sent) == 1_001

    run(scenario)


def test_the_pause_is_looked_at_after_each_request() -> None:
    async def scenario(desk: RequestSink, transport: Transport, connection: Connection) -> None:
        desk.answers = b"more than the client reads"
        transport.on_write = connection.pause_writing
        connection.data_received(b"".join(metadata(number) for number in range(100)))
        assert desk.handed == [0]
        for done in range(1, 100):
            await turns()
            assert len(desk.handed) == done
            connection.resume_writing()
        await turns()
        assert desk.handed == list(range(100))

    run(scenario)


@pytest.mark.parametrize("large", [False, True], ids=["a fetch", "more than a piece"])
def test_nothing_is_taken_up_behind_what_is_large(large: bool) -> None:
    async def scenario(desk: RequestSink, transport: Transport, connection: Connection) -> None:
        first = produce(1, PIECE_BYTES) if large else fetch(1)
        connection.data_received(metadata(0) + first + metadata(2) + fetch(3) + metadata(4))
        assert desk.handed == [0, 1]
        connection.answer(desk.slots[1], b"b")
        await turns()
        assert desk.handed == [0, 1, 2, 3]
        assert transport.sent == [], "the answers keep their order"
        connection.answer(desk.slots[0], b"a")
        connection.answer(desk.slots[2], b"c")
        await turns()
        assert desk.handed == [0, 1, 2, 3]
        connection.answer(desk.slots[3], b"d")
        await turns()
        assert desk.handed == [0, 1, 2, 3, 4]
        assert b"".join(transport.sent) == b"abcd"

    run(scenario)


@pytest.mark.parametrize("held", ["requests", "answers"])
def test_bytes_that_are_held_are_counted(held: str) -> None:
    """Sixty-four megabytes of them, whatever they belong to."""

    async def scenario(desk: RequestSink, _: Transport, connection: Connection) -> None:
        if held == "requests":
            for number in range(100):
                connection.data_received(produce(number, 1_000_000))
            assert 60 <= len(desk.handed) <= 70
            connection.answer(desk.slots[0], b"a")
            await turns()
            assert 60 <= len(desk.handed) <= 70
            return
        connection.data_received(b"".join(metadata(number) for number in range(200)))
        assert len(desk.handed) == 200
        for slot in desk.slots[1:150]:
            connection.answer(slot, bytes(1_000_000))
        connection.data_received(metadata(200))
        assert len(desk.handed) == 200
        connection.answer(desk.slots[0], b"a")
        await turns()
        assert len(desk.handed) == 201

    run(scenario)


def test_others_have_their_turn_between_the_requests_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wrackline.broker.server.network.connection._TURN_S", 0.02)

    async def scenario(desk: RequestSink, transport: Transport, connection: Connection) -> None:
        desk.takes_s, desk.answers = 0.005, b"a"
        connection.data_received(b"".join(metadata(number) for number in range(40)))
        assert len(desk.handed) <= 5
        seen = []
        while len(desk.handed) < 40:
            seen.append(len(desk.handed))
            await asyncio.sleep(0)
        assert len(seen) >= 8
        await turns()
        assert transport.reading

    run(scenario)


def test_a_connection_there_is_no_room_for_is_cut_off() -> None:
    async def scenario(desk: RequestSink, _: Transport, __: Connection) -> None:
        desk.room = False
        transport = Transport()
        late = Connection(desk, 1_000)
        late.connection_made(cast(asyncio.Transport, transport))
        assert transport.aborted
        late.data_received(metadata(1))
        assert desk.handed == []

    run(scenario)
