"""A whole cluster in one thread: real Broker and Controller objects, virtual time, a network one can tamper
with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any
from uuid import UUID

from tests.broker.core.disk import Disk
from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.defects import apply
from wrackline.broker.model import batch
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
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
    Boot,
    Event,
    Flushed,
    LogsClosed,
    RequestReceived,
    ResponseReceived,
    SendFailed,
    StopRequested,
    TimerFired,
)
from wrackline.broker.model.messages import (
    FetchResponse,
    ListOffsetsResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResult,
    Request,
    Response,
)
from wrackline.broker.model.metadata_messages import CreateTopicsRequest, NewTopic
from wrackline.broker.model.types import METADATA, Endpoint, FlushMode, LogSlice, NodeId, TopicPartition
from wrackline.broker.rules.profile import profile

CONTROLLER = 101
CLIENT = 0
CLUSTER_ID = "core-tests"
T = TopicPartition("t", 0)
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


class Cluster:
    def __init__(
        self,
        *,
        brokers: Iterable[NodeId] = (1, 2, 3),
        min_isr: int = 2,
        defects: Sequence[str] = (),
        start: bool = True,
        session_timeout_ms: int = 2_000,
        **changes: object,
    ) -> None:
        self.now = 1_000.0
        self.nodes = {node: Node(node) for node in (CONTROLLER, *brokers)}
        self.rules = apply(profile("kip966"), defects)
        self.traces: list[tuple[float, NodeId, Trace]] = []
        self.cuts: set[tuple[NodeId, NodeId]] = set()
        self.holds: list[Tamper] = []
        self.held: list[Message] = []
        self.flushing = True
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._seq = 0
        self._routes: dict[int, tuple[NodeId, int, int, Call | None]] = {}
        """Request id -> (asker, its life, correlation, call of a client)."""
        self._open: set[tuple[NodeId, int, int]] = set()
        """(asker, its life, correlation) of requests not answered yet."""
        endpoints = (Endpoint(CONTROLLER, "c", 9093),)
        self.controller_config = ControllerConfig(
            CONTROLLER,
            CLUSTER_ID,
            "c",
            9093,
            endpoints,
            min_insync_replicas=min_isr,
            session_timeout_ms=session_timeout_ms,
        )
        settings: dict[str, Any] = {
            "heartbeat_interval_ms": 200,
            "replica_lag_time_max_ms": 1_000,
            "replica_fetch_wait_max_ms": 100,
            "replica_fetch_backoff_ms": 100,
            "high_watermark_checkpoint_interval_ms": 500,
            "flush_mode": FlushMode.ON_ROLL,
            **changes,
        }
        self.broker_config = {
            node: BrokerConfig(node, CLUSTER_ID, f"b{node}", 9092, endpoints, **settings) for node in brokers
        }
        if start:
            for node in self.nodes:
                self.boot(node)
            self.until(lambda: self.unfenced() == set(self.broker_config))

    # --- what there is -------------------------------------------------------------------------------------

    @property
    def controller(self) -> Controller:
        core = self.nodes[CONTROLLER].core
        assert isinstance(core, Controller)
        return core

    def broker(self, node: NodeId) -> Broker:
        core = self.nodes[node].core
        assert isinstance(core, Broker)
        return core

    def replica(self, node: NodeId, tp: TopicPartition = T) -> Replica:
        replica = self.broker(node).replica(tp)
        assert replica is not None
        return replica

    def values(self, node: NodeId, tp: TopicPartition = T) -> list[bytes]:
        return self.nodes[node].disk.logs[tp].values()

    def unfenced(self) -> set[NodeId]:
        return {broker.id for broker in self.controller.committed.brokers.values() if not broker.fenced}

    def leader(self, tp: TopicPartition = T) -> NodeId:
        partition = self.controller.committed.partition(tp)
        assert partition is not None
        return partition.leader

    def isr(self, tp: TopicPartition = T) -> set[NodeId]:
        partition = self.controller.committed.partition(tp)
        assert partition is not None
        return set(partition.isr)

    def traced(self, kind: str, node: NodeId | None = None) -> list[dict[str, Any]]:
        return [
            dict(trace.fields)
            for _, at, trace in self.traces
            if trace.kind == kind and (node is None or at == node)
        ]

    # --- time ----------------------------------------------------------------------------------------------

    def _at(self, when: float, what: Callable[[], None]) -> None:
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

    # --- nodes ---------------------------------------------------------------------------------------------

    def boot(self, node: NodeId) -> None:
        runtime = self.nodes[node]
        runtime.life += 1
        runtime.timers, runtime.paused, runtime.exits = {}, None, []
        previous, runtime.disk.clean_epoch = runtime.disk.clean_epoch, -1
        logs = runtime.disk.recovered()
        metadata = tuple(data for _, data in runtime.disk.logs[METADATA].batches) if METADATA in logs else ()
        if node == CONTROLLER:
            runtime.core = Controller(self.controller_config, self.rules)
        else:
            runtime.core = Broker(self.broker_config[node], self.rules)
        incarnation = UUID(int=node * 1_000 + runtime.life)
        quorum_state = runtime.disk.quorum_state
        self._handle(node, Boot(incarnation, logs, metadata, previous, quorum_state))

    def kill(self, node: NodeId) -> None:
        """kill -9: everything appended stays."""
        runtime = self.nodes[node]
        runtime.core = None
        for key in [key for key in self._open if key[0] == node]:
            self._open.discard(key)

    def power(self, node: NodeId, keep: dict[TopicPartition, int] | None = None) -> None:
        self.kill(node)
        self.nodes[node].disk.lose_power(keep or {})

    def stop(self, node: NodeId) -> None:
        self._handle(node, StopRequested())

    def fence(self, node: NodeId) -> None:
        """Cut off from the controller until its session has ended."""
        self.cut(node, CONTROLLER)
        self.until(lambda: self.controller.committed.brokers[node].fenced)

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
            self._at(self.now + LATENCY_MS, message.deliver)

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
                    self._at(self.now + FLUSH_MS, self._alive(runtime, lambda: self._flushed(node, effect)))
            case SetTimer():
                assert effect.at_ms >= self.now - 1e-6, f"timer {effect.key} in the past"
                self._seq += 1
                ticket = runtime.timers[effect.key] = self._seq
                self._at(effect.at_ms, self._alive(runtime, lambda: self._fire(runtime, effect.key, ticket)))
            case CancelTimer():
                runtime.timers.pop(effect.key, None)
            case Trace():
                self.traces.append((self.now, node, effect))
            case Exit():
                runtime.exits.append(effect)
                self.kill(node)
            case CloseLogs():
                runtime.disk.carry_out(effect)
                self._at(self.now + FLUSH_MS, self._alive(runtime, lambda: self._handle(node, LogsClosed())))
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
        self._at(self.now + LATENCY_MS, deliver)

    def _send(self, runtime: Node, effect: Send) -> None:
        source, life = runtime.id, runtime.life
        key = (source, life, effect.correlation)
        self._open.add(key)
        self._at(self.now + effect.timeout_ms, lambda: self._fail(key, effect, "timed out"))

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

    # --- clients -------------------------------------------------------------------------------------------

    def ask(self, node: NodeId, request: Request) -> Call:
        """A client's request, delivered now; time must pass for an answer that waits."""
        call = Call(request)
        self._seq += 1
        request_id = self._seq
        self._routes[request_id] = (CLIENT, 0, 0, call)
        self._handle(node, RequestReceived(request_id, request))
        return call

    def _finish_call(self, request_id: int, response: Response | None) -> None:
        call = self._routes.pop(request_id)[3]
        assert call is not None
        call.response, call.done, call.at_ms = response, True, self.now

    def answer(self, node: NodeId, request: Request, within_ms: float = 20_000) -> Any:
        call = self.ask(node, request)
        self.until(lambda: call.done, within_ms)
        return call.response

    def produce(
        self,
        node: NodeId,
        *values: bytes,
        acks: int = -1,
        tp: TopicPartition = T,
        timeout_ms: int = 10_000,
        data: bytes | None = None,
    ) -> Call:
        records = batch.build(values, 0, -1, int(self.now)) if data is None else data
        return self.ask(node, ProduceRequest(acks, timeout_ms, (ProducePartition(tp, records),)))

    def produced(self, node: NodeId, *values: bytes, acks: int = -1, **more: Any) -> ProduceResult:
        call = self.produce(node, *values, acks=acks, **more)
        self.until(lambda: call.done)
        result = call.response.partitions[0]
        assert isinstance(result, ProduceResult)
        return result

    def create_topic(
        self, name: str = "t", *replicas: Sequence[NodeId], configs: dict[str, str] | None = None
    ) -> None:
        """One partition per list of replicas; the first of each leads."""
        assignments = {number: tuple(nodes) for number, nodes in enumerate(replicas or ((1, 2, 3),))}
        topic = NewTopic(name, assignments=assignments, configs=configs or {})
        anyone = next(node for node in self.broker_config if self.nodes[node].core is not None)
        response = self.answer(anyone, CreateTopicsRequest((topic,), 10_000))
        assert response.topics[0].error.value == 0, response
        self.until(
            lambda: all(
                self.broker(node).replica(TopicPartition(name, number)) is not None
                for number, nodes in assignments.items()
                for node in nodes
                if self.nodes[node].core is not None
            )
        )
