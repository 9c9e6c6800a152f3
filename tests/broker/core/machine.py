"""What a cluster of real brokers and controllers runs on: virtual time, disks, a network to tamper with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from tests.broker.core.disk import Disk
from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.effects import (
    CancelTimer,
    CloseLogs,
    Effect,
    Exit,
    Flush,
    NoReply,
    Reply,
    Send,
    SetTimer,
    Trace,
)
from wrackline.broker.model.events import (
    Event,
    Flushed,
    LogsClosed,
    RequestReceived,
    ResponseReceived,
    SendFailed,
    TimerFired,
)
from wrackline.broker.model.messages.requests import FetchResponse, ListOffsetsResponse, Request, Response
from wrackline.broker.model.types import METADATA, LogSlice, NodeId

LATENCY_MS = 1.0
FLUSH_MS = 2.0


@dataclass
class Call:
    """A client's request and what came of it."""

    request: Request
    response: Any = None
    done: bool = False
    at_ms: float = -1.0


@dataclass
class Message:
    source: NodeId
    destination: NodeId
    body: Request | Response | None
    deliver: Callable[[], None]


Tamper = Callable[[Message], bool]


@dataclass
class Node:
    id: NodeId
    disk: Disk = field(default_factory=Disk)
    core: Broker | Controller | None = None
    timers: dict[str, int] = field(default_factory=dict)
    life: int = 0
    exits: list[Exit] = field(default_factory=list)
    paused: list[Event] | None = None


