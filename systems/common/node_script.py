"""Starting, stopping and probing nodes by the script that is installed on every host (systems/node.sh).

The script starts the program of the host: a file that ends with ``exec``, so that the process it starts is
the node. Whatever is said to a node goes over SSH; errors name host, node, command and the way out.
"""

from __future__ import annotations

from importlib.resources import files
from signal import SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV
from typing import ClassVar

from wrackline.fleets.base import Fleet
from wrackline.fleets.folders import data_dirs, folders_of
from wrackline.systems.base import Node, NodeDied
from wrackline.systems.common.node_log import is_of_host, last_line, way_out_of, why_it_died
from wrackline.systems.common.on_hosts import deploy_error, on_each, run_on


class NodeScript:
    """Nodes that are started by the script on their hosts. Safe to use from several threads."""

    _crash_codes: ClassVar[frozenset[int]] = frozenset(
        128 + number for number in (SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV)
    )
    """Exit codes of a program that has a bug."""

    def __init__(self, fleet: Fleet, nodes: tuple[Node, ...], start_s: float) -> None:
        """``start_s``: how long a node may take to listen."""
        self.fleet = fleet
        self.nodes = nodes
        self._start_s = round(start_s)

    def _put(self, node: Node, program: str) -> None:
        """Install the script and what it starts. Raises FleetError."""
        remote, folders = self.fleet.remote(node.host), folders_of(node.host)
        remote.put(files("wrackline.systems").joinpath("node.sh").read_bytes(), folders.script, mode=0o755)
        remote.put(program.encode(), folders.program)

    @staticmethod
    def _folders(node: Node) -> str:
        """The command that makes the folders a node writes to."""
        folders = folders_of(node.host)
        return f"mkdir -p {folders.logs} {folders.run} {' '.join(data_dirs(node.host))}"

    def start(self, node: Node) -> None:
        """Returns when the node listens; raises NodeDied with the last lines of its log when it dies,
        and DeployError where that is a matter of its host or its configuration."""
        # A combined node's broker listens when there is a quorum, its controller at once.
        port = node.controller_port or node.port
        # Neighbours of a host that is a folder listen on the same port, at addresses of their own.
        at = f"{node.host.address}:{port}" if node.host.is_folder else str(port)
        command = f"{_script(node)} start {at} {self._start_s}"
        result = run_on(self.fleet, node, command, timeout_s=self._start_s + 20.0, check=False)
        if result.exit_code == 4:
            raise deploy_error(
                node,
                command,
                f"port {port} is taken by another process",
                f"end it (ss -ltnp 'sport = :{port}' names it) or use another host",
            )
        if not result.ok:
            error = deploy_error(node, command, *why_it_died(result, node.host))
            raise error if is_of_host(result.stdout) else NodeDied(str(error))

    def stop(self, node: Node, *, timeout_s: float = 30.0) -> None:
        command = f"{_script(node)} stop {max(1, round(timeout_s))}"
        result = run_on(self.fleet, node, command, timeout_s=timeout_s + 20.0, check=False)
        if result.exit_code == 5:
            what = f"it still runs after {timeout_s:g} s: {last_line(result)}"
            raise deploy_error(node, command, what, "kill it, or give it more time")
        if not result.ok:
            raise deploy_error(
                node, command, f"exit code {result.exit_code}: {last_line(result)}", way_out_of("", node.host)
            )

    def stop_all(self, *, timeout_s: float = 30.0) -> None:
        """Brokers first: a controlled shutdown needs the controller. ZooKeeper last: so does a controller."""
        for of in (
            [node for node in self.nodes if node.is_broker],
            [node for node in self.nodes if not node.is_broker and not node.is_zookeeper],
            [node for node in self.nodes if node.is_zookeeper],
        ):
            on_each(of, lambda node: self.stop(node, timeout_s=timeout_s))

    def kill(self, node: Node) -> None:
        run_on(self.fleet, node, f"{_script(node)} kill")

    def pause(self, node: Node) -> None:
        run_on(self.fleet, node, f"{_script(node)} pause")

    def resume(self, node: Node) -> None:
        run_on(self.fleet, node, f"{_script(node)} resume")

    def pid(self, node: Node) -> int | None:
        said = run_on(self.fleet, node, f"{_script(node)} pid").stdout.strip()
        return int(said) if said else None

    def is_running(self, node: Node) -> bool:
        return self.pid(node) is not None

    def last_words(self, node: Node) -> str:
        return run_on(self.fleet, node, f"tail -n 1 {folders_of(node.host).log}", check=False).stdout.strip()

    def crash(self, node: Node, pid: int) -> str:
        code = run_on(self.fleet, node, f"{_script(node)} code {pid}", check=False).stdout.strip()
        if not code or int(code) not in self._crash_codes:
            return ""
        log = run_on(self.fleet, node, f"tail -n 15 {folders_of(node.host).log}", check=False).stdout
        return "" if is_of_host(log) else f"exit code {code}"

    def _assert_alive(self, node: Node) -> None:
        """Raises DeployError with the end of the log of a node that does not run."""
        if self.pid(node) is None:
            log = run_on(self.fleet, node, f"tail -n 15 {folders_of(node.host).log}", check=False)
            raise deploy_error(node, "wait until ready", *why_it_died(log, node.host))


def _script(node: Node) -> str:
    return folders_of(node.host).script
