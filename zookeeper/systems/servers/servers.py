"""ZooKeeper servers on hosts of their own."""

from __future__ import annotations

from collections.abc import Sequence

from wrackline.fleets.base import Fleet
from wrackline.fleets.folders import data_dir, folders_of
from wrackline.systems.base import DeployError, Node
from wrackline.systems.common.nodes import Nodes
from wrackline.systems.jvm.nodes import JvmNodes
from wrackline.systems.jvm.store import Release, Store
from wrackline.zookeeper.systems.servers import server
from wrackline.zookeeper.systems.servers.release import VERSION

ZOOKEEPER_JVM = ("-Xms32m", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def installed(store: Store, mend: str) -> Release:
    """The server's release. ``store``: ZooKeeper's own. ``mend``: what to do where there is none. Raises
    DeployError."""
    result = store.find(VERSION)
    if result is None:
        raise DeployError(f"ZooKeeper {VERSION} is not installed on this machine: {mend}")
    return result


def main(config_path: str) -> Sequence[str]:
    """Options of the JVM, the class that it runs, and its argument. The last option of a name counts."""
    return (*ZOOKEEPER_JVM, *server.OPTIONS, server.MAIN, config_path)


def put_id(fleet: Fleet, node: Node) -> None:
    """Writes ``myid``, which an empty disk is given. Raises FleetError."""
    content = f"{server.server_id(node)}\n".encode()
    fleet.remote(node.host).put(content, f"{data_dir(node.host)}/myid")


class ZooKeeperServers(JvmNodes):
    """The servers of an ensemble: installed, started and furnished. Every error is a DeployError."""

    def __init__(self, fleet: Fleet, servers: Sequence[Node], *, start_s: float) -> None:
        super().__init__(
            fleet,
            Nodes(tuple(servers), {}),
            name=f"zookeeper-{VERSION}",
            jvm_options=(),
            start_s=start_s,
            faketime=False,
            store=Store().zookeeper,
        )

    def config_for(self, node: Node) -> str:
        return server.config(data_dir(node.host), node.host.address, self.nodes)

    def _config_path(self, node: Node) -> str:
        return f"{folders_of(node.host).configs}/zoo.cfg"

    def _main(self, node: Node) -> Sequence[str]:
        return main(self._config_path(node))

    def _release_of(self, node: Node) -> Release:
        del node
        return installed(self._store, "a run that needs it installs it")

    def _format(self, node: Node) -> None:
        put_id(self.fleet, node)

    def effective_config(self, node: Node) -> str:
        return self._command(node, f"cat {self._config_path(node)}").stdout
