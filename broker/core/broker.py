"""The broker under a controller: one object, no I/O (docs/protocol.md 2). Put its parts together, hand events
to them, collect effects.

``Broker(config, rules).handle(event, now_ms) -> list[Effect]``
"""

from __future__ import annotations

from typing import ClassVar, get_args

from kio.schema.errors import ErrorCode

from wrackline.broker.core.dispatcher import Dispatcher
from wrackline.broker.core.lifecycle import Lifecycle, State
from wrackline.broker.core.maintenance import Maintenance
from wrackline.broker.core.quorum.metadata_replica import Observer
from wrackline.broker.core.replication import roles
from wrackline.broker.core.replication.alter_partition import AlterPartitions
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching.fetcher import Fetchers
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.core.replication.uplink import Uplink
from wrackline.broker.core.requests.describe import DescribeRequest, describe
from wrackline.broker.core.requests.describe_configs import describe_configs
from wrackline.broker.core.requests.forwarding import Forwarder, ProducerIds
from wrackline.broker.core.requests.replica_log_info import LogInfoHandler
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.effects import CloseLogs, Exit
from wrackline.broker.model.events import Boot, DiskFailed, Event, Flushed, SnapshotWritten, TimerFired
from wrackline.broker.model.messages.admin import DescribeConfigsRequest, ForwardedRequest
from wrackline.broker.model.messages.controller import GetReplicaLogInfoRequest
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    MetadataResponse,
)
from wrackline.broker.model.messages.requests import InitProducerIdRequest
from wrackline.broker.model.metadata.image import ImageDelta
from wrackline.broker.model.types import METADATA, NO_EPOCH
from wrackline.broker.rules.profile import Rules

_NOT_WHEN_CLOSED = (TimerFired, Flushed, SnapshotWritten)
"""Between CloseLogs and LogsClosed nothing may be written any more."""


class Broker(Dispatcher):
    server: ClassVar = "a broker"

    def __init__(self, config: BrokerConfig, rules: Rules) -> None:
        ctx = Context(config, rules)
        fetchers = Fetchers(ctx)
        partitions = Partitions(ctx, fetchers)
        super().__init__(ctx, partitions, fetchers)
        self._uplink = uplink = Uplink(ctx)
        self._alter = AlterPartitions(ctx, uplink, self._changes)
        self._forwarder = Forwarder(ctx, uplink)
        producer_ids = ProducerIds(ctx, uplink)
        self._lifecycle = Lifecycle(ctx, uplink, self._take_roles_if_ready, self._close)
        self._observer = Observer(ctx, uplink, self._metadata_changed)
        self._maintenance = Maintenance(ctx, partitions, lambda: self._observer.log.partition_log)
        self._waiting += [self._forwarder, producer_ids]
        self._serve |= {
            GetReplicaLogInfoRequest: LogInfoHandler(ctx, partitions).handle,
            DescribeConfigsRequest: self._describe_configs,
            InitProducerIdRequest: producer_ids.handle,
            CreateTopicsRequest: self._forwarder.handle,
            DeleteTopicsRequest: self._forwarder.handle,
            **dict.fromkeys(get_args(ForwardedRequest), self._forwarder.handle),
        }
        self._has_roles = False

    @property
    def state(self) -> State:
        return self._lifecycle.state

    # --- events --------------------------------------------------------------------------------------------

    def _comes_too_late(self, event: Event) -> bool:
        return isinstance(event, _NOT_WHEN_CLOSED)

    def _other(self, event: Event) -> None:
        if isinstance(event, SnapshotWritten):
            self._observer.snapshot_written(event.id)

    def _boot(self, boot: Boot) -> None:
        super()._boot(boot)
        self._observer.start(boot.logs.get(METADATA), boot.metadata, boot.snapshots)
        self._lifecycle.boot(boot.previous_broker_epoch)
        self._maintenance.start()

    def _flushed(self, event: Flushed) -> None:
        if event.tp == METADATA:
            self._observer.flushed(event.upto)
        else:
            super()._flushed(event)

    def _pump(self) -> None:
        self._alter.pump()
        super()._pump()

    # --- requests ------------------------------------------------------------------------------------------

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

    def _describe_configs(self, request_id: int, request: DescribeConfigsRequest) -> None:
        self._ctx.reply(request_id, describe_configs(self._ctx.image, self._ctx.config, request))

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

    def _stop(self) -> None:
        self._lifecycle.stop()
        if not self._ctx.rules.switches.applies_metadata_while_stopping:
            self._observer.stop()

    def _logs_closed(self) -> None:
        self._ctx.out.append(Exit(0, "controlled shutdown"))

    def _disk_failed(self, event: DiskFailed) -> None:
        if self._ctx.rules.switches.stops_on_disk_failure:
            super()._disk_failed(event)

    def _fail(self, replica: Replica) -> None:
        self._partitions.failed(replica)

    def _close(self) -> None:
        """Stop serving, then let the shell flush everything and sign the clean shutdown (R09)."""
        high_watermarks = self._maintenance.high_watermarks()
        self._observer.stop()
        self._fetchers.stop()
        for replica in self._partitions:
            roles.step_down(replica)
        self._ctx.out.append(CloseLogs(self._lifecycle.clean_epoch, high_watermarks))
