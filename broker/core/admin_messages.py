"""Administration as the core sees it: reassignments, elections, partitions, settings (protocol.md 5.1).

Like `broker.core.messages`, whose unions these are part of: one class per API, whatever the wire version.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from broker.core.types import NodeId, TopicPartition
from broker.core.values import dataclass


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


@dataclass(frozen=True, slots=True)
class ElectLeadersRequest:
    election: int
    partitions: tuple[TopicPartition, ...] | None
    """None: all partitions that need it."""
    timeout_ms: int


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
    """Where the value of a setting comes from."""

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


ForwardedRequest = (
    AlterPartitionReassignmentsRequest
    | ListPartitionReassignmentsRequest
    | ElectLeadersRequest
    | CreatePartitionsRequest
    | IncrementalAlterConfigsRequest
    | UnregisterBrokerRequest
)
"""What a broker passes on to the controller."""
ForwardedResponse = (
    AlterPartitionReassignmentsResponse
    | ListPartitionReassignmentsResponse
    | ElectLeadersResponse
    | CreatePartitionsResponse
    | IncrementalAlterConfigsResponse
    | UnregisterBrokerResponse
)
AdminRequest = ForwardedRequest | DescribeConfigsRequest
AdminResponse = ForwardedResponse | DescribeConfigsResponse
