"""Apache Kafka on a fleet, in KRaft mode: install, configure, start, stop, ask.

No host formats a disk: with static voters the files are the same for every node
(wrackline.systems.kafka.server), and only meta.properties is a node's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wrackline.fleets.base import Fleet
from wrackline.fleets.folders import data_dir
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import ProtocolError
from wrackline.systems.administration import QUESTION_S, node_settings
from wrackline.systems.base import About, Node, Refusal, TopicSpec
from wrackline.systems.common.nodes import nodes_on
from wrackline.systems.common.on_hosts import on_each
from wrackline.systems.jvm.property_file import text
from wrackline.systems.jvm.store import Release, Store
from wrackline.systems.kafka import metadata_log
from wrackline.systems.kafka.nodes import KafkaNodes
from wrackline.systems.kafka.properties import OURS, properties, properties_of
from wrackline.systems.kafka.server import formatted, meta
from wrackline.systems.kafka.settings import refused
from wrackline.systems.metadata_changes import Chronicle

START_S = 40.0
JVM_OPTIONS = ("-Xms96m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class KafkaSystem(KafkaNodes):
    """The `System` of Apache Kafka from 3.7 on."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        version: str,
        brokers: Sequence[str],
        controllers: Sequence[str],
        spares: Sequence[str] = (),
        cluster_id: str,
        features: Mapping[str, int] | None = None,
        config: Mapping[str, str | int | float | bool] | None = None,
        jvm_options: Sequence[str] = JVM_OPTIONS,
        start_s: float = START_S,
        faketime: bool = False,
        store: Store | None = None,
    ) -> None:
        """Assigns ids to hosts: `wrackline.systems.common.nodes.nodes_on`. A combined node has its
        broker's id in the quorum too. ``cluster_id``: 16 bytes in base64url, 22 characters. ``features``:
        levels that a new cluster is given, by name. ``faketime``: nodes have clocks of their own. Raises
        DeployError for a host that the fleet does not have."""
        self._cluster_id = cluster_id
        self._features = dict(features or {})
        self._config = dict(config or {})
        super().__init__(
            fleet,
            nodes_on(fleet, brokers=brokers, controllers=controllers, spares=spares, one_id=True),
            version=version,
            jvm_options=jvm_options,
            start_s=start_s,
            faketime=faketime,
            store=store or Store(),
        )

    def refusals(self, topic: TopicSpec) -> tuple[Refusal, ...]:
        """Settings that are the harness's own and, where the version is installed, what it does not know."""
        release = self._store.find(self.version)
        own = [Refusal(About.CONFIG, key, OURS[key]) for key in self._config if key in OURS]
        return (*own, *(refused(release, self._config, topic.configs) if release else ()))

    def _active_controller(self, controller: Connection) -> int:
        return controller.active_controller()

    # --- installing ---------------------------------------------------------------------------------------

    def install(self) -> None:
        formatted(self._kafka(self.version), self._features)  # once, before all hosts want it
        super().install()

    def _release_of(self, node: Node) -> Release:
        return self._kafka(self._version_of(node))

    def _format(self, node: Node) -> None:
        remote, data = self.fleet.remote(node.host), data_dir(node.host)
        for path, content in formatted(self._kafka(self.version), self._features).items():
            remote.put(content, f"{data}/{path}")
        remote.put(meta(node.node_id, self._cluster_id).encode(), f"{data}/meta.properties")

    def _main(self, node: Node) -> Sequence[str]:
        return ("kafka.Kafka", self._config_path(node))

    def config_for(self, node: Node) -> str:
        return text(properties(self._version_of(node), self._placed, node, self._config))

    # --- asking the cluster -------------------------------------------------------------------------------

    def levels(self, *, timeout_s: float) -> Mapping[str, int]:
        return self._administrator.levels(timeout_s=timeout_s)

    def raise_level(self, feature: str, level: int, *, timeout_s: float) -> str:
        return self._administrator.raise_level(feature, level, timeout_s=timeout_s)

    def features(self, *, timeout_s: float = 30.0) -> Mapping[str, int]:
        return self._administrator.levels(timeout_s=timeout_s)

    # --- fetching files -----------------------------------------------------------------------------------

    def chronicle(self, topic: str, collected: Path) -> Chronicle:  # noqa: ARG002
        """Returns the metadata changes by the metadata log of the controllers, on their disks. Raises
        DeployError."""
        logs = on_each(
            self.controllers,
            lambda node: (node.host.name, self.replica_log(node, metadata_log.TOPIC, 0)),
        )
        host, log = metadata_log.furthest(logs)
        return metadata_log.chronicle(log, host, topic)

    def effective_config(self, node: Node) -> str:
        """Returns the configuration that the node runs with, as it says itself; of a node that does not
        answer: its file."""
        try:
            with self._client.connect(node, QUESTION_S) as connection:
                return properties_of(node_settings(connection, node))
        except ProtocolError as silent:
            return (
                f"# from the node's file: {silent}\n"
                + self._command(node, f"cat {self._config_path(node)}").stdout
            )
