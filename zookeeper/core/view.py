"""The broker's view of the cluster from ZooKeeper: its ``ClusterImage``, kept fresh by watches.

Z41 lets only a leader watch assignments and reassignments. Here every broker watches the assignments too,
since it answers clients' metadata requests; the document's clients read ZooKeeper themselves.

Without leader epochs the image has 0 for all. A topic's id is the transaction that created its node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from wrackline.broker.core.replication.context import Context
from wrackline.broker.model.coordination import Answer, Stat
from wrackline.broker.model.metadata.image import PartitionImage, TopicImage
from wrackline.broker.model.types import NO_LEADER, NodeId, TopicPartition
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.znodes import NO_LEADER_EPOCH, LeaderEpoch


@dataclass(slots=True)
class Registered:
    """One partition as ZooKeeper has it; None: not read yet."""

    tp: TopicPartition
    replicas: tuple[NodeId, ...] | None = None
    leader: NodeId | None = None
    leader_stat: Stat | None = None
    """None: there is no leader's node."""
    isr: tuple[NodeId, ...] | None = None
    epoch: LeaderEpoch | None = NO_LEADER_EPOCH
    """Of the latest leader that has taken one."""
    states: tuple[NodeId, ...] = ()
    """Who has a state path: the replicas that are, or were, assigned."""

    @property
    def known(self) -> bool:
        sets = self.replicas is not None and self.leader is not None and self.isr is not None
        return sets and self.epoch is not None

    @property
    def has_epoch(self) -> bool:
        """The leader that is there now has taken its epoch."""
        stat, epoch = self.leader_stat, self.epoch
        return stat is not None and epoch is not None and epoch.created == stat.created


@dataclass(slots=True)
class _Topic:
    topic_id: UUID | None = None
    settings: dict[str, str] | None = None
    partitions: dict[TopicPartition, Registered] = field(default_factory=dict)


