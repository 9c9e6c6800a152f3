"""Events that a core object takes. Production and simulator feed the same events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from uuid import UUID

from wrackline.broker.model.coordination import Coordinated, SessionChanged, WatchFired
from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.types import (
    NodeId,
    QuorumState,
    RecoveredLog,
    SnapshotId,
    StoredSnapshot,
    TopicPartition,
)
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class Boot:
    """The process starts. Comes once, first."""

    incarnation_id: UUID
    logs: Mapping[TopicPartition, RecoveredLog]
    """Every log found on disk, the metadata log (METADATA) among them."""
    metadata: tuple[bytes, ...] = ()
    """The batches of the local copy of the metadata log, whole, in order."""
    previous_broker_epoch: int = -1
    """From the clean-shutdown file; -1 when there was none (the file is deleted before this event)."""
    quorum_state: QuorumState | None = None
    """A controller's; None when none was ever written."""
    directory_id: UUID = UUID(int=0)
    """Of the data directory; another one after the disk was wiped or exchanged."""
    snapshots: tuple[StoredSnapshot, ...] = ()
    """Of the metadata log, every one found."""
    offline: tuple[TopicPartition, ...] = ()
    """There are records on disk, but it cannot be told of which topic: neither used nor thrown away."""


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A request came in; answer with ``Reply(request_id, ...)`` exactly once, unless acks=0."""

    request_id: int
    request: Request
    client_id: str = ""
    client_host: str = ""
    clock_ms: float | None = None
    """The node's time of day since 1970; None where there is none (then records of any time are taken)."""


@dataclass(frozen=True, slots=True)
class RequestCancelled:
    """The asker's connection is gone: forget what is parked for it. A Reply would be thrown away."""

    request_id: int


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """The answer to ``Send(correlation, ...)``."""

    correlation: int
    source: NodeId
    response: Response


@dataclass(frozen=True, slots=True)
class SendFailed:
    """The event that no answer came to ``Send(correlation, ...)``: it was refused, cut or timed out. It
    may have been carried out."""

    correlation: int
    destination: NodeId
    reason: str


@dataclass(frozen=True, slots=True)
class TimerFired:
    key: str


@dataclass(frozen=True, slots=True)
class Flushed:
    """A flush has ended: everything of the log below ``upto`` is on disk."""

    tp: TopicPartition
    upto: int


@dataclass(frozen=True, slots=True)
class SnapshotWritten:
    """A snapshot of the metadata log is on the disk."""

    id: SnapshotId


@dataclass(frozen=True, slots=True)
class LogStartMoved:
    """Retention has removed what lay below ``log_start``."""

    tp: TopicPartition
    log_start: int


@dataclass(frozen=True, slots=True)
class LogCut:
    """A truncation has taken more than it was asked to: its offset lay inside a batch, which goes whole. The
    log ends at ``end``."""

    tp: TopicPartition
    end: int


@dataclass(frozen=True, slots=True)
class DiskFailed:
    """An append, flush or truncation failed; the log must not be written to again."""

    tp: TopicPartition
    reason: str


@dataclass(frozen=True, slots=True)
class StopRequested:
    """SIGTERM: shut down in the controlled way."""


@dataclass(frozen=True, slots=True)
class LogsClosed:
    """Answer to the effect CloseLogs: everything is flushed, checkpoints and clean-shutdown file are
    written."""

    recovery_points: Mapping[TopicPartition, int] = field(default_factory=dict)


Event = (
    Boot
    | RequestReceived
    | RequestCancelled
    | ResponseReceived
    | SendFailed
    | TimerFired
    | Flushed
    | SnapshotWritten
    | LogStartMoved
    | LogCut
    | DiskFailed
    | StopRequested
    | LogsClosed
    | SessionChanged
    | Coordinated
    | WatchFired
)
