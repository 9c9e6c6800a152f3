"""Effects that a core object asks of its shell, in order. The shell (or the simulator) only carries it out.

Appends and truncations are carried out before the effects that follow them: a Reply that comes after an
Append may rely on the bytes being in the log (in the page cache, not on the disk). Flush, WriteSnapshot and
CloseLogs are asynchronous: they are answered by Flushed, SnapshotWritten and LogsClosed, or DiskFailed. What
CreateLog, DeleteLog, WriteEpochs and WriteCheckpoint ask for is done later, for each log in order: before
the log is next written to, and on the disk before its next Flush is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any
from uuid import UUID

from wrackline.broker.model.coordination import CloseSession, Coordinate, OpenSession
from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.types import (
    EpochEntry,
    LogOverrides,
    NodeId,
    QuorumState,
    SnapshotId,
    TopicPartition,
)
from wrackline.broker.model.values import dataclass


class Checkpoint(StrEnum):
    """A file that holds one offset for each log of a data directory."""

    HIGH_WATERMARK = "high-watermark"
    RECOVERY_POINT = "recovery-point"
    """Everything below the offset is on the disk."""
    LOG_START = "log-start"


@dataclass(frozen=True, slots=True)
class Send:
    """A request to another node. Channels to one node are independent connections: a parked fetch on one
    does not hold up the others. Answered by ResponseReceived or SendFailed with this correlation."""

    correlation: int
    destination: NodeId
    channel: str
    request: Request
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Reply:
    request_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class NoReply:
    """The request (acks=0) is done and has no answer; ``close`` hangs up on an error."""

    request_id: int
    close: bool = False


@dataclass(frozen=True, slots=True)
class CreateLog:
    """Creates a log; nothing rests on its being there before its first Flush: a power cut may take a log
    without one."""

    tp: TopicPartition
    topic_id: UUID
    start_offset: int = 0


@dataclass(frozen=True, slots=True)
class DeleteLog:
    tp: TopicPartition


@dataclass(frozen=True, slots=True)
class Append:
    """Whole batches, offsets and leader epochs already stamped; the first starts at the log's end."""

    tp: TopicPartition
    batches: tuple[bytes, ...]
    base_offset: int
    end_offset: int
    """Exclusive."""


@dataclass(frozen=True, slots=True)
class Flush:
    tp: TopicPartition
    upto: int


@dataclass(frozen=True, slots=True)
class Truncate:
    """Drop every record at or past ``to_offset``. Answered by LogCut where that lies inside a batch."""

    tp: TopicPartition
    to_offset: int


@dataclass(frozen=True, slots=True)
class ResetLog:
    """Drop everything and begin again at ``start_offset``."""

    tp: TopicPartition
    start_offset: int


@dataclass(frozen=True, slots=True)
class MoveLogStart:
    """Records below ``to_offset`` are gone: the log-start checkpoint says so before the next effect that
    tells anybody, and before whole segments are removed."""

    tp: TopicPartition
    to_offset: int


@dataclass(frozen=True, slots=True)
class Retain:
    """Remove whole old segments, none that reaches past ``upto``, until the rest is within the limits (-1: no
    limit; times are those in the records, against the wall clock). Answered by LogStartMoved if any were."""

    tp: TopicPartition
    retention_bytes: int
    retention_ms: int
    upto: int


@dataclass(frozen=True, slots=True)
class ConfigureLog:
    """Configures the layout of the log on disk from now on."""

    tp: TopicPartition
    overrides: LogOverrides


@dataclass(frozen=True, slots=True)
class WriteEpochs:
    """The leader-epoch checkpoint, whole; fsynced (KAFKA-16541) before records that come after it are."""

    tp: TopicPartition
    entries: tuple[EpochEntry, ...]


@dataclass(frozen=True, slots=True)
class WriteCheckpoint:
    """One of the per-directory checkpoint files, whole. Nothing waits for it."""

    kind: Checkpoint
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class WriteQuorumState:
    """The controller's epoch and vote: on the disk before the effects that follow are carried out. When it
    fails none of them may be, and the event DiskFailed(METADATA) follows."""

    state: QuorumState


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """A snapshot of the metadata log, whole, beside it. Takes time: answered by SnapshotWritten when it would
    survive a power cut, or by DiskFailed(METADATA). Until then a crash leaves the older ones as they were."""

    id: SnapshotId
    data: bytes


@dataclass(frozen=True, slots=True)
class DeleteSnapshot:
    id: SnapshotId


@dataclass(frozen=True, slots=True)
class CloseLogs:
    """Flush every log, write all checkpoints, then the clean-shutdown file with ``broker_epoch`` (R09).
    Answered by LogsClosed."""

    broker_epoch: int
    high_watermarks: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Fire TimerFired(key) at ``at_ms``; replaces a timer of the same key."""

    key: str
    at_ms: float


@dataclass(frozen=True, slots=True)
class CancelTimer:
    key: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One line of the trace (docs/broker.md "Trace"); the shell adds time, node, incarnation and seq."""

    kind: str
    fields: Mapping[str, Any]
    loud: bool = False
    """A person should know: the shell also writes it to its log, as a warning."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The process ends."""

    code: int
    reason: str


Effect = (
    Send
    | Reply
    | NoReply
    | CreateLog
    | DeleteLog
    | Append
    | Flush
    | Truncate
    | ResetLog
    | MoveLogStart
    | Retain
    | ConfigureLog
    | WriteEpochs
    | WriteCheckpoint
    | WriteQuorumState
    | WriteSnapshot
    | DeleteSnapshot
    | CloseLogs
    | SetTimer
    | CancelTimer
    | OpenSession
    | Coordinate
    | CloseSession
    | Trace
    | Exit
)
