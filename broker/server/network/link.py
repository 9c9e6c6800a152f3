"""Connections to other nodes, one per (destination, channel): a parked fetch must not hold up a heartbeat.

A request is answered, or fails once: refused, cut, or not answered in its time. After a time-out the whole
connection goes, since a late answer on it could be taken for another's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from wrackline.broker.model.effects import Send
from wrackline.broker.model.messages.requests import Response
from wrackline.broker.model.types import Endpoint
from wrackline.broker.server.network.connection import tune
from wrackline.broker.wire import proof
from wrackline.broker.wire.codec import Codec, correlation_of
from wrackline.broker.wire.framing import FrameReader
from wrackline.broker.wire.schema import WireError

_LOG = logging.getLogger("broker.link")

_STOPPING = "stopping"

OnResponse = Callable[[Send, Response], None]
OnFailure = Callable[[Send, str], None]


@dataclass(slots=True)
class _Asked:
    send: Send
    timer: asyncio.TimerHandle


class Link(asyncio.Protocol):
    """Connects when there is something to send, and again after a failure when there is something new."""

    def __init__(
        self,
        name: str,
        codec: Codec,
        client_id: str,
        *,
        connect_timeout_s: float,
        max_frame_bytes: int,
        on_response: OnResponse,
        on_failure: OnFailure,
    ) -> None:
        self._name = name
        self._codec = codec
        self._client_id = client_id
        self._connect_timeout_s = connect_timeout_s
        self._max_frame_bytes = max_frame_bytes
        self._on_response = on_response
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._endpoint: Endpoint | None = None
        self._transport: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._reader = FrameReader(max_frame_bytes)
        self._waiting: list[bytes] = []
        self._proved = False
        """Our proof went ahead on this connection, also where nobody waited for it any more."""
        self._asked: dict[int, _Asked] = {}
        self._correlation = 0
        self._last_failure: str | None = None
        """Told once until an answer comes again: a node that is down is asked many times a second."""

    # --- sending ---------------------------------------------------------------------------------------

    def send(self, request: Send, endpoint: Endpoint) -> None:
        if self._endpoint is not None and (self._endpoint.host, self._endpoint.port) != (
            endpoint.host,
            endpoint.port,
        ):
            self._drop("the node has moved")
        self._endpoint = endpoint
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        correlation = self._correlation
        timer = self._loop.call_later(request.timeout_ms / 1000, self._timed_out, correlation)
        self._asked[correlation] = _Asked(request, timer)
        frame = self._codec.encode_request(correlation, self._client_id, request.request)
        if self._transport is not None:
            try:
                self._transport.write(frame if self._proved else self._codec.greeting() + frame)
                self._proved = True
            except RuntimeError as closed:
                # uvloop: an attempt to connect that is cancelled in the moment it comes about leaves one
                # behind that is closed, and neither says so nor tells its protocol.
                self._drop(f"connection lost: {closed}")
            return
        self._waiting.append(frame)
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._connect(endpoint))

    async def _connect(self, endpoint: Endpoint) -> None:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await self._loop.create_connection(lambda: self, endpoint.host, endpoint.port)
        except TimeoutError:
            self._drop(f"no connection to {endpoint.host}:{endpoint.port} in {self._connect_timeout_s} s")
        except OSError as failure:
            self._drop(f"cannot connect to {endpoint.host}:{endpoint.port}: {failure.strerror or failure}")
        finally:
            if self._connecting is asyncio.current_task():
                self._connecting = None
        if self._waiting and self._transport is None and self._connecting is None and self._endpoint:
            # Lost again before this task came to its end, and something was sent in between.
            self._connecting = self._loop.create_task(self._connect(self._endpoint))

    # --- asyncio.Protocol ------------------------------------------------------------------------------

    def connection_made(self, base: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by shape, not by inheritance.
        transport = cast(asyncio.Transport, base)
        if self._connecting is None:
            transport.abort()
            return
        tune(transport)
        self._transport = transport
        self._reader = FrameReader(self._max_frame_bytes)
        waiting, self._waiting = self._waiting, []
        self._proved = bool(waiting)
        if waiting:
            transport.writelines([self._codec.greeting(), *waiting])

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                correlation = correlation_of(frame)
                if correlation == proof.CORRELATION and proof.refused(frame):
                    self._drop("it does not take our proof that we are of the cluster: has it our secret?")
                    return
                asked = self._asked.pop(correlation, None)
                if asked is None:
                    continue
                asked.timer.cancel()
                self._respond(asked.send, frame)
        except WireError as error:
            self._drop(f"not an answer: {error}")

    def _respond(self, send: Send, frame: bytes) -> None:
        try:
            response = self._codec.decode_response(frame, send.request)
        except WireError as error:
            self._on_failure(send, f"not an answer: {error}")
            raise
        if self._last_failure is not None:
            _LOG.info("%s: answers again", self._name)
            self._last_failure = None
        self._on_response(send, response)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._drop(f"connection lost: {exc}" if exc else "the other side closed the connection")

    # --- failing ---------------------------------------------------------------------------------------

    def _timed_out(self, correlation: int) -> None:
        asked = self._asked.get(correlation)
        if asked is not None:
            kind = type(asked.send.request).__name__
            self._drop(f"no answer to {kind} in {asked.send.timeout_ms} ms")

    def _drop(self, reason: str) -> None:
        """Give the connection up; whatever was asked on it fails."""
        transport, self._transport = self._transport, None
        connecting, self._connecting = self._connecting, None
        if transport is not None:
            transport.set_protocol(asyncio.Protocol())
            transport.abort()
        if connecting is not None and connecting is not asyncio.current_task():
            connecting.cancel()
        self._waiting.clear()
        asked, self._asked = self._asked, {}
        if asked and reason not in (self._last_failure, _STOPPING):
            _LOG.info("%s: %s", self._name, reason)
            self._last_failure = reason
        for item in asked.values():
            item.timer.cancel()
            self._on_failure(item.send, reason)

    def close(self) -> None:
        self._on_failure = lambda _send, _reason: None
        self._drop(_STOPPING)
