"""Nodes that are a JVM on each host, with the jars of an installed release.

Hosts that do not see this machine's folder of the release are sent it whole, with the times of its files.
"""

from __future__ import annotations

import shlex
import tarfile
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from wrackline.fleets.base import Fleet
from wrackline.fleets.folders import data_dir, data_dirs, folders_of
from wrackline.systems.base import Node
from wrackline.systems.common.deployed import Deployed
from wrackline.systems.common.nodes import Nodes
from wrackline.systems.common.on_hosts import bringing, deploy_error, on_each
from wrackline.systems.jvm.faketime import under
from wrackline.systems.jvm.logging import LOGGING, logging_options
from wrackline.systems.jvm.store import RELEASE, Release, Store

JRE = "openjdk-17-jre-headless"
"""Debian's package that hosts of such nodes need."""


class JvmNodes(Deployed):
    """Nodes on a JVM; a subclass says what runs, and how it is configured. Every error is a DeployError."""

    collected_config = "effective.properties"

    def __init__(
        self,
        fleet: Fleet,
        placed: Nodes,
        *,
        name: str,
        jvm_options: Sequence[str],
        start_s: float,
        faketime: bool,
        store: Store,
    ) -> None:
        self.name = name
        self._jvm_options = tuple(jvm_options)
        self._faketime = faketime
        self._store = store
        super().__init__(fleet, placed, start_s)

    # --- what each kind says ------------------------------------------------------------------------------

    @abstractmethod
    def config_for(self, node: Node) -> str:
        """The node's configuration file (properties)."""

    def _config_path(self, node: Node) -> str:
        """The file that configures the node."""
        return f"{folders_of(node.host).configs}/server.properties"

    @abstractmethod
    def _main(self, node: Node) -> Sequence[str]:
        """The class that the node runs, and its arguments; before them, options of the JVM for it alone."""

    @abstractmethod
    def _release_of(self, node: Node) -> Release:
        """Returns the release that the node runs. Raises DeployError when it is not installed on this
        machine."""

    @abstractmethod
    def _format(self, node: Node) -> None:
        """Formats an empty disk. Raises FleetError, DeployError."""

    # --- installing ---------------------------------------------------------------------------------------

    def install(self) -> None:
        """Release, script, configuration and an empty disk that is ready for use to every host; starts
        nothing. The release must be on this machine. Raises DeployError."""
        on_each(self.nodes, self._install)

    def _install(self, node: Node) -> None:
        folders = folders_of(node.host)
        if running := self._command(node, folders.running).stdout.strip():
            raise deploy_error(node, "install", f"a node runs there ({running})", "stop it first")
        with bringing(node):
            self._bring(node)
            self._format(node)
        # Synced: a power cut soon after the start must not leave a disk that was never formatted. A host that
        # is a folder loses no power, and its file system may have much of others' to write.
        sync = "" if node.host.is_folder else "".join(f" && sync -f {data}" for data in data_dirs(node.host))
        self._command(node, self._folders(node) + sync, timeout_s=60.0)

    def _bring(self, node: Node) -> None:
        """The release, where the host does not see it, and all that a start needs of it. Raises
        FleetError."""
        release = self._release_of(node)
        expected = (release.folder / RELEASE).read_bytes()
        seen = self._command(node, f"cat {shlex.quote(str(release.folder / RELEASE))} 2>/dev/null; true")
        if seen.stdout.encode() != expected:
            self._send(node, release)
        remote = self.fleet.remote(node.host)
        self._put(node, self._program(node, release))
        remote.put(self.config_for(node).encode(), self._config_path(node))
        for name, layout in LOGGING.items():
            remote.put(layout.encode(), f"{folders_of(node.host).configs}/{name}")

    def furnish(self, node: Node) -> None:
        data = data_dir(node.host)
        if self._command(node, f"ls -A {data} 2>/dev/null; true").stdout.strip():
            return
        with bringing(node, "format"):
            self._format(node)
        self._command(node, f"mkdir -p {data} && sync -f {data}")

    def _send(self, node: Node, release: Release) -> None:
        """The whole folder, to the same path: the archive of classes knows its jars by path, size and time.
        Raises FleetError."""
        folder = shlex.quote(str(release.folder))
        with tempfile.NamedTemporaryFile(prefix="wrackline-release-", suffix=".tar") as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(release.folder, arcname=".")
            packed.flush()
            self.fleet.remote(node.host).put(Path(packed.name), f"{release.folder}.tar")
        unpack = (
            f"rm -rf {folder} && mkdir -p {folder} && tar -xf {folder}.tar -C {folder} && rm {folder}.tar"
        )
        self._command(node, unpack, timeout_s=120.0)

    def _program(self, node: Node, release: Release) -> str:
        """Returns the program that the script starts."""
        command = [
            "java",
            *self._jvm_options,
            f"-XX:SharedArchiveFile={release.archive}",
            "-Xshare:auto",
            "-XX:-UsePerfData",
            *logging_options(folders_of(node.host).configs),
            *("-cp", release.classpath),
            *self._main(node),
        ]
        return under(shlex.join(command)) if self._faketime else f"exec {shlex.join(command)}\n"
