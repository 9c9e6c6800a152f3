"""One replica of a partition on this broker: its log, its role, its high watermark
(docs/protocol.md 2.0, 2.4).

The leader's part is in ``leader``; following is done by ``fetcher``. Roles change only by committed metadata
(``partitions``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.leader import Leader
from wrackline.broker.core.replication.log import PartitionLog
from wrackline.broker.model.batch import BatchHeader
from wrackline.broker.model.effects import ConfigureLog
from wrackline.broker.model.image import PartitionImage
from wrackline.broker.model.topic_settings import TopicSettings, settings_of
from wrackline.broker.model.types import (
    EVERY_WRITE,
    NO_EPOCH,
    NO_LEADER,
    NodeId,
    RecoveredLog,
    TopicPartition,
)

if TYPE_CHECKING:
    from wrackline.broker.core.replication.purgatory import ParkedFetch, Waiter


class Replica:
    def __init__(self, ctx: Context, tp: TopicPartition, recovered: RecoveredLog) -> None:
        self.ctx = ctx
        self.tp = tp
        self.topic_id: UUID = recovered.topic_id
        self.log = PartitionLog(tp, recovered)
        self.high_watermark = ctx.rules.high_watermark.at_start(
            recovered.high_watermark, recovered.log_start, recovered.leo
        )
        self.leader_id: NodeId = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.replicas: tuple[NodeId, ...] = ()
        self.min_isr = 1
        self.max_message_bytes = ctx.config.max_message_bytes
        self.settings = TopicSettings()
        self._flush_timer = False
        self.leader: Leader | None = None
        """Set while this replica leads."""
        self.failed = False
        """The disk refused: neither read nor written any more (KAFKA-10778)."""
        self.after_empty = False
        """The last answer to a fetch had no records."""
        self.produces: list[Waiter] = []
        """Heap of acks=all requests waiting for the high watermark (``purgatory``)."""
        self.fetches: dict[int, ParkedFetch] = {}
        """Long polls waiting for this partition, by request id."""

    def touch(self) -> None:
        self.ctx.touched[self.tp] = self

    # --- roles (K48-K54) ---------------------------------------------------------------------------------

    def settings_changed(self) -> None:
        """MinISR and the like come with the metadata; a lower MinISR may let the high watermark move."""
        self._take_settings()
        if self.every_write:
            self.log.flush(self.ctx.out)
        if self.leader is not None:
            self.leader.advance()
            self.touch()

    def become_leader(self, image: PartitionImage) -> None:
        """K48 to K50: from any role, in the same or in a new leader epoch."""
        switches = self.ctx.rules.switches
        epochs = image.leader_epoch - self.leader_epoch
        fresh = epochs != 0
        was = self.leader
        self._adopt(image)
        if fresh and switches.assigns_epoch_on_election:
            self.log.assign_epoch(self.leader_epoch, self.ctx.out)
        if fresh and switches.new_leader_forgets_producers:
            self.log.producers.clear()
        if was is None:
            self.leader = Leader(self, image.isr)
        elif fresh:
            was.reelected(image.isr, epochs)
        else:
            was.isr_committed(image.isr)
        self._trace_role("leader", fresh or was is None)
        if self.every_write:
            self.log.flush(self.ctx.out)
        if fresh or was is None:
            self.leading.advance()
        self.leading.recovery_state(image.leader_recovery_state)
        self.touch()

    def become_follower(self, image: PartitionImage) -> bool:
        """K51 to K54. True when the fetcher must begin anew: another leader epoch, or none yet."""
        fresh = image.leader_epoch != self.leader_epoch
        self.leader = None
        self._adopt(image)
        if fresh:
            self.after_empty = self.after_empty and self.ctx.rules.switches.empty_answer_outlives_epoch
            cut = self.ctx.rules.truncation.on_become_follower(self.log.leo, self.high_watermark)
            if cut < self.log.leo:
                self.truncate(cut, "became follower")
            if self.every_write:
                self.log.flush(self.ctx.out)
        self._trace_role("follower", fresh)
        self.touch()
        return fresh

    def step_down(self) -> None:
        """Nothing is served any more: the replica is removed, or the broker closes its logs."""
        self.leader = None
        self.leader_id = NO_LEADER
        self.touch()

    @property
    def leading(self) -> Leader:
        """Raises RuntimeError on a follower."""
        if self.leader is None:
            raise RuntimeError(f"{self.tp} is not led here")
        return self.leader

    def _adopt(self, image: PartitionImage) -> None:
        self.leader_id = image.leader
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.replicas = image.replicas
        self._take_settings()

    def _take_settings(self) -> None:
        ctx, before = self.ctx, self.settings
        self.min_isr = ctx.image.min_isr(self.tp)
        self.max_message_bytes = ctx.max_message_bytes(self.tp.topic)
        self.settings = settings_of(ctx.image, self.tp.topic)
        if self.settings.on_disk != before.on_disk:
            ctx.out.append(ConfigureLog(self.tp, self.settings.on_disk))

    @property
    def every_write(self) -> bool:
        """Is a record flushed before it counts (R01)? By the broker's flush mode, or by the topic's."""
        return self.ctx.config.flush_mode is EVERY_WRITE or self.settings.flush_messages == 1

    def _trace_role(self, role: str, changed: bool) -> None:
        if changed:
            self.ctx.trace(
                "role",
                tp=str(self.tp),
                role=role,
                leader=self.leader_id,
                leader_epoch=self.leader_epoch,
                partition_epoch=self.partition_epoch,
                leso=-1 if self.leader is None else self.leader.leso,
                leo=self.log.leo,
                hwm=self.high_watermark,
            )

    # --- log -----------------------------------------------------------------------------------------------

    def append(self, batches: Sequence[tuple[BatchHeader, bytes]]) -> None:
        """As leader or as follower; offsets and epochs are those in the headers."""
        ctx, log = self.ctx, self.log
        base = log.leo
        log.append(batches, ctx.out)
        ctx.trace(
            "append",
            tp=str(self.tp),
            base=base,
            last=log.leo - 1,
            epoch=batches[-1][0].leader_epoch,
            leader=self.leader is not None,
        )
        log.flush_if_due(ctx.config.flush_mode, ctx.config.flush_messages, ctx.out)
        self._flush_if_due()
        self.touch()

    def _flush_if_due(self) -> None:
        """What the topic's own flush.messages and flush.ms ask for."""
        settings, log = self.settings, self.log
        if settings.flush_messages is not None and log.leo - log.flushed >= settings.flush_messages:
            log.flush(self.ctx.out)
        if settings.flush_ms is not None and log.flushed < log.leo and not self._flush_timer:
            self._flush_timer = True
            at = self.ctx.now_ms + settings.flush_ms
            self.ctx.set_timer(f"flush:{self.tp}", at, self._flush_timed)

    def _flush_timed(self) -> None:
        self._flush_timer = False
        if not self.failed:
            self.log.flush(self.ctx.out)

    def truncate(self, to_offset: int, why: str) -> None:
        """Cut the log, and the high watermark if need be."""
        was = self.log.leo
        if to_offset < was or self.ctx.rules.switches.cuts_epochs_of_short_log:
            self.log.truncate(to_offset, self.ctx.out)
        if self.log.leo != was:
            self.ctx.trace("truncate", tp=str(self.tp), to=to_offset, was=was, why=why)
        self.set_high_watermark(min(self.high_watermark, self.log.leo))

    def restart_at(self, start_offset: int) -> None:
        """Drop everything: the leader's log begins past our end."""
        self.ctx.trace("truncate", tp=str(self.tp), to=start_offset, was=self.log.leo, why="leader start")
        self.log.reset(start_offset, self.ctx.out)
        self.set_high_watermark(start_offset)

    def move_log_start(self, to_offset: int) -> None:
        """Delete what lies before: asked by a client, or done by the leader. At most the high watermark."""
        was = self.log.log_start
        self.log.move_start(min(to_offset, self.high_watermark), self.ctx.out)
        self._log_start_is_now(was)

    def log_start_moved(self, to_offset: int) -> None:
        """By retention."""
        was = self.log.log_start
        self.log.start_moved(to_offset, self.ctx.out)
        self._log_start_is_now(was)

    def _log_start_is_now(self, was: int) -> None:
        if self.log.log_start != was:
            self.ctx.trace("log_start", tp=str(self.tp), old=was, new=self.log.log_start)
            self.touch()

    def set_high_watermark(self, offset: int) -> bool:
        if offset == self.high_watermark:
            return False
        self.ctx.trace("hwm", tp=str(self.tp), old=self.high_watermark, new=offset)
        self.high_watermark = self.log.producers.committed = offset
        self.touch()
        return True

    def flushed(self, upto: int) -> None:
        """A flush is done: in mode every-write that may commit, and what came meanwhile needs the next
        one."""
        if self.log.on_flushed(upto):
            self.ctx.trace("flush", tp=str(self.tp), upto=self.log.flushed)
            if self.leader is not None:
                self.leader.advance()
        if self.every_write:
            self.log.flush(self.ctx.out)
        else:
            self._flush_if_due()
