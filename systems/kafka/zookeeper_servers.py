"""ZooKeeper servers on hosts of their own, for brokers that are not Apache Kafka's."""

from __future__ import annotations

from collections.abc import Sequence

from wrackline.fleets.base import Fleet
from wrackline.fleets.folders import data_dir, folders_of
from wrackline.systems.base import DeployError, Node
from wrackline.systems.common.nodes import Nodes
from wrackline.systems.kafka.jvm_nodes import JvmNodes
from wrackline.systems.kafka.releases import ZOOKEEPER
from wrackline.systems.kafka.store import Release, Store
from wrackline.systems.kafka.zookeeper import server

ZOOKEEPER_JVM = ("-Xms32m", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class ZooKeeperServers(JvmNodes):
    """The servers of an ensemble: installed, started and furnished. Every error is a DeployError."""

    def __init__(self, fleet: Fleet, servers: Sequence[Node], *, start_s: float) -> None:
        super().__init__(
            fleet,
            Nodes(tuple(servers), {}),
            version=ZOOKEEPER,
            jvm_options=ZOOKEEPER_JVM,
            start_s=start_s,
            faketime=False,
            store=Store().zookeeper,
        )

    def config_for(self, node: Node) -> str:
        return server.config(data_dir(node.host), node.host.address, self.nodes)

    def _config_path(self, node: Node) -> str:
        return f"{folders_of(node.host).configs}/zoo.cfg"

    def _main(self, node: Node) -> Sequence[str]:
        return (*server.OPTIONS, server.MAIN, self._config_path(node))

    def _release_of(self, node: Node) -> Release:
        del node
        found = self._store.find(ZOOKEEPER)
        if found is None:
            raise DeployError(
                f"ZooKeeper {ZOOKEEPER} is not installed on this machine: a run that needs it installs it"
            )
        return found

    def _format(self, node: Node) -> None:
        content = f"{server.server_id(node)}\n".encode()
        self.fleet.remote(node.host).put(content, f"{data_dir(node.host)}/myid")

    def effective_config(self, node: Node) -> str:
        return self._command(node, f"cat {self._config_path(node)}").stdout
