"""Our own broker on a fleet: install, configure, start, stop, ask.

Everything on a host goes over SSH. What is asked of the cluster goes over the Kafka protocol from inside the
fleet's network. Hosts are worked on in parallel: a deployment takes as long as its slowest host.
"""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from wrackline.fleets.base import Fleet, FleetError, Host, Result
from wrackline.systems import segments
from wrackline.systems.base import ClusterState, DeployError, Node, Place, Refusal, ReplicaLog, TopicSpec
from wrackline.systems.cluster_client import ASK_TIMEOUT_S, ClusterClient
from wrackline.systems.reassigning import Reassigner
from wrackline.systems.wrackline import bundle as bundles
from wrackline.systems.wrackline import settings
from wrackline.systems.wrackline.config_text import (
    LOGS,
    last_line,
    planned_replicas,
    toml,
    way_out_of,
    why_it_died,
)

BROKER_PORT = 9092
CONTROLLER_PORT = 9093
FIRST_CONTROLLER = 101
HOME = "/opt/wrackline"
SCRIPT = f"{HOME}/node.sh"
CONFIG = "/etc/wrackline/broker.toml"
START_WAIT_S = 10
T = TypeVar("T")


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
        self._each(self.nodes, lambda node: self._install(node, bundle))

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
            raise self._error(node, "upload", str(wrong), "see that the host's disk has room") from wrong
        steps = [
            f"tar -xzf {archive.name}.tar.gz && rm {archive.name}.tar.gz && touch {marker}"
            for archive, marker in wanted
        ]
        folders = f"mkdir -p {LOGS} /run/wrackline {_data_dir(node.host)}"
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
            raise self._error(
                node,
                node.host.python,
                "there is no such program",
                f"install Python {bundle.python} on the host, or give its path as the host's python",
            )
        if found != bundle.python:
            raise self._error(
                node,
                node.host.python,
                f"it is Python {found}, the bundle is built for {bundle.python}",
                f"give the path of a Python {bundle.python} as the host's python",
            )
        if running := [line for line in rest if line.startswith("pid ")]:
            raise self._error(node, "install", f"a node runs there ({running[0]})", "stop it first")
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
            "data_dir": _data_dir(node.host),
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
            raise self._error(
                node,
                command,
                f"port {port} is taken by another process",
                f"end it (ss -ltnp 'sport = :{port}' names it) or use another host",
            )
        if not result.ok:
            raise self._error(node, command, *why_it_died(result))

    def start_all(self) -> None:
        self._each([node for node in self.nodes if not node.spare], self.start)

    def stop(self, node: Node, *, timeout_s: float = 30.0) -> None:
        command = f"{SCRIPT} stop {max(1, round(timeout_s))}"
        result = self._command(node, command, timeout_s=timeout_s + 20.0, check=False)
        if result.exit_code == 5:
            what = f"it still runs after {timeout_s:g} s: {last_line(result)}"
            raise self._error(node, command, what, "kill it, or give it more time")
        if not result.ok:
            raise self._error(
                node, command, f"exit code {result.exit_code}: {last_line(result)}", way_out_of("")
            )

    def stop_all(self, *, timeout_s: float = 30.0) -> None:
        """Brokers first: a controlled shutdown needs the controller."""
        self._each((*self.brokers, *self.spares), lambda node: self.stop(node, timeout_s=timeout_s))
        alone = [node for node in self.controllers if not node.is_broker]
        self._each(alone, lambda node: self.stop(node, timeout_s=timeout_s))

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
                    self._each(started, self._assert_alive)
                    return
            except DeployError as wrong:
                last = str(wrong)
            now = time.monotonic()
            if now >= check_processes_at:
                self._each(started, self._assert_alive)
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
            raise self._error(node, "wait until ready", *why_it_died(log))

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
            "--bootstrap "
            f"{first},{self.bootstrap()} add-brokers {node.node_id} --topics {shlex.quote(topic)} --dry-run"
        )
        deadline = time.monotonic() + timeout_s
        while True:
            result = self._command(node, f"cd / && {ask}", timeout_s=timeout_s + 20.0, check=False)
            if result.ok:
                return planned_replicas(result.stdout)
            if time.monotonic() > deadline:
                raise self._error(node, "plan its share", last_line(result), "see that the others answer")
            time.sleep(0.2)

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        self._reassigner.reassign(targets, timeout_s=timeout_s)

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        return self._reassigner.under_way(timeout_s=timeout_s)

    # --- fetching files -----------------------------------------------------------------------------------

    def effective_config(self, node: Node) -> str:
        """What the node runs with, as TOML; of a node that never ran: what it would run with."""
        allow = " --allow-defects" if self._defects else ""
        ask = f"{shlex.quote(node.host.python)} -m wrackline.broker --config {CONFIG}{allow} --print-effective-config"
        command = (
            f"cat {_data_dir(node.host)}/effective-config.toml 2>/dev/null || PYTHONPATH={HOME}/lib {ask}"
        )
        return self._command(node, command).stdout

    def replica_log(self, node: Node, topic: str, partition: int) -> ReplicaLog:
        data_dir = _data_dir(node.host)
        name = f"{topic}-{partition}"
        remote = self.fleet.remote(node.host)
        with tempfile.TemporaryDirectory(prefix="wrackline-log-") as scratch:
            into = Path(scratch)
            try:
                checkpoints = {
                    file: segments.parse_checkpoint(remote.get(f"{data_dir}/{file}").decode(), file=file)
                    for file in self._present(node, segments.HIGH_WATERMARKS, segments.LOG_STARTS)
                }
                remote.get_tree(f"{data_dir}/{name}", into, patterns=("*.log",))
            except (FleetError, segments.SegmentError, UnicodeDecodeError) as wrong:
                raise self._error(
                    node, f"read the log of {name}", str(wrong), "see that the replica is on this host"
                ) from wrong
            return segments.read_log(
                into,
                node_id=node.node_id,
                topic=topic,
                partition=partition,
                high_watermarks=checkpoints.get(segments.HIGH_WATERMARKS, {}),
                log_starts=checkpoints.get(segments.LOG_STARTS, {}),
            )

    def _present(self, node: Node, *names: str) -> list[str]:
        found = self._command(node, f"cd {_data_dir(node.host)} && ls {' '.join(names)} 2>/dev/null; true")
        return found.stdout.split()

    def collect(self, into: Path) -> None:
        """``into/<host>/``: broker.log, trace.jsonl, effective-config.toml, listing.txt. What a host cannot
        give is told in its ``missing.txt``: the other hosts' files are worth having."""
        self._each(self.nodes, lambda node: self._collect(node, into / node.host.name))

    def _collect(self, node: Node, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        missing: list[str] = []

        def attempt(what: str, action: Callable[[], object]) -> None:
            try:
                action()
            except (FleetError, DeployError) as wrong:
                missing.append(f"{what}: {wrong}")

        def listing() -> None:
            command = f"find {_data_dir(node.host)} -printf '%10s %TY-%Tm-%TdT%TT %p\\n' | sort -k 3"
            (into / "listing.txt").write_text(self._command(node, command).stdout)

        def config() -> None:
            (into / "effective-config.toml").write_text(self.effective_config(node))

        attempt("logs", lambda: self.fleet.remote(node.host).get_tree(LOGS, into))
        attempt("listing", listing)
        attempt("effective configuration", config)
        if missing:
            (into / "missing.txt").write_text("\n".join(missing) + "\n")

    # --- helpers ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections kept for describe()."""
        self._client.close()

    def _command(self, node: Node, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        try:
            result = self.fleet.remote(node.host).run(command, timeout_s=timeout_s, check=False)
        except FleetError as wrong:
            raise self._error(node, command, str(wrong), "see that the host is up and reachable") from wrong
        if check and not result.ok:
            said = (result.stderr or result.stdout).strip()
            raise self._error(node, command, f"exit code {result.exit_code}: {said}", way_out_of(said))
        return result

    @staticmethod
    def _error(node: Node, command: str, what: str, way_out: str) -> DeployError:
        return DeployError(f"{node.host.name} (node {node.node_id}): {command}: {what}; {way_out}")

    @staticmethod
    def _each(nodes: Sequence[Node], action: Callable[[Node], T]) -> list[T]:
        """On all nodes at once. Raises DeployError with every host's trouble when there is any."""
        if not nodes:
            return []
        with ThreadPoolExecutor(max_workers=len(nodes), thread_name_prefix="deploy") as pool:
            futures = [pool.submit(action, node) for node in nodes]
        troubles = [trouble for future in futures if (trouble := future.exception())]
        for trouble in troubles:
            if not isinstance(trouble, DeployError):
                raise trouble
        if troubles:
            raise DeployError("\n".join(map(str, troubles))) from troubles[0]
        return [future.result() for future in futures]


def _data_dir(host: Host) -> str:
    return str(host.data_dir / "broker")
