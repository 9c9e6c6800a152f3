"""Apache Kafka up to 2.8 on a fleet: brokers, and the ZooKeeper servers that they need.

ZooKeeper is asked who leads and who is in the ISR, and it is told what an administrator wants: it says so at
once, in every version alike, while brokers answer from what the controller has told them last.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wrackline.fleets.base import Fleet
from wrackline.fleets.folders import data_dir, folders_of
from wrackline.systems.base import (
    About,
    ClusterState,
    DeployError,
    Node,
    Place,
    Refusal,
    SessionEnd,
    TopicSpec,
)
from wrackline.systems.common.nodes import BROKER_PORT, nodes_on
from wrackline.systems.common.readiness import wait_ready
from wrackline.systems.jvm.property_file import text
from wrackline.systems.jvm.store import Release, Store
from wrackline.systems.kafka.nodes import KafkaNodes
from wrackline.systems.kafka.releases import parsed
from wrackline.systems.kafka.settings import refused
from wrackline.systems.kafka.system import JVM_OPTIONS, START_S
from wrackline.systems.metadata_changes import Chronicle
from wrackline.zookeeper.systems.kafka.admin import ZooKeeperAdmin
from wrackline.zookeeper.systems.kafka.properties import OURS, broker_properties
from wrackline.zookeeper.systems.kafka.state import CONTROLLER, broker_path, chronicle, cluster_state
from wrackline.zookeeper.systems.servers import server, servers, transactions
from wrackline.zookeeper.systems.servers.ensemble import modes
from wrackline.zookeeper.systems.servers.expiry import expire
from wrackline.zookeeper.systems.servers.session import Asking, Session

NOTICED_S = 15.0
"""So long ZooKeeper may take to see that a broker is gone: its session's time-out, and some more."""
_PASSED_OVER = {"min.insync.replicas": "it is one of topics alone: use topic.min_insync_replicas"}
"""Settings that 0.8.2 takes from a node's file and never looks at (KAFKA-2114)."""


