"""FetchSnapshot as the core sees it: how a snapshot of the metadata log travels, piece by piece (KIP-630).

Part of the unions of `wrackline.broker.model.messages.requests`.
"""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.types import NO_EPOCH, NO_LEADER, NodeId, SnapshotId, SnapshotSlice
from wrackline.broker.model.values import dataclass

NO_SNAPSHOT = SnapshotId(-1, NO_EPOCH)


@dataclass(frozen=True, slots=True)
class FetchSnapshotRequest:
    cluster_id: str
    replica_id: NodeId
    snapshot: SnapshotId
    position: int
    """Bytes that the asker has."""
    max_bytes: int
    current_leader_epoch: int = NO_EPOCH
    """-1 from observers, who follow no leader in particular."""
    directory_id: UUID | None = None
    """Voters name it, observers do not."""


@dataclass(frozen=True, slots=True)
class FetchSnapshotResponse:
    error: ErrorCode
    snapshot: SnapshotId = NO_SNAPSHOT
    size: int = 0
    """Of the whole snapshot, in bytes."""
    position: int = 0
    records: SnapshotSlice | bytes = b""
    """A slice when leaving a leader, bytes when arriving. They may begin and end in the middle of a batch."""
    leader_id: NodeId = NO_LEADER
    leader_epoch: int = NO_EPOCH
