"""Reports of a cluster as values that are the same whatever version reported them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:  # a command that asks no broker does not wait for the protocol's schemas
    from kio.schema.errors import ErrorCode

Place = tuple[str, int]
"""(topic, partition)"""
UNKNOWN = -1
_BY_DEFAULT = 5
"""The source of a setting that nobody has given."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as the cluster's metadata has it. Replicas are node ids; -1: no leader."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @property
    def full_isr(self) -> bool:
        return set(self.isr) == set(self.replicas)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster's own metadata, as brokers report it over the Kafka protocol."""

    controller: int
    brokers: tuple[int, ...]
    partitions: tuple[PartitionState, ...]
    _by_place: Mapping[Place, PartitionState] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """A cluster may have ten thousand partitions, and each may be asked for."""
        by_place = {state.place: state for state in self.partitions}
        object.__setattr__(self, "_by_place", by_place)

    def partition(self, topic: str, partition: int) -> PartitionState | None:
        return self._by_place.get((topic, partition))


class Voter(NamedTuple):
    """A member of a controller quorum that can change: with another disk it is another voter (KIP-853)."""

    node_id: int
    directory: str
    """The id of its disk's folder as Kafka writes it: 16 bytes in base64url, 22 characters."""

    def __str__(self) -> str:
        return f"{self.node_id}-{self.directory}"


@dataclass(frozen=True, slots=True)
class Quorum:
    """The controller quorum, as its leader reports it."""

    leader: int
    epoch: int
    voters: tuple[Voter, ...]
    observers: tuple[Voter, ...]

    def voter(self, node_id: int) -> Voter | None:
        return next((one for one in self.voters if one.node_id == node_id), None)


def directory_text(directory: UUID | None) -> str:
    """Returns the id of a folder as Kafka writes it; None stands for the one of zeros."""
    return base64.urlsafe_b64encode((directory or UUID(int=0)).bytes).decode().rstrip("=")


def directory_uuid(text: str) -> UUID:
    """Raises ValueError for what is no id of a folder."""
    return UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as it says that clients shall reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    name: str
    error: ErrorCode
    topic_id: UUID | None
    """None also before version 10."""
    is_internal: bool
    """Before version 1: whether the name begins as those of internal topics do."""
    partitions: tuple[PartitionState, ...]
    """Leader epochs are -1 before version 7."""


@dataclass(frozen=True, slots=True)
class Metadata:
    controller: int
    """-1: there is none, or the version does not say."""
    brokers: tuple[Broker, ...]
    topics: tuple[TopicMetadata, ...]


@dataclass(frozen=True, slots=True)
class TopicSpec:
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


class ResourceType(IntEnum):
    """The kind of entity that a setting belongs to, as the protocol numbers it."""

    TOPIC = 2
    BROKER = 4
    """With the empty name: all brokers."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as a topic or a node has it."""

    name: str
    value: str | None
    """None: it is kept secret, or has none."""
    source: int
    """Where it was given, as the protocol numbers it: 1 to the topic, 2 to the broker, 3 to all brokers, 4 in
    the broker's file, 5 nowhere."""
    read_only: bool = False

    @property
    def given(self) -> bool:
        """Tells whether anybody gave it; else it is the program's own default."""
        return self.source != _BY_DEFAULT


class Outcome(NamedTuple):
    """The outcome of one partition of a request."""

    place: Place
    error: ErrorCode
    message: str | None


class Reassignment(NamedTuple):
    """A partition whose replicas are changing."""

    place: Place
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class StoredLog(NamedTuple):
    """A partition's log in a log directory of a broker."""

    place: Place
    is_future: bool
    """It is being made, to replace the current log in another directory."""
    lag: int
    """Of a future log: how many records it is behind the current one."""


class LogDir(NamedTuple):
    """A log directory of a broker (KIP-113)."""

    path: str
    has_failed: bool
    """The broker has met an error of its disk, and does not use it any more."""
    logs: tuple[StoredLog, ...]
