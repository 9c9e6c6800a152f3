"""The broker: one object, no I/O (docs/protocol.md 2). Put its parts together, hand events to them, collect
effects.

``Broker(config, rules).handle(event, now_ms) -> list[Effect]``
"""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

from wrackline.broker.core.continuations import Continuations
from wrackline.broker.core.lifecycle import Lifecycle, State
from wrackline.broker.core.maintenance import Maintenance
from wrackline.broker.core.quorum.metadata_replica import Observer
from wrackline.broker.core.replication import roles
from wrackline.broker.core.replication.alter_partition import AlterPartitions
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetcher import Fetchers
from wrackline.broker.core.replication.metrics import replica_metrics
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.core.replication.purgatory import ProducePurgatory
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.core.replication.uplink import Uplink
from wrackline.broker.core.requests.delete_records import DeleteRecordsHandler
from wrackline.broker.core.requests.describe import DescribeRequest, describe
from wrackline.broker.core.requests.describe_configs import describe_configs
from wrackline.broker.core.requests.fetch import FetchHandler
from wrackline.broker.core.requests.forwarding import Forwarder, ProducerIds
from wrackline.broker.core.requests.offsets import OffsetsHandler
from wrackline.broker.core.requests.produce import ProduceHandler
from wrackline.broker.core.requests.replica_log_info import LogInfoHandler
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.effects import CloseLogs, Effect, Exit
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
    SnapshotWritten,
    StopRequested,
    TimerFired,
)
from wrackline.broker.model.messages.admin import DescribeConfigsRequest, ForwardedRequest
from wrackline.broker.model.messages.controller import GetReplicaLogInfoRequest
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataResponse,
)
from wrackline.broker.model.messages.requests import (
    DeleteRecordsRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    Refused,
)
from wrackline.broker.model.metadata.image import ClusterImage, ImageDelta
from wrackline.broker.model.metric import Metric
from wrackline.broker.model.types import METADATA, NO_EPOCH, NodeId, TopicPartition
from wrackline.broker.rules.profile import Rules

DISK_FAILURE = 3
"""Exit code."""
_CLOSED: Final = State.CLOSED
_NOT_WHEN_CLOSED = (TimerFired, Flushed, SnapshotWritten)
"""Between CloseLogs and LogsClosed nothing may be written any more."""


