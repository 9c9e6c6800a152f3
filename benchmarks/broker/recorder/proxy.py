"""A proxy on loopback that keeps what passes through it: requests of clients and nodes, and their answers.

A node listens on 127.0.0.2 and tells everybody 127.0.0.1, with the same port, and there the proxy is.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

HIDDEN = "127.0.0.2"
_HEADER = struct.Struct(">hhih")
_SIZE = struct.Struct(">i")
_START_S = 10


@dataclass(frozen=True, slots=True)
class Exchange:
    """Frames without their size."""

    client_id: str
    key: int
    version: int
    request: bytes
    answer: bytes


class Proxy:
    """``with Proxy(ports) as proxy:`` listens; ``exchanges`` grows, in the order of the answers."""

    def __init__(self, ports: Iterable[int]) -> None:
        self._ports = list(ports)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.exchanges: list[Exchange] = []

    def __enter__(self) -> Proxy:
        self._thread.start()
        for port in self._ports:
            listening = asyncio.start_server(partial(self._serve, port=port), "127.0.0.1", port)
            asyncio.run_coroutine_threadsafe(listening, self._loop).result(_START_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_S)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter, port: int) -> None:
        try:
            node, to_node = await asyncio.open_connection(HIDDEN, port)
        except OSError:
            to_client.close()
            return
        asked: dict[int, bytes] = {}
        ways = {
            asyncio.ensure_future(self._pass(client, to_node, asked, requests=True)),
            asyncio.ensure_future(self._pass(node, to_client, asked, requests=False)),
        }
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        to_node.close()
        to_client.close()

    async def _pass(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        asked: dict[int, bytes],
        *,
        requests: bool,
    ) -> None:
        try:
            while True:
                size = await source.readexactly(_SIZE.size)
                frame = await source.readexactly(_SIZE.unpack(size)[0])
                if requests:
                    asked[_HEADER.unpack_from(frame)[2]] = frame
                else:
                    self._keep(asked.pop(_SIZE.unpack_from(frame)[0], b""), frame)
                target.write(size + frame)
                await target.drain()
        except (asyncio.IncompleteReadError, OSError):
            return

    def _keep(self, request: bytes, answer: bytes) -> None:
        if len(request) < _HEADER.size:
            return
        key, version, _, length = _HEADER.unpack_from(request)
        client_id = request[_HEADER.size : _HEADER.size + max(length, 0)].decode(errors="replace")
        self.exchanges.append(Exchange(client_id, key, version, request, answer))
