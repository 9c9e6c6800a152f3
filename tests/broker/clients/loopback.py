"""A whole cluster of real processes on loopback: one controller and some brokers, each in its own directory.

Used by the client tests and by the benchmarks. Ports are free ones, timeouts short.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.clients import forking
from wrackline.broker.wire.proof import ClusterSecret

CONTROLLER = 101
START_S = 120.0
"""For processes to start: seconds on a quiet machine, a minute where ten of them start at once."""
QUICK_QUORUM = {
    "quorum_election_timeout_ms": 500,
    "quorum_fetch_timeout_ms": 1_500,
    "quorum_election_backoff_max_ms": 300,
    "quorum_request_timeout_ms": 1_500,
}


@functools.cache
def _own_ports() -> tuple[socket.socket, Iterator[int]]:
    """Ports for the nodes of this process: a hundred that no other test process takes and the kernel hands to
    nobody (those from 32768 on are for whoever asks for any), so a node that was killed finds its port again.
    A name among the machine's sockets says that they are taken; it goes when the process does."""
    for first in range(10_000, 30_000, 100):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0wrackline-tests-ports-{first}")
        except OSError:
            claim.close()
        else:
            return claim, itertools.cycle(range(first, first + 100))
    raise AssertionError("200 test processes have ports on this machine; has none of them ended?")


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 on which nobody listens."""
    found: list[int] = []
    for port in itertools.islice(_own_ports()[1], 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(
        f"{count} free ports were wanted, and of this process's hundred only {found} are free"
    )


def wait_for(what: str, check: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """The first true answer of ``check``; after the deadline an error with the last answer."""
    deadline = time.monotonic() + timeout_s
    last: Any = None
    while time.monotonic() < deadline:
        try:
            last = check()
        except KafkaException as failure:
            last = failure
        else:
            if last:
                return last
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come in {timeout_s} s; last seen: {last!r}")


SECRET = "of-every-test-cluster"
CLUSTER_ID = "loopback"


class Node:
    """One process. A broker's port for other nodes is a free one."""

    def __init__(self, node_id: int, role: str, port: int, folder: Path, keys: Mapping[str, object]) -> None:
        self.node_id = node_id
        self.role = role
        self.port = port
        self.folder = folder
        self.data_dir = folder / "data"
        self.config = folder / "broker.toml"
        self.log = folder / "stderr.log"
        self.trace = folder / "trace.jsonl"
        self.process: forking.Forked | None = None
        self.open_files: int | None = None
        """How many files the process may open; None: as many as this one."""
        self.replication_port = free_ports(1)[0]
        folder.mkdir(parents=True, exist_ok=True)
        self.secret = ClusterSecret(SECRET.encode(), CLUSTER_ID)
        secret = folder / "secret"
        secret.write_text(SECRET)
        values: dict[str, object] = {
            "role": role,
            "node_id": node_id,
            "cluster_id": CLUSTER_ID,
            "host": "127.0.0.1",
            "port": port,
            "data_dir": str(self.data_dir),
            "trace_file": str(self.trace),
            "secret_file": str(secret),
            **({} if role == "controller" else {"replication_port": self.replication_port}),
            **keys,
        }
        self.config.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in values.items()))

    def start(self, *arguments: str) -> None:
        self.process = forking.start(["--config", str(self.config), *arguments], self.log, self.open_files)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, timeout_s: float = 20.0) -> int:
        """The exit code."""
        assert self.process is not None
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def ports(self) -> tuple[int, ...]:
        """On which its broker or, where it has none, its controller listens."""
        return (self.port,) if self.role == "controller" else (self.port, self.replication_port)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


