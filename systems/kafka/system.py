"""Apache Kafka on a fleet, in KRaft mode: install, configure, start, stop, ask.

Hosts that do not see this machine's folder of the release are sent it whole, with the times of its files.
No host formats a disk: with static voters the files are the same for every node
(wrackline.systems.kafka.server), and only meta.properties is a node's own.
"""

from __future__ import annotations

import re
import shlex
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from wrackline.fleets.base import Fleet, FleetError
from wrackline.fleets.folders import data_dir, folders_of
from wrackline.systems.base import (
    About,
    DeployError,
    Node,
    Place,
    Refusal,
    TopicSpec,
)
from wrackline.systems.common.deployed import Deployed
from wrackline.systems.common.growth import share_of
from wrackline.systems.common.nodes import nodes_on
from wrackline.systems.common.on_hosts import deploy_error, on_each
from wrackline.systems.common.questions import (
    ASK_S,
    coordinator_of,
    effective_settings,
    features_of,
    first_answer,
)
from wrackline.systems.kafka.faketime import under
from wrackline.systems.kafka.properties import LOGGING, OURS, logging_options, properties, properties_of, text
from wrackline.systems.kafka.server import formatted, meta
from wrackline.systems.kafka.settings import refused
from wrackline.systems.kafka.store import RELEASE, Release, Store
from wrackline.systems.protocol import Connection, ProtocolError

