"""The handling of an event that every core of a broker shares, whether a controller is in charge
(``broker``) or ZooKeeper (``zk08``).

A ``Dispatcher`` serves clients and followers from the replicas on this broker, and settles after each event
what follows from it. A core extends it with its own events and requests.

``Dispatcher(...).handle(event, now_ms) -> list[Effect]``
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Set
from typing import Any, ClassVar, Final, Protocol

from kio.schema.errors import ErrorCode

from wrackline.broker.core.lifecycle import State
from wrackline.broker.core.replication import roles
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching.fetcher import Fetchers
from wrackline.broker.core.replication.metrics import replica_metrics
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.core.replication.purgatory import Deadlines, ProducePurgatory
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.core.requests.delete_records import DeleteRecordsHandler
from wrackline.broker.core.requests.describe import DescribeRequest, describe
from wrackline.broker.core.requests.fetch import FetchHandler
from wrackline.broker.core.requests.offsets import OffsetsHandler
from wrackline.broker.core.requests.produce import ProduceHandler
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.effects import Effect, Exit
from wrackline.broker.model.events import (
    Boot,
    DiskFailed,
    Event,
    Flushed,
    LogCut,
    LogsClosed,
    LogStartMoved,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    SendFailed,
    StopRequested,
    TimerFired,
)
from wrackline.broker.model.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from wrackline.broker.model.messages.requests import (
    DeleteRecordsRequest,
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    Refused,
    Request,
)
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.metric import Metric
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.model.values import mypyc_attr

DISK_FAILURE = 3
"""Exit code."""
_CLOSED: Final = State.CLOSED
Serve = Callable[[int, Any], None]
"""Takes a request's id, and the request."""


