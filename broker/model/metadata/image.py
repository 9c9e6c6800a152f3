"""The cluster as the metadata log describes it (docs/protocol.md K17-K20, 2.8.5).

Brokers build it from the committed log; the controller keeps two of them, one speculative. Metadata records
are deltas, so whoever acts on changes applies a whole run of records first and then looks at what came out:
``apply_all`` gives an ImageDelta with the partitions touched and how they were before (K20).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from uuid import UUID

from wrackline.broker.model.metadata.features import METADATA_VERSION, NOT_SAID, Levels
from wrackline.broker.model.metadata.records import (
    LEADER_UNCHANGED,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    LeaderChangeRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    ZkMigrationStateRecord,
)
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.model.values import dataclass

CLUSTER_DEFAULTS = ("broker", "")
"""The resource whose settings hold for every topic that has none of its own, as the controller's file has
them."""
CLUSTER_DYNAMIC = ("cluster", "")
"""Settings of the whole cluster made by clients; they win over those of the file."""


class ImageError(ValueError):
    """A record does not fit the image: the log is not the one the image was built from."""


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """One partition's registration. ``elr`` and ``last_known_elr`` matter to the controller only."""

    tp: TopicPartition
    topic_id: UUID
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: int
    partition_epoch: int
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    leader_recovery_state: int = 0
    """0 recovered, 1 recovering (after an unclean election)."""


@dataclass(frozen=True, slots=True)
class BrokerImage:
    id: NodeId
    epoch: int
    incarnation: UUID
    host: str
    port: int
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    registration_offset: int
    """Of the latest registration record; differs from ``epoch`` after the same incarnation registered
    again."""
    levels: Levels = NOT_SAID
    """Of the metadata that its program supports."""
    from_zookeeper: bool = False
    """As ZooKeeper had it: it has yet to register with a controller."""
    replication_port: int = 0
    """Where other nodes ask it; clients ask at ``port``."""

    @property
    def active(self) -> bool:
        """May lead and may be in an ISR."""
        return not self.fenced and not self.in_controlled_shutdown


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    topic_id: UUID
    partitions: Mapping[int, PartitionImage]


@dataclass(frozen=True, slots=True)
class ImageDelta:
    """The change that a run of records made. Look the new state up in the image itself."""

    before: Mapping[TopicPartition, PartitionImage | None]
    """Every partition touched, in order of first touch, as it was before (None: it did not exist).

    A partition that is missing from the image afterwards was deleted; one with another topic id was deleted
    and created again.
    """
    brokers: frozenset[NodeId] = frozenset()
    topics: frozenset[str] = frozenset()
    """Created, deleted or with changed configuration."""
    first_offset: int = -1
    last_offset: int = -1

    def __bool__(self) -> bool:
        return bool(self.before or self.brokers or self.topics)


