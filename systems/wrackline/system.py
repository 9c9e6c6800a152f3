"""Our own broker on a fleet: install, configure, start, stop, ask.

Everything on a host goes over SSH. What is asked of the cluster goes over the Kafka protocol from inside the
fleet's network. Hosts are worked on in parallel: a deployment takes as long as its slowest host.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from wrackline.fleets.base import Fleet, FleetError, Result
from wrackline.systems.base import ClusterState, Node, Place, Refusal, ReplicaLog, TopicSpec
from wrackline.systems.cluster_client import ClusterClient
from wrackline.systems.common import node_files
from wrackline.systems.common.node_log import LOGS, last_line
from wrackline.systems.common.node_script import CONFIGS, HOME, RUNNING, NodeScript
from wrackline.systems.common.nodes import CONTROLLER_PORT, nodes_on
from wrackline.systems.common.on_hosts import data_dir, deploy_error, on_each, run_on
from wrackline.systems.common.readiness import wait_ready
from wrackline.systems.reassigning import Reassigner
from wrackline.systems.wrackline import bundle as bundles
from wrackline.systems.wrackline import settings
from wrackline.systems.wrackline.config_text import planned_replicas, toml

CONFIG = f"{CONFIGS}/broker.toml"
START_S = 10.0
"""How long a node may take to listen."""


class WracklineSystem:
    """The `System` of our broker. Safe to use from several threads."""

    name = "wrackline"

    def __init__(
        self,
        fleet: Fleet,
        *,
        brokers: Sequence[str],
        controllers: Sequence[str],
        spares: Sequence[str] = (),
        cluster_id: str,
        profile: str = "kip966",
        defects: Sequence[str] = (),
        config: Mapping[str, object] | None = None,
        bundle_cache: Path,
        start_s: float = START_S,
    ) -> None:
        """Which host gets which id: `wrackline.systems.common.nodes.nodes_on`. ``spares`` are installed, and
        started by nobody but who asks for it. Raises DeployError for a host that the fleet does not have.
        """
        self.fleet = fleet
        self._cluster_id = cluster_id
        self._profile = profile
        self._defects = tuple(defects)
        self._config = dict(config or {})
        self._bundle_cache = bundle_cache
        self._placed = nodes_on(fleet, brokers=brokers, controllers=controllers, spares=spares)
        self.nodes: tuple[Node, ...] = self._placed.all
        self.brokers, self.spares = self._placed.brokers, self._placed.spares
        self.controllers = self._placed.controllers
        self._script = NodeScript(fleet, start_s)
        self._client = ClusterClient(
            fleet, (*self.brokers, *self.spares), self.controllers, self._placed.voters, CONTROLLER_PORT
        )
        self._reassigner = Reassigner(self.brokers, self._client.connect)

    def refusals(self, topic: TopicSpec) -> tuple[Refusal, ...]:
        """What the broker's own program would refuse. Raises DeployError when it does not answer."""
        kinds = {node.roles: self.config_for(node) for node in self.nodes}
        return (*settings.not_ours(self._config), *settings.refused(tuple(kinds.values()), topic))

    # --- installing ---------------------------------------------------------------------------------------

    def install(self) -> None:
        """Bundle, script and configuration to every host; starts nothing. Raises DeployError."""
        bundle = bundles.build(self._bundle_cache)
        on_each(self.nodes, lambda node: self._install(node, bundle))

    def _install(self, node: Node, bundle: bundles.Bundle) -> None:
        markers = [f"{HOME}/{archive.name}-{archive.digest}" for archive in bundle.archives]
        have = self._preflight(node, bundle, markers)
        wanted = [
            (archive, marker)
            for archive, marker in zip(bundle.archives, markers, strict=True)
            if marker not in have
        ]
        try:
            remote = self.fleet.remote(node.host)
            for archive, _ in wanted:
                remote.put(archive.path, f"{HOME}/{archive.name}.tar.gz")
            self._script.put(node, self._program(node))
            remote.put(self.config_for(node).encode(), CONFIG)
        except FleetError as wrong:
            raise deploy_error(node, "upload", str(wrong), "see that the host's disk has room") from wrong
        steps = [
            f"tar -xzf {archive.name}.tar.gz && rm {archive.name}.tar.gz && touch {marker}"
            for archive, marker in wanted
        ]
        self._command(node, " && ".join([f"cd {HOME}", *steps, self._script.folders(node)]), timeout_s=60.0)

    def _program(self, node: Node) -> str:
        """What the script starts."""
        allow = " --allow-defects" if self._defects else ""
        variables = f"PYTHONPATH={HOME}/lib PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1"
        python = shlex.quote(node.host.python)
        return f"exec env {variables} {python} -m wrackline.broker --config {CONFIG}{allow}\n"

    def _preflight(self, node: Node, bundle: bundles.Bundle, markers: Sequence[str]) -> set[str]:
        """Which archives the host has already. Raises DeployError when its Python will not do, or a node
        runs."""
        version = "import sys; print('%d.%d' % sys.version_info[:2])"
        python = shlex.quote(node.host.python)
        result = self._command(
            node,
            f"{python} -c {shlex.quote(version)} || echo none; "
            f"ls -d {' '.join(markers)} 2>/dev/null; "
            f"{RUNNING}",
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
        own: dict[str, object] = {
            "node_id": node.node_id,
            "role": "combined" if len(node.roles) > 1 else next(iter(node.roles)),
            "cluster_id": self._cluster_id,
            "host": node.host.address,
            "listen": node.host.address,
            "port": node.port,
            "data_dir": data_dir(node.host),
            "controllers": self._placed.voter_list(),
            "profile": self._profile,
            "defects": list(self._defects),
            "trace_file": f"{LOGS}/trace.jsonl",
        }
        if len(node.roles) > 1:
            own["controller_id"] = self._placed.voters[node.host.name]
        own |= settings.of_roles(self._config, broker=node.is_broker, controller=node.is_controller)
        return "".join(f"{key} = {toml(value)}\n" for key, value in own.items())

    # --- starting and stopping ----------------------------------------------------------------------------

    def start(self, node: Node) -> None:
        """Returns when the node listens; raises DeployError with the last lines of its log when it dies."""
        self._script.start(node)

    def start_all(self) -> None:
        on_each(self._placed.started, self.start)

    def stop(self, node: Node, *, timeout_s: float = 30.0) -> None:
        self._script.stop(node, timeout_s)

    def stop_all(self, *, timeout_s: float = 30.0) -> None:
        """Brokers first: a controlled shutdown needs the controller."""
        self._script.stop_all(self.nodes, timeout_s)

    def kill(self, node: Node) -> None:
        self._script.kill(node)

    def pause(self, node: Node) -> None:
        self._script.pause(node)

    def resume(self, node: Node) -> None:
        self._script.resume(node)

    def pid(self, node: Node) -> int | None:
        return self._script.pid(node)

    def is_running(self, node: Node) -> bool:
        return self.pid(node) is not None

    def wait_ready(self, *, timeout_s: float = 60.0) -> None:
        """Until every broker is unfenced in the cluster's own metadata and every node's process lives.

        Raises DeployError: at once when a node has died, else at the deadline with what was seen last.
        """
        wait_ready(
            self._placed, lambda each_s: self.describe(timeout_s=each_s), self._script.assert_alive, timeout_s
        )

    def last_words(self, node: Node) -> str:
        return self._script.last_words(node)

    # --- asking the cluster -------------------------------------------------------------------------------

    def bootstrap(self) -> str:
        return self._placed.bootstrap()

    def create_topic(self, topic: TopicSpec, *, timeout_s: float = 30.0) -> None:
        """Create it and wait until every partition has a leader and its full ISR. Raises DeployError."""
        self._client.create_topic(topic, timeout_s=timeout_s)

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        return self._client.describe(timeout_s=timeout_s)

    def growth_plan(self, node: Node, topic: str, *, timeout_s: float = 30.0) -> dict[Place, tuple[int, ...]]:
        """By the broker's own planner, on the new broker's host. Raises DeployError when it has no answer in
        time."""
        first = f"{node.host.address}:{node.port}"
        ask = (
            f"PYTHONPATH={HOME}/lib {shlex.quote(node.host.python)} -m wrackline.broker admin --timeout 3 "
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

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        self._reassigner.reassign(targets, timeout_s=timeout_s)

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        return self._reassigner.under_way(timeout_s=timeout_s)

    # --- fetching files -----------------------------------------------------------------------------------

    def effective_config(self, node: Node) -> str:
        """What the node runs with, as TOML; of a node that never ran: what it would run with."""
        allow = " --allow-defects" if self._defects else ""
        python = shlex.quote(node.host.python)
        ask = f"{python} -m wrackline.broker --config {CONFIG}{allow} --print-effective-config"
        command = (
            f"cat {data_dir(node.host)}/effective-config.toml 2>/dev/null || PYTHONPATH={HOME}/lib {ask}"
        )
        return self._command(node, command).stdout

    def replica_log(self, node: Node, topic: str, partition: int) -> ReplicaLog:
        return node_files.replica_log(self.fleet, node, topic, partition)

    def collect(self, into: Path) -> None:
        """``into/<host>/``: broker.log, trace.jsonl, effective-config.toml, listing.txt. What a host cannot
        give is listed in its ``missing.txt``: the other hosts' files are worth having."""
        on_each(
            self.nodes,
            lambda node: node_files.collect(
                self.fleet,
                node,
                into / node.host.name,
                "effective-config.toml",
                lambda: self.effective_config(node),
            ),
        )

    # --- helpers ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections kept for describe()."""
        self._client.close()

    def _command(self, node: Node, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        return run_on(self.fleet, node, command, timeout_s=timeout_s, check=check)
