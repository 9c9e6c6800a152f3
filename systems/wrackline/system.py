"""Our own broker on a fleet: install, configure, start, stop, ask.

Everything on a host goes over SSH. What is asked of the cluster goes over the Kafka protocol from inside the
fleet's network. Hosts are worked on in parallel: a deployment takes as long as its slowest host.
"""

from __future__ import annotations

import os
import secrets
import shlex
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from wrackline.fleets.base import Fleet
from wrackline.fleets.folders import data_dir, folders_of
from wrackline.history.store import packed
from wrackline.systems.base import DeployError, Node, Place, Refusal, TopicSpec
from wrackline.systems.common.deployed import Deployed
from wrackline.systems.common.node_log import last_line
from wrackline.systems.common.node_script import NodeScript
from wrackline.systems.common.nodes import REPLICATION_PORT, nodes_on
from wrackline.systems.common.on_hosts import bringing, deploy_error, on_each
from wrackline.systems.metadata_changes import Chronicle
from wrackline.systems.wrackline import bundle as bundles
from wrackline.systems.wrackline import settings
from wrackline.systems.wrackline.config_text import planned_replicas, toml
from wrackline.systems.wrackline.metadata_changes import SOURCE, chronicle

TRACE = "trace.jsonl"
"""Below a host's folder of logs."""
START_S = 10.0
"""How long a node may take to listen."""


