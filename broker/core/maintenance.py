"""Maintenance of a broker's partitions by the clock: ISR checks, flushes, checkpoints, expiry.

The ISR is checked every half lag time (docs/protocol.md 2.5), logs are flushed by interval (R03), and
checkpoint files are written (docs/protocol.md 2.14, Z23).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from wrackline.broker.core.replication import leader
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.log import PartitionLog
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.model.effects import Checkpoint, Retain, WriteCheckpoint
from wrackline.broker.model.types import METADATA, NO_LEADER, FlushMode, TopicPartition


class CheckpointFiles:
    """The contents of the checkpoint files: each is written whole, when anything in it has changed."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._written: dict[Checkpoint, Mapping[TopicPartition, int]] = {}

    def write(self, kind: Checkpoint, offsets: Mapping[TopicPartition, int]) -> None:
        if self._written.get(kind) != offsets:
            self._written[kind] = offsets
            self._ctx.out.append(WriteCheckpoint(kind, offsets))

    def write_logs(self, logs: Collection[PartitionLog]) -> None:
        """Writes how far the logs are on the disk, and where they begin."""
        self.write(Checkpoint.RECOVERY_POINT, {log.tp: log.flushed for log in logs})
        self.write(Checkpoint.LOG_START, {log.tp: log.log_start for log in logs})


def flush_all(ctx: Context, partitions: Partitions) -> None:
    for replica in partitions:
        if not replica.failed:
            replica.log.flush(ctx.out)


class Maintenance:
    def __init__(
        self, ctx: Context, partitions: Partitions, metadata_log: Callable[[], PartitionLog]
    ) -> None:
        self._ctx = ctx
        self._partitions = partitions
        self._metadata_log = metadata_log
        self._files = CheckpointFiles(ctx)

    def start(self) -> None:
        config, repeat = self._ctx.config, self._ctx.repeat
        repeat("isr-shrink", config.replica_lag_time_max_ms / 2, self._shrink)
        repeat(
            "checkpoint-hw", config.high_watermark_checkpoint_interval_ms, self._checkpoint_high_watermarks
        )
        repeat("checkpoint-recovery", config.recovery_point_checkpoint_interval_ms, self._checkpoint_recovery)
        repeat("retention", config.log_retention_check_interval_ms, self._retain)
        repeat("producer-expiration", config.producer_id_expiration_check_interval_ms, self._expire_producers)
        if config.flush_mode is FlushMode.EVERY_INTERVAL:
            repeat("flush", config.flush_ms, lambda: flush_all(self._ctx, self._partitions))

    def _shrink(self) -> None:
        for replica in self._partitions:
            if replica.leader is not None:
                leader.shrink(replica)

    def _retain(self) -> None:
        """Applies retention.bytes and retention.ms on every replica by itself. Only what is committed
        may go."""
        for replica in self._partitions:
            settings = replica.settings
            if not settings.retains_all and not replica.failed:
                limits = settings.retention_bytes, settings.retention_ms
                self._ctx.out.append(Retain(replica.tp, *limits, upto=replica.high_watermark))

    def _expire_producers(self) -> None:
        """Expires producers on every replica by itself, as each has counted since it was started."""
        config = self._ctx.config
        interval_ms = config.producer_id_expiration_check_interval_ms
        looks = math.ceil(config.producer_id_expiration_ms / interval_ms)
        for replica in self._partitions:
            replica.log.producers.expire(looks)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        metadata, everyone = self._metadata_log(), self._ctx.rules.switches.checkpoints_leaderless
        return {
            METADATA: metadata.leo,
            **{
                replica.tp: replica.high_watermark
                for replica in self._partitions
                if everyone or replica.leader_id != NO_LEADER
            },
        }

    def _checkpoint_high_watermarks(self) -> None:
        self._files.write(Checkpoint.HIGH_WATERMARK, self.high_watermarks())

    def _checkpoint_recovery(self) -> None:
        self._files.write_logs([self._metadata_log(), *(replica.log for replica in self._partitions)])
