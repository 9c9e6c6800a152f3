"""The door to the ZooKeeper era: cores of brokers and controllers whose cluster is ZooKeeper's.

Nothing here imports them. They stand on this room, and are found by name where a cluster has a ZooKeeper.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Protocol

from wrackline.broker.core.dispatcher import Dispatcher
from wrackline.broker.core.lifecycle import State
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.coordination import Coordinated, SessionChanged, WatchFired
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.events import Event
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.metadata.records import MetadataRecord
from wrackline.broker.model.metric import Metric
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.rules.profile import Rules


class BrokerCore(Protocol):
    """A ``Dispatcher``, or one that gives way to another when a controller takes over."""

    @property
    def acting(self) -> Dispatcher:
        """The one that decides now."""

    @property
    def image(self) -> ClusterImage: ...

    @property
    def state(self) -> State: ...

    @property
    def broker_epoch(self) -> int: ...

    def metrics(self) -> tuple[Metric, ...]: ...

    def replica(self, tp: TopicPartition) -> Replica | None: ...

    def fetching(self, tp: TopicPartition) -> tuple[NodeId, ...]: ...

    def handle(self, event: Event, now_ms: float) -> list[Effect]: ...


class Migration(Protocol):
    """A controller's part in taking a cluster over from ZooKeeper."""

    records: list[MetadataRecord]
    """Everything, as soon as it is known; whoever writes it takes it away."""

    def waits(self, image: ClusterImage) -> bool:
        """ZooKeeper is in charge, and this controller decides nothing."""

    def begin(self, image: ClusterImage, now_ms: float) -> list[Effect]: ...

    def end(self, now_ms: float) -> list[Effect]: ...

    def handle(self, event: SessionChanged | Coordinated | WatchFired, now_ms: float) -> list[Effect]: ...

    def is_mine(self, key: str) -> bool: ...

    def timer(self, key: str, now_ms: float) -> list[Effect]: ...


def zookeeper_broker(config: BrokerConfig, rules: Rules) -> BrokerCore:
    """``rules``: the profile's; of one with a controller those that hold when it has taken over."""
    core: BrokerCore = resolve_name("wrackline.zookeeper.core.bridging:core_of")(config, rules)
    return core


def zookeeper_migration(config: ControllerConfig, rules: Rules) -> Migration:
    migration: Migration = resolve_name("wrackline.zookeeper.core.migration:Migration")(
        config, seals=rules.switches.fences_zookeeper
    )
    return migration