class WracklineSystem(Deployed):
    """The `System` of our broker."""

    name = "wrackline"
    _crash_codes = NodeScript._crash_codes | {os.EX_SOFTWARE}
    collected_config = "effective-config.toml"

    def __init__(
        self,
        fleet: Fleet,
        *,
        brokers: Sequence[str],
        controllers: Sequence[str],
        spares: Sequence[str] = (),
        zookeepers: Sequence[str] = (),
        cluster_id: str,
        profile: str = "kip966",
        defects: Sequence[str] = (),
        mutant: str = "",
        config: Mapping[str, object] | None = None,
        trace: bool = True,
        racks: Mapping[str, str] | None = None,
        bundle_cache: Path,
        start_s: float = START_S,
    ) -> None:
        """Assigns ids to hosts: `wrackline.systems.common.nodes.nodes_on`. ``spares`` are installed, and
        started by nobody but who asks for it. ``racks``: host -> its rack. Raises DeployError for a host
        that the fleet does not have."""
        self._cluster_id = cluster_id
        self._profile = profile
        self._defects = tuple(defects)
        self._mutant = mutant
        self._config = dict(config or {})
        self._trace = trace
        self._racks = dict(racks or {})
        self._bundle_cache = bundle_cache
        self._secret = secrets.token_hex(32)
        """Of this cluster: by it its nodes know each other."""
        placed = nodes_on(
            fleet,
            brokers=brokers,
            controllers=controllers,
            spares=spares,
            zookeepers=zookeepers,
            replication_port=REPLICATION_PORT,
        )
        super().__init__(fleet, placed, start_s)
        self._lib: dict[str, str] = {}
        """Host -> where its modules are, where that is not in its own folder."""
        self._upgraded: dict[int, str] = {}
        """Nodes that are started with another profile than the first, by id."""

    def refusals(self, topic: TopicSpec) -> tuple[Refusal, ...]:
        """Returns what the broker's own program would refuse. Raises DeployError when it does not answer."""
        kinds = {node.roles: self.config_for(node) for node in self._ours}
        return (*settings.not_ours(self._config), *settings.refused(tuple(kinds.values()), topic))

    @property
    def _ours(self) -> tuple[Node, ...]:
        """The nodes that run our broker."""
        return tuple(node for node in self.nodes if not node.is_zookeeper)

    # --- installing ---------------------------------------------------------------------------------------

    def install(self) -> None:
        """Bundle, script and configuration to every host; starts nothing. Raises DeployError."""
        bundle = bundles.build(self._bundle_cache, self._mutant)
        here: tuple[str, ...] = ()
        if any(node.host.reads_here for node in self._ours):
            by_user = any(node.host.is_folder for node in self._ours)
            here = bundles.unpacked(bundle, self._bundle_cache if by_user else bundles.SEEN_BY_HOSTS)
        on_each(self._ours, lambda node: self._install(node, bundle, here))

    def _install(self, node: Node, bundle: bundles.Bundle, here: Sequence[str]) -> None:
        home = folders_of(node.host).home
        markers = [f"{home}/{archive.name}-{archive.digest}" for archive in bundle.archives]
        here = here if node.host.reads_here else ()
        have = self._preflight(node, bundle, (*markers, *here))
        if here and have.issuperset(here):
            self._lib[node.host.name] = ":".join(here)
        expected = [
            (archive, marker)
            for archive, marker in zip(bundle.archives, markers, strict=True)
            if marker not in have and node.host.name not in self._lib
        ]
        with bringing(node):
            remote = self.fleet.remote(node.host)
            for archive, _ in expected:
                remote.put(archive.path, f"{home}/{archive.name}.tar.gz")
            self._put(node, self._program(node))
            remote.put(self.config_for(node).encode(), _config(node))
            remote.put(self._secret.encode(), _secret(node), mode=0o600)
        steps = [
            f"tar -xzf {archive.name}.tar.gz && rm {archive.name}.tar.gz && touch {marker}"
            for archive, marker in expected
        ]
        self._command(node, " && ".join([f"cd {home}", *steps, self._folders(node)]), timeout_s=60.0)

    def _lib_of(self, node: Node) -> str:
        """Returns the folder of the node's modules, for a shell."""
        return shlex.quote(self._lib.get(node.host.name, f"{folders_of(node.host).home}/lib"))

    def _program(self, node: Node) -> str:
        """Returns the program that the script starts."""
        allow = " --allow-defects" if self._defects else ""
        variables = f"PYTHONPATH={self._lib_of(node)} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1"
        python = shlex.quote(node.host.python)
        return f"exec env {variables} {python} -m wrackline.broker --config {_config(node)}{allow}\n"

    def _preflight(self, node: Node, bundle: bundles.Bundle, paths: Sequence[str]) -> set[str]:
        """Returns which of the paths the host has. Raises DeployError when its Python will not do, or a
        node runs."""
        version = "import sys; print('%d.%d' % sys.version_info[:2])"
        python = shlex.quote(node.host.python)
        result = self._command(
            node,
            f"{python} -c {shlex.quote(version)} || echo none; "
            f"ls -d {shlex.join(paths)} 2>/dev/null; "
            f"{folders_of(node.host).running}",
        )
        found, *rest = result.stdout.split("\n")
        if found == "none":
            raise deploy_error(
                node,
                node.host.python,
                "there is no such program",
                f"install Python {bundle.python} on the host, or give its path as the host's python",
            )
        if found != bundle.python:
            raise deploy_error(
                node,
                node.host.python,
                f"it is Python {found}, the bundle is built for {bundle.python}",
                f"give the path of a Python {bundle.python} as the host's python",
            )
        if running := [line for line in rest if line.startswith("pid ")]:
            raise deploy_error(node, "install", f"a node runs there ({running[0]})", "stop it first")
        return set(rest)

    def config_for(self, node: Node) -> str:
        """The node's configuration file (TOML)."""
        own = self.settings_of(node)
        return "".join(f"{key} = {toml(value)}\n" for key, value in own.items())

    def settings_of(self, node: Node) -> dict[str, object]:
        """Returns the settings in the node's file."""
        own: dict[str, object] = {
            "node_id": node.node_id,
            "role": "combined" if len(node.roles) > 1 else next(iter(node.roles)),
            "cluster_id": self._cluster_id,
            "host": node.host.address,
            "listen": node.host.address,
            "port": node.port,
            "secret_file": _secret(node),
            "data_dir": data_dir(node.host),
            "controllers": self._placed.voter_list(),
            "profile": self._upgraded.get(node.node_id, self._profile),
            "defects": list(self._defects),
        }
        if node.is_broker:
            own["replication_port"] = node.replication_port
        if self._trace:
            own["trace_file"] = f"{folders_of(node.host).logs}/{TRACE}"
        if len(node.roles) > 1:
            own["controller_id"] = self._placed.voters[node.host.name]
        if self._placed.zookeepers:
            own["zookeeper_connect"] = self._placed.zookeeper_connect()
        if node.host.name in self._racks:
            own["rack"] = self._racks[node.host.name]
        own |= settings.of_roles(self._config, broker=node.is_broker, controller=node.is_controller)
        return own

    # --- another profile -----------------------------------------------------------------------------------

    def upgrade(self, node: Node, version: str) -> None:
        """Sets the profile of the same program that a stopped node is started as from now on."""
        self._upgraded[node.node_id] = version
        with bringing(node):
            self.fleet.remote(node.host).put(self.config_for(node).encode(), _config(node))

    def running_version(self, node: Node) -> str:
        """The profile, as the process has written it when it started."""
        if self.pid(node) is None:
            return ""
        return str(tomllib.loads(self.effective_config(node)).get("profile", ""))

    def levels(self, *, timeout_s: float) -> Mapping[str, int]:
        return self._administrator.levels(timeout_s=timeout_s)

    def raise_level(self, feature: str, level: int, *, timeout_s: float, unsafe: bool = False) -> str:
        return self._administrator.raise_level(feature, level, timeout_s=timeout_s, unsafe=unsafe)

    # --- asking the cluster -------------------------------------------------------------------------------

    def growth_plan(self, node: Node, topic: str, *, timeout_s: float = 30.0) -> dict[Place, tuple[int, ...]]:
        """Returns the plan of the broker's own planner, on the new broker's host. Raises DeployError when
        it has no answer in time."""
        first = f"{node.host.address}:{node.port}"
        python = shlex.quote(node.host.python)
        ask = (
            f"PYTHONPATH={self._lib_of(node)} {python} -m wrackline.broker admin --timeout 3 "
            f"--bootstrap {first},{self.bootstrap()} "
            f"add-brokers {node.node_id} --topics {shlex.quote(topic)} --dry-run"
        )
        deadline = time.monotonic() + timeout_s
        while True:
            result = self._command(node, f"cd / && {ask}", timeout_s=timeout_s + 20.0, check=False)
            if result.ok:
                return planned_replicas(result.stdout)
            if time.monotonic() > deadline:
                raise deploy_error(node, "plan its share", last_line(result), "see that the others answer")
            time.sleep(0.2)

    # --- fetching files -----------------------------------------------------------------------------------

    def effective_config(self, node: Node) -> str:
        """Returns the configuration that the node runs with, as TOML; of a node that never ran: what it
        would run with."""
        allow = " --allow-defects" if self._defects else ""
        python = shlex.quote(node.host.python)
        ask = f"{python} -m wrackline.broker --config {_config(node)}{allow} --print-effective-config"
        there = f"cat {data_dir(node.host)}/effective-config.toml 2>/dev/null"
        return self._command(node, f"{there} || PYTHONPATH={self._lib_of(node)} {ask}").stdout

    def chronicle(self, topic: str, collected: Path) -> Chronicle:
        """Returns the metadata changes by the traces that were collected. Raises DeployError."""
        files = {file.parent.name: file for file in packed.found(collected, f"*/{TRACE}")}
        if not files:
            return Chronicle(SOURCE, missing=("no node has written a trace (system.trace)",))
        try:
            return chronicle(files, topic)
        except OSError as error:
            raise DeployError(f"{collected}: the traces cannot be read: {error}") from error


def _secret(node: Node) -> str:
    """The file with the cluster's secret. Nobody collects it."""
    return f"{folders_of(node.host).configs}/secret"


def _config(node: Node) -> str:
    """The file that configures the node."""
    return f"{folders_of(node.host).configs}/broker.toml"
