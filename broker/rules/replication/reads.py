"""Reads that a leader allows (docs/protocol.md 2.2, K32, K47)."""

from __future__ import annotations

from collections.abc import Collection

from kio.schema.errors import ErrorCode

from wrackline.broker.model.types import NO_EPOCH, NodeId
from wrackline.broker.model.values import NO_ERROR


class ReadRules:
    """Profile kip966."""

    def epoch_check(self, asked: int, own: int) -> ErrorCode:
        """A request that names an epoch must name this leader's own (KIP-320)."""
        if asked in (NO_EPOCH, own):
            return NO_ERROR
        return ErrorCode.fenced_leader_epoch if asked < own else ErrorCode.unknown_leader_epoch

    def follower_check(
        self,
        follower: NodeId,
        followers: Collection[NodeId],
        asked_epoch: int,
        broker_epoch: int,
        registered: int,
    ) -> ErrorCode:
        """A fetch of a replica: assigned here (KAFKA-14078) and not the leader itself, nor of a former life
        of it (docs/protocol.md 2.2.3)."""
        if follower not in followers:
            return (
                ErrorCode.not_leader_or_follower
                if asked_epoch == NO_EPOCH
                else ErrorCode.unknown_leader_epoch
            )
        if broker_epoch != NO_EPOCH and broker_epoch < registered:
            return ErrorCode.not_leader_or_follower
        return NO_ERROR

    def readable_end(self, is_follower: bool, high_watermark: int, leo: int) -> int:
        """Followers read all of the log, consumers only what is committed."""
        return leo if is_follower else high_watermark

    def range_check(self, offset: int, log_start: int, leo: int) -> ErrorCode:
        """Out of range is judged by the log, not by the high watermark: a consumer that a new leader's
        lagging high watermark has not reached yet waits, it must not be told to reset."""
        return NO_ERROR if log_start <= offset <= leo else ErrorCode.offset_out_of_range