class Machine:
    """Processes on a network, one event at a time."""

    def __init__(self, nodes: Iterable[NodeId]) -> None:
        self.now = 1_000.0
        self.nodes = {node: Node(node) for node in nodes}
        self.traces: list[tuple[float, NodeId, Trace]] = []
        self.cuts: set[tuple[NodeId, NodeId]] = set()
        self.holds: list[Tamper] = []
        self.held: list[Message] = []
        self.flushing = True
        self.latency: Callable[[], float] = lambda: LATENCY_MS
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._seq = 0
        self._routes: dict[int, tuple[NodeId, int, int, Call | None]] = {}
        """Request id -> (asker, its life, correlation, call of a client)."""
        self._open: set[tuple[NodeId, int, int]] = set()
        """(asker, its life, correlation) of requests not answered yet."""

    # --- time ----------------------------------------------------------------------------------------------

    def at(self, when: float, what: Callable[[], None]) -> None:
        self._seq += 1
        heappush(self._events, (when, self._seq, what))

    def step(self) -> None:
        when, _, what = heappop(self._events)
        self.now = max(self.now, when)
        what()

    def run(self, for_ms: float) -> None:
        end = self.now + for_ms
        while self._events and self._events[0][0] <= end:
            self.step()
        self.now = end

    def until(self, condition: Callable[[], bool], within_ms: float = 20_000) -> None:
        """Raises AssertionError when it does not come to pass."""
        end = self.now + within_ms
        while not condition():
            due = bool(self._events) and self._events[0][0] <= end
            assert due, f"not within {within_ms} ms: {condition}"
            self.step()

    # --- processes and links ---------------------------------------------------------------------------

    def kill(self, node: NodeId) -> None:
        """kill -9: everything appended stays."""
        runtime = self.nodes[node]
        runtime.core = None
        for key in [key for key in self._open if key[0] == node]:
            self._open.discard(key)

    def cut(self, a: NodeId, b: NodeId) -> None:
        self.cuts |= {(a, b), (b, a)}

    def heal(self) -> None:
        self.cuts.clear()

    def hold(self, which: Tamper) -> None:
        """Messages for which this is true wait in ``held``."""
        self.holds.append(which)

    def release(self) -> None:
        self.holds.clear()
        held, self.held = self.held, []
        for message in held:
            self.at(self.now + self.latency(), message.deliver)

    def drop_held(self) -> None:
        self.holds.clear()
        self.held.clear()

    # --- carrying out effects ------------------------------------------------------------------------------

    def _handle(self, node: NodeId, event: Event) -> None:
        runtime = self.nodes[node]
        if runtime.core is None:
            return
        for effect in runtime.core.handle(event, self.now):
            if runtime.core is None:
                return
            self._carry_out(runtime, effect)

    def _carry_out(self, runtime: Node, effect: Effect) -> None:
        node = runtime.id
        match effect:
            case Send():
                self._send(runtime, effect)
            case Reply():
                self._reply(runtime, effect)
            case NoReply():
                self._finish_call(effect.request_id, None)
            case Flush():
                if self.flushing or effect.tp == METADATA:
                    self.at(self.now + FLUSH_MS, self._alive(runtime, lambda: self._flushed(node, effect)))
            case SetTimer():
                assert effect.at_ms >= self.now - 1e-6, f"timer {effect.key} in the past"
                self._seq += 1
                ticket = runtime.timers[effect.key] = self._seq
                self.at(effect.at_ms, self._alive(runtime, lambda: self._fire(runtime, effect.key, ticket)))
            case CancelTimer():
                runtime.timers.pop(effect.key, None)
            case Trace():
                self.traces.append((self.now, node, effect))
            case Exit():
                runtime.exits.append(effect)
                self.kill(node)
            case CloseLogs():
                runtime.disk.carry_out(effect)
                self.at(self.now + FLUSH_MS, self._alive(runtime, lambda: self._handle(node, LogsClosed())))
            case _:
                runtime.disk.carry_out(effect)

    def _alive(self, runtime: Node, what: Callable[[], None]) -> Callable[[], None]:
        """``what``, unless the process has ended by then."""
        life = runtime.life

        def run() -> None:
            if runtime.core is not None and runtime.life == life:
                what()

        return run

    def _fire(self, runtime: Node, key: str, ticket: int) -> None:
        if runtime.timers.get(key) == ticket:
            del runtime.timers[key]
            self._handle(runtime.id, TimerFired(key))

    def _flushed(self, node: NodeId, effect: Flush) -> None:
        log = self.nodes[node].disk.logs.get(effect.tp)
        if log is not None:
            log.flushed = max(log.flushed, min(effect.upto, log.leo))
            self._handle(node, Flushed(effect.tp, effect.upto))

    # --- network -------------------------------------------------------------------------------------------

    def _post(
        self, source: NodeId, destination: NodeId, body: Request | Response, deliver: Callable[[], None]
    ) -> None:
        message = Message(source, destination, body, deliver)
        if (source, destination) in self.cuts:
            return
        if any(hold(message) for hold in self.holds):
            self.held.append(message)
            return
        self.at(self.now + self.latency(), deliver)

    def _send(self, runtime: Node, effect: Send) -> None:
        source, life = runtime.id, runtime.life
        key = (source, life, effect.correlation)
        self._open.add(key)
        self.at(self.now + effect.timeout_ms, lambda: self._fail(key, effect, "timed out"))

        def deliver() -> None:
            target = self.nodes[effect.destination]
            if target.core is None:
                self._fail(key, effect, "refused")
                return
            self._seq += 1
            self._routes[self._seq] = (source, life, effect.correlation, None)
            self._handle(target.id, RequestReceived(self._seq, effect.request))

        self._post(source, effect.destination, effect.request, deliver)

    def _fail(self, key: tuple[NodeId, int, int], effect: Send, reason: str) -> None:
        if key in self._open:
            self._open.discard(key)
            self._handle(key[0], SendFailed(effect.correlation, effect.destination, reason))

    def _reply(self, runtime: Node, effect: Reply) -> None:
        assert effect.request_id in self._routes, f"{effect.request_id} is answered twice"
        response = self._filled(runtime, effect.response)
        asker, life, correlation, call = self._routes[effect.request_id]
        if call is not None:
            self._finish_call(effect.request_id, response)
            return
        del self._routes[effect.request_id]
        key = (asker, life, correlation)

        def deliver() -> None:
            if key in self._open:
                self._open.discard(key)
                self._handle(asker, ResponseReceived(correlation, runtime.id, response))

        self._post(runtime.id, asker, response, deliver)

    def _filled(self, runtime: Node, response: Response) -> Response:
        """With the bytes that slices and lookups stand for."""
        if isinstance(response, FetchResponse):
            parts = [
                replace(part, records=runtime.disk.read(part.records))
                if isinstance(part.records, LogSlice)
                else part
                for part in response.partitions
            ]
            return replace(response, partitions=tuple(parts))
        if isinstance(response, ListOffsetsResponse):
            offsets = []
            for part in response.partitions:
                if part.lookup is not None:
                    timestamp, offset = runtime.disk.find(part.lookup)
                    part = replace(part, timestamp=timestamp, offset=offset, lookup=None)
                offsets.append(part)
            return replace(response, partitions=tuple(offsets))
        return response

    def _finish_call(self, request_id: int, response: Response | None) -> None:
        call = self._routes.pop(request_id)[3]
        assert call is not None
        call.response, call.done, call.at_ms = response, True, self.now
