"""What clients and followers ask of a broker of the ZooKeeper design."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.purgatory import ProducePurgatory
from wrackline.broker.core.requests.delete_records import DeleteRecordsHandler
from wrackline.broker.core.requests.describe import describe
from wrackline.broker.core.requests.fetch import FetchHandler
from wrackline.broker.core.requests.offsets import OffsetsHandler
from wrackline.broker.core.requests.produce import ProduceHandler
from wrackline.broker.core.zk08.assigned import Assigned
from wrackline.broker.core.zk08.topics import Topics
from wrackline.broker.model.events import RequestReceived
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
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
)


class Requests:
    def __init__(self, ctx: Context, assigned: Assigned, topics: Topics) -> None:
        self._ctx = ctx
        self._topics = topics
        self.produces = ProducePurgatory(ctx)
        self._produce = ProduceHandler(ctx, assigned, self.produces)
        self.fetch = FetchHandler(ctx, assigned)
        self._offsets = OffsetsHandler(ctx, assigned)
        self.deletes = DeleteRecordsHandler(ctx, assigned)
        self.deadlines = (self.produces.deadlines, self.fetch.purgatory.deadlines, self.deletes.deadlines)

    def handle(self, event: RequestReceived) -> None:
        request_id, request, ctx = event.request_id, event.request, self._ctx
        ctx.clock_ms = event.clock_ms
        match request:
            case ProduceRequest():
                self._produce.handle(request_id, request)
            case FetchRequest():
                self.fetch.handle(request_id, request)
            case ListOffsetsRequest():
                self._offsets.list_offsets(request_id, request)
            case OffsetForLeaderEpochRequest() if ctx.rules.switches.asks_epoch_first:
                self._offsets.for_leader_epoch(request_id, request)
            case DeleteRecordsRequest():
                self.deletes.handle(request_id, request)
            case MetadataRequest() | DescribeClusterRequest() | DescribeTopicPartitionsRequest():
                ctx.reply(request_id, describe(ctx.image, request, ctx.config.cluster_id, ctx.config.node_id))
            case CreateTopicsRequest():
                self._topics.create(request_id, request)
            case _:
                kind = type(request).__name__
                refusal = Refused(ErrorCode.unsupported_version, f"profile zk08 does not serve {kind}")
                ctx.reply(request_id, refusal)

    def cancelled(self, request_id: int) -> None:
        self._produce.cancel(request_id)
        self.produces.cancel(request_id)
        self.fetch.purgatory.cancel(request_id)
        self.deletes.cancel(request_id)
