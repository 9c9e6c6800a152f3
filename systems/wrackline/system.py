"""Our own broker on a fleet: install, configure, start, stop, ask.

Everything on a host goes over SSH. What is asked of the cluster goes over the Kafka protocol from inside the
fleet's network. Hosts are worked on in parallel: a deployment takes as long as its slowest host.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from wrackline.fleets.base import Fleet, FleetError, Host, Result
from wrackline.systems.base import ClusterState, DeployError, Node, Place, Refusal, ReplicaLog, TopicSpec
from wrackline.systems.cluster_client import ASK_TIMEOUT_S, ClusterClient
from wrackline.systems.reassigning import Reassigner
from wrackline.systems.wrackline import bundle as bundles
from wrackline.systems.wrackline import node_files, settings
from wrackline.systems.wrackline.config_text import (
    LOGS,
    last_line,
    planned_replicas,
    toml,
    way_out_of,
    why_it_died,
)
from wrackline.systems.wrackline.on_hosts import data_dir, deploy_error, on_each, run_on

BROKER_PORT = 9092
CONTROLLER_PORT = 9093
FIRST_CONTROLLER = 101
HOME = "/opt/wrackline"
SCRIPT = f"{HOME}/node.sh"
CONFIG = "/etc/wrackline/broker.toml"
START_WAIT_S = 10


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
    ) -> None:
        """Brokers get the node ids 1, 2, ... in the order given, controllers 101, 102, ... A host named in
        both runs a broker and a controller in one process: a node with the broker's id and both roles.
        ``spares`` are brokers too, with the ids after; they are installed, and started by nobody but who asks
        for it.

        Raises DeployError for a host that the fleet does not have.
        """
        self.fleet = fleet
        self._cluster_id = cluster_id
        self._profile = profile
        self._defects = tuple(defects)
        self._config = dict(config or {})
        self._bundle_cache = bundle_cache
        known = {host.name: host for host in fleet.hosts}
        if missing := [name for name in (*brokers, *spares, *controllers) if name not in known]:
            raise DeployError(
                f"fleet {fleet.name} has no host {', '.join(missing)}: it has {', '.join(known)}"
            )
        carriers = (*brokers, *spares)
        if len(set(carriers)) < len(carriers) or len(set(controllers)) < len(controllers):
            raise DeployError(
                "a host can carry one broker and one controller: name each host once in each list"
            )
        self._voters = {name: number for number, name in enumerate(controllers, FIRST_CONTROLLER)}
        """Controller id by host."""
        self.nodes: tuple[Node, ...] = (
            *(
                self._broker(number, known[name], spare=name in spares)
                for number, name in enumerate(carriers, 1)
            ),
            *(
                Node(number, known[name], frozenset({"controller"}), CONTROLLER_PORT)
                for name, number in self._voters.items()
                if name not in carriers
            ),
        )
        self.brokers = tuple(node for node in self.nodes if node.is_broker and not node.spare)
        self.spares = tuple(node for node in self.nodes if node.spare)
        self.controllers = tuple(node for node in self.nodes if node.is_controller)
        self._client = ClusterClient(
            fleet, (*self.brokers, *self.spares), self.controllers, self._voters, CONTROLLER_PORT
        )
        self._reassigner = Reassigner(self.brokers, self._client.connect)

    def _broker(self, number: int, host: Host, *, spare: bool) -> Node:
        if host.name in self._voters:
            both = frozenset({"broker", "controller"})
            return Node(number, host, both, BROKER_PORT, CONTROLLER_PORT, spare)
        return Node(number, host, frozenset({"broker"}), BROKER_PORT, spare=spare)

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
            remote.put(files("wrackline.systems").joinpath("node.sh").read_bytes(), SCRIPT, mode=0o755)
            remote.put(self.config_for(node).encode(), CONFIG)
        except FleetError as wrong:
            raise deploy_error(node, "upload", str(wrong), "see that the host's disk has room") from wrong
        steps = [
            f"tar -xzf {archive.name}.tar.gz && rm {archive.name}.tar.gz && touch {marker}"
            for archive, marker in wanted
        ]
        folders = f"mkdir -p {LOGS} /run/wrackline {data_dir(node.host)}"
        self._command(node, " && ".join([f"cd {HOME}", *steps, folders]), timeout_s=60.0)

    def _preflight(self, node: Node, bundle: bundles.Bundle, markers: Sequence[str]) -> set[str]:
        """Which archives the host has already. Raises DeployError when its Python will not do, or a node
        runs."""
        version = "import sys; print('%d.%d' % sys.version_info[:2])"
        python = shlex.quote(node.host.python)
        result = self._command(
            node,
            f"{python} -c {shlex.quote(version)} || echo none; "
            f"ls -d {' '.join(markers)} 2>/dev/null; "
            f"[ -x {SCRIPT} ] && {SCRIPT} pid | sed 's/^/pid /'; true",
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
            "controllers": [
                f"{self._voters[one.host.name]}@{one.host.address}:{CONTROLLER_PORT}"
                for one in sorted(self.controllers, key=lambda one: self._voters[one.host.name])
            ],
            "profile": self._profile,
            "defects": list(self._defects),
            "trace_file": f"{LOGS}/trace.jsonl",
        }
        if len(node.roles) > 1:
            own["controller_id"] = self._voters[node.host.name]
        own |= settings.of_roles(self._config, broker=node.is_broker, controller=node.is_controller)
        return "".join(f"{key} = {toml(value)}\n" for key, value in own.items())

    # --- starting and stopping ----------------------------------------------------------------------------

    def start(self, node: Node) -> None:
        """Returns when the node listens; raises DeployError with the last lines of its log when it dies."""
        allow = " --allow-defects" if self._defects else ""
        # A combined node's broker listens when there is a quorum, its controller at once.
        port = CONTROLLER_PORT if node.is_controller else node.port
        command = f"{SCRIPT} start {shlex.quote(node.host.python)} {port} {START_WAIT_S}{allow}"
        result = self._command(node, command, timeout_s=START_WAIT_S + 20.0, check=False)
        if result.exit_code == 4:
            raise deploy_error(
                node,
                command,
                f"port {port} is taken by another process",
                f"end it (ss -ltnp 'sport = :{port}' names it) or use another host",
            )
        if not result.ok:
            raise deploy_error(node, command, *why_it_died(result))

    def start_all(self) -> None:
        on_each([node for node in self.nodes if not node.spare], self.start)

    def stop(self, node: Node, *, timeout_s: float = 30.0) -> None:
        command = f"{SCRIPT} stop {max(1, round(timeout_s))}"
        result = self._command(node, command, timeout_s=timeout_s + 20.0, check=False)
        if result.exit_code == 5:
            what = f"it still runs after {timeout_s:g} s: {last_line(result)}"
            raise deploy_error(node, command, what, "kill it, or give it more time")
        if not result.ok:
            raise deploy_error(
                node, command, f"exit code {result.exit_code}: {last_line(result)}", way_out_of("")
            )

    def stop_all(self, *, timeout_s: float = 30.0) -> None:
        """Brokers first: a controlled shutdown needs the controller."""
        on_each((*self.brokers, *self.spares), lambda node: self.stop(node, timeout_s=timeout_s))
        alone = [node for node in self.controllers if not node.is_broker]
        on_each(alone, lambda node: self.stop(node, timeout_s=timeout_s))

    def kill(self, node: Node) -> None:
        self._command(node, f"{SCRIPT} kill")

    def pause(self, node: Node) -> None:
        self._command(node, f"{SCRIPT} pause")

    def resume(self, node: Node) -> None:
        self._command(node, f"{SCRIPT} resume")

    def pid(self, node: Node) -> int | None:
        said = self._command(node, f"{SCRIPT} pid").stdout.strip()
        return int(said) if said else None

    def is_running(self, node: Node) -> bool:
        return self.pid(node) is not None

    def wait_ready(self, *, timeout_s: float = 60.0) -> None:
        """Until every broker is unfenced in the cluster's own metadata and every node's process lives.

        Raises DeployError: at once when a node has died, else at the deadline with what was seen last.
        """
        deadline = time.monotonic() + timeout_s
        wanted = {node.node_id for node in self.brokers}
        started = [node for node in self.nodes if not node.spare]
        check_processes_at = time.monotonic() + 1.0
        while True:
            try:
                state = self.describe(timeout_s=ASK_TIMEOUT_S)
                last = f"unfenced brokers {list(state.brokers)} of {sorted(wanted)}"
                if wanted <= set(state.brokers):
                    on_each(started, self._assert_alive)
                    return
            except DeployError as wrong:
                last = str(wrong)
            now = time.monotonic()
            if now >= check_processes_at:
                on_each(started, self._assert_alive)
                check_processes_at = now + 1.0
            if now >= deadline:
                raise DeployError(
                    f"the cluster was not ready after {timeout_s:g} s; last seen: {last}; "
                    f"look at {LOGS}/broker.log on the hosts, or wait longer"
                )
            time.sleep(0.05)

    def _assert_alive(self, node: Node) -> None:
        if not self.is_running(node):
            log = self._command(node, f"tail -n 15 {LOGS}/broker.log", check=False)
            raise deploy_error(node, "wait until ready", *why_it_died(log))

    def last_words(self, node: Node) -> str:
        return self._command(node, f"tail -n 1 {LOGS}/broker.log", check=False).stdout.strip()

    # --- asking the cluster -------------------------------------------------------------------------------

    def bootstrap(self) -> str:
        return ",".join(f"{node.host.address}:{node.port}" for node in self.brokers)

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
        give is told in its ``missing.txt``: the other hosts' files are worth having."""
        on_each(
            self.nodes,
            lambda node: node_files.collect(
                self.fleet, node, into / node.host.name, lambda: self.effective_config(node)
            ),
        )

    # --- helpers ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections kept for describe()."""
        self._client.close()

    def _command(self, node: Node, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        return run_on(self.fleet, node, command, timeout_s=timeout_s, check=check)
