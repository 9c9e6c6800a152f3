"""Our own broker in its profile zk08 on a fleet that has a controller too: a cluster that goes from ZooKeeper
to the controller while it runs (docs/rolling-upgrades.md).

The controller runs from the beginning, and watches. Once the level is raised on which it takes over, the
cluster itself is asked for what it is, and ZooKeeper may go.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wrackline.systems.base import ClusterState, Node, Place
from wrackline.systems.metadata_changes import Chronicle
from wrackline.systems.wrackline.settings import FROM_ZOOKEEPER
from wrackline.systems.wrackline.system import WracklineSystem
from wrackline.zookeeper.systems.wrackline import znodes
from wrackline.zookeeper.systems.wrackline.system import WracklineOnZooKeeper


class WracklineBridging(WracklineOnZooKeeper):
    """The `System` of our broker on its way from ZooKeeper to a controller."""

    _taken_over = False
    """The level has been raised on which nobody leads by ZooKeeper."""

    def settings_of(self, node: Node) -> dict[str, object]:
        """A broker that is not upgraded knows of no controller."""
        own = super().settings_of(node)
        if node.is_controller:
            own["profile"] = FROM_ZOOKEEPER
        elif own["profile"] != FROM_ZOOKEEPER:
            own["controllers"] = []
        return own

    def start(self, node: Node) -> None:
        """Returns when the node listens. ZooKeeper may be gone by then. Raises DeployError."""
        self._in_charge.start(self, node)

    @property
    def _in_charge(self) -> type[WracklineSystem]:
        return WracklineSystem if self._taken_over else WracklineOnZooKeeper

    def raise_level(self, feature: str, level: int, *, timeout_s: float, unsafe: bool = False) -> str:
        refusal = super().raise_level(feature, level, timeout_s=timeout_s, unsafe=unsafe)
        if not refusal and level >= znodes.WITH_CONTROLLER:
            self._taken_over = True
        return refusal

    # --- asking and telling the cluster: who is in charge --------------------------------------------------

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        return self._in_charge.describe(self, timeout_s=timeout_s)

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        self._in_charge.reassign(self, targets, timeout_s=timeout_s)

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        return self._in_charge.reassignments(self, timeout_s=timeout_s)

    def chronicle(self, topic: str, collected: Path) -> Chronicle:
        """Returns the chronicle that ZooKeeper has written down, and then the controller. Raises
        DeployError."""
        before = super().chronicle(topic, collected)
        if not self._taken_over:
            return before
        after = WracklineSystem.chronicle(self, topic, collected)
        return Chronicle(
            f"{before.source}; {after.source}",
            (*before.changes, *after.changes),
            after.recoveries,
            (*before.missing, *after.missing),
        )