class Waiting(Protocol):
    """Requests that wait for something, each with its deadline."""

    @property
    def deadlines(self) -> Deadlines: ...

    def cancel(self, request_id: int) -> None: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class Dispatcher(ABC):
    server: ClassVar[str]
    """What a refusal says of who does not serve a request."""
    on_zookeeper: ClassVar = False
    """ZooKeeper says who leads."""

    def __init__(self, ctx: Context, partitions: Partitions, fetchers: Fetchers) -> None:
        self._ctx = ctx
        self._partitions = partitions
        self._fetchers = fetchers
        self._changes = partitions.changes
        self._produces = ProducePurgatory(ctx)
        self._produce = ProduceHandler(ctx, partitions, self._produces)
        self._fetch = FetchHandler(ctx, partitions)
        self._offsets = OffsetsHandler(ctx, partitions)
        self._deletes = DeleteRecordsHandler(ctx, partitions)
        self._waiting: list[Waiting] = [self._produces, self._fetch.purgatory, self._deletes]
        self._serve: dict[type[Request], Serve] = {
            ProduceRequest: self._produce.handle,
            FetchRequest: self._fetch.handle,
            ListOffsetsRequest: self._offsets.list_offsets,
            OffsetForLeaderEpochRequest: self._offsets.for_leader_epoch,
            DeleteRecordsRequest: self._deletes.handle,
            MetadataRequest: self._describe,
            DescribeClusterRequest: self._describe,
            DescribeTopicPartitionsRequest: self._describe,
        }
        self._exited = False

    # --- for tests, invariants and introspection -----------------------------------------------------------

    @property
    @abstractmethod
    def state(self) -> State: ...

    @property
    def acting(self) -> Dispatcher:
        return self

    @property
    def config(self) -> BrokerConfig:
        return self._ctx.config

    @property
    def timers(self) -> Set[str]:
        return self._ctx.timers

    @property
    def image(self) -> ClusterImage:
        return self._ctx.image

    @property
    def broker_epoch(self) -> int:
        """Under a controller what it has given this life; on ZooKeeper the creation of the broker's node, one
        for each of its sessions. -1: there is none."""
        return self._ctx.broker_epoch

    def replica(self, tp: TopicPartition) -> Replica | None:
        return self._partitions.get(tp)

    def fetching(self, tp: TopicPartition) -> tuple[NodeId, ...]:
        """Returns whom the partition is fetched from; more than one would be a fault (I16)."""
        return self._fetchers.of(tp)

    def metrics(self) -> tuple[Metric, ...]:
        return replica_metrics(self._partitions)

    def succeed(self, former: Dispatcher) -> None:
        """Succeeds ``former``, another core of this process, with whose logs this one is booted."""
        self._ctx.succeed(former._ctx)

    # --- events --------------------------------------------------------------------------------------------

    def handle(self, event: Event, now_ms: float) -> list[Effect]:
        """Returns effects in the order in which they must be carried out."""
        ctx = self._ctx
        ctx.begin(now_ms)
        if self._exited or (self.state is _CLOSED and self._comes_too_late(event)):
            return []
        match event:
            case RequestReceived():
                self._request(event)
            case ResponseReceived():
                ctx.answered(event.correlation, event.response)
            case SendFailed():
                ctx.answered(event.correlation, None)
            case TimerFired():
                ctx.fired(event.key)
            case Flushed():
                self._flushed(event)
            case RequestCancelled():
                self._cancelled(event.request_id)
            case Boot():
                self._boot(event)
            case StopRequested():
                self._stop()
            case LogsClosed():
                self._logs_closed()
            case LogStartMoved() | LogCut():
                self._log_changed(event)
            case DiskFailed():
                self._disk_failed(event)
            case _:
                self._other(event)
        self._settle()
        self._exited = Exit in map(type, ctx.out)
        return ctx.out

    def _settle(self) -> None:
        """Acts on what follows from the event: waiters of changed replicas, then what is to be sent."""
        changes, changed = self._changes, False
        while changes.touched:
            touched = list(changes.touched.values())
            changes.touched.clear()
            for replica in touched:
                self._look_at(replica)
                changed = True
        if changed:
            self._deletes.look()
        if self.state is _CLOSED:
            return
        self._pump()
        for waiting in self._waiting:
            deadlines = waiting.deadlines
            if deadlines.heap:
                deadlines.arm()

    def _look_at(self, replica: Replica) -> None:
        """Answers who waits for what the event has changed of the replica."""
        if replica.produces:
            self._produces.look_at(replica)
        if replica.fetches:
            self._fetch.purgatory.look_at(replica)

    def _pump(self) -> None:
        """Sends what replicas have to ask of others."""
        self._fetchers.pump()

    def _boot(self, boot: Boot) -> None:
        self._partitions.recovered(boot.logs, boot.offline)
        self._ctx.started(boot)

    def _flushed(self, event: Flushed) -> None:
        replica = self._partitions.get(event.tp)
        if replica is not None:
            roles.flushed(replica, event.upto)
            self._fetchers.flushed(event.tp)

    def _log_changed(self, event: LogStartMoved | LogCut) -> None:
        if (replica := self._partitions.get(event.tp)) is not None:
            replica.log_changed(event)

    def _disk_failed(self, event: DiskFailed) -> None:
        """Takes the log directory offline, all of it, since there is one (KAFKA-10778, B57). Without it the
        broker is of no use: it leaves without a clean-shutdown file, so a controller treats it as unclean,
        and fences it."""
        for replica in list(self._partitions):
            self._fail(replica)
        # Whoever waits is told before the process ends: the outcome of what was appended is unknown.
        self._settle()
        reason = f"the disk of {event.tp} failed: {event.reason}; its log directory is offline"
        self._ctx.trace("stop", how="disk", reason=reason)
        self._ctx.out.append(Exit(DISK_FAILURE, reason))

    # --- requests ------------------------------------------------------------------------------------------

    def _request(self, event: RequestReceived) -> None:
        request_id, request = event.request_id, event.request
        self._ctx.clock_ms = event.clock_ms
        if self.state is _CLOSED:
            self._ctx.reply(request_id, Refused(ErrorCode.broker_not_available, "the broker is stopping"))
            return
        self._serve.get(type(request), self._refuse)(request_id, request)

    def _refuse(self, request_id: int, request: Request) -> None:
        refusal = f"{self.server} does not serve {type(request).__name__}"
        self._ctx.reply(request_id, Refused(ErrorCode.unsupported_version, refusal))

    def _describe(self, request_id: int, request: DescribeRequest) -> None:
        ctx = self._ctx
        ctx.reply(request_id, describe(ctx.image, request, ctx.config.cluster_id, ctx.config.node_id))

    def _cancelled(self, request_id: int) -> None:
        self._produce.cancel(request_id)
        for waiting in self._waiting:
            waiting.cancel(request_id)

    # --- what a core decides -------------------------------------------------------------------------------

    @abstractmethod
    def _comes_too_late(self, event: Event) -> bool:
        """Says that a closed broker ignores the event."""

    @abstractmethod
    def _stop(self) -> None:
        """Begins the end: the broker was asked to stop."""

    @abstractmethod
    def _logs_closed(self) -> None:
        """Ends the process: the shell has closed the logs."""

    @abstractmethod
    def _fail(self, replica: Replica) -> None:
        """Takes its role from a replica whose disk refused."""

    @abstractmethod
    def _other(self, event: Event) -> None:
        """Handles an event that this core alone knows."""
