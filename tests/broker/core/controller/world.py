"""Real brokers and a real controller in virtual time: a network that delays and cuts, disks that forget.

Everything random comes from one seed. Latencies are a few milliseconds; each event at a node is handled at
its own instant, so requests, answers and flushes overtake each other as they do in life.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from uuid import UUID

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model import effects as fx
from wrackline.broker.model.batches import batch
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
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
from wrackline.broker.model.messages.requests import FetchResponse, FetchResult, Request, Response
from wrackline.broker.model.types import (
    METADATA,
    Endpoint,
    EpochEntry,
    LogSlice,
    QuorumState,
    RecoveredLog,
    TopicPartition,
)
from wrackline.broker.rules.profile import Rules

CONTROLLER = 101
CLIENT = 0
CLUSTER = "world"


@dataclass
class Log:
    topic_id: UUID
    batches: list[bytes] = field(default_factory=list)
    flushed: int = 0
    epochs: tuple[EpochEntry, ...] = ()

    ends: list[int] = field(default_factory=list)
    """Of each batch, exclusive."""

    @property
    def leo(self) -> int:
        return self.ends[-1] if self.ends else 0

    def append(self, batches: Iterable[bytes]) -> None:
        for data in batches:
            header = batch.parse_header(data)
            assert header.base_offset == self.leo, (
                f"batch at {header.base_offset}, the log ends at {self.leo}"
            )
            self.batches.append(data)
            self.ends.append(header.last_offset + 1)

    def truncate(self, to_offset: int) -> None:
        kept = bisect_right(self.ends, to_offset)
        del self.batches[kept:], self.ends[kept:]
        self.flushed = min(self.flushed, self.leo)

    def read(self, part: LogSlice) -> bytes:
        out = b""
        for at in range(bisect_right(self.ends, part.start_offset), len(self.batches)):
            too_much = len(out) + len(self.batches[at]) > part.max_bytes and (out or not part.at_least_one)
            if self.ends[at] > part.end_offset or too_much:
                break
            out += self.batches[at]
        return out

    def values(self) -> list[tuple[int, int, bytes]]:
        """(offset, leader epoch, value) of every record."""
        return [
            (offset, header.leader_epoch, value)
            for data in self.batches
            for header, whole in batch.split(data)
            for offset, value in batch.values_of(header, whole)
        ]

    def recovered(self, high_watermark: int) -> RecoveredLog:
        epochs = tuple(e for e in self.epochs if e.start_offset <= self.leo)
        hw = min(high_watermark, self.leo)
        return RecoveredLog(self.topic_id, 0, self.leo, self.flushed, hw, epochs)


@dataclass
class Node:
    id: int
    core: Broker | Controller | None = None
    life: int = 0
    """Events for an earlier life never arrive."""
    logs: dict[TopicPartition, Log] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    clean_epoch: int = -1
    quorum_state: QuorumState | None = None
    timers: dict[str, int] = field(default_factory=dict)
    """Key to the number of its latest setting."""
    exits: list[fx.Exit] = field(default_factory=list)


class World:
    def __init__(self, seed: int = 0, *, rules: Rules | None = None, **controller: object) -> None:
        self.random = random.Random(seed)
        self.rules = rules or Rules()
        self.now_ms = 0.0
        self.nodes = {n: Node(n) for n in (1, 2, 3, CONTROLLER)}
        self.cuts: set[frozenset[int]] = set()
        self.traces: list[tuple[float, int, fx.Trace]] = []
        self._controller = controller
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = 0
        self._asked: dict[int, tuple[int, int, Callable[[Response | None], None]]] = {}
        """Request id -> (asker, its life, what it does with the answer)."""
        for node in (CONTROLLER, 1, 2, 3):
            self.start(node)

    # --- power and network ----------------------------------------------------------------------------------

    def start(self, node_id: int) -> None:
        node = self.nodes[node_id]
        assert node.core is None
        node.core = self._core(node_id)
        node.timers.clear()
        previous, node.clean_epoch = node.clean_epoch, -1
        logs = {tp: log.recovered(node.high_watermarks.get(tp, 0)) for tp, log in node.logs.items()}
        metadata = tuple(node.logs[METADATA].batches) if METADATA in node.logs else ()
        incarnation = UUID(int=self.random.getrandbits(128))
        self._handle(node, Boot(incarnation, logs, metadata, previous, node.quorum_state))

    def _core(self, node_id: int) -> Broker | Controller:
        common: dict[str, object] = {
            "node_id": node_id,
            "cluster_id": CLUSTER,
            "host": f"n{node_id}",
            "port": 9092,
            "controllers": (Endpoint(CONTROLLER, "c1", 9093),),
        }
        if node_id == CONTROLLER:
            given = {"session_timeout_ms": 1_000, "min_insync_replicas": 2, **self._controller}
            return Controller(ControllerConfig(**common, **given), self.rules)  # type: ignore[arg-type]
        given = {
            "heartbeat_interval_ms": 200,
            "replica_lag_time_max_ms": 1_000,
            "replica_fetch_wait_max_ms": 100,
            "replica_fetch_backoff_ms": 50,
            "request_timeout_ms": 2_000,
            "high_watermark_checkpoint_interval_ms": 500,
        }
        return Broker(BrokerConfig(replication_port=9094, **common, **given), self.rules)  # type: ignore[arg-type]

    def kill(self, node_id: int) -> None:
        node = self.nodes[node_id]
        node.core = None
        node.life += 1
        for request_id, (asker, _, _) in list(self._asked.items()):
            if asker == node_id:
                del self._asked[request_id]

    def cut_power(self, node_id: int) -> int:
        """How many records went: each log keeps what was flushed and a random part of the rest."""
        self.kill(node_id)
        lost = 0
        for log in self.nodes[node_id].logs.values():
            was = log.leo
            log.truncate(self.random.randint(min(log.flushed, was), was))
            lost += was - log.leo
        return lost

    def stop(self, node_id: int) -> None:
        self._later(0, node_id, StopRequested())

    def isolate(self, node_id: int) -> None:
        self.cuts |= {frozenset({node_id, other}) for other in self.nodes if other != node_id}

    def heal(self) -> None:
        self.cuts.clear()

    # --- time -----------------------------------------------------------------------------------------------

    def after(self, ms: float, action: Callable[[], None]) -> None:
        self._numbers += 1
        heapq.heappush(self._queue, (self.now_ms + ms, self._numbers, action))

    def run(self, ms: float) -> None:
        end = self.now_ms + ms
        while self._queue and self._queue[0][0] <= end:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
        self.now_ms = end

    def run_until(self, what: str, holds: Callable[[], bool], timeout_ms: float = 30_000) -> None:
        end = self.now_ms + timeout_ms
        while not holds():
            assert self.now_ms < end, f"{what}: not within {timeout_ms} ms; {self.describe()}"
            self.run(10)

    def describe(self) -> str:
        image = self.controller.committed
        lives = {n: "down" if node.core is None else "up" for n, node in self.nodes.items()}
        return f"{lives} {list(image.partitions())} {list(image.brokers.values())}"

    @property
    def controller(self) -> Controller:
        core = self.nodes[CONTROLLER].core
        assert isinstance(core, Controller)
        return core

    def broker(self, node_id: int) -> Broker:
        core = self.nodes[node_id].core
        assert isinstance(core, Broker)
        return core

    # --- events and effects ---------------------------------------------------------------------------------

    def _later(self, ms: float, node_id: int, event: Event) -> None:
        life = self.nodes[node_id].life

        def arrive() -> None:
            node = self.nodes[node_id]
            if node.life == life and node.core is not None:
                self._handle(node, event)

        self.after(ms, arrive)

    def _handle(self, node: Node, event: Event) -> None:
        assert node.core is not None
        for effect in node.core.handle(event, self.now_ms):
            self._carry_out(node, effect)

    def _latency(self) -> float:
        return self.random.uniform(0.2, 3.0)

    def _carry_out(self, node: Node, effect: fx.Effect) -> None:
        match effect:
            case fx.Send():
                self._send(node, effect)
            case fx.Reply():
                self._reply(node, effect)
            case fx.NoReply():
                self._asked.pop(effect.request_id, None)
            case fx.CreateLog():
                assert effect.tp not in node.logs, f"{effect.tp} created twice"
                node.logs[effect.tp] = Log(effect.topic_id)
            case fx.DeleteLog():
                del node.logs[effect.tp]
            case fx.Append():
                log = node.logs[effect.tp]
                log.append(effect.batches)
                assert log.leo == effect.end_offset
            case fx.Truncate():
                node.logs[effect.tp].truncate(effect.to_offset)
                assert node.logs[effect.tp].leo == effect.to_offset
            case fx.Flush():
                self._flush(node, effect.tp)
            case fx.WriteEpochs():
                node.logs[effect.tp].epochs = effect.entries
            case fx.WriteCheckpoint():
                if effect.kind == "high-watermark":
                    node.high_watermarks = dict(effect.offsets)
            case fx.WriteQuorumState():
                node.quorum_state = effect.state
            case fx.CloseLogs():
                for log in node.logs.values():
                    log.flushed = log.leo
                node.high_watermarks = dict(effect.high_watermarks)
                node.clean_epoch = effect.broker_epoch
                self._later(1, node.id, LogsClosed())
            case fx.SetTimer():
                self._set_timer(node, effect)
            case fx.CancelTimer():
                node.timers.pop(effect.key, None)
            case fx.ConfigureLog():
                pass
            case fx.Trace():
                self.traces.append((self.now_ms, node.id, effect))
            case fx.Exit():
                node.exits.append(effect)
                self.kill(node.id)
            case _:
                raise AssertionError(f"nobody carries out {effect}")

    def _flush(self, node: Node, tp: TopicPartition) -> None:
        upto, life = node.logs[tp].leo, node.life

        def done() -> None:
            if node.life == life and tp in node.logs:
                log = node.logs[tp]
                log.flushed = max(log.flushed, min(upto, log.leo))
                if node.core is not None:
                    self._handle(node, Flushed(tp, upto))

        self.after(self.random.uniform(0.5, 8.0), done)

    def _set_timer(self, node: Node, effect: fx.SetTimer) -> None:
        self._numbers += 1
        number = node.timers[effect.key] = self._numbers
        life = node.life

        def fire() -> None:
            if node.life == life and node.core is not None and node.timers.get(effect.key) == number:
                del node.timers[effect.key]
                self._handle(node, TimerFired(effect.key))

        self.after(max(0.0, effect.at_ms - self.now_ms), fire)

    # --- messages -------------------------------------------------------------------------------------------

    def _send(self, node: Node, send: fx.Send) -> None:
        life = node.life

        def answer(response: Response | None) -> None:
            if node.life != life:
                return
            event: Event = (
                SendFailed(send.correlation, send.destination, "timed out")
                if response is None
                else ResponseReceived(send.correlation, send.destination, response)
            )
            if node.core is not None:
                self._handle(node, event)

        self.ask(send.destination, send.request, answer, asker=node.id, timeout_ms=send.timeout_ms)

    def ask(
        self,
        node_id: int,
        request: Request,
        answer: Callable[[Response | None], None],
        *,
        asker: int = CLIENT,
        timeout_ms: float = 2_000,
    ) -> None:
        """``answer`` gets the response, or None at the timeout; exactly one of them, once."""
        self._numbers += 1
        request_id = self._numbers
        life = self.nodes[asker].life if asker else 0
        self._asked[request_id] = asker, life, answer

        def arrive() -> None:
            node = self.nodes[node_id]
            if frozenset({asker, node_id}) not in self.cuts and node.core is not None:
                self._handle(node, RequestReceived(request_id, request))

        def give_up() -> None:
            if self._asked.pop(request_id, None) is not None:
                answer(None)

        self.after(self._latency(), arrive)
        self.after(timeout_ms, give_up)

    def _reply(self, node: Node, reply: fx.Reply) -> None:
        if reply.request_id not in self._asked:
            return
        asker = self._asked[reply.request_id][0]
        response = self._resolved(node, reply.response)

        def arrive() -> None:
            if frozenset({asker, node.id}) in self.cuts:
                return
            waiting = self._asked.pop(reply.request_id, None)
            if waiting is not None:
                waiting[2](response)

        self.after(self._latency(), arrive)

    def _resolved(self, node: Node, response: Response) -> Response:
        if not isinstance(response, FetchResponse):
            return response

        def read(result: FetchResult) -> FetchResult:
            part = result.records
            return (
                replace(result, records=node.logs[part.tp].read(part))
                if isinstance(part, LogSlice)
                else result
            )

        return replace(response, partitions=tuple(read(result) for result in response.partitions))
