"""Our own broker in its profile zk08 on a fleet: brokers without any controller, and the ZooKeeper servers
that they need.

ZooKeeper is asked who leads and who is in the ISR: there it is decided, and brokers hear of it late.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from wrackline.fleets.base import Fleet
from wrackline.systems.base import ClusterState, DeployError, Node, Place, SessionEnd
from wrackline.systems.common import node_files
from wrackline.systems.common.growth import share_of
from wrackline.systems.metadata_changes import Chronicle
from wrackline.systems.wrackline.settings import LEVEL_ON_ZOOKEEPER
from wrackline.systems.wrackline.system import START_S, WracklineSystem
from wrackline.zookeeper.core.znodes import IDS
from wrackline.zookeeper.systems.servers import transactions
from wrackline.zookeeper.systems.servers.ensemble import modes
from wrackline.zookeeper.systems.servers.expiry import expire
from wrackline.zookeeper.systems.servers.servers import ZooKeeperServers
from wrackline.zookeeper.systems.servers.session import Asking, Session
from wrackline.zookeeper.systems.wrackline import znodes
from wrackline.zookeeper.systems.wrackline.znodes import (
    add_broker,
    cluster_state,
    create_cluster,
    reassign,
    reassignments,
)

SLOWER = 3
"""A node may take so many times as long to listen as where there is a controller: a server of ZooKeeper is a
JVM, and a broker waits for the end of its former session."""
MOST_CROWDED = 4.0


def crowding() -> float:
    """Returns the factor by which a server of ZooKeeper may take longer to answer now than on a quiet
    machine."""
    return min(MOST_CROWDED, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


class WracklineOnZooKeeper(WracklineSystem):
    """The `System` of our broker in profile zk08."""

    name = "wrackline-zk08"

    def __init__(
        self,
        fleet: Fleet,
        *,
        brokers: Sequence[str],
        controllers: Sequence[str] = (),
        spares: Sequence[str] = (),
        zookeepers: Sequence[str],
        cluster_id: str,
        profile: str,
        defects: Sequence[str] = (),
        mutant: str = "",
        config: Mapping[str, object] | None = None,
        trace: bool = True,
        bundle_cache: Path,
        start_s: float = START_S,
    ) -> None:
        """Places the nodes; `wrackline.systems.common.nodes.nodes_on` says which host gets which id.
        Raises DeployError for a host that the fleet does not have."""
        super().__init__(
            fleet,
            brokers=brokers,
            controllers=controllers,
            spares=spares,
            zookeepers=zookeepers,
            cluster_id=cluster_id,
            profile=profile,
            defects=defects,
            mutant=mutant,
            config=config,
            trace=trace,
            bundle_cache=bundle_cache,
            start_s=SLOWER * start_s,
        )
        self.zookeepers = self._placed.zookeepers
        self._servers = ZooKeeperServers(fleet, self.zookeepers, start_s=self._start_s)
        self._session = Session(fleet, self._placed.zookeeper_connect())

    # --- installing and starting --------------------------------------------------------------------------

    def install(self) -> None:
        self._servers.install()
        super().install()

    def furnish(self, node: Node) -> None:
        if node.is_zookeeper:
            self._servers.furnish(node)
        else:
            super().furnish(node)

    def start(self, node: Node) -> None:
        """Returns when the node listens: of a broker, when it has registered in ZooKeeper. Raises
        DeployError."""
        if node.is_broker:
            members = [one.node_id for one in self.brokers]
            level = LEVEL_ON_ZOOKEEPER[self._profile]

            def listed(asking: Asking) -> None:
                create_cluster(asking, members, level)
                add_broker(asking, node.node_id)  # which changes nothing, but for a spare

            self._session.ask(listed, self._start_s * crowding())
        super().start(node)

    # --- another profile -----------------------------------------------------------------------------------

    def levels(self, *, timeout_s: float) -> Mapping[str, int]:
        return {znodes.BROKER_PROTOCOL: self._session.ask(znodes.level, timeout_s)}

    def raise_level(self, feature: str, level: int, *, timeout_s: float, unsafe: bool = False) -> str:  # noqa: ARG002
        if feature != znodes.BROKER_PROTOCOL:
            return f"there is no feature {feature}; there is: {znodes.BROKER_PROTOCOL}"
        return self._session.ask(lambda asking: znodes.raise_level(asking, level), timeout_s)

    # --- asking and telling the cluster -------------------------------------------------------------------

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        return self._session.ask(_cluster_state, timeout_s)

    def ensemble(self, *, timeout_s: float = 5.0) -> Mapping[int, str]:
        return modes(self.fleet, self.zookeepers, timeout_s)

    def expire_session(self, node: Node, *, timeout_s: float = 30.0) -> SessionEnd:
        return expire(self._session, node, f"{IDS}/{node.node_id}", timeout_s)

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        if cancelled := [f"{topic}-{number}" for (topic, number), to in targets.items() if to is None]:
            raise DeployError(f"{', '.join(cancelled)}: a move that has begun cannot be taken back here")
        expected = {place: to for place, to in targets.items() if to is not None}
        self._session.ask(lambda asking: reassign(asking, expected), timeout_s)

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        return self._session.ask(reassignments, timeout_s)

    def growth_plan(self, node: Node, topic: str, *, timeout_s: float = 30.0) -> dict[Place, tuple[int, ...]]:
        return share_of(self.describe(timeout_s=timeout_s), node.node_id, topic)

    def close(self) -> None:
        self._session.close()
        self._servers.close()
        super().close()

    # --- fetching files -----------------------------------------------------------------------------------

    def config_for(self, node: Node) -> str:
        return self._servers.config_for(node) if node.is_zookeeper else super().config_for(node)

    def effective_config(self, node: Node) -> str:
        return self._servers.effective_config(node) if node.is_zookeeper else super().effective_config(node)

    def collect(self, into: Path) -> None:
        """Collects also the transaction logs of the ZooKeeper servers, as one: without them nobody can
        tell from the traces whose session there was."""
        super().collect(into)
        first = self.zookeepers[0]
        folder = into / first.host.name
        try:
            written = transactions.fetch(self.fleet, self.zookeepers)
        except DeployError as error:
            with (folder / node_files.MISSING).open("a") as missing:
                missing.write(f"transactions: {error}\n")
        else:
            transactions.save(written, first, folder / transactions.TRANSACTIONS)

    def chronicle(self, topic: str, collected: Path) -> Chronicle:
        """Returns the chronicle from the transaction logs of the ZooKeeper servers that were collected.
        Raises DeployError."""
        name = self.zookeepers[0].host.name
        file = collected / name / transactions.TRANSACTIONS
        try:
            written = transactions.load(file)
        except (OSError, ValueError, KeyError) as error:
            raise DeployError(f"{file}: ZooKeeper's transactions cannot be read: {error}") from error
        return znodes.chronicle(written, name, topic)


def _cluster_state(asking: Asking) -> ClusterState:
    try:
        return cluster_state(asking)
    except ValueError as error:
        raise DeployError(f"ZooKeeper: a node of the cluster holds what is no id: {error}") from error
