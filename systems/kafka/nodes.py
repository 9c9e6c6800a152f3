"""The common part of the nodes of every version of Apache Kafka."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from wrackline.fleets.base import Fleet
from wrackline.systems.base import DeployError, Node, Place
from wrackline.systems.common.growth import share_of
from wrackline.systems.common.nodes import Nodes
from wrackline.systems.common.on_hosts import bringing
from wrackline.systems.jvm.nodes import JvmNodes
from wrackline.systems.jvm.store import Release, Store

_SERVER_JAR = re.compile(r"/kafka_2\.\d+-(\d+(?:\.\d+){2,3})\.jar")


class KafkaNodes(JvmNodes):
    """Nodes of one version, or of several while they are upgraded. Every error is a DeployError."""

    def __init__(
        self,
        fleet: Fleet,
        placed: Nodes,
        *,
        version: str,
        versions: Mapping[str, str],
        jvm_options: Sequence[str],
        start_s: float,
        faketime: bool,
        store: Store,
    ) -> None:
        self.version = version
        self._versions = {
            node.node_id: versions[node.host.name] for node in placed.all if node.host.name in versions
        }
        """Of nodes that are of another version, or have become one."""
        super().__init__(
            fleet,
            placed,
            name=f"kafka-{version}",
            jvm_options=jvm_options,
            start_s=start_s,
            faketime=faketime,
            store=store,
        )

    def _kafka(self, version: str) -> Release:
        result = self._store.find(version)
        if result is None:
            raise DeployError(
                f"Kafka {version} is not installed on this machine: `wrackline get kafka {version}` does it"
            )
        return result

    def _version_of(self, node: Node) -> str:
        return self._versions.get(node.node_id, self.version)

    def upgrade(self, node: Node, version: str) -> None:
        self._kafka(version)
        self._versions[node.node_id] = version
        with bringing(node):
            self._bring(node)

    def running_version(self, node: Node) -> str:
        pid = self.pid(node)
        if pid is None:
            return ""
        said = self._command(node, f"tr '\\0' '\\n' </proc/{pid}/cmdline").stdout
        match = _SERVER_JAR.search(said)
        return match[1] if match else ""

    def wait_ready(self, *, timeout_s: float = 90.0) -> None:
        super().wait_ready(timeout_s=timeout_s)

    def coordinator(self, what: str, name: str, *, timeout_s: float = 5.0) -> int:
        return self._administrator.coordinator(what, name, timeout_s=timeout_s)

    def use_epochs(self, transactional_ids: Sequence[str], epoch: int, *, timeout_s: float) -> None:
        self._administrator.use_epochs(transactional_ids, epoch, timeout_s=timeout_s)

    def describe_internal(self, topics: Collection[str]) -> None:
        self._client.internal = {*self._client.internal, *topics}

    def growth_plan(self, node: Node, topic: str, *, timeout_s: float = 30.0) -> dict[Place, tuple[int, ...]]:
        return share_of(self.describe(timeout_s=timeout_s), node.node_id, topic)
