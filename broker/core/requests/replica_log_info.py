"""GetReplicaLogInfo: what a broker tells the controller of its logs (KIP-966; docs/protocol.md 2.9, R31).

Asked of any replica, not of the leader: there is none. The answer carries the broker epoch, so that the
controller can tell this life's log from an earlier one's.
"""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.model.messages.controller import (
    MAX_LOG_INFOS,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)


class LogInfoHandler:
    def __init__(self, ctx: Context, partitions: Partitions) -> None:
        self._ctx = ctx
        self._partitions = partitions

    def handle(self, request_id: int, request: GetReplicaLogInfoRequest) -> None:
        entries = tuple(self._info(*which) for which in request.partitions[:MAX_LOG_INFOS])
        has_more = len(request.partitions) > MAX_LOG_INFOS
        self._ctx.reply(request_id, GetReplicaLogInfoResponse(self._ctx.broker_epoch, entries, has_more))

    def _info(self, topic_id: UUID, partition: int) -> ReplicaLogInfo:
        known = self._ctx.image.partition_by_id(topic_id, partition)
        if known is None:
            return ReplicaLogInfo(topic_id, partition, error=ErrorCode.unknown_topic_id)
        replica = self._partitions.get(known.tp)
        if replica is None or replica.topic_id != topic_id:
            return ReplicaLogInfo(topic_id, partition, error=ErrorCode.not_leader_or_follower)
        if replica.failed:
            return ReplicaLogInfo(topic_id, partition, error=ErrorCode.kafka_storage_error)
        log = replica.log
        # Not the latest epoch of the cache: a leader notes its epoch before it has written anything.
        return ReplicaLogInfo(
            topic_id,
            partition,
            last_written_leader_epoch=log.epochs.epoch_at(log.leo - 1),
            current_leader_epoch=replica.leader_epoch,
            leo=log.leo,
        )
