"""The high watermark checkpoint thread of profile zk08, which flushes high watermark and log (Z23, Z51).

One timer serves all partitions. The log is flushed first, and the file names no high watermark beyond what is
on the disk: so a replica that starts again finds every record below its checkpoint.
"""

from __future__ import annotations

from wrackline.broker.core.maintenance import CheckpointFiles, flush_all
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.types import FlushMode
from wrackline.zookeeper.core.replicas.assigned import Assigned


class Checkpoints:
    def __init__(self, ctx: Context, assigned: Assigned) -> None:
        self._ctx = ctx
        self._assigned = assigned
        self._files = CheckpointFiles(ctx)

    def start(self) -> None:
        config = self._ctx.config
        self._ctx.repeat("checkpoint", config.high_watermark_checkpoint_interval_ms, self._flush)
        if config.flush_mode is FlushMode.EVERY_INTERVAL:
            self._ctx.repeat("flush", config.flush_ms, self._flush)

    def _flush(self) -> None:
        flush_all(self._ctx, self._assigned)
        self.write()

    def flushed(self, replica: Replica) -> None:
        if replica.log.flushed >= replica.high_watermark:
            self.write()

    def write(self) -> None:
        offsets = {
            replica.tp: max(replica.log.log_start, min(replica.high_watermark, replica.log.flushed))
            for replica in self._assigned
        }
        self._files.write(Checkpoint.HIGH_WATERMARK, offsets)
        self._files.write_logs([replica.log for replica in self._assigned])
