"""The migration from ZooKeeper to this controller (KIP-866; docs/rolling-upgrades.md).

The active controller of a cluster that is ZooKeeper's watches the cluster's level there, and says in a node
of its own that it is there. The level that an administrator writes last is the fence: whoever looks after it
is written leads by ZooKeeper no more. Then the controller reads everything and writes it as the metadata of
a new cluster, in one batch of records. Each ISR is *sealed* as it is read, that is written once more as it
is: so a leader that has yet to hear of the fence, and writes the ISR by the version it knows, can change it
no more, and whatever it acknowledges is on every member that the metadata has.

A controller that ends on the way leaves nothing behind that the next one would not do again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from wrackline.broker.core.continuations import Continuations
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.coordination import (
    Answer,
    Children,
    Coordinated,
    Create,
    Get,
    Operation,
    Outcome,
    SessionChanged,
    Set,
    WatchFired,
)
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.metadata.features import WITH_CONTROLLER
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.metadata.records import (
    POST_MIGRATION,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    ZkMigrationStateRecord,
)
from wrackline.broker.model.types import NO_LEADER, NodeId, TopicPartition
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.znodes import NO_LEADER_EPOCH

_AGAIN = "migration"
"""Timers."""
_NODE = "migration-node"
_AGAIN_MS = 200.0
_UNKNOWN = (Outcome.CONNECTION_LOSS, Outcome.SESSION_EXPIRED)
CoordinationEvent = SessionChanged | Coordinated | WatchFired


@dataclass(slots=True)
class _Partition:
    replicas: tuple[NodeId, ...] | None = None
    """None: an administrator is about to create it, and it never had a leader."""
    isr: tuple[NodeId, ...] = ()
    epoch: int = 0


@dataclass(slots=True)
class _Found:
    """The result of one pass through ZooKeeper. It is complete when no question is ``open``."""

    open: int = 0
    brokers: list[RegisterBrokerRecord] = field(default_factory=list)
    topics: dict[str, tuple[UUID, dict[str, str]]] = field(default_factory=dict)
    partitions: dict[TopicPartition, _Partition] = field(default_factory=dict)


class Migration:
    def __init__(self, config: ControllerConfig, *, seals: bool) -> None:
        """``seals``: see ``Switches.fences_zookeeper``."""
        self._config = config
        self._seals = seals
        self._ctx = ctx = Continuations()
        self._coordination = Coordination(
            ctx,
            config.zookeeper_session_timeout_ms,
            on_session=self._announce,
            on_reconnected=self._look,
            on_lost=lambda _: None,
        )
        self._under_way = False
        self._found: _Found | None = None
        self._fenced = False
        """The level is there on which nobody leads by ZooKeeper."""
        self.records: list[MetadataRecord] = []
        """Everything, as soon as it is known; whoever writes it takes it away."""

    def waits(self, image: ClusterImage) -> bool:
        """ZooKeeper is in charge, and this controller decides nothing. A cluster that has metadata of its own
        was never ZooKeeper's, or is no more."""
        return not (image.zk_migration or image.brokers or image.topics_by_name)

    # --- the controller's life -----------------------------------------------------------------------------

    def begin(self, image: ClusterImage, now_ms: float) -> list[Effect]:
        """This controller becomes the active one."""
        self._ctx.begin(now_ms)
        if self.waits(image) and not self._under_way:
            self._under_way, self._fenced = True, False
            self._coordination.keep(znodes.FEATURE, self._level)
            self._coordination.open()
        return self._ctx.out

    def end(self, now_ms: float) -> list[Effect]:
        """Ends the migration: the controller is no longer the active one, or its records are committed."""
        self._ctx.begin(now_ms)
        if self._under_way:
            self._under_way, self._found, self.records = False, None, []
            self._ctx.cancel_timers()
            self._coordination.close()
        return self._ctx.out

    def handle(self, event: CoordinationEvent, now_ms: float) -> list[Effect]:
        self._ctx.begin(now_ms)
        if self._under_way or isinstance(event, Coordinated):
            self._coordination.handle(event)
        return self._ctx.out

    def is_mine(self, key: str) -> bool:
        """A timer."""
        return self._ctx.waits_for(key)

    def timer(self, key: str, now_ms: float) -> list[Effect]:
        self._ctx.begin(now_ms)
        self._ctx.fired(key)
        return self._ctx.out

    # --- watching ------------------------------------------------------------------------------------------

    def _announce(self) -> None:
        """Announces this node, without which the level is refused: nobody would take over. That of a former
        session, or of another controller, goes when that session ends."""
        session = self._coordination.session

        def created(answer: Answer) -> None:
            if not answer.ok and session == self._coordination.session:
                self._ctx.set_timer(_NODE, self._ctx.now_ms + _AGAIN_MS, self._announce)

        node = str(self._config.node_id).encode()
        self._coordination.ask(Create(znodes.CONTROLLER, node, ephemeral=True), created)
        self._look()

    def _level(self, answer: Answer) -> None:
        fenced = answer.ok and znodes.to_level(answer.data) >= WITH_CONTROLLER
        if fenced and not self._fenced:
            self._fenced = True
            self._ctx.trace("migration", what="fenced")
            self._look()

    def _look(self) -> None:
        """Read everything, if it is time to. What a lost connection has left out is read anew, with the
        rest."""
        if self._fenced and self._under_way and not self.records:
            self._ctx.cancel_timer(_AGAIN)
            self._found = result = _Found()
            self._ask(result, Children(znodes.IDS), partial(self._brokers, result))

    # --- reading -------------------------------------------------------------------------------------------

    def _ask(self, found: _Found, operation: Operation, then: Callable[[Answer], None]) -> None:
        found.open += 1

        def answered(answer: Answer) -> None:
            if found is not self._found:
                return
            found.open -= 1
            if answer.outcome in _UNKNOWN:
                self._found = None
                self._ctx.set_timer(_AGAIN, self._ctx.now_ms + _AGAIN_MS, self._look)
                return
            then(answer)
            if not found.open:
                self._found, self.records = None, list(_records(found))
                self._ctx.trace("migration", what="read", records=len(self.records))

        self._coordination.ask(operation, answered)

    def _brokers(self, found: _Found, answer: Answer) -> None:
        """Reads the brokers before any ISR: a life that begins after this is none that the metadata knows."""
        for name in answer.children:
            self._ask(found, Get(znodes.broker(int(name))), partial(self._broker, found, int(name)))
        self._ask(found, Children(znodes.TOPICS), partial(self._topics, found))

    def _broker(self, found: _Found, node: NodeId, answer: Answer) -> None:
        if answer.stat is not None:
            at = znodes.to_address(answer.data)
            created = answer.stat.created
            found.brokers.append(
                RegisterBrokerRecord(
                    node,
                    UUID(int=created),
                    created,
                    at.host,
                    at.port,
                    is_migrating_zk_broker=True,
                    replication_port=at.replication_port,
                )
            )

    def _topics(self, found: _Found, answer: Answer) -> None:
        for name in answer.children:
            self._ask(found, Get(znodes.topic(name)), partial(self._topic, found, name))
            self._ask(found, Children(znodes.topic(name)), partial(self._partitions, found, name))

    def _topic(self, found: _Found, name: str, answer: Answer) -> None:
        if answer.stat is not None:
            found.topics[name] = znodes.topic_id_of(answer.stat.created), znodes.to_settings(answer.data)

    def _partitions(self, found: _Found, name: str, answer: Answer) -> None:
        for number in sorted(int(child) for child in answer.children):
            tp = TopicPartition(name, number)
            found.partitions[tp] = _Partition()
            self._ask(found, Get(znodes.isr(tp)), partial(self._isr, found, tp))

    def _isr(self, found: _Found, tp: TopicPartition, answer: Answer) -> None:
        found.partitions[tp].isr = znodes.to_ids(answer.data)
        path = znodes.isr(tp)
        if not self._seals:
            self._rest(found, tp)
        elif answer.stat is None:
            self._ask(found, Create(path), partial(self._sealed, found, tp))
        else:
            same = Set(path, answer.data, answer.stat.version)
            self._ask(found, same, partial(self._sealed, found, tp))

    def _sealed(self, found: _Found, tp: TopicPartition, answer: Answer) -> None:
        """Unless its leader has written meanwhile; it can do so a few times at most, for it will hear of the
        fence."""
        if answer.ok:
            self._rest(found, tp)
        else:
            self._ask(found, Get(znodes.isr(tp)), partial(self._isr, found, tp))

    def _rest(self, found: _Found, tp: TopicPartition) -> None:
        partition = found.partitions[tp]

        def replicas(answer: Answer) -> None:
            if answer.ok:
                partition.replicas = znodes.to_ids(answer.data)

        def epoch(answer: Answer) -> None:
            known = znodes.to_epoch(answer.data) if answer.ok else NO_LEADER_EPOCH
            partition.epoch = known.number

        self._ask(found, Get(znodes.replicas(tp)), replicas)
        self._ask(found, Get(znodes.epoch(tp)), epoch)


def _records(found: _Found) -> Iterator[MetadataRecord]:
    """Partitions without a leader: the first member of the ISR that registers becomes it, in an epoch above
    all that leaders have taken in ZooKeeper."""
    yield ZkMigrationStateRecord(POST_MIGRATION)
    yield from found.brokers
    for name, (topic_id, settings) in found.topics.items():
        yield TopicRecord(name, topic_id)
        for key, value in settings.items():
            yield ConfigRecord("topic", name, key, value)
    for tp, one in found.partitions.items():
        if one.replicas is None or tp.topic not in found.topics:
            continue
        # A leader that ended between the two writes of a reassignment leaves members that are not assigned.
        replicas = (*one.replicas, *(node for node in one.isr if node not in one.replicas))
        yield PartitionRecord(
            partition_id=tp.partition,
            topic_id=found.topics[tp.topic][0],
            replicas=replicas,
            isr=one.isr or replicas,  # it never had a leader, and anybody may be the first (Z32)
            leader=NO_LEADER,
            leader_epoch=one.epoch,
            partition_epoch=0,
        )
