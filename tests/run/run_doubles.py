"""A fleet and a system of paper, so that the runner's own order of things can be tested without root.

Clients are real: the system's brokers are librdkafka's mock cluster.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from confluent_kafka import Producer

from harness.fleet.base import FleetError, Host
from harness.run.setup import Parts
from harness.systems.base import ClusterState, DeployError, Node, PartitionState, ReplicaLog

PARTITIONS = 4
"""Of every topic of the mock cluster."""


class PaperFleet:
    def __init__(self, trail: list[str]) -> None:
        self.name = "paper"
        self.hosts = tuple(Host(name, "127.0.0.1") for name in ("n1", "n2", "n3", "c1"))
        self.trail = trail
        self.power: Any = SimpleNamespace(is_on=lambda _host: True)
        self.broken_on_up: str | None = None

    def up(self) -> None:
        self.trail.append("up")
        if self.broken_on_up:
            raise FleetError(self.broken_on_up)

    def down(self) -> None:
        self.trail.append("down")

    def remote(self, host: Host) -> Any:
        raise FleetError(f"{host.name}: not reachable")

    def entered(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()


class PaperSystem:
    name = "wrackline"

    def __init__(self, fleet: PaperFleet, bootstrap: str) -> None:
        self.trail = fleet.trail
        self.nodes = tuple(
            Node(number, host, frozenset({"controller" if host.name == "c1" else "broker"}), 9092)
            for number, host in zip((1, 2, 3, 101), fleet.hosts, strict=True)
        )
        self._bootstrap = bootstrap
        self.isr: tuple[int, ...] = (1, 2, 3)
        self.broken: set[str] = set()

    def _step(self, what: str) -> None:
        self.trail.append(what)
        if what in self.broken:
            raise DeployError(f"n2: {what} failed: permission denied; look at the log")

    def install(self) -> None:
        self._step("install")

    def start(self, node: Node) -> None:
        self._step(f"start {node.host.name}")

    def wait_ready(self, *, timeout_s: float = 60.0) -> None:
        del timeout_s
        self._step("ready")

    def create_topic(self, topic: Any, *, timeout_s: float = 30.0) -> None:
        del topic, timeout_s
        self._step("topic")

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        del timeout_s
        partitions = tuple(
            PartitionState("log", partition, 1, 0, (1, 2, 3), self.isr) for partition in range(PARTITIONS)
        )
        return ClusterState(101, (1, 2, 3), partitions)

    def bootstrap(self) -> str:
        return self._bootstrap

    def replica_log(self, node: Node, topic: str, partition: int) -> ReplicaLog:
        return ReplicaLog(node.node_id, topic, partition, 0, 0, 0, ())

    def collect(self, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        self._step("collect")

    def is_running(self, node: Node) -> bool:
        del node
        return True

    def last_words(self, node: Node) -> str:
        return f"the log of {node.host.name} ends here"

    def pid(self, node: Node) -> int | None:
        return node.node_id


class PaperNemesis:
    """Records that it was started and healed."""

    trail: list[str]

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def start(self) -> None:
        self.trail.append("faults")

    def wait(self, timeout_s: float | None = None) -> bool:
        del timeout_s
        return True

    def stop_and_heal(self) -> list[str]:
        self.trail.append("heal")
        return []


@contextlib.contextmanager
def mock_cluster(topic: str = "log") -> Iterator[str]:
    """``host:port,...`` of three mock brokers."""
    quiet = logging.getLogger("mock-cluster")
    quiet.setLevel(logging.CRITICAL)
    owner = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "unused"}, logger=quiet)
    brokers = owner.list_topics(timeout=10).brokers.values()
    owner.list_topics(topic, timeout=10)
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)


def paper_parts(bootstrap: str) -> tuple[Parts, PaperFleet, PaperSystem]:
    fleet = PaperFleet([])
    system = PaperSystem(fleet, bootstrap)
    return Parts(fleet, system, lambda: fleet.trail.append("kept")), fleet, system  # type: ignore[arg-type]
