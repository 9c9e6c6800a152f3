"""Messages between brokers and the active controller: ISR changes, registration, heartbeats, blocks of
producer ids, and how far the logs of a broker reach.

Part of the unions of `wrackline.broker.model.messages.requests`.
"""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.metadata.features import NEWEST, Levels
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class AlterPartitionItem:
    tp: TopicPartition
    topic_id: UUID
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[NodeId, int], ...]
    """(broker id, broker epoch or -1)."""
    leader_recovery_state: int = 0


@dataclass(frozen=True, slots=True)
class AlterPartitionRequest:
    broker_id: NodeId
    broker_epoch: int
    partitions: tuple[AlterPartitionItem, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionResult:
    tp: TopicPartition
    topic_id: UUID
    error: ErrorCode = ErrorCode.none
    leader_id: NodeId = -1
    leader_epoch: int = -1
    isr: tuple[NodeId, ...] = ()
    partition_epoch: int = -1
    leader_recovery_state: int = 0


@dataclass(frozen=True, slots=True)
class AlterPartitionResponse:
    error: ErrorCode = ErrorCode.none
    partitions: tuple[AlterPartitionResult, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerRegistrationRequest:
    broker_id: NodeId
    cluster_id: str
    incarnation_id: UUID
    host: str
    port: int
    rack: str | None = None
    previous_broker_epoch: int = -1
    levels: Levels = NEWEST
    """Of the metadata that the broker's program supports."""
    replication_port: int = 0
    """Where other nodes ask it; clients ask at ``port``."""


@dataclass(frozen=True, slots=True)
class BrokerRegistrationResponse:
    error: ErrorCode
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ControllerRegistrationRequest:
    """A controller tells the active one what it supports (KIP-919)."""

    controller_id: NodeId
    incarnation_id: UUID
    host: str
    port: int
    levels: Levels


@dataclass(frozen=True, slots=True)
class ControllerRegistrationResponse:
    error: ErrorCode = ErrorCode.none
    message: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatRequest:
    broker_id: NodeId
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatResponse:
    error: ErrorCode
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsRequest:
    broker_id: NodeId
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsResponse:
    error: ErrorCode
    producer_id_start: int = -1
    producer_id_len: int = 0


@dataclass(frozen=True, slots=True)
class GetReplicaLogInfoRequest:
    """The controller asks a broker how far its logs reach (KIP-966, docs/protocol.md R31)."""

    partitions: tuple[tuple[UUID, int], ...]
    """(topic id, partition); at most MAX_LOG_INFOS of them are answered."""


MAX_LOG_INFOS = 1_000


@dataclass(frozen=True, slots=True)
class ReplicaLogInfo:
    topic_id: UUID
    partition: int
    last_written_leader_epoch: int = -1
    """Of the last record in the log; -1 when it is empty."""
    current_leader_epoch: int = -1
    """As the broker knows it from the metadata."""
    leo: int = -1
    error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class GetReplicaLogInfoResponse:
    broker_epoch: int
    """Of the life that answers; -1 when it is not registered yet."""
    entries: tuple[ReplicaLogInfo, ...] = ()
    has_more: bool = False
    """Not everything that was asked for is here."""
