"""The door to the ZooKeeper era: what a world, its faults and its invariants are when ZooKeeper is in charge.

Nothing of the simulator imports the parts of that era. They stand on it, and are found by name where a
profile has no controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from pkgutil import resolve_name
from typing import Any, Protocol

from wrackline.broker.model.coordination import Coordinate, OpenSession
from wrackline.broker.model.metadata.image import ClusterImage, PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition

_PARTS = {
    "actions": "wrackline.zookeeper.simulator.faults:ZOOKEEPER_FAULTS",
    "checker": "wrackline.zookeeper.simulator.migration_checker:checker_of",
    "ensemble": "wrackline.zookeeper.simulator.ensemble:Ensemble",
    "random stories": "wrackline.zookeeper.simulator.scenes.random_frequency:search_report",
    "schedules": "wrackline.zookeeper.simulator.scenes.migration:SCHEDULES",
    "trace checks": "wrackline.zookeeper.simulator.trace_replay:without_controller",
    "transactions": "wrackline.zookeeper.simulator.transactions:follow",
    "undecided": "wrackline.zookeeper.simulator.trace_replay:UNDECIDED",
    "upgrade": "wrackline.zookeeper.simulator.upgrade:ZookeeperUpgrade",
}


class ZooKeeper(Protocol):
    """The ensemble, one node of the network."""

    def open(self, node: NodeId, asked: OpenSession) -> None: ...

    def ask(self, node: NodeId, asked: Coordinate) -> None: ...

    def close(self, node: NodeId) -> None: ...

    def begin(self, brokers: Iterable[NodeId], level: int) -> None:
        """A new cluster of these brokers."""

    @property
    def image(self) -> ClusterImage:
        """The cluster as ZooKeeper has it."""

    def moves(self, tp: TopicPartition) -> bool:
        """There is a reassignment of the partition that is not done."""

    def adds_up(self, partition: PartitionImage) -> bool:
        """Tells whether nothing is half-written of what ZooKeeper has of the partition."""


def of_zookeeper(part: str) -> Any:
    """``part``: what the simulator has without ZooKeeper, too, by the name that it has here."""
    return resolve_name(_PARTS[part])