@dataclass(slots=True)
class ClusterImage:
    """Mutable; everything it hands out is frozen. Iteration orders follow the log, so they are
    deterministic."""

    topics_by_name: dict[str, TopicImage] = field(default_factory=dict)
    topics_by_id: dict[UUID, TopicImage] = field(default_factory=dict)
    brokers: dict[NodeId, BrokerImage] = field(default_factory=dict)
    configs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """(resource type, resource name) -> settings."""
    features: dict[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    zk_migration: int = 0
    """``ZkMigrationStateRecord``; 0: the cluster was never ZooKeeper's, or still is."""
    metadata_offset: int = -1
    """Of the last record applied."""
    controller_id: NodeId = -1
    """Who wrote the latest LeaderChangeRecord."""

    def copy(self) -> ClusterImage:
        return replace(
            self,
            topics_by_name=dict(self.topics_by_name),
            topics_by_id=dict(self.topics_by_id),
            brokers=dict(self.brokers),
            configs={resource: dict(settings) for resource, settings in self.configs.items()},
            features=dict(self.features),
        )

    @property
    def level(self) -> int | None:
        """Returns the level of the metadata (``metadata.version``); None: nothing has been written yet, or
        the log is older than levels are."""
        return self.features.get(METADATA_VERSION)

    def partition(self, tp: TopicPartition) -> PartitionImage | None:
        topic = self.topics_by_name.get(tp.topic)
        return None if topic is None else topic.partitions.get(tp.partition)

    def partition_by_id(self, topic_id: UUID, partition: int) -> PartitionImage | None:
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def partitions(self) -> Iterator[PartitionImage]:
        """All of them, by topic in order of creation, then by number."""
        for topic in self.topics_by_name.values():
            yield from topic.partitions.values()

    def topic_config(self, name: str, key: str) -> str | None:
        """The topic's own setting, or None where the cluster's default holds."""
        return self.configs.get(("topic", name), {}).get(key)

    def setting(self, topic: str, key: str) -> str | None:
        """The topic's own setting, else the cluster's default. The controller writes the defaults into the
        log, so that everyone sees the same value from the same offset on (KAFKA-16540)."""
        own = self.topic_config(topic, key)
        return own if own is not None else self.cluster_setting(key)

    def cluster_setting(self, key: str) -> str | None:
        made = self.configs.get(CLUSTER_DYNAMIC, {}).get(key)
        return made if made is not None else self.configs.get(CLUSTER_DEFAULTS, {}).get(key)

    def min_isr(self, tp: TopicPartition) -> int:
        """Effective: min(min.insync.replicas, replication factor). A replica that is still being added does
        not count, so a reassignment that begins changes nothing."""
        partition = self.partition(tp)
        if partition is None:
            return self.min_isr_of(tp, 2**31)
        return self.min_isr_of(tp, len(partition.replicas) - len(partition.adding))

    def min_isr_of(self, tp: TopicPartition, factor: int) -> int:
        """The same for another replication factor than the partition has now."""
        return min(int(self.setting(tp.topic, "min.insync.replicas") or 1), factor)

    def apply(self, record: MetadataRecord, offset: int) -> None:
        """Raises ImageError when the record cannot follow what was applied before."""
        if offset <= self.metadata_offset:
            raise ImageError(f"record at offset {offset} after offset {self.metadata_offset} was applied")
        self.put(record, offset)
        self.metadata_offset = offset

    def put(self, record: MetadataRecord, offset: int) -> None:
        """``apply`` without a place in the log: a record of a snapshot, whose end is ``offset + 1``."""
        match record:
            case PartitionChangeRecord():
                self._put(changed(self._registered(record.topic_id, record.partition_id), record))
            case PartitionRecord():
                self._put(self._created(record))
            case TopicRecord():
                self._put_topic(record)
            case RemoveTopicRecord():
                topic = self._topic(record.topic_id)
                del self.topics_by_id[topic.topic_id], self.topics_by_name[topic.name]
                self.configs.pop(("topic", topic.name), None)
            case RegisterBrokerRecord():
                self.brokers[record.broker_id] = _registration(record, offset)
            case BrokerRegistrationChangeRecord():
                self.brokers[record.broker_id] = _changed_registration(
                    self._broker(record.broker_id, record.broker_epoch), record
                )
            case UnregisterBrokerRecord():
                del self.brokers[self._broker(record.broker_id, record.broker_epoch).id]
            case ConfigRecord():
                self._configure(record)
            case ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case FeatureLevelRecord():
                self.features[record.name] = record.level
            case ZkMigrationStateRecord():
                self.zk_migration = record.zk_migration_state
            case LeaderChangeRecord():
                self.controller_id = record.leader_id
            case NoOpRecord():
                pass

    def apply_all(self, records: Iterable[tuple[int, MetadataRecord]]) -> ImageDelta:
        """Apply (offset, record) pairs and say what they changed together."""
        before: dict[TopicPartition, PartitionImage | None] = {}
        brokers: set[NodeId] = set()
        topics: set[str] = set()
        first = -1
        for offset, record in records:
            first = offset if first < 0 else first
            match record:
                case PartitionChangeRecord() | PartitionRecord():
                    tp = TopicPartition(self._topic(record.topic_id).name, record.partition_id)
                    before.setdefault(tp, self.partition(tp))
                case TopicRecord():
                    topics.add(record.name)
                case RemoveTopicRecord():
                    topic = self._topic(record.topic_id)
                    topics.add(topic.name)
                    for partition in topic.partitions.values():
                        before.setdefault(partition.tp, partition)
                case ConfigRecord() if record.resource_type == "topic":
                    topics.add(record.resource_name)
                case ConfigRecord():
                    topics.update(self.topics_by_name)
                case RegisterBrokerRecord() | BrokerRegistrationChangeRecord() | UnregisterBrokerRecord():
                    brokers.add(record.broker_id)
                case _:
                    pass
            self.apply(record, offset)
        last = self.metadata_offset if first >= 0 else -1
        return ImageDelta(before, frozenset(brokers), frozenset(topics), first, last)

    def _topic(self, topic_id: UUID) -> TopicImage:
        try:
            return self.topics_by_id[topic_id]
        except KeyError:
            raise ImageError(f"no topic with id {topic_id} at offset {self.metadata_offset}") from None

    def _registered(self, topic_id: UUID, partition: int) -> PartitionImage:
        try:
            return self._topic(topic_id).partitions[partition]
        except KeyError:
            raise ImageError(f"no partition {partition} in topic {topic_id}") from None

    def _broker(self, broker_id: NodeId, epoch: int) -> BrokerImage:
        broker = self.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            known = "not registered" if broker is None else f"registered with epoch {broker.epoch}"
            raise ImageError(f"record for broker {broker_id} epoch {epoch}, which is {known}")
        return broker

    def _put_topic(self, record: TopicRecord) -> None:
        if record.name in self.topics_by_name or record.topic_id in self.topics_by_id:
            raise ImageError(f"topic {record.name} ({record.topic_id}) exists already")
        topic = TopicImage(record.name, record.topic_id, {})
        self.topics_by_name[record.name] = self.topics_by_id[record.topic_id] = topic

    def _created(self, record: PartitionRecord) -> PartitionImage:
        return PartitionImage(
            tp=TopicPartition(self._topic(record.topic_id).name, record.partition_id),
            topic_id=record.topic_id,
            replicas=record.replicas,
            isr=record.isr,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            adding=record.adding_replicas,
            removing=record.removing_replicas,
            elr=record.elr,
            last_known_elr=record.last_known_elr,
            leader_recovery_state=record.leader_recovery_state,
        )

    def _put(self, partition: PartitionImage) -> None:
        topic = self._topic(partition.topic_id)
        partitions = {**topic.partitions, partition.tp.partition: partition}
        topic = replace(topic, partitions=partitions)
        self.topics_by_name[topic.name] = self.topics_by_id[topic.topic_id] = topic

    def _configure(self, record: ConfigRecord) -> None:
        resource = record.resource_type, record.resource_name
        settings = self.configs.setdefault(resource, {})
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value
        if not settings:
            del self.configs[resource]


def everything(image: ClusterImage) -> ImageDelta:
    """Returns a delta as if the whole cluster had just changed."""
    before = {partition.tp: partition for partition in image.partitions()}
    return ImageDelta(before, frozenset(image.brokers), frozenset(image.topics_by_name))


def difference(old: ClusterImage, new: ClusterImage) -> ImageDelta:
    """Returns the change that a snapshot made: ``new`` was not made from ``old`` record by record, but stands
    later in the log."""
    before: dict[TopicPartition, PartitionImage | None] = {
        partition.tp: partition for partition in old.partitions() if new.partition(partition.tp) != partition
    }
    before |= {partition.tp: None for partition in new.partitions() if old.partition(partition.tp) is None}
    brokers = {
        broker for broker in old.brokers | new.brokers if old.brokers.get(broker) != new.brokers.get(broker)
    }
    topics = {tp.topic for tp in before}
    topics |= old.topics_by_name.keys() ^ new.topics_by_name.keys()
    for resource in old.configs.keys() | new.configs.keys():
        if old.configs.get(resource) != new.configs.get(resource):
            kind, name = resource
            topics |= {name} if kind == "topic" else new.topics_by_name.keys()
    first, last = old.metadata_offset + 1, new.metadata_offset
    return ImageDelta(before, frozenset(brokers), frozenset(topics), first, last)


def changed(partition: PartitionImage, record: PartitionChangeRecord) -> PartitionImage:
    """The partition after one change: leader epoch +1 iff a leader is written, partition epoch +1 always."""
    leads = record.leader != LEADER_UNCHANGED
    return replace(
        partition,
        replicas=_or(record.replicas, partition.replicas),
        isr=_or(record.isr, partition.isr),
        leader=record.leader if leads else partition.leader,
        leader_epoch=partition.leader_epoch + int(leads),
        partition_epoch=partition.partition_epoch + 1,
        adding=_or(record.adding_replicas, partition.adding),
        removing=_or(record.removing_replicas, partition.removing),
        elr=_or(record.elr, partition.elr),
        last_known_elr=_or(record.last_known_elr, partition.last_known_elr),
        leader_recovery_state=(
            partition.leader_recovery_state
            if record.leader_recovery_state is None
            else record.leader_recovery_state
        ),
    )


def _or(written: tuple[NodeId, ...] | None, kept: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    return kept if written is None else written


def _registration(record: RegisterBrokerRecord, offset: int) -> BrokerImage:
    return BrokerImage(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation=record.incarnation_id,
        host=record.host,
        port=record.port,
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        registration_offset=offset if record.registration_offset < 0 else record.registration_offset,
        levels=Levels(*record.metadata_versions) if record.metadata_versions else NOT_SAID,
        from_zookeeper=record.is_migrating_zk_broker,
        replication_port=record.replication_port,
    )


def _changed_registration(broker: BrokerImage, record: BrokerRegistrationChangeRecord) -> BrokerImage:
    return replace(
        broker,
        fenced=broker.fenced if record.fenced is None else record.fenced,
        in_controlled_shutdown=(
            broker.in_controlled_shutdown
            if record.in_controlled_shutdown is None
            else record.in_controlled_shutdown
        ),
    )
