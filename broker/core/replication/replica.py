"""One replica of a partition on this broker: its log, its role, its high watermark
(docs/protocol.md 2.0, 2.4).

This is the state, with what keeps its parts together. Who gives it a role is in ``roles``, what a leader does
in ``leader``; following is done by ``fetcher``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.log import PartitionLog
from wrackline.broker.core.replication.parked import ParkedFetch, Waiter
from wrackline.broker.model.batches.batch import BatchHeader
from wrackline.broker.model.effects import ConfigureLog
from wrackline.broker.model.events import LogCut, LogStartMoved
from wrackline.broker.model.messages.controller import AlterPartitionItem
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.metadata.topic_settings import TopicSettings, settings_of
from wrackline.broker.model.types import (
    EVERY_WRITE,
    NO_EPOCH,
    NO_LEADER,
    NodeId,
    RecoveredLog,
    TopicPartition,
)
from wrackline.broker.rules.replication.watermark import UNKNOWN_OFFSET


@dataclass(slots=True)
class Follower:
    """A follower's progress from its last fetch, never from metadata (K14)."""

    leo: int = UNKNOWN_OFFSET
    last_fetch_ms: float = -math.inf
    leader_leo_at_fetch: int = UNKNOWN_OFFSET
    last_caught_up_ms: float = -math.inf
    broker_epoch: int = NO_EPOCH
    fetched_in_epoch: int = NO_EPOCH
    log_start: int = UNKNOWN_OFFSET


@dataclass(slots=True)
class LeaderState:
    """The leader's state beyond its log, in one term or in several in a row on the same broker."""

    isr: frozenset[NodeId]
    """As committed."""
    maximal: frozenset[NodeId]
    """The committed ISR and, while a proposal is in flight, the proposed one (K44)."""
    leso: int
    """Log end at election: what former leaders may have committed (K40, KIP-207)."""
    proposal: AlterPartitionItem | None = None
    """The ISR change that the controller has not decided on yet."""
    followers: dict[NodeId, Follower] = field(default_factory=dict)
    """One for each other assigned replica."""
    open: bool = True
    """False while a new leader of profile zk08 waits for its ISR: it serves followers and nobody else
    (Z31)."""
    recovering: bool = False
    """Elected uncleanly, and the controller has not taken it that the recovery is over (KIP-704)."""


class Changes:
    """Changes of replicas that no event has acted upon yet. Both are in the order of the first change, so
    that what follows happens in the same order in every process."""

    def __init__(self) -> None:
        self.touched: dict[TopicPartition, Replica] = {}
        """Replicas whose end, high watermark or role changed during this event: their waiters are looked at
        when it has been handled. A replica that was removed is here too, though it is found by its name no
        more: its waiters must be refused."""
        self.proposed: dict[TopicPartition, Replica] = {}
        """Replicas with an ISR proposal that is not on its way to the controller (``alter_partition``)."""


class Replica:
    def __init__(self, ctx: Context, changes: Changes, tp: TopicPartition, recovered: RecoveredLog) -> None:
        self.ctx = ctx
        self.changes = changes
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
        self.leader: LeaderState | None = None
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
        self.changes.touched[self.tp] = self

    @property
    def leading(self) -> LeaderState:
        """Raises RuntimeError on a follower."""
        if self.leader is None:
            raise RuntimeError(f"{self.tp} is not led here")
        return self.leader

    # --- metadata ------------------------------------------------------------------------------------------

    def adopt(self, image: PartitionImage) -> None:
        """Take over what the committed metadata says of the partition. Roles are for ``roles`` to change."""
        self.leader_id = image.leader
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.replicas = image.replicas
        self.take_settings()

    def take_settings(self) -> None:
        ctx, before, needed = self.ctx, self.settings, self.min_isr
        self.min_isr = ctx.image.min_isr(self.tp) if ctx.rules.switches.has_min_isr else 1
        if self.min_isr != needed:
            ctx.trace("min_isr", tp=str(self.tp), old=needed, new=self.min_isr)
        self.max_message_bytes = ctx.max_message_bytes(self.tp.topic)
        self.settings = settings_of(ctx.image, self.tp.topic)
        if self.settings.on_disk != before.on_disk:
            ctx.out.append(ConfigureLog(self.tp, self.settings.on_disk))

    @property
    def every_write(self) -> bool:
        """Is a record flushed before it counts (R01)? By the broker's flush mode, or by the topic's."""
        return self.ctx.config.flush_mode is EVERY_WRITE or self.settings.flush_messages == 1

    def recovered(self) -> RecoveredLog:
        """Returns the log for a replica that is to go on with it."""
        log = self.log
        return RecoveredLog(
            self.topic_id,
            log.log_start,
            log.leo,
            log.flushed,
            self.high_watermark,
            log.epochs.entries,
            log.producers.snapshots(),
        )

    # --- log -----------------------------------------------------------------------------------------------

    def append(self, batches: Sequence[tuple[BatchHeader, bytes]], acks: int | None = None) -> None:
        """Appends as leader or as follower; offsets and epochs are those in the headers. ``acks``: of the
        request that brought them, to the leader."""
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
            acks=acks,
            batches=[
                (header.base_offset, header.last_offset, header.leader_epoch, header.crc)
                for header, _ in batches
            ],
        )
        log.flush_if_due(ctx.config.flush_mode, ctx.config.flush_messages, ctx.out)
        self._flush_if_due()
        self.touch()

    def _flush_if_due(self) -> None:
        """Flushes as the topic's own flush.messages and flush.ms ask for."""
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

    def log_changed(self, event: LogStartMoved | LogCut) -> None:
        """Retention has removed records, or a truncation more than it was asked to."""
        match event:
            case LogStartMoved():
                was = self.log.log_start
                self.log.start_moved(event.log_start, self.ctx.out)
                self._log_start_is_now(was)
            case LogCut() if event.end < self.log.leo:
                self.truncate(event.end, "inside a batch")

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

    def on_flushed(self, upto: int) -> bool:
        """Notes that everything below ``upto`` is on disk; True when that is more than before."""
        moved = self.log.on_flushed(upto)
        if moved:
            self.ctx.trace("flush", tp=str(self.tp), upto=self.log.flushed)
        return moved

    def flush_next(self) -> None:
        """Flushes in mode every-write what came while a flush was under way."""
        if self.every_write:
            self.log.flush(self.ctx.out)
        else:
            self._flush_if_due()
