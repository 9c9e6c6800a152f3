"""Drives a controller by hand: a disk in memory, timers in virtual time, brokers that are only requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.batches import batch
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import (
    Append,
    CancelTimer,
    CloseLogs,
    ConfigureLog,
    CreateLog,
    Effect,
    Exit,
    Flush,
    Reply,
    Send,
    SetTimer,
    Trace,
    WriteEpochs,
    WriteQuorumState,
)
from wrackline.broker.model.events import (
    Boot,
    Event,
    Flushed,
    RequestReceived,
    ResponseReceived,
    SendFailed,
    TimerFired,
)
from wrackline.broker.model.messages.controller import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)
from wrackline.broker.model.messages.metadata import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewTopic,
)
from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.metadata.records import MetadataRecord, decode
from wrackline.broker.model.types import (
    METADATA,
    METADATA_TOPIC_ID,
    Endpoint,
    EpochEntry,
    QuorumState,
    RecoveredLog,
    TopicPartition,
)
from wrackline.broker.rules.profile import Rules, profile

CLUSTER = "test-cluster"
T = TopicPartition("t", 0)


def config(**changes: object) -> ControllerConfig:
    given: dict[str, object] = {"min_insync_replicas": 2, "session_timeout_ms": 9_000, "noop_interval_ms": 0}
    return ControllerConfig(
        node_id=101,
        cluster_id=CLUSTER,
        host="c1",
        port=9093,
        controllers=(Endpoint(101, "c1", 9093),),
        **{**given, **changes},  # type: ignore[arg-type]
    )


@dataclass
class Disk:
    batches: list[bytes] = field(default_factory=list)
    leo: int = 0
    flushed: int = 0
    epochs: tuple[EpochEntry, ...] = ()
    quorum_state: QuorumState | None = None
    exists: bool = False

    def lose_power(self) -> None:
        self.batches = [b for b in self.batches if batch.parse_header(b).last_offset < self.flushed]
        self.leo = self.flushed

    def records(self) -> list[MetadataRecord]:
        return [
            decode(value)
            for data in self.batches
            for header, whole in batch.split(data)
            for _, value in batch.values_of(header, whole)
        ]


class Driver:
    def __init__(self, *, auto_flush: bool = True, rules: Rules | None = None, **changes: object) -> None:
        self.config = config(**changes)
        self.rules = rules or profile("kip966")
        self.disk = Disk()
        self.now_ms = 1_000.0
        self.auto_flush = auto_flush
        self.flushes: list[int] = []
        self.timers: dict[str, float] = {}
        self.replies: dict[int, Response] = {}
        self.traces: list[Trace] = []
        self.exits: list[Exit] = []
        self.closed: list[CloseLogs] = []
        self.asked: dict[int, Send] = {}
        """Questions to brokers that are not answered yet: the latest to each."""
        self._requests = 0
        self._incarnations = 0
        self.epochs: dict[int, int] = {}
        """Broker epoch by broker, as last registered."""
        self.boot()

    # --- the controller's shell -----------------------------------------------------------------------------

    def boot(self) -> None:
        self.controller = Controller(self.config, self.rules)
        self.timers.clear()
        self.flushes.clear()
        self.asked.clear()
        logs = {}
        if self.disk.exists:
            logs[METADATA] = RecoveredLog(
                METADATA_TOPIC_ID, 0, self.disk.leo, self.disk.flushed, 0, self.disk.epochs
            )
        boot = Boot(self.incarnation(), logs, tuple(self.disk.batches), quorum_state=self.disk.quorum_state)
        self.handle(boot)

    def restart(self, *, power: bool = False) -> None:
        if power:
            self.disk.lose_power()
        self.replies.clear()
        self.boot()

    def incarnation(self) -> UUID:
        self._incarnations += 1
        return UUID(int=self._incarnations)

    def handle(self, event: Event) -> list[Effect]:
        effects = self.controller.handle(event, self.now_ms)
        for effect in effects:
            self._carry_out(effect)
        while self.auto_flush and self.flushes:
            self.flush()
        return effects

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case CreateLog():
                assert not self.disk.exists
                self.disk.exists = True
            case Append():
                assert self.disk.exists
                assert effect.base_offset == self.disk.leo
                self.disk.batches += effect.batches
                self.disk.leo = effect.end_offset
            case Flush():
                self.flushes.append(effect.upto)
            case WriteQuorumState():
                self.disk.quorum_state = effect.state
            case WriteEpochs():
                self.disk.epochs = effect.entries
            case SetTimer():
                self.timers[effect.key] = effect.at_ms
            case CancelTimer():
                self.timers.pop(effect.key, None)
            case Reply():
                assert effect.request_id not in self.replies, "answered twice"
                self.replies[effect.request_id] = effect.response
            case Trace():
                self.traces.append(effect)
            case ConfigureLog():
                pass
            case Exit():
                self.exits.append(effect)
            case CloseLogs():
                self.closed.append(effect)
            case Send():
                assert effect.destination not in self.asked, "one question at a time"
                self.asked[effect.destination] = effect
            case _:
                raise AssertionError(f"a controller must not ask for {effect}")

    def flush(self) -> None:
        """The oldest flush asked for is done."""
        upto = self.flushes.pop(0)
        self.disk.flushed = max(self.disk.flushed, upto)
        self.handle(Flushed(METADATA, upto))

    def post(self, request: Request) -> int:
        self._requests += 1
        self.handle(RequestReceived(self._requests, request))
        return self._requests

    def ask(self, request: Request) -> Response:
        return self.replies[self.post(request)]

    def run_until(self, ms: float) -> None:
        while self.timers:
            key = min(self.timers, key=lambda k: (self.timers[k], k))
            if self.timers[key] > ms:
                break
            self.fire(key)
        self.now_ms = max(self.now_ms, ms)

    def fire(self, key: str) -> None:
        self.now_ms = max(self.now_ms, self.timers.pop(key))
        self.handle(TimerFired(key))

    # --- brokers as requests --------------------------------------------------------------------------------

    def register(
        self, broker: int, previous: int = -1, incarnation: UUID | None = None
    ) -> BrokerRegistrationResponse:
        response = self.ask(
            BrokerRegistrationRequest(
                broker,
                CLUSTER,
                incarnation or self.incarnation(),
                f"n{broker}",
                9092,
                previous_broker_epoch=previous,
            )
        )
        assert isinstance(response, BrokerRegistrationResponse)
        if response.broker_epoch >= 0:
            self.epochs[broker] = response.broker_epoch
        return response

    def beat(
        self, broker: int, *, offset: int | None = None, fence: bool = False, stop: bool = False
    ) -> BrokerHeartbeatResponse:
        response = self.ask(
            BrokerHeartbeatRequest(
                broker, self.epochs[broker], self.disk.leo - 1 if offset is None else offset, fence, stop
            )
        )
        assert isinstance(response, BrokerHeartbeatResponse)
        return response

    def post_beat(self, broker: int, *, fence: bool) -> int:
        """A heartbeat whose answer is not waited for."""
        offset = self.disk.leo - 1
        return self.post(BrokerHeartbeatRequest(broker, self.epochs[broker], offset, fence, False))

    def start(self, *brokers: int) -> None:
        for broker in brokers:
            self.register(broker)
            assert not self.beat(broker).is_fenced

    def let_expire(self, *brokers: int) -> None:
        """The sessions of these brokers end, in this order; the others keep sending heartbeats."""
        others = [b for b in sorted(self.epochs) if b not in brokers]
        end = self.now_ms + self.config.session_timeout_ms
        while self.now_ms < end:
            for broker in others:
                if self.image_broker_active(broker):
                    self.beat(broker)
            self.run_until(self.now_ms + 1_000)

    def image_broker_active(self, broker: int) -> bool:
        known = self.controller.committed.brokers.get(broker)
        return known is not None and known.active

    def create(
        self, name: str = "t", replicas: Iterable[int] = (1, 2, 3), **configs: str
    ) -> tuple[CreatedTopic, PartitionImage | None]:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        response = self.ask(
            CreateTopicsRequest((NewTopic(name, assignments={0: tuple(replicas)}, configs=settings),), 1_000)
        )
        assert isinstance(response, CreateTopicsResponse)
        return response.topics[0], self.controller.committed.partition(TopicPartition(name, 0))

    def delete(self, name: str) -> None:
        response = self.ask(DeleteTopicsRequest((name,), 1_000))
        assert isinstance(response, DeleteTopicsResponse)
        assert response.topics[0].error is ErrorCode.none

    def partition(self, tp: TopicPartition = T) -> PartitionImage:
        partition = self.controller.committed.partition(tp)
        assert partition is not None
        return partition

    def alter(
        self,
        isr: Iterable[int | tuple[int, int]],
        *,
        sender: int | None = None,
        tp: TopicPartition = T,
        **changes: object,
    ) -> AlterPartitionResult:
        """AlterPartition as the partition's leader would send it, with ``changes`` to the item."""
        partition = self.partition(tp)
        members = tuple((m, -1) if isinstance(m, int) else m for m in isr)
        fields: dict[str, object] = {
            "tp": tp,
            "topic_id": partition.topic_id,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "isr": members,
        }
        item = AlterPartitionItem(**{**fields, **changes})  # type: ignore[arg-type]
        sender = partition.leader if sender is None else sender
        response = self.ask(AlterPartitionRequest(sender, self.epochs[sender], (item,)))
        assert isinstance(response, AlterPartitionResponse)
        return response.partitions[0]

    def tell_log(self, broker: int, epoch: int, leo: int, **changes: int) -> None:
        """The broker answers what it was asked: every log ends in ``epoch`` at ``leo``."""
        send = self.asked.pop(broker)
        assert isinstance(send.request, GetReplicaLogInfoRequest)
        image = self.controller.committed
        infos = []
        for which in send.request.partitions:
            known = image.partition_by_id(*which)
            current = -1 if known is None else known.leader_epoch
            infos.append(ReplicaLogInfo(*which, epoch, changes.get("current_leader_epoch", current), leo))
        response = GetReplicaLogInfoResponse(changes.get("broker_epoch", self.epochs[broker]), tuple(infos))
        self.handle(ResponseReceived(send.correlation, broker, response))

    def no_answer(self, broker: int) -> None:
        self.handle(SendFailed(self.asked.pop(broker).correlation, broker, "timed out"))

    def state(self, tp: TopicPartition = T) -> tuple[int, set[int], set[int], set[int]]:
        """Leader, ISR, ELR, LastKnownELR."""
        p = self.partition(tp)
        return p.leader, set(p.isr), set(p.elr), set(p.last_known_elr)

    def kinds(self) -> list[str]:
        return [trace.kind for trace in self.traces]
