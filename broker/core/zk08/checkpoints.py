"""The high watermark checkpoint thread of profile zk08, which flushes high watermark and log (Z23, Z51).

One timer serves all partitions. The log is flushed first, and the file names no high watermark beyond what is
on the disk: so a replica that starts again finds every record below its checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.core.zk08.assigned import Assigned
from wrackline.broker.model.effects import Checkpoint, WriteCheckpoint
from wrackline.broker.model.types import FlushMode, TopicPartition


class Checkpoints:
    def __init__(self, ctx: Context, assigned: Assigned) -> None:
        self._ctx = ctx
        self._assigned = assigned
        self._written: dict[Checkpoint, Mapping[TopicPartition, int]] = {}

    def start(self) -> None:
        config = self._ctx.config
        self._every(config.high_watermark_checkpoint_interval_ms, "checkpoint")
        if config.flush_mode is FlushMode.EVERY_INTERVAL:
            self._every(config.flush_ms, "flush")

    def _every(self, interval_ms: float, key: str) -> None:
        def run() -> None:
            self._flush()
            self._every(interval_ms, key)

        self._ctx.set_timer(key, self._ctx.now_ms + interval_ms, run)

    def _flush(self) -> None:
        for replica in self._assigned:
            if not replica.failed:
                replica.log.flush(self._ctx.out)
        self.write()

    def flushed(self, replica: Replica) -> None:
        if replica.log.flushed >= replica.high_watermark:
            self.write()

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {
            replica.tp: max(replica.log.log_start, min(replica.high_watermark, replica.log.flushed))
            for replica in self._assigned
        }

    def write(self) -> None:
        self._put(Checkpoint.HIGH_WATERMARK, self.high_watermarks())
        self._put(Checkpoint.RECOVERY_POINT, {r.tp: r.log.flushed for r in self._assigned})
        self._put(Checkpoint.LOG_START, {r.tp: r.log.log_start for r in self._assigned})

    def _put(self, kind: Checkpoint, offsets: Mapping[TopicPartition, int]) -> None:
        """The whole file, when anything in it has changed."""
        if self._written.get(kind) != offsets:
            self._written[kind] = offsets
            self._ctx.out.append(WriteCheckpoint(kind, offsets))