class View:
    """``on_partition`` is called when a partition that is fully known has changed, ``on_deleted`` when one is
    gone, ``on_brokers`` when a broker has come or gone."""

    def __init__(
        self,
        ctx: Context,
        coordination: Coordination,
        *,
        on_partition: Callable[[Registered], None],
        on_deleted: Callable[[TopicPartition], None],
        on_brokers: Callable[[], None],
    ) -> None:
        self._ctx = ctx
        self._coordination = coordination
        self._on_partition = on_partition
        self._on_deleted = on_deleted
        self._on_brokers = on_brokers
        self._topics: dict[str, _Topic] = {}
        self.keeps_epochs = ctx.rules.former is not None
        """The broker's profile knows of leader epochs, whatever level the cluster has."""

    def start(self) -> None:
        self._coordination.keep(znodes.IDS, self._ids, children=True)
        self._coordination.keep(znodes.TOPICS, self._topic_names, children=True)

    def of(self, tp: TopicPartition) -> Registered | None:
        topic = self._topics.get(tp.topic)
        return None if topic is None else topic.partitions.get(tp)

    def topic_id(self, name: str) -> UUID | None:
        topic = self._topics.get(name)
        return None if topic is None else topic.topic_id

    @property
    def live(self) -> frozenset[NodeId]:
        return frozenset(self._ctx.image.brokers)

    # --- brokers -------------------------------------------------------------------------------------------

    def _ids(self, answer: Answer) -> None:
        there = {int(name) for name in answer.children}
        for node in [node for node in self._ctx.image.brokers if node not in there]:
            self._coordination.drop(znodes.broker(node))
            self._left(node)
        for node in sorted(there):
            self._coordination.keep(znodes.broker(node), partial(self._address, node))

    def _address(self, node: NodeId, answer: Answer) -> None:
        if answer.stat is None:
            self._coordination.drop(znodes.broker(node))
            self._left(node)
            return
        created = answer.stat.created
        self._ctx.image.brokers[node] = znodes.broker_image(node, created, answer.data)
        self._changed(created)
        self._on_brokers()

    def _left(self, node: NodeId) -> None:
        if self._ctx.image.brokers.pop(node, None) is not None:
            self._changed(self._ctx.image.metadata_offset + 1)
            self._on_brokers()

    # --- topics --------------------------------------------------------------------------------------------

    def _topic_names(self, answer: Answer) -> None:
        for name in [name for name in self._topics if name not in answer.children]:
            self._forget_topic(name)
        for name in answer.children:
            if name not in self._topics:
                self._topics[name] = _Topic()
            keep = self._coordination.keep
            keep(znodes.topic(name), partial(self._topic, name))
            keep(znodes.topic(name), partial(self._partitions, name), children=True)

    def _topic(self, name: str, answer: Answer) -> None:
        topic = self._topics.get(name)
        if topic is None or answer.stat is None:
            return
        topic_id = znodes.topic_id_of(answer.stat.created)
        if topic.topic_id not in (None, topic_id):
            self._forget_topic(name)
            topic = self._topics[name] = _Topic()
        topic.topic_id, topic.settings = topic_id, znodes.to_settings(answer.data)
        self._ctx.image.configs.pop(("topic", name), None)
        if topic.settings:
            self._ctx.image.configs["topic", name] = topic.settings
        for registered in topic.partitions.values():
            self._read(registered)

    def _partitions(self, name: str, answer: Answer) -> None:
        topic = self._topics.get(name)
        if topic is None:
            return
        keep = self._coordination.keep
        for number in sorted(int(child) for child in answer.children):
            tp = TopicPartition(name, number)
            if tp not in topic.partitions:
                registered = topic.partitions[tp] = Registered(tp)
                keep(znodes.replicas(tp), partial(self._replicas, registered))
                keep(znodes.isr(tp), partial(self._isr, registered))
                keep(znodes.states(tp), partial(self._states, registered), children=True)
                if self.keeps_epochs:
                    registered.epoch = None
                    keep(znodes.epoch(tp), partial(self._epoch, registered))
                keep(znodes.leader(tp), partial(self._leader, registered))

    def _forget_topic(self, name: str) -> None:
        topic = self._topics.pop(name)
        self._coordination.drop(znodes.topic(name))
        self._coordination.drop(znodes.topic(name), children=True)
        self._ctx.image.configs.pop(("topic", name), None)
        self._ctx.image.topics_by_name.pop(name, None)
        if topic.topic_id is not None:
            self._ctx.image.topics_by_id.pop(topic.topic_id, None)
        for tp in topic.partitions:
            for path in (znodes.replicas(tp), znodes.isr(tp), znodes.leader(tp), znodes.epoch(tp)):
                self._coordination.drop(path)
            self._coordination.drop(znodes.states(tp), children=True)
            self._on_deleted(tp)

    # --- one partition -------------------------------------------------------------------------------------

    def _replicas(self, registered: Registered, answer: Answer) -> None:
        if answer.ok:
            registered.replicas = znodes.to_ids(answer.data)
            self._read(registered)

    def _isr(self, registered: Registered, answer: Answer) -> None:
        registered.isr = znodes.to_ids(answer.data)
        self._read(registered)

    def _states(self, registered: Registered, answer: Answer) -> None:
        registered.states = tuple(int(name) for name in answer.children)
        self._read(registered)

    def _leader(self, registered: Registered, answer: Answer) -> None:
        registered.leader = int(answer.data) if answer.ok else NO_LEADER
        registered.leader_stat = answer.stat
        self._read(registered)

    def _epoch(self, registered: Registered, answer: Answer) -> None:
        result = znodes.to_epoch(answer.data) if answer.ok else NO_LEADER_EPOCH
        if registered.epoch is None or result.number >= registered.epoch.number:
            registered.epoch = result
        self._read(registered)

    def learnt(self, tp: TopicPartition, epoch: LeaderEpoch) -> None:
        """This broker has written it: whoever asks it of the partition hears of that at once."""
        registered = self.of(tp)
        if registered is not None:
            registered.epoch = epoch
            self._put(registered)

    def _read(self, registered: Registered) -> None:
        """Puts the partition into the image, as soon as everything is known."""
        if self._put(registered):
            self._on_partition(registered)

    def _put(self, registered: Registered) -> bool:
        tp, image = registered.tp, self._ctx.image
        topic = self._topics.get(tp.topic)
        if topic is None or topic.topic_id is None or not registered.known:
            return False
        self._changed(image.metadata_offset + 1)
        partition = PartitionImage(
            tp=tp,
            topic_id=topic.topic_id,
            replicas=registered.replicas or (),
            isr=registered.isr or (),
            leader=NO_LEADER if registered.leader is None else registered.leader,
            leader_epoch=0 if registered.epoch is None else registered.epoch.number,
            partition_epoch=image.metadata_offset,
        )
        known = image.topics_by_name.get(tp.topic) or TopicImage(tp.topic, topic.topic_id, {})
        partitions = dict(sorted({**known.partitions, tp.partition: partition}.items()))
        known = replace(known, topic_id=topic.topic_id, partitions=partitions)
        image.topics_by_name[tp.topic] = image.topics_by_id[topic.topic_id] = known
        return True

    def _changed(self, number: int) -> None:
        self._ctx.image.metadata_offset = max(self._ctx.image.metadata_offset, number)
