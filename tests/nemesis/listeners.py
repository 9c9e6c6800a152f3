"""A system of real processes on a real fleet that is no broker: faults are tested without one.

Each node listens on its port, writes unsynced bytes to the data disk, and knocks at every other node, so that
a partition has traffic to drop. A client's connection is kept, and what comes on it is sent back.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wrackline.fleets.base import Fleet
from wrackline.fleets.canary import Canaries
from wrackline.systems.base import ClusterState, DeployError, Node, Place, ReplicaLog, TopicSpec

# ruff: noqa: ARG002 - the signatures are those of the seam

PORT = 9092
NODE = f"""
import os, signal, socket, sys, threading, time
from pathlib import Path
address, *peers = sys.argv[1:]
folder = Path("/data/node")
folder.mkdir(exist_ok=True)
clean = folder / ".kafka_cleanshutdown"
clean.unlink(missing_ok=True)

def stop(*_):
    clean.write_text("clean")
    os._exit(0)

def chatter():
    out = (folder / "bytes").open("ab", buffering=0)
    while True:
        out.write(b"x" * 4096)
        for peer in peers:
            try:
                socket.create_connection((peer, {PORT}), timeout=0.05).close()
            except OSError:
                pass
        time.sleep(0.02)

def echo(client):
    while data := client.recv(4096):
        client.sendall(data)
    client.close()

signal.signal(signal.SIGTERM, stop)
server = socket.create_server((address, {PORT}), backlog=64)
threading.Thread(target=chatter, daemon=True).start()
while True:
    connection, (who, _) = server.accept()
    if who in peers:
        connection.close()
    else:
        threading.Thread(target=echo, args=(connection,), daemon=True).start()
"""
RUNNING = "pid=$(cat /run/node.pid 2>/dev/null) && grep -qs node.py /proc/$pid/cmdline"


class BareSystem:
    """What a system is asked that has no cluster."""

    nodes: tuple[Node, ...]

    def pid(self, node: Node) -> int | None:
        raise NotImplementedError

    def is_running(self, node: Node) -> bool:
        return self.pid(node) is not None

    def install(self) -> None: ...

    def last_words(self, node: Node) -> str:
        return f"the log of {node.host.name} ends here"

    def wait_ready(self, *, timeout_s: float = 60.0) -> None: ...

    def create_topic(self, topic: TopicSpec, *, timeout_s: float = 30.0) -> None: ...

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        raise DeployError("these know nothing of one another")

    def growth_plan(self, node: Node, topic: str, *, timeout_s: float = 30.0) -> dict[Place, tuple[int, ...]]:
        raise DeployError("none here")

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        raise DeployError("none here")

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        raise DeployError("none here")

    def bootstrap(self) -> str:
        return "198.18.0.11:9092"

    def effective_config(self, node: Node) -> str:
        return ""

    def replica_log(self, node: Node, topic: str, partition: int) -> ReplicaLog:
        raise DeployError("none here")

    def collect(self, into: Path) -> None: ...


class Listeners(BareSystem):
    name = "listeners"
    program = NODE

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.canaries: Canaries | None = None
        self.nodes: tuple[Node, ...] = tuple(
            Node(number, host, frozenset({"broker"}), PORT) for number, host in enumerate(fleet.hosts, 1)
        )

    def install(self) -> None:
        for node in self.nodes:
            self._fleet.remote(node.host).put(self.program.encode(), "/opt/node.py")

    def start(self, node: Node) -> None:
        addresses = [node.host.address, *(one.host.address for one in self.nodes if one != node)]
        command = f"python3 /opt/node.py {' '.join(addresses)}"
        self._sh(
            node,
            f"{RUNNING} || {{ setsid {command} >/var/log/node.log 2>&1 </dev/null & echo $! >/run/node.pid; "
            f"for i in $(seq 200); do (: </dev/tcp/{node.host.address}/{PORT}) 2>/dev/null && exit 0; "
            "sleep 0.02; done; cat /var/log/node.log; exit 1; }",
        )

    def stop(self, node: Node, *, timeout_s: float = 30.0) -> None:
        self._sh(node, f"{RUNNING} && kill $pid; while {RUNNING}; do sleep 0.02; done")

    def kill(self, node: Node) -> None:
        self._sh(node, f"{RUNNING} && kill -9 $pid")

    def pid(self, node: Node) -> int | None:
        said = self._sh(node, f"{RUNNING} && echo $pid || true").strip()
        return int(said) if said else None

    def _sh(self, node: Node, command: str) -> str:
        script = command.replace("'", "'\\''")
        return self._fleet.remote(node.host).run(f"bash -c '{script}'").stdout
