"""A fleet and a system of paper, so that the runner's own order of things can be tested without root.

Clients are real: the system's brokers are librdkafka's mock cluster.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow.parquet as pq
from confluent_kafka import Producer
from rich.console import Console

from wrackline.fleets.base import FleetError, Host
from wrackline.harness.run.live.outcome import Options, Outcome
from wrackline.harness.run.live.progress import Progress
from wrackline.harness.run.runner import run
from wrackline.harness.specification.build import Parts
from wrackline.harness.specification.spec import parse
from wrackline.history import history_files
from wrackline.nemesis.stage import Hold
from wrackline.systems.base import ClusterState, DeployError, Node, PartitionState, ReplicaLog

PARTITIONS = 4
"""Of every topic of the mock cluster."""


class PaperFleet:
    def __init__(self, trail: list[str]) -> None:
        self.name = "paper"
        self.hosts = tuple(Host(name, "127.0.0.1") for name in ("n1", "n2", "n3", "c1"))
        self.trail = trail
        self.off: set[str] = set()
        """Hosts without power."""
        self.power: Any = SimpleNamespace(is_on=lambda host: host.name not in self.off)
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
        self.pids: dict[str, int | None] = {node.host.name: node.node_id for node in self.nodes}
        self.crashes: dict[int, str] = {}
        """By host; None: it does not run."""
        self.silent: set[str] = set()
        """Hosts that do not answer."""
        self.topic_s: float | None = None
        """How long the topic was waited for at most."""

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
        del topic
        self.topic_s = timeout_s
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
        for node in self.nodes:
            (into / node.host.name).mkdir(parents=True, exist_ok=True)
            (into / node.host.name / "broker.log").write_text("ready\n")
        self._step("collect")

    def is_running(self, node: Node) -> bool:
        return self.pids[node.host.name] is not None

    def last_words(self, node: Node) -> str:
        return f"the log of {node.host.name} ends here"

    def crash(self, node: Node, pid: int) -> str:  # noqa: ARG002 - the signature is that of the seam
        return self.crashes.get(pid, "")

    def pid(self, node: Node) -> int | None:
        if node.host.name in self.silent:
            raise DeployError(f"{node.host.name}: no answer within 30 s")
        return self.pids[node.host.name]


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

    def hold_of(self, host: str) -> Hold:
        del host
        return Hold()

    def stop_and_heal(self, *, timeout_s: float) -> list[str]:
        del timeout_s
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


SPEC = f"""
name: paper
system: {{waits: {{warm_s: 10, steady_s: 0.3, recovered_s: 0.3}}}}
topic: {{partitions: {PARTITIONS}}}
workload: {{duration_s: 1, rate: 100, senders: 2, pollers: 1, enders: 1}}
"""


@dataclass
class Stage:
    fleet: PaperFleet
    system: PaperSystem
    results: Path
    screen: io.StringIO

    @property
    def trail(self) -> list[str]:
        return self.fleet.trail

    def run(self, *settings: str, keep: bool = False, **calls: Callable[[], None]) -> Outcome:
        """``calls``: of Options."""
        progress = Progress(Console(file=self.screen, width=200))
        spec = parse(SPEC, "x.yaml", settings=settings)
        return run(spec, Options(self.results, keep_fleet=keep, progress=progress, **calls))

    def only_run(self) -> Path:
        [run_dir] = self.results.iterdir()
        return run_dir


def rows(run_dir: Path) -> list[dict[str, Any]]:
    return pq.read_table(history_files(run_dir)[0]).to_pylist()


def phases(run_dir: Path) -> list[str]:
    return [orjson.loads(row["extra"])["phase"] for row in rows(run_dir) if row["f"] == "phase"]


def interrupt_when(
    stage: Stage, begun: str, times: int = 1, number: signal.Signals = signal.SIGINT
) -> threading.Thread:
    """Ctrl-C, so many times, as soon as the trail shows ``begun``."""

    def press() -> None:
        pause = threading.Event()
        while begun not in stage.trail:
            pause.wait(0.01)
        for _ in range(times):
            pause.wait(0.3)
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=press)
    thread.start()
    return thread
