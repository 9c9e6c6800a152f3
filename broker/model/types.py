"""Words shared by all of the core: identifiers, logs as the core sees them, cluster-wide constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum, IntEnum, StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from wrackline.broker.model.values import dataclass

NodeId = int
NO_LEADER = -1
NO_EPOCH = -1
NO_PRODUCER = -1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


METADATA = TopicPartition("__cluster_metadata", 0)
"""The controller's log; brokers observe it by fetching it like any partition."""
METADATA_TOPIC_ID = UUID(int=1)


class EpochEntry(NamedTuple):
    """``epoch`` starts at ``start_offset`` (KIP-101's leader epoch cache)."""

    epoch: int
    start_offset: int


class FlushMode(Enum):
    """When a log reaches the disk (docs/protocol.md R01-R04)."""

    EVERY_WRITE = "every-write"
    EVERY_N_BATCHES = "every-n-batches"
    EVERY_INTERVAL = "every-interval"
    ON_ROLL = "on-roll"


EVERY_WRITE: Final = FlushMode.EVERY_WRITE


class RecoveryStrategy(Enum):
    """The recovery of a partition that nobody in ISR and ELR can lead (docs/protocol.md C3, R27-R29)."""

    PROACTIVE = "proactive"
    """Ask every replica at once, elect the best log of those that answer soon, though a better one may be
    away. KIP-966 also calls it ``aggressive``."""

    BALANCED = "balanced"
    """Wait for every candidate, compare their logs, elect the best."""
    MANUAL = "manual"
    """Nothing happens by itself. KIP-966 also calls it ``none``."""

    @classmethod
    def _missing_(cls, value: object) -> RecoveryStrategy | None:
        """KIP-966's names, and capital letters, which it writes them with."""
        word = str(value).lower()
        aliases = {"none": cls.MANUAL, "aggressive": cls.PROACTIVE}
        return aliases.get(word) or next((each for each in cls if each.value == word), None)


class ReassignRule(Enum):
    """When a reassignment is complete (docs/protocol.md C11)."""

    D4 = "d4"
    """Everyone added is in the ISR, and what remains of it is at least MinISR."""
    ALL_TARGETS = "all_targets"
    """Every replica of the target is in the ISR (Kafka since 3.8, KAFKA-15665)."""
    ADDING_ONLY = "adding_only"
    """Everyone added is in the ISR (Kafka before)."""


class Placement(Enum):
    """The spread of the replicas of new partitions (docs/protocol.md 2.16)."""

    FORMULA = "formula"
    STRIPED = "striped"


class PendingOnShrink(StrEnum):
    """The end of acks=all requests that wait while the ISR falls below MinISR (docs/protocol.md C5)."""

    FAIL_FAST = "fail_fast"
    """At once, with NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
    TIMEOUT = "timeout"
    """In their own time, with REQUEST_TIMED_OUT."""


class Acks(IntEnum):
    NONE = 0
    LEADER = 1
    ALL = -1


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """One of the last five batches of an idempotent producer."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class ProducerSnapshot:
    """The state of one producer id in a log."""

    producer_id: int
    producer_epoch: int
    batches: tuple[ProducerBatch, ...]


@dataclass(frozen=True, slots=True)
class RecoveredLog:
    """A log as found on disk at start, after recovery."""

    topic_id: UUID
    log_start: int
    leo: int
    flushed: int
    """Everything below this offset survived, and will survive, a power cut."""
    high_watermark: int
    """From the checkpoint, already clamped to [log_start, leo]."""
    epochs: tuple[EpochEntry, ...] = ()
    producers: Mapping[int, ProducerSnapshot] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogOverrides:
    """A topic's own way of laying its logs out on disk; None: as the node does it."""

    segment_bytes: int | None = None
    segment_ms: int | None = None
    """A segment that spans more time than this, by its records, is full."""
    index_interval_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Record batches the shell reads from the log when it carries the effect out.

    Starts with the batch that holds ``start_offset``, ends before ``end_offset``, holds at most
    ``max_bytes`` (but always one whole batch when ``at_least_one``).
    """

    tp: TopicPartition
    start_offset: int
    end_offset: int
    max_bytes: int
    at_least_one: bool = True


class SnapshotId(NamedTuple):
    """A snapshot of the metadata log: the state after every record below ``end_offset``, the last of
    ``epoch``."""

    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot's file as found on disk; what is in it may be damaged."""

    id: SnapshotId
    data: bytes


@dataclass(frozen=True, slots=True)
class SnapshotSlice:
    """Bytes of a snapshot's file that the shell reads when it carries the effect out."""

    id: SnapshotId
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    node_id: NodeId
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The state that a controller must not forget between two answers (docs/protocol.md 2.12, file
    ``quorum-state``)."""

    epoch: int
    leader_id: NodeId = NO_LEADER
    voted_for: NodeId = NO_LEADER
    voted_directory: UUID = UUID(int=0)
    directory_id: UUID = UUID(int=0)
    """Of the data directory this was written to."""
