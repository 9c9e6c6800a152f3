"""ListOffsets and OffsetForLeaderEpoch at the leader (docs/protocol.md 2.3, 2.4, KIP-207)."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    LookupByTime,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResult,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.replication.epoch_end import end_of_epoch


class OffsetsHandler:
    def __init__(self, ctx: Context, partitions: Partitions) -> None:
        self._ctx = ctx
        self._partitions = partitions

    def list_offsets(self, request_id: int, request: ListOffsetsRequest) -> None:
        results = tuple(self._list(request, part) for part in request.partitions)
        self._ctx.reply(request_id, ListOffsetsResponse(results))

    def _list(self, request: ListOffsetsRequest, part: ListOffsetsPartition) -> ListOffsetsResult:
        replica = self._leading(part.tp, part.current_leader_epoch)
        if isinstance(replica, ErrorCode):
            return ListOffsetsResult(part.tp, replica)
        consumer, log = request.replica_id < 0, replica.log
        if consumer and not replica.leading.open:
            return ListOffsetsResult(part.tp, ErrorCode.not_leader_or_follower)
        if part.timestamp == EARLIEST:
            return ListOffsetsResult(
                part.tp, offset=log.log_start, leader_epoch=log.epochs.epoch_at(log.log_start)
            )
        may_show = self._ctx.rules.high_watermark.may_show_end(replica.high_watermark, replica.leading.leso)
        if consumer and not may_show:
            known = request.knows_offset_not_available
            return ListOffsetsResult(
                part.tp, ErrorCode.offset_not_available if known else ErrorCode.leader_not_available
            )
        end = replica.high_watermark if consumer else log.leo
        if part.timestamp == LATEST:
            return ListOffsetsResult(part.tp, offset=end, leader_epoch=log.epochs.epoch_at(end))
        return ListOffsetsResult(part.tp, lookup=LookupByTime(part.tp, part.timestamp, end))

    def for_leader_epoch(self, request_id: int, request: OffsetForLeaderEpochRequest) -> None:
        results = tuple(self._end_of(part) for part in request.partitions)
        self._ctx.reply(request_id, OffsetForLeaderEpochResponse(results))

    def _end_of(self, part: OffsetForLeaderEpochPartition) -> OffsetForLeaderEpochResult:
        replica = self._leading(part.tp, part.current_leader_epoch)
        if isinstance(replica, ErrorCode):
            return OffsetForLeaderEpochResult(part.tp, replica)
        end = end_of_epoch(replica.log.epochs, part.leader_epoch, replica.log.leo)
        if end is None:
            return OffsetForLeaderEpochResult(part.tp)
        return OffsetForLeaderEpochResult(part.tp, leader_epoch=end.epoch, end_offset=end.end_offset)

    def _leading(self, tp: TopicPartition, current_leader_epoch: int) -> Replica | ErrorCode:
        replica = self._partitions.get(tp)
        if replica is None:
            known = self._ctx.image.partition(tp) is not None
            return ErrorCode.not_leader_or_follower if known else ErrorCode.unknown_topic_or_partition
        if replica.failed:
            return ErrorCode.kafka_storage_error
        if replica.leader is None:
            return ErrorCode.not_leader_or_follower
        error = self._ctx.rules.reads.epoch_check(current_leader_epoch, replica.leader_epoch)
        return replica if error is NO_ERROR else error
