"""The base of systems whose nodes are started by the script of a host, and whose cluster answers Kafka's
protocol.

A system is one of these and says what is its own: what is installed, how it is configured, who plans growth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from wrackline.fleets.base import Fleet, Result
from wrackline.fleets.folders import data_dir
from wrackline.history.offsets import Offsets
from wrackline.kafka_client.connection import Connection
from wrackline.systems.administration import Administrator
from wrackline.systems.base import Admin, ClusterState, DeployError, Node, Place, ReplicaLog, TopicSpec
from wrackline.systems.cluster_client import ClusterClient
from wrackline.systems.common import node_files, second_reader
from wrackline.systems.common.node_script import NodeScript
from wrackline.systems.common.nodes import CONTROLLER_PORT, Nodes
from wrackline.systems.common.on_hosts import on_each, run_on
from wrackline.systems.common.readiness import wait_ready


class Deployed(NodeScript, ABC):
    """Nodes on the hosts of a fleet. Safe to use from several threads; every error is a DeployError."""

    collected_config: ClassVar[str]
    """The file below ``collect``'s folder that has what a node runs with."""

    def __init__(self, fleet: Fleet, placed: Nodes, start_s: float) -> None:
        """``start_s``: how long a node may take to listen."""
        super().__init__(fleet, placed.all, start_s)
        self._placed = placed
        self.brokers, self.spares = placed.brokers, placed.spares
        self.controllers = placed.controllers
        carriers = (*self.brokers, *self.spares)
        self._client = ClusterClient(
            fleet,
            carriers,
            placed.every_controller,
            placed.voters,
            CONTROLLER_PORT,
            self._active_controller,
            electorate=self._electorate,
            dial=self._dial,
        )
        self._administrator = Administrator(self.brokers, self._client.connect)
        self.admin: Admin = self._administrator

    def _dial(self, address: str, port: int, timeout_s: float) -> Connection:
        """Connects to a node. Raises ProtocolError."""
        return Connection(address, port, timeout_s=timeout_s)

    def _active_controller(self, controller: Connection) -> int:
        """The id in the quorum of the active one, as this one of several knows it. Raises ProtocolError."""
        return controller.named_controller()

    def _electorate(self) -> Collection[int] | None:
        """The controllers that vote, by their ids in the quorum; None: all of them, for ever."""
        return None

    # --- starting and stopping ----------------------------------------------------------------------------

    def furnish(self, node: Node) -> None:
        """Lay the node's data folder out as the installation did; one with anything in it is left alone.
        Raises DeployError."""
        folder = data_dir(node.host)
        self._command(node, f"mkdir -p {folder} && sync -f {folder}")

    def start_all(self) -> None:
        on_each(self._placed.started, self.start)

    def wait_ready(self, *, timeout_s: float = 60.0) -> None:
        """Waits until every broker is unfenced in the cluster's own metadata and every node's process
        lives.

        Raises DeployError: at once when a node has died, else at the deadline with what was seen last.
        """
        wait_ready(
            self._placed, lambda each_s: self.describe(timeout_s=each_s), self._assert_alive, timeout_s
        )

    # --- asking the cluster -------------------------------------------------------------------------------

    def bootstrap(self) -> str:
        return self._placed.bootstrap()

    def create_topic(self, topic: TopicSpec, *, timeout_s: float = 30.0) -> None:
        """Create it and wait until every partition has a leader and its full ISR. Raises DeployError: of the
        node that has died, where that is why."""
        try:
            self._client.create_topic(topic, timeout_s=timeout_s)
        except DeployError:
            on_each(self._placed.started, self._assert_alive)
            raise

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        return self._client.describe(timeout_s=timeout_s)

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        self._administrator.reassign(targets, timeout_s=timeout_s)

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        return self._administrator.under_way(timeout_s=timeout_s)

    def connect(self, node: Node, *, timeout_s: float) -> Connection:
        """Connects to this broker. Raises ProtocolError."""
        return self._client.connect(node, timeout_s)

    def close(self) -> None:
        """Close the connections kept for describe()."""
        self._client.close()

    # --- fetching files -----------------------------------------------------------------------------------

    @abstractmethod
    def effective_config(self, node: Node) -> str:
        """Returns the configuration that the node runs with."""

    def replica_log(self, node: Node, topic: str, partition: int) -> ReplicaLog:
        return node_files.replica_log(self.fleet, node, topic, partition)

    def fetch_again(
        self, topic: str, partition: int, wanted: Offsets, *, committed: bool, timeout_s: float = 30.0
    ) -> Offsets:
        return second_reader.fetch_again(
            self._client, self.nodes, (topic, partition), wanted, committed=committed, timeout_s=timeout_s
        )

    def scan_again(self, node: Node, topic: str, partition: int) -> Offsets:
        return second_reader.scan_again(self.fleet, node, (topic, partition))

    def collect(self, into: Path) -> None:
        """``into/<host>/``: broker.log and what else is in the folder of logs, the effective configuration,
        listing.txt. What a host cannot give is listed in its ``missing.txt``: the other hosts' files are
        worth having."""
        on_each(
            self.nodes,
            lambda node: node_files.collect(
                self.fleet,
                node,
                into / node.host.name,
                self.collected_config,
                lambda: self.effective_config(node),
            ),
        )

    def _command(self, node: Node, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        return run_on(self.fleet, node, command, timeout_s=timeout_s, check=check)
