"""Administration as the core sees it: reassignments, elections, partitions, settings (docs/protocol.md 5.1).

Like `wrackline.broker.model.messages.requests`, whose unions these are part of: one class
per API, whatever the wire version.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.types import Endpoint, NodeId, TopicPartition
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    tp: TopicPartition
    error: ErrorCode = ErrorCode.none
    message: str | None = None


# --- reassignment ----------------------------------------------------------------------------------------


class Reassignment(NamedTuple):
    tp: TopicPartition
    target: tuple[NodeId, ...] | None
    """The replicas there shall be, the preferred leader first; None: cancel."""


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsRequest:
    partitions: tuple[Reassignment, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsResponse:
    partitions: tuple[PartitionOutcome, ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ListPartitionReassignmentsRequest:
    partitions: tuple[TopicPartition, ...] | None
    """None: all that are under way."""
    timeout_ms: int


class OngoingReassignment(NamedTuple):
    tp: TopicPartition
    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class ListPartitionReassignmentsResponse:
    partitions: tuple[OngoingReassignment, ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str | None = None


# --- elections -------------------------------------------------------------------------------------------


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1
    DESIGNATED = 2
    """A person names the leader of each partition (KIP-966)."""


@dataclass(frozen=True, slots=True)
class ElectLeadersRequest:
    election: int
    partitions: tuple[TopicPartition, ...] | None
    """None: all partitions that need it."""
    timeout_ms: int
    desired: tuple[NodeId, ...] = ()
    """Kind DESIGNATED: the leader of each of ``partitions``."""


@dataclass(frozen=True, slots=True)
class ElectLeadersResponse:
    partitions: tuple[PartitionOutcome, ...] = ()
    error: ErrorCode = ErrorCode.none


# --- partitions ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewPartitions:
    topic: str
    count: int
    """How many there shall be in all."""
    assignments: tuple[tuple[NodeId, ...], ...] | None = None
    """Of the new ones."""


@dataclass(frozen=True, slots=True)
class CreatePartitionsRequest:
    topics: tuple[NewPartitions, ...]
    timeout_ms: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    topic: str
    error: ErrorCode = ErrorCode.none
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionsResponse:
    topics: tuple[TopicOutcome, ...]


# --- settings --------------------------------------------------------------------------------------------

TOPIC = 2
BROKER = 4
"""Kafka's numbers for kinds of resources."""


class Resource(NamedTuple):
    kind: int
    name: str
    """A topic's, a broker's id, or "" with BROKER: the whole cluster."""


class Source(IntEnum):
    """The source of a setting's value."""

    TOPIC = 1
    CLUSTER = 3
    STATIC = 4
    DEFAULT = 5


class AlterOp(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    name: str
    op: int
    value: str | None


@dataclass(frozen=True, slots=True)
class AlteredResource:
    resource: Resource
    changes: tuple[ConfigChange, ...]


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsRequest:
    resources: tuple[AlteredResource, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterConfigsRequest(IncrementalAlterConfigsRequest):
    """All settings of each resource: what is not among the changes, each a SET, is deleted."""


@dataclass(frozen=True, slots=True)
class ResourceOutcome:
    resource: Resource
    error: ErrorCode = ErrorCode.none
    message: str | None = None


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsResponse:
    resources: tuple[ResourceOutcome, ...]


@dataclass(frozen=True, slots=True)
class DescribeConfigsRequest:
    resources: tuple[tuple[Resource, tuple[str, ...] | None], ...]
    """With the names that are wanted; None: all."""
    include_synonyms: bool = False


class Setting(NamedTuple):
    name: str
    value: str | None
    source: Source
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class DescribedResource:
    resource: Resource
    settings: tuple[tuple[Setting, ...], ...] = ()
    """For each name the values from the one that holds to the last it hides."""
    error: ErrorCode = ErrorCode.none
    message: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeConfigsResponse:
    resources: tuple[DescribedResource, ...]


# --- brokers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRequest:
    broker_id: NodeId


@dataclass(frozen=True, slots=True)
class UnregisterBrokerResponse:
    error: ErrorCode = ErrorCode.none
    message: str | None = None


# --- features ---------------------------------------------------------------------------------------------


class UpgradeType(IntEnum):
    """The kinds of change that an update of a feature may make."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True)
class UpdateFeaturesRequest:
    updates: tuple[FeatureUpdate, ...]
    timeout_ms: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class UpdateFeaturesResponse:
    """All of it is done, or nothing."""

    error: ErrorCode = ErrorCode.none
    message: str | None = None


# --- the controllers -------------------------------------------------------------------------------------


class QuorumReplica(NamedTuple):
    """A replica of the metadata log: a voter, or an observer (a broker)."""

    node_id: NodeId
    leo: int
    """-1: it has not been heard of since the leader leads."""
    directory_id: UUID | None = None
    fetched_ago_ms: float | None = None
    caught_up_ago_ms: float | None = None
    """Since when its log did not reach the leader's end any more; None: never."""


@dataclass(frozen=True, slots=True)
class DescribeQuorumRequest:
    partitions: tuple[TopicPartition, ...]
    """That of the metadata log, if the asker knows what it asks."""


@dataclass(frozen=True, slots=True)
class DescribeQuorumResponse:
    error: ErrorCode = ErrorCode.none
    message: str | None = None
    leader_id: NodeId = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    voters: tuple[QuorumReplica, ...] = ()
    """With the leader."""
    observers: tuple[QuorumReplica, ...] = ()
    nodes: tuple[Endpoint, ...] = ()
    """The controllers."""


ForwardedRequest = (
    AlterPartitionReassignmentsRequest
    | ListPartitionReassignmentsRequest
    | ElectLeadersRequest
    | CreatePartitionsRequest
    | IncrementalAlterConfigsRequest
    | AlterConfigsRequest
    | UnregisterBrokerRequest
    | UpdateFeaturesRequest
    | DescribeQuorumRequest
)
"""What a broker passes on to it."""
ForwardedResponse = (
    AlterPartitionReassignmentsResponse
    | ListPartitionReassignmentsResponse
    | ElectLeadersResponse
    | CreatePartitionsResponse
    | IncrementalAlterConfigsResponse
    | UnregisterBrokerResponse
    | UpdateFeaturesResponse
    | DescribeQuorumResponse
)
AdminRequest = ForwardedRequest | DescribeConfigsRequest
AdminResponse = ForwardedResponse | DescribeConfigsResponse
