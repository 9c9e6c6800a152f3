"""Doubles for tests of the nemesis: a fleet and a system in memory, a recorder that keeps what it is told."""

# ruff: noqa: ARG002 - the signatures are those of the seams

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.nemesis.listeners import BareSystem
from wrackline.fleets.base import FileLoss, FleetError, Host, PowerCut, Result
from wrackline.history.model import Event
from wrackline.nemesis.faults.steps import DescribeNode, FaultContext, StepResult, Target
from wrackline.nemesis.guided.steps import Needs
from wrackline.systems.base import (
    ClusterState,
    DeployError,
    Node,
    PartitionState,
    Place,
)


def node(name: str, node_id: int, last: int, *, controller: bool = False) -> Node:
    role = "controller" if controller else "broker"
    return Node(node_id, Host(name, f"198.18.0.{last}"), frozenset({role}), 9093 if controller else 9092)


NODES: tuple[Node, ...] = (
    node("n1", 1, 11),
    node("n2", 2, 12),
    node("n3", 3, 13),
    node("c1", 101, 21, controller=True),
)


def cast(needs: Needs) -> dict[int, Node]:
    """The nodes for a schedule with these needs: a fourth broker only where it says so."""
    more = [node("n4", 4, 14)] if needs.brokers > len(COMBINED) else []
    return {one.node_id: one for one in (*NODES, *more)}


def target(name: str, *, pid: int | None = None) -> Target:
    found = next(one for one in NODES if one.host.name == name)
    return Target(
        name,
        found.host.address,
        found.node_id,
        found.port,
        "/data",
        found.is_broker,
        pid,
        replication_port=found.replication_port,
    )


CLIENTS_SIDE = Target(
    "clients", "198.18.0.1", 0, 0, "", is_broker=False, programs="/state/run/wrackline/faults", hands_on=True
)
"""The machine that the clients are on."""

COMBINED: tuple[Node, ...] = tuple(
    Node(number, Host(f"n{number}", f"198.18.0.1{number}"), frozenset({"broker", "controller"}), 9092, 9093)
    for number in (1, 2, 3)
)
"""Three brokers that are the controllers too."""


def combined_scene(host: str) -> FaultContext:
    first, *others = sorted(COMBINED, key=lambda one: one.host.name != host)

    def aimed(one: Node) -> Target:
        return Target(
            one.host.name,
            one.host.address,
            one.node_id,
            one.port,
            "/data",
            controller_port=one.controller_port,
            replication_port=one.replication_port,
        )

    return FaultContext("f1", (aimed(first),), tuple(map(aimed, others)))


def context(
    *hosts: str, fault_id: str = "f1", pid: int | None = 41, spare: str | None = None
) -> FaultContext:
    """The four nodes of a small cluster, aimed at ``hosts``; the broker of ``spare`` has not joined."""
    others = tuple(
        replace(target(one.host.name), spare=one.host.name == spare)
        for one in NODES
        if one.host.name not in hosts
    )
    return FaultContext(fault_id, tuple(target(host, pid=pid) for host in hosts), others, CLIENTS_SIDE)


def partition(
    number: int = 0,
    leader: int = 1,
    replicas: Sequence[int] = (1, 2, 3),
    isr: Sequence[int] | None = None,
    *,
    epoch: int = 1,
    topic: str = "log",
    elr: Sequence[int] = (),
) -> PartitionState:
    in_sync = tuple(replicas if isr is None else isr)
    return PartitionState(topic, number, leader, epoch, tuple(replicas), in_sync, tuple(elr))


def cluster(*partitions: PartitionState, controller: int = 101) -> ClusterState:
    return ClusterState(controller, (1, 2, 3), partitions or (partition(),))


_SIGNAL = re.compile(r"kill -(KILL|STOP|CONT) (\d+)")
_READ_STAT = re.compile(r"cat /proc/(\d+)/stat")
_INSTALLED = re.compile(r"^:(WRACK-\S+) ", re.MULTILINE)
_REMOVED = re.compile(r"-X (WRACK-\S+)")
_WAY = re.compile(r"'(\w+>\w+:\d+) [\d.]+ \d+'")


