"""Metadata records, with Kafka's own names and fields (docs/protocol.md 5.4).

They are JSON in the values of real record batches: one batch is one atomic change. The partition epoch is
not stored: like in Kafka it goes up by one with each PartitionChangeRecord, and the leader epoch with each
one that names a leader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields as dataclass_fields
from functools import lru_cache
from typing import get_args
from uuid import UUID

from wrackline.broker.model.types import NodeId
from wrackline.broker.model.values import dataclass

LEADER_UNCHANGED = -2


@dataclass(frozen=True, slots=True)
class RegisterBrokerRecord:
    broker_id: NodeId
    incarnation_id: UUID
    broker_epoch: int
    host: str
    port: int
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    registration_offset: int = -1
    """In a snapshot: where the record lay that this one stands for; -1: here."""
    metadata_versions: tuple[int, ...] = ()
    """The lowest and the highest level of the metadata that the broker supports; empty: it did not say."""
    is_migrating_zk_broker: bool = False
    """Taken over from ZooKeeper: ``broker_epoch`` is the transaction that created its node there."""
    replication_port: int = 0
    """Where other nodes ask it; clients ask at ``port``."""


@dataclass(frozen=True, slots=True)
class BrokerRegistrationChangeRecord:
    broker_id: NodeId
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord:
    broker_id: NodeId
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class TopicRecord:
    name: str
    topic_id: UUID


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    topic_id: UUID


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    partition_id: int
    topic_id: UUID
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: int
    partition_epoch: int
    adding_replicas: tuple[NodeId, ...] = ()
    removing_replicas: tuple[NodeId, ...] = ()
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    leader_recovery_state: int = 0


@dataclass(frozen=True, slots=True)
class PartitionChangeRecord:
    """A delta: ``None`` (or leader -2) leaves a field as it is."""

    partition_id: int
    topic_id: UUID
    isr: tuple[NodeId, ...] | None = None
    leader: NodeId = LEADER_UNCHANGED
    replicas: tuple[NodeId, ...] | None = None
    adding_replicas: tuple[NodeId, ...] | None = None
    removing_replicas: tuple[NodeId, ...] | None = None
    elr: tuple[NodeId, ...] | None = None
    last_known_elr: tuple[NodeId, ...] | None = None
    leader_recovery_state: int | None = None


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    resource_type: str
    """``topic`` or ``broker``."""
    resource_name: str
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord:
    broker_id: NodeId
    broker_epoch: int
    next_producer_id: int


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ZkMigrationStateRecord:
    """Written in one batch with everything that ZooKeeper had (KIP-866)."""

    zk_migration_state: int


POST_MIGRATION = 3
"""ZooKeeper has nothing to say any more; the only one of KIP-866's states that we write."""


@dataclass(frozen=True, slots=True)
class NoOpRecord:
    pass


@dataclass(frozen=True, slots=True)
class LeaderChangeRecord:
    """Control record: a controller leads from here on, in the batch's leader epoch."""

    leader_id: NodeId
    voters: tuple[NodeId, ...]


MetadataRecord = (
    RegisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | ProducerIdsRecord
    | FeatureLevelRecord
    | ZkMigrationStateRecord
    | NoOpRecord
    | LeaderChangeRecord
)

_KINDS: dict[str, type[MetadataRecord]] = {kind.__name__: kind for kind in get_args(MetadataRecord)}
_NAMES = {kind: tuple(each.name for each in dataclass_fields(kind)) for kind in _KINDS.values()}
_to_json = json.JSONEncoder(separators=(",", ":")).encode
_UUID_FIELDS = {"incarnation_id", "topic_id"}


def encode(record: MetadataRecord) -> bytes:
    fields = {}
    for name in _NAMES[type(record)]:
        value = getattr(record, name)
        fields[name] = str(value) if isinstance(value, UUID) else value
    return _to_json({"type": type(record).__name__, **fields}).encode()


@lru_cache(maxsize=1_024)
def decode(value: bytes) -> MetadataRecord:
    """Raises ValueError when the bytes are no record we know. Those of late are remembered: a broker that is
    a controller too meets each of them twice, and every node of a simulated cluster does."""
    try:
        fields = json.loads(value)
        kind = _KINDS[fields.pop("type")]
        for name, content in fields.items():
            if isinstance(content, list):
                fields[name] = tuple(content)
            elif name in _UUID_FIELDS:
                fields[name] = UUID(content)
        return kind(**fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a metadata record: {value[:120]!r} ({error})") from error


def encode_all(records: Iterable[MetadataRecord]) -> list[bytes]:
    return [encode(record) for record in records]