START_S = 40.0
_SERVER_JAR = re.compile(r"/kafka_2\.\d+-(\d+\.\d+\.\d+)\.jar")
JVM_OPTIONS = ("-Xms96m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class KafkaSystem(Deployed):
    """The `System` of Apache Kafka."""

    collected_config = "effective.properties"

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
        """Which host gets which id: `wrackline.systems.common.nodes.nodes_on`. A combined node has its
        broker's id in the quorum too. ``cluster_id``: 16 bytes in base64url, 22 characters. ``features``:
        levels that a new cluster is given, by name. ``faketime``: nodes have clocks of their own. Raises
        DeployError for a host that the fleet does not have."""
        self.name = f"kafka-{version}"
        self.version = version
        self._cluster_id = cluster_id
        self._features = dict(features or {})
        self._config = dict(config or {})
        self._jvm_options = tuple(jvm_options)
        self._faketime = faketime
        self._store = store or Store()
        self._versions: dict[int, str] = {}
        """Of nodes that were upgraded."""
        placed = nodes_on(fleet, brokers=brokers, controllers=controllers, spares=spares, one_id=True)
        super().__init__(fleet, placed, start_s, Connection.active_controller)

    def refusals(self, topic: TopicSpec) -> tuple[Refusal, ...]:
        """Settings that are the harness's own and, where the version is installed, what it does not know."""
        release = self._store.find(self.version)
        own = [Refusal(About.CONFIG, key, OURS[key]) for key in self._config if key in OURS]
        return (*own, *(refused(release, self._config, topic.configs) if release else ()))

    # --- installing ---------------------------------------------------------------------------------------

    def install(self) -> None:
        """Release, script, configuration and an empty formatted disk to every host; starts nothing. The
        release must be on this machine. Raises DeployError."""
        release = self._release(self.version)
        files = formatted(release, self._features)
        on_each(self.nodes, lambda node: self._install(node, release, files))

    def _release(self, version: str) -> Release:
        found = self._store.find(version)
        if found is None:
            raise DeployError(
                f"Kafka {version} is not installed on this machine: `wrackline kafka install {version}` "
                "does it"
            )
        return found

    def _install(self, node: Node, release: Release, files: Mapping[str, bytes]) -> None:
        folders = folders_of(node.host)
        if running := self._command(node, folders.running).stdout.strip():
            raise deploy_error(node, "install", f"a node runs there ({running})", "stop it first")
        data = data_dir(node.host)
        try:
            self._bring(node, release)
            self._format(node, files)
        except FleetError as wrong:
            raise deploy_error(node, "upload", str(wrong), "see that the host's disk has room") from wrong
        # Synced: a power cut soon after the start must not leave a disk that was never formatted. A host that
        # is a folder loses no power, and its file system may have much of others' to write.
        sync = "" if node.host.is_folder else f" && sync -f {data}"
        self._command(node, self._script.folders(node) + sync, timeout_s=60.0)

    def _bring(self, node: Node, release: Release) -> None:
        """The release, where the host does not see it, and all that a start needs of it. Raises
        FleetError."""
        wanted = (release.folder / RELEASE).read_bytes()
        seen = self._command(node, f"cat {shlex.quote(str(release.folder / RELEASE))} 2>/dev/null; true")
        if seen.stdout.encode() != wanted:
            self._send(node, release)
        remote = self.fleet.remote(node.host)
        self._script.put(node, self._program(node, release))
        remote.put(self.config_for(node).encode(), _config(node))
        for name, layout in LOGGING.items():
            remote.put(layout.encode(), f"{folders_of(node.host).configs}/{name}")

    def upgrade(self, node: Node, version: str) -> None:
        release = self._release(version)
        self._versions[node.node_id] = version
        try:
            self._bring(node, release)
        except FleetError as wrong:
            raise deploy_error(node, "upload", str(wrong), "see that the host's disk has room") from wrong

    def running_version(self, node: Node) -> str:
        pid = self.pid(node)
        if pid is None:
            return ""
        said = self._command(node, f"tr '\\0' '\\n' </proc/{pid}/cmdline").stdout
        found = _SERVER_JAR.search(said)
        return found[1] if found else ""

    def _format(self, node: Node, files: Mapping[str, bytes]) -> None:
        """What an empty disk is given. Raises FleetError."""
        remote, data = self.fleet.remote(node.host), data_dir(node.host)
        for path, content in files.items():
            remote.put(content, f"{data}/{path}")
        remote.put(meta(node.node_id, self._cluster_id).encode(), f"{data}/meta.properties")

    def furnish(self, node: Node) -> None:
        data = data_dir(node.host)
        if self._command(node, f"ls -A {data} 2>/dev/null; true").stdout.strip():
            return
        try:
            self._format(node, formatted(self._release(self.version), self._features))
        except FleetError as wrong:
            raise deploy_error(node, "format", str(wrong), "see that the host's disk has room") from wrong
        self._command(node, f"sync -f {data}")

    def _send(self, node: Node, release: Release) -> None:
        """The whole folder, to the same path: the archive of classes knows its jars by path, size and time.
        Raises FleetError."""
        folder = shlex.quote(str(release.folder))
        with tempfile.NamedTemporaryFile(prefix="wrackline-kafka-", suffix=".tar") as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(release.folder, arcname=".")
            packed.flush()
            self.fleet.remote(node.host).put(Path(packed.name), f"{release.folder}.tar")
        unpack = (
            f"rm -rf {folder} && mkdir -p {folder} && tar -xf {folder}.tar -C {folder} && rm {folder}.tar"
        )
        self._command(node, unpack, timeout_s=120.0)

    def _program(self, node: Node, release: Release) -> str:
        """What the script starts."""
        command = [
            "java",
            *self._jvm_options,
            f"-XX:SharedArchiveFile={release.archive}",
            "-Xshare:auto",
            "-XX:-UsePerfData",
            *logging_options(folders_of(node.host).configs),
            *("-cp", release.classpath),
            *("kafka.Kafka", _config(node)),
        ]
        return under(shlex.join(command)) if self._faketime else f"exec {shlex.join(command)}\n"

    def config_for(self, node: Node) -> str:
        """The node's configuration file (properties)."""
        version = self._versions.get(node.node_id, self.version)
        return text(properties(version, self._placed, node, self._config))

    # --- asking the cluster -------------------------------------------------------------------------------

    def wait_ready(self, *, timeout_s: float = 90.0) -> None:
        super().wait_ready(timeout_s=timeout_s)

    def growth_plan(self, node: Node, topic: str, *, timeout_s: float = 30.0) -> dict[Place, tuple[int, ...]]:
        return share_of(self.describe(timeout_s=timeout_s), node.node_id, topic)

    def features(self, *, timeout_s: float = 30.0) -> Mapping[str, int]:
        return features_of(self.brokers, self._client.connect, timeout_s)

    def coordinator(self, what: str, name: str, *, timeout_s: float = 5.0) -> int:
        return first_answer(
            self.brokers, self._client.connect, lambda one: coordinator_of(one, what, name), timeout_s
        )

    # --- fetching files -----------------------------------------------------------------------------------

    def effective_config(self, node: Node) -> str:
        """What the node runs with, as it says itself; of a node that does not answer: its file."""
        try:
            with self._client.connect(node, ASK_S) as connection:
                return properties_of(effective_settings(connection, node.node_id))
        except ProtocolError as silent:
            return f"# from the node's file: {silent}\n" + self._command(node, f"cat {_config(node)}").stdout


def _config(node: Node) -> str:
    """The file that configures the node."""
    return f"{folders_of(node.host).configs}/server.properties"
