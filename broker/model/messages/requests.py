"""Requests and responses as the core sees them: one class per API, whatever the wire version.

Here are those about records (produce, fetch, delete, offsets, producer ids) and the unions of all; the others
are in the modules beside this one whose names end in ``_messages``. `wrackline.broker.wire` translates to and
from kio's entities. Times are milliseconds, offsets exclusive at the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import AdminRequest, AdminResponse
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
)
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataResponse,
)
from wrackline.broker.model.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.model.types import LogSlice, NodeId, SnapshotId, TopicPartition
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class LeaderIdAndEpoch:
    leader_id: NodeId
    leader_epoch: int


# --- produce ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProducePartition:
    tp: TopicPartition
    records: bytes
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    acks: int
    timeout_ms: int
    partitions: tuple[ProducePartition, ...]
    transactional_id: str | None = None
    zstd: bool = True
    """May its batches be compressed so? Not before version 7 (KIP-110)."""


@dataclass(frozen=True, slots=True)
class ProduceResult:
    tp: TopicPartition
    error: ErrorCode = ErrorCode.none
    base_offset: int = -1
    log_start: int = -1
    current_leader: LeaderIdAndEpoch | None = None
    message: str | None = None
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    partitions: tuple[ProduceResult, ...]


# --- fetch -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FetchPartition:
    tp: TopicPartition
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start: int = -1
    topic_id: UUID | None = None
    directory_id: UUID | None = None
    """Of the asking replica's log. Voters of the controller quorum name it (KIP-853), observers do not."""


class ForgottenPartition(NamedTuple):
    """A partition that is no longer wanted in a fetch session."""

    tp: TopicPartition
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class FetchRequest:
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partitions: tuple[FetchPartition, ...]
    replica_id: NodeId = -1
    """-1: a consumer."""
    broker_epoch: int = -1
    session_id: int = 0
    session_epoch: int = -1
    forgotten: tuple[ForgottenPartition, ...] = ()
    isolation_level: int = 0
    session_topics: tuple[tuple[UUID, str], ...] = ()
    """Not sent: the names of the topics in the session, for an answer that names more than the request
    does."""

    def at_most(self, max_bytes: int) -> FetchRequest:
        """Asking for no more than ``max_bytes``."""
        return self if self.max_bytes <= max_bytes else replace(self, max_bytes=max_bytes)

    def with_partitions(self, partitions: tuple[FetchPartition, ...]) -> FetchRequest:
        """Returns the request with other partitions, as ``replace`` does it, in a quarter of the time: each
        request of a session needs it."""
        return FetchRequest(
            self.max_wait_ms,
            self.min_bytes,
            self.max_bytes,
            partitions,
            self.replica_id,
            self.broker_epoch,
            self.session_id,
            self.session_epoch,
            self.forgotten,
            self.isolation_level,
            self.session_topics,
        )


@dataclass(frozen=True, slots=True)
class EpochEndOffset:
    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class FetchResult:
    tp: TopicPartition
    error: ErrorCode = ErrorCode.none
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start: int = -1
    diverging: EpochEndOffset | None = None
    current_leader: LeaderIdAndEpoch | None = None
    records: LogSlice | bytes = b""
    """A slice when leaving a leader, bytes when arriving at a follower."""
    topic_id: UUID | None = None
    snapshot: SnapshotId | None = None
    """Of the metadata log: what was asked for is in the log no more, this holds it (KIP-630)."""

    def with_records(self, records: LogSlice | bytes) -> FetchResult:
        """Returns the result with other records, as ``replace`` does it, in a quarter of the time: most
        answers to fetches are made so."""
        return FetchResult(
            self.tp,
            self.error,
            self.high_watermark,
            self.last_stable_offset,
            self.log_start,
            self.diverging,
            self.current_leader,
            records,
            self.topic_id,
            self.snapshot,
        )


@dataclass(frozen=True, slots=True)
class FetchResponse:
    partitions: tuple[FetchResult, ...]
    error: ErrorCode = ErrorCode.none
    session_id: int = 0


# --- delete records --------------------------------------------------------------------------------------

UP_TO_HIGH_WATERMARK = -1


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest:
    partitions: tuple[tuple[TopicPartition, int], ...]
    """Delete what lies before the offset, or UP_TO_HIGH_WATERMARK."""
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class DeleteRecordsResult:
    tp: TopicPartition
    low_watermark: int = -1
    """The lowest log start of the replicas that are alive."""
    error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse:
    partitions: tuple[DeleteRecordsResult, ...]


# --- offsets ---------------------------------------------------------------------------------------------

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3


@dataclass(frozen=True, slots=True)
class ListOffsetsPartition:
    tp: TopicPartition
    timestamp: int
    """LATEST, EARLIEST, MAX_TIMESTAMP, or milliseconds."""
    current_leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    partitions: tuple[ListOffsetsPartition, ...]
    replica_id: NodeId = -1
    isolation_level: int = 0
    knows_offset_not_available: bool = True
    """False below v5: such clients are told LEADER_NOT_AVAILABLE instead of OFFSET_NOT_AVAILABLE."""


@dataclass(frozen=True, slots=True)
class ListOffsetsResult:
    tp: TopicPartition
    error: ErrorCode = ErrorCode.none
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1
    lookup: LookupByTime | None = None
    """Set instead of ``offset`` when the shell must search the log by time."""


@dataclass(frozen=True, slots=True)
class LookupByTime:
    """First record at or after ``timestamp`` (MAX_TIMESTAMP: the newest) below ``end_offset``."""

    tp: TopicPartition
    timestamp: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    partitions: tuple[ListOffsetsResult, ...]


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochPartition:
    tp: TopicPartition
    leader_epoch: int
    current_leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochRequest:
    partitions: tuple[OffsetForLeaderEpochPartition, ...]
    replica_id: NodeId = -1


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochResult:
    tp: TopicPartition
    error: ErrorCode = ErrorCode.none
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochResponse:
    partitions: tuple[OffsetForLeaderEpochResult, ...]


# --- producer ids ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InitProducerIdRequest:
    transactional_id: str | None = None
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse:
    error: ErrorCode
    producer_id: int = -1
    producer_epoch: int = -1


# --- all of them -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refused:
    """An error for a whole request whose response has a top-level error, or one per item."""

    error: ErrorCode
    message: str = ""


Request = (
    ProduceRequest
    | FetchRequest
    | ListOffsetsRequest
    | OffsetForLeaderEpochRequest
    | DeleteRecordsRequest
    | MetadataRequest
    | DescribeClusterRequest
    | DescribeTopicPartitionsRequest
    | CreateTopicsRequest
    | DeleteTopicsRequest
    | InitProducerIdRequest
    | AlterPartitionRequest
    | BrokerRegistrationRequest
    | ControllerRegistrationRequest
    | BrokerHeartbeatRequest
    | AllocateProducerIdsRequest
    | GetReplicaLogInfoRequest
    | VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchSnapshotRequest
    | AdminRequest
)
Response = (
    ProduceResponse
    | FetchResponse
    | ListOffsetsResponse
    | OffsetForLeaderEpochResponse
    | DeleteRecordsResponse
    | MetadataResponse
    | CreateTopicsResponse
    | DeleteTopicsResponse
    | InitProducerIdResponse
    | AlterPartitionResponse
    | BrokerRegistrationResponse
    | ControllerRegistrationResponse
    | BrokerHeartbeatResponse
    | AllocateProducerIdsResponse
    | GetReplicaLogInfoResponse
    | VoteResponse
    | QuorumEpochResponse
    | FetchSnapshotResponse
    | AdminResponse
    | Refused
)
