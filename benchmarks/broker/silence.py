"""How long each node's event loop is silent while many partitions change at once.

    python benchmarks/broker/silence.py                    # 1,000 partitions, three brokers on loopback
    python benchmarks/broker/silence.py --partitions 3000 --quick --no-trace

Every node is asked for its ApiVersions again and again, over a connection of its own. What passes between a
question and its answer is a wait of that node's loop: in seconds of the clock, and in seconds of the
processor that the loop's thread used meanwhile. The first has in it what the disk took and what the other
processes of the machine had; the second is the loop's own, and the one to compare by. ``all`` is what the
thread used from the beginning of the step until the cluster has settled again.

The steps: the topic is created, its leaders change when a broker is killed and when it comes back, a broker
stops and starts, the topic is deleted.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka.admin import NewTopic

# The cluster on loopback is the one the client tests use.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.broker.clients.loopback import Cluster, Node, wait_for

_TOPIC = "silence"
_API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)
_PAUSE_S = 0.003
_SETTLE_S = 600.0


@dataclass(slots=True)
class Silence:
    """Of one node in one step; seconds."""

    processor_s: float = 0.0
    """The most that its loop used between a question and the answer."""
    clock_s: float = 0.0
    all_s: float = 0.0


class Listener(threading.Thread):
    """Asks one node until it is told to end; a node that is gone is asked again when it is back."""

    def __init__(self, node: Node) -> None:
        super().__init__(daemon=True)
        self.node = node
        self.longest = Silence()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self.node.port), timeout=_SETTLE_S) as connection:
                    while not self._over.is_set():
                        self._ask(connection)
                        time.sleep(_PAUSE_S)
            except OSError:
                time.sleep(0.02)

    def _ask(self, connection: socket.socket) -> None:
        used, begin = processor_s(self.node), time.perf_counter()
        connection.sendall(struct.pack(">i", len(_API_VERSIONS)) + _API_VERSIONS)
        left = 4 + struct.unpack(">i", _read(connection, 4))[0]
        _read(connection, left - 4)
        took, used = time.perf_counter() - begin, processor_s(self.node) - used
        self.longest.clock_s = max(self.longest.clock_s, took)
        self.longest.processor_s = max(self.longest.processor_s, used)

    def end(self) -> Silence:
        self._over.set()
        self.join()
        return self.longest


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the node has closed the connection")
        data += part
    return data


def processor_s(node: Node) -> float:
    """What the thread of the node's loop has used so far; 0 when there is none."""
    process = node.process
    if process is None:
        return 0.0
    try:
        return int(Path(f"/proc/{process.pid}/task/{process.pid}/schedstat").read_text().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return 0.0


class Steps:
    def __init__(self, cluster: Cluster, partitions: int) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self.figures: dict[str, dict[int, Silence]] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        nodes = [node for node in self._cluster.nodes if node.running]
        listeners = [Listener(node) for node in nodes]
        before = {node.node_id: processor_s(node) for node in nodes}
        for listener in listeners:
            listener.start()
        begin = time.monotonic()
        yield
        print(f"{name}: settled after {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
        figures = self.figures[name] = {}
        for node, listener in zip(nodes, listeners, strict=True):
            longest = listener.end()
            longest.all_s = processor_s(node) - before[node.node_id]
            if node.running:
                figures[node.node_id] = longest

    def settled(self, of: set[int]) -> None:
        def full() -> bool:
            found = self._cluster.describe(_TOPIC)
            return len(found) == self._partitions and all(
                part.leader in of and set(part.isrs) == of for part in found.values()
            )

        wait_for(f"an ISR of {sorted(of)} everywhere", full, _SETTLE_S)

    def create(self) -> None:
        with self.step("create"):
            topic = NewTopic(_TOPIC, self._partitions, min(3, len(self._cluster.brokers)))
            admin = self._cluster.admin()
            admin.create_topics([topic], operation_timeout=60, request_timeout=60)[_TOPIC].result(90)
            self.settled(set(self._cluster.brokers))

    def kill_and_return(self) -> None:
        victim = max(self._cluster.brokers)
        others = set(self._cluster.brokers) - {victim}
        node = self._cluster.brokers[victim]
        with self.step(f"broker {victim} killed"):
            node.kill()
            self.settled(others)
        self._start(node, "after a kill")

    def stop_and_start(self) -> None:
        node = self._cluster.brokers[min(self._cluster.brokers)]
        with self.step(f"broker {node.node_id} stopped"):
            node.signal(signal.SIGTERM)
            begin = time.monotonic()
            node.wait(_SETTLE_S)
            print(f"  it ended in {time.monotonic() - begin:.2f} s", file=sys.stderr)
            self.settled(set(self._cluster.brokers) - {node.node_id})
        self._start(node, "after a stop")

    def _start(self, node: Node, after: str) -> None:
        with self.step(f"broker {node.node_id} back {after}"):
            lines = node.log.read_text().count("listening on")
            begin = time.monotonic()
            node.start()
            wait_for("its port", lambda: node.log.read_text().count("listening on") > lines, _SETTLE_S)
            took, used = time.monotonic() - begin, processor_s(node)
            print(f"  it serves {took:.2f} s after its start, {used:.2f} s of processor", file=sys.stderr)
            self.settled(set(self._cluster.brokers))

    def delete(self) -> None:
        with self.step("delete"):
            admin = self._cluster.admin()
            admin.delete_topics([_TOPIC], operation_timeout=60, request_timeout=60)[_TOPIC].result(90)
            wait_for(
                "the topic to be gone",
                lambda: _TOPIC not in admin.list_topics(timeout=5).topics,
                _SETTLE_S,
            )
            wait_for("the logs to be gone", self._no_logs, _SETTLE_S)

    def _no_logs(self) -> bool:
        return not any(
            entry.name.startswith(_TOPIC)
            for node in self._cluster.brokers.values()
            for entry in node.data_dir.iterdir()
        )


def main() -> int:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="wrackline-benchmark-", dir=options.folder) as folder:
        keys = {"trace_file": "/dev/null"} if options.no_trace else {}
        patient = {"session_timeout_ms": 9_000, **keys}
        with Cluster(
            Path(folder),
            brokers=options.brokers,
            controllers=options.controllers,
            broker_keys=keys,
            controller_keys=patient,
        ) as cluster:
            steps = Steps(cluster, options.partitions)
            steps.create()
            if not options.quick:
                steps.kill_and_return()
                steps.stop_and_start()
            steps.delete()
    figures = {name: {node: asdict(one) for node, one in of.items()} for name, of in steps.figures.items()}
    if options.json:
        print(json.dumps(figures))
        return 0
    print(f"{'step':<28} {'node':>5} {'processor':>10} {'clock':>8} {'all':>8}  (s; longest waits)")
    for name, of in steps.figures.items():
        for node, one in of.items():
            print(f"{name:<28} {node:>5} {one.processor_s:>10.3f} {one.clock_s:>8.3f} {one.all_s:>8.2f}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--controllers", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the nodes' disks are (default: the system's)")
    parser.add_argument("--quick", action="store_true", help="only create and delete")
    parser.add_argument("--no-trace", action="store_true", help="the nodes write no trace")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
