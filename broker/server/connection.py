"""One client's connection: frames in, replies out in the order of the requests (Kafka's own promise).

Requests are handed to the core as they come, so a pipelining producer is not slowed to one request a round
trip; each holds a slot in a queue, and a finished reply leaves when every slot before it has left.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from dataclasses import dataclass
from typing import Protocol, cast

from broker.wire.codec import AnswerNow, Codec, Incoming
from broker.wire.framing import FrameReader
from broker.wire.schema import WireError

_LOG = logging.getLogger("broker.connection")
_MAX_PENDING = 256
"""Requests of one connection the core may hold at once; then reading stops until some are answered."""


@dataclass(slots=True)
class Slot:
    """A request's place in the line."""

    connection: Connection
    incoming: Incoming | None = None
    request_id: int = -1
    frame: bytes | None = None
    """The reply; b"" when the request has none."""


class Desk(Protocol):
    """Where requests are handed in."""

    codec: Codec

    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection, unanswered: list[Slot]) -> None: ...
    def received(self, slot: Slot, client_host: str) -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, desk: Desk, max_frame_bytes: int) -> None:
        self._desk = desk
        self._reader = FrameReader(max_frame_bytes)
        self._slots: deque[Slot] = deque()
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._full = False
        self._ended = False
        self.peer = "?"

    # --- asyncio.Protocol ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by shape, not by inheritance.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        tune(transport)
        self._desk.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        try:
            for frame in self._reader.feed(data):
                if not self._request(frame):
                    return
        except WireError as wrong:
            self.hang_up(str(wrong))
        self._throttle()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ended and self._reader.pending_bytes:
            _LOG.warning("%s: gone in the middle of a frame (%s)", self.peer, exc or "end of stream")
        self._ended = True
        self._transport = None
        unanswered = [slot for slot in self._slots if slot.frame is None]
        self._slots.clear()
        self._desk.closed(self, unanswered)

    def pause_writing(self) -> None:
        self._full = True
        self._throttle()

    def resume_writing(self) -> None:
        self._full = False
        self._throttle()

    # --- requests and replies --------------------------------------------------------------------------

    def _request(self, frame: bytes) -> bool:
        """False when the connection was closed over it."""
        decoded = self._desk.codec.decode_request(frame)
        slot = Slot(self)
        self._slots.append(slot)
        if isinstance(decoded, AnswerNow):
            self.answer(slot, decoded.frame)
            return True
        slot.incoming = decoded
        self._desk.received(slot, self.peer.rpartition(":")[0])
        return not self._ended

    def answer(self, slot: Slot, frame: bytes) -> None:
        """The reply of a slot is there; it and those it held up leave."""
        slot.frame = frame
        if self._transport is None:
            return
        ready = []
        while self._slots and self._slots[0].frame is not None:
            ready.append(self._slots.popleft().frame or b"")
        if len(ready) == 1:
            self._transport.write(ready[0])
        elif ready:
            self._transport.writelines(ready)
        if self._paused:
            self._throttle()

    def _throttle(self) -> None:
        if self._transport is None or self._ended:
            return
        too_much = self._full or len(self._slots) > _MAX_PENDING
        if too_much and not self._paused:
            self._transport.pause_reading()
        elif self._paused and not too_much:
            self._transport.resume_reading()
        self._paused = too_much

    def hang_up(self, reason: str) -> None:
        """Close, saying why in one line; replies that are ready still leave."""
        if self._ended or self._transport is None:
            return
        _LOG.warning("%s: closing the connection: %s", self.peer, reason)
        self.close()

    def close(self) -> None:
        self._ended = True
        if self._transport is not None:
            self._transport.close()


def tune(transport: asyncio.BaseTransport) -> None:
    """Small frames must not wait for the acknowledgement of others; dead peers must be noticed."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
