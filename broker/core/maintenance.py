"""Maintenance of a broker's partitions by the clock: ISR checks, flushes, checkpoints, expiry.

The ISR is checked every half lag time (docs/protocol.md 2.5), logs are flushed by interval (R03), and
checkpoint files are written (docs/protocol.md 2.14, Z23).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from wrackline.broker.core.replication import leader
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.log import PartitionLog
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.model.effects import Checkpoint, Retain, WriteCheckpoint
from wrackline.broker.model.types import METADATA, NO_LEADER, FlushMode, TopicPartition


class Maintenance:
    def __init__(
        self, ctx: Context, partitions: Partitions, metadata_log: Callable[[], PartitionLog]
    ) -> None:
        self._ctx = ctx
        self._partitions = partitions
        self._metadata_log = metadata_log
        self._written: dict[Checkpoint, Mapping[TopicPartition, int]] = {}

    def start(self) -> None:
        config = self._ctx.config
        self._every(config.replica_lag_time_max_ms / 2, "isr-shrink", self._shrink)
        self._every(
            config.high_watermark_checkpoint_interval_ms, "checkpoint-hw", self._checkpoint_high_watermarks
        )
        self._every(
            config.recovery_point_checkpoint_interval_ms, "checkpoint-recovery", self._checkpoint_recovery
        )
        self._every(config.log_retention_check_interval_ms, "retention", self._retain)
        self._every(
            config.producer_id_expiration_check_interval_ms, "producer-expiration", self._expire_producers
        )
        if config.flush_mode is FlushMode.EVERY_INTERVAL:
            self._every(config.flush_ms, "flush", self._flush)

    def _every(self, interval_ms: float, key: str, work: Callable[[], None]) -> None:
        def run() -> None:
            work()
            self._every(interval_ms, key, work)

        self._ctx.set_timer(key, self._ctx.now_ms + interval_ms, run)

    def _shrink(self) -> None:
        for replica in self._partitions:
            if replica.leader is not None:
                leader.shrink(replica)

    def _flush(self) -> None:
        for replica in self._partitions:
            if not replica.failed:
                replica.log.flush(self._ctx.out)

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
        self._write(Checkpoint.HIGH_WATERMARK, self.high_watermarks())

    def _checkpoint_recovery(self) -> None:
        logs = [self._metadata_log(), *(replica.log for replica in self._partitions)]
        self._write(Checkpoint.RECOVERY_POINT, {log.tp: log.flushed for log in logs})
        self._write(Checkpoint.LOG_START, {log.tp: log.log_start for log in logs})

    def _write(self, kind: Checkpoint, offsets: Mapping[TopicPartition, int]) -> None:
        """The whole file, when anything in it has changed."""
        if self._written.get(kind) != offsets:
            self._written[kind] = offsets
            self._ctx.out.append(WriteCheckpoint(kind, offsets))
