"""Messages of clients on the cluster and its topics: to describe them, to create topics and to delete them.

Part of the unions of `wrackline.broker.model.messages.requests`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.types import Endpoint, NodeId
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    topics: tuple[str, ...] | None
    """None: all."""
    topic_ids: tuple[UUID, ...] = ()
    allow_auto_topic_creation: bool = False


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    partition: int
    leader_id: NodeId
    leader_epoch: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    offline: tuple[NodeId, ...] = ()
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    partition_epoch: int = -1
    error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    name: str | None
    topic_id: UUID
    partitions: tuple[PartitionMetadata, ...] = ()
    error: ErrorCode = ErrorCode.none
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """The answer to Metadata; also to DescribeCluster (no topics) and DescribeTopicPartitions."""

    brokers: tuple[Endpoint, ...]
    cluster_id: str
    controller_id: NodeId
    topics: tuple[TopicMetadata, ...] = ()
    fenced: tuple[NodeId, ...] = ()
    error: ErrorCode = ErrorCode.none
    """For DescribeCluster, which has one error for the whole answer."""


@dataclass(frozen=True, slots=True)
class DescribeClusterRequest:
    include_fenced: bool = False


@dataclass(frozen=True, slots=True)
class DescribeTopicPartitionsRequest:
    topics: tuple[str, ...]
    """Empty: all."""
    partition_limit: int = 2_000
    """`wrackline.broker.wire` cuts the answer into pages of this many partitions."""
    cursor: tuple[str, int] | None = None
    """Topic and partition the page begins with."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int = -1
    """-1: the cluster's default."""
    replication_factor: int = -1
    assignments: Mapping[int, tuple[NodeId, ...]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest:
    topics: tuple[NewTopic, ...]
    timeout_ms: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    name: str
    error: ErrorCode = ErrorCode.none
    message: str | None = None
    topic_id: UUID = UUID(int=0)
    partitions: int = -1
    replication_factor: int = -1


@dataclass(frozen=True, slots=True)
class CreateTopicsResponse:
    topics: tuple[CreatedTopic, ...]


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequest:
    topics: tuple[str, ...]
    timeout_ms: int
    topic_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    name: str | None
    error: ErrorCode = ErrorCode.none
    topic_id: UUID = UUID(int=0)
    message: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse:
    topics: tuple[DeletedTopic, ...]