class KafkaOnZooKeeper(KafkaNodes):
    """The `System` of Apache Kafka up to 2.8."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        version: str,
        versions: Mapping[str, str] | None = None,
        brokers: Sequence[str],
        zookeepers: Sequence[str],
        controllers: Sequence[str] = (),
        spares: Sequence[str] = (),
        config: Mapping[str, str | int | float | bool] | None = None,
        jvm_options: Sequence[str] = JVM_OPTIONS,
        start_s: float = START_S,
        faketime: bool = False,
        store: Store | None = None,
    ) -> None:
        """Places the nodes; `wrackline.systems.common.nodes.nodes_on` says which host gets which id.
        ``controllers``: hosts of brokers that are given no replicas and are started first, so that one of
        them is the controller as long as nothing happens to it. Raises DeployError for a host that the
        fleet does not have."""
        placed = nodes_on(
            fleet,
            brokers=brokers,
            controllers=controllers,
            spares=spares,
            zookeepers=zookeepers,
            controller_port=BROKER_PORT,
        )
        self._config = dict(config or {})
        super().__init__(
            fleet,
            placed,
            version=version,
            versions=versions or {},
            jvm_options=jvm_options,
            start_s=start_s,
            faketime=faketime,
            store=store or Store(),
        )
        self.zookeepers = placed.zookeepers
        self._session = Session(fleet, placed.zookeeper_connect())
        carriers = [node.node_id for node in (*self.brokers, *self.spares)]
        self._admin = ZooKeeperAdmin(self._session, parsed(version), carriers)
        self.admin = self._admin
        self._was_ready = False

    def refusals(self, topic: TopicSpec) -> tuple[Refusal, ...]:
        """Settings that are the harness's own and, where the version is installed, what it does not know."""
        release = self._store.find(self.version)
        own = [Refusal(About.CONFIG, key, OURS[key]) for key in self._config if key in OURS]
        if parsed(self.version) < (0, 9):
            own += [
                Refusal(About.CONFIG, key, f"Kafka {self.version} passes it over: {why}")
                for key, why in _PASSED_OVER.items()
                if key in self._config
            ]
        return (*own, *(refused(release, self._config, topic.configs) if release else ()))

    # --- installing ---------------------------------------------------------------------------------------

    def _release_of(self, node: Node) -> Release:
        if not node.is_zookeeper:
            return self._kafka(self._version_of(node))
        mend = f"`wrackline get kafka {self.version}` does it"
        return servers.installed(self._store.zookeeper, mend)

    def _format(self, node: Node) -> None:
        if node.is_zookeeper:
            servers.put_id(self.fleet, node)

    def _main(self, node: Node) -> Sequence[str]:
        if node.is_zookeeper:
            return servers.main(self._config_path(node))
        return ("kafka.Kafka", self._config_path(node))

    def _config_path(self, node: Node) -> str:
        name = "zoo.cfg" if node.is_zookeeper else "server.properties"
        return f"{folders_of(node.host).configs}/{name}"

    def config_for(self, node: Node) -> str:
        if node.is_zookeeper:
            return server.config(data_dir(node.host), node.host.address, self.zookeepers)
        return text(broker_properties(self._version_of(node), self._placed, node, self._config))

    # --- starting -----------------------------------------------------------------------------------------

    def start(self, node: Node) -> None:
        """Returns when the node listens. A broker is not started before its old session has ended: it would
        find its own node in ZooKeeper, and end. Raises DeployError."""
        if node.is_broker and not self._was_ready and self.controllers:
            self._await_first_controller()
        elif self._was_ready and not node.is_zookeeper:
            self._await_unregistered(node)
        super().start(node)

    def _await_first_controller(self) -> None:
        expected = {node.node_id for node in self.controllers}

        def chosen(asking: Asking) -> None:
            asking.wait(
                f"broker {sorted(expected)} to be the controller",
                lambda: asking.stat(CONTROLLER) is not None,
            )

        self._session.ask(chosen, self._patience_s)

    @property
    def _patience_s(self) -> float:
        return 2 * self._start_s

    def _await_unregistered(self, node: Node) -> None:
        """Waits until the broker is unregistered, or ZooKeeper does not answer: then nobody knows; the
        broker will wait for it itself."""
        deadline = time.monotonic() + NOTICED_S
        while time.monotonic() < deadline:
            try:
                if self._session.ask(lambda one: one.stat(broker_path(node.node_id)), 2.0) is None:
                    return
            except DeployError:
                return
            time.sleep(0.1)

    def wait_ready(self, *, timeout_s: float = 90.0) -> None:
        """Waits until every broker is registered, there is a controller, and every node's process lives.
        Raises DeployError."""

        def described(each_s: float) -> ClusterState:
            state = self.describe(timeout_s=each_s)
            if state.controller < 0:
                raise DeployError("no broker is the controller")
            return state

        wait_ready(self._placed, described, self._assert_alive, timeout_s)
        self._was_ready = True

    # --- asking and telling the cluster -------------------------------------------------------------------

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        """A broker that is there to be the controller is not among the brokers: it carries no replicas."""
        state = self._session.ask(cluster_state, timeout_s)
        apart = {node.node_id for node in self.controllers}
        return replace(state, brokers=tuple(one for one in state.brokers if one not in apart))

    def ensemble(self, *, timeout_s: float = 5.0) -> Mapping[int, str]:
        return modes(self.fleet, self.zookeepers, timeout_s)

    def create_topic(self, topic: TopicSpec, *, timeout_s: float = 30.0) -> None:
        """Create it and wait until every partition has a leader and its full ISR. Raises DeployError."""
        deadline = time.monotonic() + timeout_s
        self._admin.create_topic(topic, timeout_s=timeout_s)
        while True:
            mine = [one for one in self.describe().partitions if one.topic == topic.name]
            if len(mine) == topic.partitions and all(one.leader >= 0 and one.full_isr for one in mine):
                return
            if time.monotonic() > deadline:
                raise DeployError(
                    f"topic {topic.name} was not ready after {timeout_s:g} s; last seen: {mine}; look at the "
                    "controller's log"
                )
            time.sleep(0.05)

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        self._admin.reassign(targets, timeout_s=timeout_s)

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        return self._admin.under_way(timeout_s=timeout_s)

    def expire_session(self, node: Node, *, timeout_s: float = 30.0) -> SessionEnd:
        return expire(self._session, node, broker_path(node.node_id), timeout_s)

    def close(self) -> None:
        self._session.close()
        super().close()

    # --- fetching files -----------------------------------------------------------------------------------

    def effective_config(self, node: Node) -> str:
        """The node's file; what else a broker runs with it writes to its log when it starts."""
        return self._command(node, f"cat {self._config_path(node)}").stdout

    def chronicle(self, topic: str, collected: Path) -> Chronicle:  # noqa: ARG002
        """Returns the chronicle from the transaction logs of the ZooKeeper servers, on their disks. Raises
        DeployError."""
        return chronicle(transactions.fetch(self.fleet, self.zookeepers), self.zookeepers[0].host.name, topic)