class Broker:
    def __init__(self, config: BrokerConfig, rules: Rules) -> None:
        self._ctx = ctx = Context(config, rules)
        self._uplink = uplink = Uplink(ctx)
        self._fetchers = Fetchers(ctx)
        self._partitions = partitions = Partitions(ctx, self._fetchers)
        self._changes = partitions.changes
        self._produces = ProducePurgatory(ctx)
        self._produce = ProduceHandler(ctx, partitions, self._produces)
        self._fetch = FetchHandler(ctx, partitions)
        self._offsets = OffsetsHandler(ctx, partitions)
        self._deletes = DeleteRecordsHandler(ctx, partitions)
        self._log_info = LogInfoHandler(ctx, partitions)
        self._alter = AlterPartitions(ctx, uplink, self._changes)
        self._forwarder = Forwarder(ctx, uplink)
        self._producer_ids = ProducerIds(ctx, uplink)
        self._lifecycle = Lifecycle(ctx, uplink, self._take_roles_if_ready, self._close)
        self._observer = Observer(ctx, uplink, self._metadata_changed)
        self._maintenance = Maintenance(ctx, partitions, lambda: self._observer.log.partition_log)
        self._deadlines = (
            self._produces.deadlines,
            self._fetch.purgatory.deadlines,
            self._deletes.deadlines,
            self._forwarder.deadlines,
            self._producer_ids.deadlines,
        )
        self._has_roles = False
        self._exited = False

    # --- for tests, invariants and introspection -----------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        return self._ctx.image

    @property
    def state(self) -> State:
        return self._lifecycle.state

    @property
    def broker_epoch(self) -> int:
        return self._ctx.broker_epoch

    def replica(self, tp: TopicPartition) -> Replica | None:
        return self._partitions.get(tp)

    def fetching(self, tp: TopicPartition) -> tuple[NodeId, ...]:
        """Returns whom the partition is fetched from; more than one would be a fault (I16)."""
        return self._fetchers.of(tp)

    def metrics(self) -> tuple[Metric, ...]:
        return replica_metrics(self._partitions)

    def succeed(self, former: Continuations) -> None:
        """Succeeds another core of this process, whose logs this one is booted with."""
        self._ctx.succeed(former)

    # --- events --------------------------------------------------------------------------------------------

    def handle(self, event: Event, now_ms: float) -> list[Effect]:
        """Effects in the order in which they must be carried out."""
        ctx = self._ctx
        ctx.begin(now_ms)
        if self._exited or (self._lifecycle.state is _CLOSED and isinstance(event, _NOT_WHEN_CLOSED)):
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
            case SnapshotWritten():
                self._observer.snapshot_written(event.id)
            case RequestCancelled():
                self._cancelled(event.request_id)
            case Boot():
                self._boot(event)
            case StopRequested():
                self._lifecycle.stop()
                if not ctx.rules.switches.applies_metadata_while_stopping:
                    self._observer.stop()
            case LogsClosed():
                ctx.out.append(Exit(0, "controlled shutdown"))
            case LogStartMoved() | LogCut():
                self._log_changed(event)
            case DiskFailed():
                self._disk_failed(event)
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
                if replica.produces:
                    self._produces.look_at(replica)
                if replica.fetches:
                    self._fetch.purgatory.look_at(replica)
                changed = True
        if changed:
            self._deletes.look()
        if self._lifecycle.state is _CLOSED:
            return
        if changes.proposed:
            self._alter.pump()
        self._fetchers.pump()
        for deadlines in self._deadlines:
            if deadlines.heap:
                deadlines.arm()

    def _boot(self, boot: Boot) -> None:
        ctx = self._ctx
        self._partitions.recovered(boot.logs, boot.offline)
        ctx.started(boot)
        self._observer.start(boot.logs.get(METADATA), boot.metadata, boot.snapshots)
        self._lifecycle.boot(boot.previous_broker_epoch)
        self._maintenance.start()

    def _request(self, event: RequestReceived) -> None:
        request_id, request = event.request_id, event.request
        self._ctx.clock_ms = event.clock_ms
        if self._lifecycle.state is _CLOSED:
            self._ctx.reply(request_id, Refused(ErrorCode.broker_not_available, "the broker is stopping"))
            return
        match request:
            case ProduceRequest():
                self._produce.handle(request_id, request)
            case FetchRequest():
                self._fetch.handle(request_id, request)
            case ListOffsetsRequest():
                self._offsets.list_offsets(request_id, request)
            case OffsetForLeaderEpochRequest():
                self._offsets.for_leader_epoch(request_id, request)
            case DeleteRecordsRequest():
                self._deletes.handle(request_id, request)
            case GetReplicaLogInfoRequest():
                self._log_info.handle(request_id, request)
            case MetadataRequest() | DescribeClusterRequest() | DescribeTopicPartitionsRequest():
                self._describe(request_id, request)
            case CreateTopicsRequest() | DeleteTopicsRequest():
                self._forwarder.handle(request_id, request)
            case _ if isinstance(request, ForwardedRequest):
                self._forwarder.handle(request_id, request)
            case DescribeConfigsRequest():
                self._ctx.reply(request_id, describe_configs(self._ctx.image, self._ctx.config, request))
            case InitProducerIdRequest():
                self._producer_ids.handle(request_id, request)
            case _:
                kind = type(request).__name__
                refusal = Refused(ErrorCode.unsupported_version, f"a broker does not serve {kind}")
                self._ctx.reply(request_id, refusal)

    def _describe(self, request_id: int, request: DescribeRequest) -> None:
        """Clients send administration to "the controller": to any broker, which forwards it; best to us."""
        ctx, me = self._ctx, self._ctx.config.node_id
        response: MetadataResponse = describe(ctx.image, request, ctx.config.cluster_id, me)
        listed = [endpoint.node_id for endpoint in response.brokers]
        if listed and me not in listed:
            response = describe(ctx.image, request, ctx.config.cluster_id, listed[0])
        if isinstance(request, MetadataRequest) and request.allow_auto_topic_creation:
            self._create_missing(response)
        ctx.reply(request_id, response)

    def _create_missing(self, response: MetadataResponse) -> None:
        unknown = ErrorCode.unknown_topic_or_partition
        missing = [topic.name for topic in response.topics if topic.error is unknown and topic.name]
        if self._ctx.config.auto_create_topics and missing:
            self._forwarder.create_automatically(missing)

    def _cancelled(self, request_id: int) -> None:
        self._produce.cancel(request_id)
        self._produces.cancel(request_id)
        self._fetch.purgatory.cancel(request_id)
        self._deletes.cancel(request_id)
        self._forwarder.cancel(request_id)
        self._producer_ids.cancel(request_id)

    def _flushed(self, event: Flushed) -> None:
        if event.tp == METADATA:
            self._observer.flushed(event.upto)
            return
        replica = self._partitions.get(event.tp)
        if replica is not None:
            roles.flushed(replica, event.upto)
            self._fetchers.flushed(event.tp)

    def _log_changed(self, event: LogStartMoved | LogCut) -> None:
        if (replica := self._partitions.get(event.tp)) is not None:
            replica.log_changed(event)

    # --- metadata ------------------------------------------------------------------------------------------

    def _metadata_changed(self, delta: ImageDelta) -> None:
        """Roles are taken only when the metadata is known up to our own registration (K06): an older image
        may say that we lead, from a former life."""
        if self._has_roles:
            self._partitions.apply(delta)
        self._take_roles_if_ready()
        self._forwarder.look()
        self._deletes.look()

    def _take_roles_if_ready(self) -> None:
        ctx = self._ctx
        registered = ctx.broker_epoch != NO_EPOCH
        if (
            not self._has_roles
            and registered
            and ctx.registered_epoch(ctx.config.node_id) == ctx.broker_epoch
        ):
            self._has_roles = True
            self._partitions.take_roles()
            self._lifecycle.roles_taken()

    # --- the end -------------------------------------------------------------------------------------------

    def _disk_failed(self, event: DiskFailed) -> None:
        """There is one log directory: all of it goes offline (KAFKA-10778, B57), and without it the broker is
        of no use. It leaves without a clean-shutdown file, so the controller treats it as unclean, and fences
        it."""
        if not self._ctx.rules.switches.stops_on_disk_failure:
            return
        for replica in list(self._partitions):
            self._partitions.failed(replica)
        # Whoever waits is told before the process ends: the outcome of what was appended is unknown.
        self._settle()
        reason = f"the disk of {event.tp} failed: {event.reason}; its log directory is offline"
        self._ctx.trace("stop", how="disk", reason=reason)
        self._ctx.out.append(Exit(DISK_FAILURE, reason))

    def _close(self) -> None:
        """Stop serving, then let the shell flush everything and sign the clean shutdown (R09)."""
        high_watermarks = self._maintenance.high_watermarks()
        self._observer.stop()
        self._fetchers.stop()
        for replica in self._partitions:
            roles.step_down(replica)
        self._ctx.out.append(CloseLogs(self._lifecycle.clean_epoch, high_watermarks))
