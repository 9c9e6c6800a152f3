"""One real Broker whose controller and peers are played by the test: every message is seen and answered by
hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from tests.broker.core.disk import Disk, SimLog
from wrackline.broker.core.broker import Broker
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.defects import apply
from wrackline.broker.model.batches import batch
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.effects import (
    CancelTimer,
    Effect,
    Exit,
    Flush,
    NoReply,
    Reply,
    Send,
    SetTimer,
    Trace,
)
from wrackline.broker.model.events import Boot, Event, RequestReceived, ResponseReceived, TimerFired
from wrackline.broker.model.messages.controller import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ProducePartition,
    ProduceRequest,
    Request,
    Response,
)
from wrackline.broker.model.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    encode_all,
)
from wrackline.broker.model.types import METADATA, Endpoint, EpochEntry, LogSlice, NodeId, TopicPartition
from wrackline.broker.rules.profile import profile

T = TopicPartition("t", 0)
TOPIC_ID = UUID(int=77)
CONTROLLER = 101
EPOCHS = {1: 0, 2: 1, 3: 2}
"""Broker epoch by broker: the offsets of their registrations."""


def register(node: NodeId, epoch: int | None = None, *, fenced: bool = False) -> RegisterBrokerRecord:
    broker_epoch = EPOCHS[node] if epoch is None else epoch
    return RegisterBrokerRecord(node, UUID(int=node), broker_epoch, f"b{node}", 9092, fenced=fenced)


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(0, TOPIC_ID, **fields)


def log_of(epochs: Sequence[int], topic_id: UUID = TOPIC_ID, value: str = "v") -> SimLog:
    """A log with one record per offset, of the given leader epochs."""
    log = SimLog(topic_id)
    for offset, epoch in enumerate(epochs):
        data = batch.build([f"{value}{offset}e{epoch}".encode()], offset, epoch, 0)
        log.batches.append((batch.parse_header(data), data))
        if not log.epochs or log.epochs[-1].epoch != epoch:
            log.epochs = (*log.epochs, EpochEntry(epoch, offset))
    log.leo = log.flushed = len(epochs)
    return log


class Solo:
    """Broker ``node`` of three, started, registered and with its roles taken."""

    def __init__(
        self,
        node: NodeId = 1,
        *,
        log: SimLog | None = None,
        leader: NodeId = 1,
        isr: Sequence[NodeId] = (1, 2, 3),
        elr: Sequence[NodeId] = (),
        replicas: Sequence[NodeId] = (1, 2, 3),
        leader_epoch: int = 0,
        min_isr: int = 2,
        high_watermark: int = 0,
        defects: Sequence[str] = (),
        offline: tuple[TopicPartition, ...] = (),
        **changes: Any,
    ) -> None:
        self.now = 1_000.0
        self.node = node
        self.disk = Disk()
        self.sends: list[Send] = []
        self.replies: dict[int, Response | None] = {}
        self.timers: dict[str, float] = {}
        self.flushes: list[Flush] = []
        self.traces: list[Trace] = []
        self.exits: list[Exit] = []
        self.effects: list[Effect] = []
        self._requests = 0
        self._metadata_end = 0
        settings = {"replica_lag_time_max_ms": 10_000, "heartbeat_interval_ms": 2_000, **changes}
        self.config = BrokerConfig(
            node,
            "cluster",
            f"b{node}",
            9092,
            (Endpoint(CONTROLLER, "c", 9093),),
            replication_port=9094,
            **settings,
        )
        self.broker = Broker(self.config, apply(profile(self.config.profile), defects))
        if log is not None:
            self.disk.logs[T] = log
            self.disk.checkpoints["high-watermark"] = {T: high_watermark}
        self.handle(Boot(UUID(int=node), self.disk.recovered(), offline=offline))
        self.metadata(
            *(register(other) for other in (1, 2, 3)),
            ConfigRecord("broker", "", "min.insync.replicas", str(min_isr)),
        )
        self.metadata(
            TopicRecord("t", TOPIC_ID),
            PartitionRecord(
                *(0, TOPIC_ID, tuple(replicas), tuple(isr), leader, leader_epoch),
                partition_epoch=0,
                elr=tuple(elr),
            ),
        )
        registration = self.sent("controller", BrokerRegistrationRequest)
        self.answer(registration, BrokerRegistrationResponse(ErrorCode.none, EPOCHS[node]))
        self.beat()

    # --- events and effects --------------------------------------------------------------------------------

    def handle(self, event: Event) -> list[Effect]:
        self.effects = self.broker.handle(event, self.now)
        for effect in self.effects:
            match effect:
                case Send():
                    self.sends.append(effect)
                case Reply():
                    assert effect.request_id not in self.replies, "answered twice"
                    self.replies[effect.request_id] = effect.response
                case NoReply():
                    self.replies[effect.request_id] = None
                case SetTimer():
                    self.timers[effect.key] = effect.at_ms
                case CancelTimer():
                    self.timers.pop(effect.key, None)
                case Flush():
                    self.flushes.append(effect)
                case Trace():
                    self.traces.append(effect)
                case Exit():
                    self.exits.append(effect)
                case _:
                    self.disk.carry_out(effect)
        return self.effects

    def wait(self, for_ms: float) -> None:
        """Let time pass; timers fire on the way."""
        end = self.now + for_ms
        while due := sorted((at, key) for key, at in self.timers.items() if at <= end):
            self.now, key = max(self.now, due[0][0]), due[0][1]
            del self.timers[key]
            self.handle(TimerFired(key))
        self.now = end

    def sent(self, channel: str, kind: type[Request] | None = None) -> Send:
        """The newest request on a channel that is not answered yet; it is taken off the list."""
        for send in reversed(self.sends):
            if send.channel == channel and (kind is None or isinstance(send.request, kind)):
                self.sends.remove(send)
                return send
        raise AssertionError(f"nothing of the kind was sent on {channel}: {self.sends}")

    def has_sent(self, channel: str) -> bool:
        return any(send.channel == channel for send in self.sends)

    def answer(self, send: Send, response: Response) -> None:
        self.handle(ResponseReceived(send.correlation, send.destination, response))

    # --- controller ----------------------------------------------------------------------------------------

    def beat(self) -> None:
        beat = self.sent("controller", BrokerHeartbeatRequest)
        self.answer(beat, BrokerHeartbeatResponse(ErrorCode.none, True, False, False))

    def metadata(self, *records: MetadataRecord, epoch: int = 1) -> None:
        """One batch of committed metadata arrives."""
        data = batch.build(encode_all(records), self._metadata_end, epoch, 0)
        self._metadata_end += len(records)
        result = FetchResult(METADATA, high_watermark=self._metadata_end, records=data)
        self.answer(self.sent("controller-fetch"), FetchResponse((result,)))

    # --- clients and followers -----------------------------------------------------------------------------

    def ask(self, request: Request) -> int:
        self._requests += 1
        self.handle(RequestReceived(self._requests, request))
        return self._requests

    def produce(self, *values: bytes, acks: int = -1, timeout_ms: int = 30_000) -> int:
        data = batch.build(values, 0, -1, 0)
        return self.ask(ProduceRequest(acks, timeout_ms, (ProducePartition(T, data),)))

    def result(self, request_id: int) -> Any:
        """The one partition of an answer."""
        response: Any = self.replies[request_id]
        assert response is not None
        (result,) = response.partitions
        return result

    def fetch(
        self,
        follower: NodeId,
        offset: int,
        *,
        last_epoch: int = -1,
        leader_epoch: int | None = None,
        broker_epoch: int | None = None,
        max_wait_ms: int = 0,
        max_bytes: int = 1 << 20,
        min_bytes: int = 1,
    ) -> int:
        """As a follower, or as a consumer (-1)."""
        if leader_epoch is None:
            leader_epoch = self.replica.leader_epoch if follower >= 0 else -1
        if broker_epoch is None:
            broker_epoch = EPOCHS.get(follower, -1)
        part = FetchPartition(T, offset, max_bytes, leader_epoch, last_epoch)
        return self.ask(FetchRequest(max_wait_ms, min_bytes, 1 << 20, (part,), follower, broker_epoch))

    def fetched(self, follower: NodeId, offset: int, **more: Any) -> Any:
        result = self.result(self.fetch(follower, offset, **more))
        if isinstance(result.records, LogSlice):
            result = replace(result, records=self.disk.read(result.records))
        return result

    def fetch_from(self, leader: Solo) -> FetchResult:
        """The fetcher's next request, answered at once by its leader, which is a real broker too."""
        send = self.sent("fetcher-0")
        assert isinstance(send.request, FetchRequest)
        request = replace(send.request, max_wait_ms=0, session_id=0, session_epoch=-1)
        result: FetchResult = leader.result(leader.ask(request))
        if isinstance(result.records, LogSlice):
            result = result.with_records(leader.disk.read(result.records))
        self.answer(send, FetchResponse((result,)))
        return result

    def ask_epoch_end(self, leader: Solo) -> None:
        """The question of profile kip101 where an epoch ends, answered at once by the leader."""
        send = self.sent("fetcher-epochs")
        response = leader.replies[leader.ask(send.request)]
        assert response is not None
        self.answer(send, response)

    def list_offsets(self, timestamp: int, **more: Any) -> Any:
        part = ListOffsetsPartition(T, timestamp)
        return self.result(self.ask(ListOffsetsRequest((part,), **more)))

    @property
    def replica(self) -> Replica:
        replica = self.broker.replica(T)
        assert replica is not None
        return replica