class FakeRemote:
    """Answers commands from ``answers`` (first key that is part of the command), else as a host would: it
    has processes that signals reach, and chains that keep knocks from being answered."""

    def __init__(self, host: Host, fleet: FakeFleet) -> None:
        self.host = host
        self._fleet = fleet

    def run(self, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        if not self._fleet.power.is_on(self.host):
            raise FleetError(f"{self.host.name}: unreachable")
        self._fleet.commands.append((self.host.name, command))
        code, said = 0, self._as_a_host(command)
        for part, answer in self._fleet.answers.items():
            if part in command:
                code, said = answer(self.host.name) if callable(answer) else answer
                break
        if check and code:
            raise FleetError(f"{self.host.name}: `{command}` ended with exit code {code}")
        return Result(self.host.name, command, code, said, "", 0.0)

    def _as_a_host(self, command: str) -> str:
        fleet = self._fleet
        if found := _SIGNAL.search(command):
            fleet.signal(int(found[2]), found[1])
        if found := _READ_STAT.match(command):
            state = fleet.states.get(int(found[1]))
            return f"{found[1]} (python3) {state} 1\n" if state else ""
        if found := _INSTALLED.search(command):
            fleet.chains.add((self.host.name, found[1]))
        if found := _REMOVED.search(command):
            fleet.chains.discard((self.host.name, found[1]))
        answer = "silence 0.3" if fleet.chains else "connected 0.001"
        return "".join(f"{way} {answer}\n" for way in _WAY.findall(command))

    def put(self, content: Path | bytes, path: str, *, mode: int = 0o644) -> None:
        self._fleet.files[self.host.name, path] = content

    def get(self, path: str) -> bytes:
        raise FleetError(f"{self.host.name}: no {path}")

    def get_tree(self, path: str, into: Path, *, patterns: Sequence[str] = ("*",)) -> list[Path]:
        return []

    def close(self) -> None:
        pass


def node_look(host: str, said: str) -> StepResult:
    """What a look at a host's node came to: ``41 S``, or ``None``."""
    return StepResult(DescribeNode(host, target(host).node_id), said)


class FakePower:
    def __init__(self) -> None:
        self.off: set[str] = set()
        self.lost: Mapping[str, int] = {"broker/log-0/00.log": 512}
        self._mutex = threading.Lock()

    def cut(self, host: Host) -> PowerCut:
        with self._mutex:
            self.off.add(host.name)
        return PowerCut(host.name, 0, 5_000_000)

    def on(self, host: Host) -> PowerCut | None:
        with self._mutex:
            if host.name not in self.off:
                return None
            self.off.discard(host.name)
        files = {name: FileLoss(1024, 1024 - lost) for name, lost in self.lost.items()}
        return PowerCut(host.name, 0, 5_000_000, files)

    def is_on(self, host: Host) -> bool:
        return host.name not in self.off


Answer = tuple[int, str] | Callable[[str], tuple[int, str]]


class FakeFleet:
    name = "fake"

    def __init__(self) -> None:
        self.hosts = tuple(one.host for one in NODES)
        self.power = FakePower()
        self.commands: list[tuple[str, str]] = []
        self.files: dict[tuple[str, str], object] = {}
        self.answers: dict[str, Answer] = {}
        self.pids: dict[int, int] = {one.node_id: 100 + one.node_id for one in NODES}
        self.states: dict[int, str] = dict.fromkeys(self.pids.values(), "S")
        """By process: the letter of its state."""
        self.chains: set[tuple[str, str]] = set()
        """Host and name of each chain of iptables."""

    def signal(self, pid: int, name: str) -> None:
        if name == "KILL":
            self.states.pop(pid, None)
            self.pids = {node_id: one for node_id, one in self.pids.items() if one != pid}
        elif pid in self.states:
            self.states[pid] = "T" if name == "STOP" else "S"

    def up(self) -> None: ...

    def down(self) -> None: ...

    def remote(self, host: Host) -> FakeRemote:
        return FakeRemote(host, self)

    @contextmanager
    def entered(self) -> Iterator[None]:
        yield


class FakeSystem(BareSystem):
    """Nodes with process ids; ``state`` is what describe() says; ``refuse`` names nodes that cannot start."""

    name = "fake"
    nodes = NODES

    def __init__(self, fleet: FakeFleet, state: ClusterState | None = None) -> None:
        self._fleet = fleet
        self.state = state or cluster()
        self.calls: list[tuple[str, int]] = []
        self.refuse: set[int] = set()
        self.plan: dict[Place, tuple[int, ...]] = {}
        """What the growth planner says."""
        self.moving: dict[Place, tuple[int, ...]] = {}
        self.cancelled: list[Place] = []

    def start(self, node: Node) -> None:
        self.calls.append(("start", node.node_id))
        if node.node_id in self.refuse:
            raise DeployError(f"{node.host.name}: will not start")
        self.runs_as(node, 900 + node.node_id)

    def stop(self, node: Node, *, timeout_s: float = 30.0) -> None:
        self.calls.append(("stop", node.node_id))
        self.pids.pop(node.node_id, None)

    def kill(self, node: Node) -> None:
        self.pids.pop(node.node_id, None)

    @property
    def pids(self) -> dict[int, int]:
        return self._fleet.pids

    def runs_as(self, node: Node, pid: int) -> None:
        """The node runs, if it did not, as this process."""
        self._fleet.states.setdefault(self.pids.setdefault(node.node_id, pid), "S")

    def pid(self, node: Node) -> int | None:
        return self.pids.get(node.node_id) if self._fleet.power.is_on(node.host) else None

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        return self.state

    def growth_plan(self, node: Node, topic: str, *, timeout_s: float = 30.0) -> dict[Place, tuple[int, ...]]:
        return self.plan

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        for place, replicas in targets.items():
            if replicas is None:
                self.cancelled.append(place)
                self.moving.pop(place, None)
            else:
                self.moving[place] = replicas

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        return frozenset(self.moving)

    def complete_moves(self) -> None:
        """What a cluster does by and by."""
        moved = [
            partition(one.partition, one.leader, self.moving.get((one.topic, one.partition), one.replicas))
            for one in self.state.partitions
        ]
        self.state = ClusterState(self.state.controller, self.state.brokers, tuple(moved))
        self.moving.clear()


@dataclass
class Recorded:
    """The recorder's part of these tests: events in order, and views of them."""

    events: list[Event] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def record(self, event: Event) -> Event:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()
        return event

    def wait_for(self, condition: Callable[[], bool], *, timeout_s: float) -> None:
        with self._changed:
            if not self._changed.wait_for(condition, timeout_s):
                raise AssertionError(f"not within {timeout_s:g} s; recorded so far: {self.events}")

    def phases(self, fault_id: str) -> list[str]:
        return [one.extra["phase"] for one in self.events if one.extra and one.extra.get("id") == fault_id]

    def restored(self, fault_id: str) -> bool | None:
        """By the last row that says so."""
        said = [one.extra for one in self.events if one.extra and one.extra.get("id") == fault_id]
        return [one["restored"] for one in said if "restored" in one][-1]

    def ended(self, fault_id: str) -> Mapping[str, object]:
        for one in self.events:
            if one.extra and (one.extra.get("id"), one.extra.get("phase")) == (fault_id, "ended"):
                return one.extra
        raise AssertionError(f"{fault_id} never ended; there are {self.events}")

    def assert_proved(self, fault_id: str) -> Mapping[str, object]:
        """Its last row; fails, with all that the row says, unless it was proved."""
        ended = self.ended(fault_id)
        assert ended["proved"] is True, (
            f"{fault_id} was not proved: {ended.get('proof')}; its row: {dict(ended)}"
        )
        return ended
