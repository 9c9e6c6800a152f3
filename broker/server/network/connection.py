"""One client's connection: frames in, replies out in the order of the requests (Kafka's own promise).

Requests are handed to the core as they come, so a pipelining producer is not slowed to one request a round
trip; each holds a slot in a queue, and a finished reply leaves when every slot before it has left.

What one connection can make the node hold is bounded: before each request it is looked at whether the client
reads its answers, how many requests are unanswered, and how many bytes they and the answers that wait for
them have. A client that goes on sending is then not read further. Nothing is taken up behind a fetch, whose
answer is the largest there is, nor behind a request so large that the core may take it in pieces, which would
let a later one overtake its rest.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from dataclasses import dataclass
from typing import Protocol, cast

from wrackline.broker.core.requests.produce import PIECE_BYTES
from wrackline.broker.model.messages.requests import FetchRequest
from wrackline.broker.wire.api import Listener
from wrackline.broker.wire.codec import AnswerNow, Caller, Codec, Incoming
from wrackline.broker.wire.framing import FrameReader
from wrackline.broker.wire.schema import WireError

_LOG = logging.getLogger("broker.connection")
_MAX_PENDING = 256
"""Requests of one connection the core may hold at once; then reading stops until some are answered."""
_MAX_HELD_BYTES = 64 * 1024 * 1024
"""Of those requests and of answers that wait for others before them."""
_LARGE_BYTES = PIECE_BYTES
_TURN_S = 0.02
"""How long the requests of one connection are handed in before others have their turn."""


@dataclass(slots=True)
class PendingReply:
    """A request's place in the line."""

    connection: Connection
    incoming: Incoming | None = None
    request_id: int = -1
    size: int = 0
    """Bytes of the request, later of the reply."""
    since_s: float = 0.0
    """When the request was handed in."""
    frame: bytes | None = None
    """The reply; b"" when the request has none."""


class RequestSink(Protocol):
    """The receiver of requests."""

    codec: Codec

    def opened(self, connection: Connection) -> bool:
        """May it stay?"""
        ...

    def closed(self, connection: Connection, unanswered: list[PendingReply]) -> None: ...
    def received(self, slot: PendingReply, client_host: str) -> None: ...
    def active(self, connection: Connection) -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, desk: RequestSink, max_frame_bytes: int, listener: Listener = Listener.CLIENT) -> None:
        self._desk = desk
        self._caller = Caller(listener)
        self._reader = FrameReader(max_frame_bytes)
        self._slots: deque[PendingReply] = deque()
        self._transport: asyncio.Transport | None = None
        self._held_bytes = 0
        self._behind: PendingReply | None = None
        """An unanswered request behind which nothing is taken up."""
        self._taking = False
        self._paused = False
        self._full = False
        self._ended = False
        self._turn: asyncio.Handle | None = None
        self.peer = "?"

    # --- asyncio.Protocol ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by shape, not by inheritance.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        tune(transport)
        if not self._desk.opened(self):
            self.drop()

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        self._desk.active(self)
        if self._turn is not None or self._holds_back():
            self._reader.keep(data)
            self._pause()
        else:
            self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ended and self._reader.pending_bytes:
            _LOG.warning("%s: gone in the middle of a frame (%s)", self.peer, exc or "end of stream")
        self._ended = True
        self._transport = None
        if self._turn is not None:
            self._turn.cancel()
        unanswered = [slot for slot in self._slots if slot.frame is None]
        self._slots.clear()
        self._desk.closed(self, unanswered)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._go_on()

    # --- requests and replies --------------------------------------------------------------------------

    def _take(self, data: bytes = b"") -> None:
        """Hand in one request after the other, for as long as nothing speaks against it and the turn
        lasts."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _TURN_S
        frames = self._reader.feed(data)
        self._taking = True
        try:
            for frame in frames:
                if not self._request(frame):
                    return
                if self._holds_back():
                    break
                if loop.time() >= until:
                    self._pause()
                    self._turn = loop.call_soon(self._next_turn)
                    break
        except WireError as error:
            self.hang_up(str(error))
        finally:
            self._taking = False
            frames.close()

    def _next_turn(self) -> None:
        self._turn = None
        if not self._ended:
            self._take()
            self._read_on()

    def _holds_back(self) -> bool:
        return (
            self._full
            or self._behind is not None
            or len(self._slots) >= _MAX_PENDING
            or self._held_bytes > _MAX_HELD_BYTES
        )

    def _go_on(self) -> None:
        """An answer left: take up what was kept, not in the middle of an event but right after it."""
        if self._turn is None and not (self._taking or self._ended or self._holds_back()):
            if self._reader.pending_bytes:
                self._turn = asyncio.get_running_loop().call_soon(self._next_turn)
            else:
                self._read_on()

    def _pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _read_on(self) -> None:
        if self._paused and self._turn is None and self._transport is not None and not self._holds_back():
            self._paused = False
            self._transport.resume_reading()

    def _request(self, frame: bytes) -> bool:
        """False when the connection was closed over it."""
        decoded = self._desk.codec.decode_request(frame, self._caller)
        slot = PendingReply(self, size=len(frame))
        self._slots.append(slot)
        self._held_bytes += slot.size
        if isinstance(decoded, AnswerNow):
            self.answer(slot, decoded.frame)
            if decoded.node is not None:
                self._caller = Caller(self._caller.listener, decoded.node)
            if decoded.refusal is not None:
                self.hang_up(decoded.refusal)
            return not self._ended
        slot.incoming = decoded
        if slot.size > _LARGE_BYTES or isinstance(decoded.request, FetchRequest):
            self._behind = slot
        self._desk.received(slot, self.peer.rpartition(":")[0])
        return not self._ended

    def answer(self, slot: PendingReply, frame: bytes) -> None:
        """The reply of a slot is there; it and those it held up leave."""
        slot.frame = frame
        self._held_bytes += len(frame) - slot.size
        slot.size = len(frame)
        if slot is self._behind:
            self._behind = None
        if self._transport is None:
            return
        ready = []
        while self._slots and (first := self._slots[0].frame) is not None:
            self._held_bytes -= len(first)
            self._slots.popleft()
            ready.append(first)
        if len(ready) == 1:
            self._transport.write(ready[0])
        elif ready:
            self._transport.writelines(ready)
        self._desk.active(self)
        if self._paused or self._reader.pending_bytes:
            self._go_on()

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

    def drop(self) -> None:
        """Close at once, whatever is under way."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()


def tune(transport: asyncio.BaseTransport) -> None:
    """Small frames must not wait for the acknowledgement of others; dead peers must be noticed."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