class Cluster:
    """``with Cluster(path) as cluster:`` gives a cluster in which every broker is unfenced. ``combined``: the
    controllers run in the processes of the brokers, as many as there are of them."""

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 3,
        controllers: int = 1,
        combined: bool = False,
        broker_keys: Mapping[str, object] | None = None,
        controller_keys: Mapping[str, object] | None = None,
    ) -> None:
        self._admin: AdminClient | None = None
        count = brokers if combined else controllers
        ports = free_ports(brokers + count)
        voters = {CONTROLLER + at: ports[brokers + at] for at in range(count)}
        self.voters = [f"{node_id}@127.0.0.1:{port}" for node_id, port in voters.items()]
        short = {
            "heartbeat_interval_ms": 200,
            "replica_lag_time_max_ms": 1_500,
            "replica_fetch_backoff_ms": 100,
            "high_watermark_checkpoint_interval_ms": 500,
            "controllers": self.voters,
            **(broker_keys or {}),
        }
        decides = {
            "controllers": self.voters,
            "session_timeout_ms": 1_500,
            "min_insync_replicas": 2,
            **(QUICK_QUORUM if count > 1 else {}),
            **(controller_keys or {}),
        }
        self.controllers: dict[int, Node] = {}
        self.brokers: dict[int, Node] = {}
        for number, (broker_id, node_id) in enumerate(zip(range(1, brokers + 1), voters, strict=False)):
            if combined:
                keys = {**short, **decides, "controller_id": node_id}
                node = Node(broker_id, "combined", ports[number], folder / f"n{broker_id}", keys)
                self.brokers[broker_id] = self.controllers[node_id] = node
        if not combined:
            for at, (node_id, port) in enumerate(voters.items(), 1):
                self.controllers[node_id] = Node(node_id, "controller", port, folder / f"c{at}", decides)
            for i in range(1, brokers + 1):
                self.brokers[i] = Node(i, "broker", ports[i - 1], folder / f"n{i}", short)
        self.controller = self.controllers[CONTROLLER]
        self._folder, self._broker_keys = folder, short

    def add_broker(self, node_id: int, **keys: object) -> Node:
        """One more, apart from any controller; it is started and unfenced on return."""
        folder = self._folder / f"n{node_id}"
        node = Node(node_id, "broker", free_ports(1)[0], folder, {**self._broker_keys, **keys})
        self.brokers[node_id] = node
        node.start()
        self.wait_registered()
        return node

    @property
    def nodes(self) -> list[Node]:
        own = [node for node in self.controllers.values() if node not in self.brokers.values()]
        return [*own, *self.brokers.values()]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.brokers.values())

    def __enter__(self) -> Cluster:
        for node in self.nodes:
            node.start()
        try:
            self.wait_registered()
        except AssertionError:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for node in self.nodes:
            if node.running:
                node.kill()

    # --- what the cluster says of itself ---------------------------------------------------------------

    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = self._new_admin()
        return self._admin

    def _new_admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "socket.timeout.ms": 5_000, "log_level": 0})

    def wait_registered(self) -> None:
        wanted = {node.node_id for node in self.brokers.values() if node.running}
        # A client forgets nodes that metadata no longer names. Where the last one that it knows dies, it
        # sometimes tries that one for ever, whatever the others do (librdkafka 2.16).
        admin = self._admin = self._new_admin()
        wait_for(
            f"brokers {sorted(wanted)} unfenced ({self.tails()})",
            lambda: set(admin.list_topics(timeout=2).brokers) >= wanted,
            START_S,
        )

    def create_topic(self, name: str, *, partitions: int = 1, replicas: int = 3, **configs: str) -> None:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=settings)
        # A client that once took a broker for the controller, and knows no topics, never asks another when it
        # has died.
        admin = self._new_admin()
        future = admin.create_topics([topic], operation_timeout=30, request_timeout=30)[name]
        future.result(40)
        self.wait_isr(name, partitions=partitions, size=replicas)

    def describe(self, topic: str) -> dict[int, Any]:
        found = self.admin().list_topics(topic, timeout=5).topics[topic]
        return dict(found.partitions)

    def wait_isr(self, topic: str, *, partitions: int = 1, size: int = 3) -> None:
        def full() -> bool:
            found = self.describe(topic)
            return len(found) == partitions and all(
                p.leader > 0 and len(p.isrs) == size for p in found.values()
            )

        wait_for(f"ISR of {size} for {topic} ({self.tails()})", full)

    def active_controller(self) -> Node:
        """Whom the newest line of a trace about the quorum says to lead."""

        def newest() -> Node | None:
            found: tuple[int, Node] | None = None
            for node_id, node in self.controllers.items():
                for line in node.trace.read_text().splitlines() if node.trace.exists() else ():
                    if '"kind":"raft_role"' not in line or f'"node":{node_id},' not in line:
                        continue
                    fields = json.loads(line)
                    epoch = int(fields["epoch"])
                    if fields["role"] == "leader" and (found is None or epoch > found[0]):
                        found = epoch, node
            return found[1] if found and found[1].running else None

        active = wait_for("an active controller", newest)
        assert isinstance(active, Node)
        return active

    def leader(self, topic: str, partition: int = 0) -> int:
        return int(
            wait_for(
                f"a leader of {topic}-{partition}",
                lambda: max(self.describe(topic)[partition].leader, 0),
            )
        )

    def tails(self) -> str:
        return " | ".join(
            f"{node.node_id}: {node.log.read_text().splitlines()[-1:] if node.log.exists() else ''}"
            for node in self.nodes
        )


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return str(value) if isinstance(value, int) else f'"{value}"'
