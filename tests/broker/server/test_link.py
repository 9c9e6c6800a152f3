"""A link to another node fails its requests when the connection ends, and then connects anew."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from wrackline.broker.model.effects import Send
from wrackline.broker.model.messages.metadata import DeleteTopicsRequest
from wrackline.broker.model.types import Endpoint
from wrackline.broker.server.network.link import Link
from wrackline.broker.wire.codec import Codec
from wrackline.broker.wire.proof import ClusterSecret


class Closed(asyncio.Transport):
    """As uvloop's are when a cancelled attempt has closed them."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass

    def abort(self) -> None:
        pass

    def write(self, data: bytes | bytearray | memoryview) -> None:
        del data
        raise RuntimeError("unable to perform operation; the handler is closed")


def test_writing_to_a_closed_connection_fails_its_requests_and_the_next_connects_anew() -> None:
    """Clients whose DeleteTopics allowed a millisecond made many of these, and one of them ended the
    broker."""

    async def send_on_a_closed_one() -> bytes:
        failed: list[tuple[Send, str]] = []
        came = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.set_result(await reader.readexactly(4))
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            link = Link(
                "node 2",
                Codec(names=lambda _: None),
                "node-1",
                connect_timeout_s=5,
                max_frame_bytes=1_000,
                on_response=lambda _send, _response: None,
                on_failure=lambda send, reason: failed.append((send, reason)),
            )
            link._connecting = asyncio.create_task(asyncio.sleep(0))
            link.connection_made(Closed())
            link._connecting = None
            request, there = DeleteTopicsRequest(("t",), 1), Endpoint(2, "127.0.0.1", port)
            link.send(Send(1, 2, "forward", request, 5_000), there)
            assert [send.correlation for send, _ in failed] == [1]
            link.send(Send(2, 2, "forward", request, 5_000), there)
            async with asyncio.timeout(10):
                head = await came
            link.close()
            return bytes(head)

    assert len(asyncio.run(send_on_a_closed_one())) == 4


class Open(Closed):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.written += b"".join(map(bytes, list_of_data))


@pytest.mark.parametrize("waits", [True, False], ids=["somebody waits", "nobody waits any more"])
def test_the_proof_goes_ahead_of_the_first_request_of_every_connection_once(waits: bool) -> None:
    async def written() -> tuple[bytes, bytes]:
        codec = Codec(names=lambda _: None, secret=ClusterSecret(b"secret", "c"))
        link = Link(
            "node 2",
            codec,
            "node-1",
            connect_timeout_s=5,
            max_frame_bytes=1_000,
            on_response=lambda _send, _response: None,
            on_failure=lambda _send, _reason: None,
        )
        request, there = DeleteTopicsRequest(("t",), 1), Endpoint(2, "127.0.0.1", 1)
        link._connecting = asyncio.create_task(asyncio.sleep(60))
        if waits:
            link.send(Send(1, 2, "forward", request, 5_000), there)
        transport = Open()
        link.connection_made(transport)
        for number in (2, 3):
            link.send(Send(number, 2, "forward", request, 5_000), there)
        link.close()
        return codec.greeting(), transport.written

    greeting, sent = asyncio.run(written())
    assert greeting
    assert sent.startswith(greeting)
    assert sent.count(greeting) == 1
