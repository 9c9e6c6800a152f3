"""The parts of guided schedules: steps that follow the cluster's state, and the state they are aimed from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wrackline.nemesis.faults.steps import Fault
from wrackline.systems.base import ClusterState, Node, PartitionState


class GuidedError(Exception):
    """The schedule does not fit this cluster, or the cluster did not come where it should have."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The cluster that a schedule fits, as a specification tells it: known before there are hosts."""

    replicas: int
    apart: bool = False
    """The controllers, where there are any, are on hosts of their own."""
    one_controller: bool = False
    brokers: int = 0
    """At least so many; 0: as many as there are replicas."""
    elections: bool = False
    """An administrator asks for elections of preferred leaders."""


@dataclass(frozen=True, slots=True)
class Inject:
    id: str
    fault: Fault
    hosts: tuple[str, ...]
    role: str


@dataclass(frozen=True, slots=True)
class Heal:
    """Undo these faults, all at once."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Await:
    """A step that waits until ``met`` holds for all of ``partitions`` of ``topic``."""

    what: str
    topic: str
    partitions: tuple[int, ...]
    met: Callable[[PartitionState], bool]
    patience_s: float | None = None
    """So long it is waited for, and then the schedule goes on; None: what is never met ends the schedule."""

    def holds(self, state: ClusterState) -> bool:
        result = [state.partition(self.topic, partition) for partition in self.partitions]
        return all(one is not None and self.met(one) for one in result)

    def seen(self, state: ClusterState) -> str:
        return str([one for one in state.partitions if one.topic == self.topic])


@dataclass(frozen=True, slots=True)
class AwaitBroker:
    """A step that waits until the cluster counts the broker among those that are alive (not fenced), or no
    more."""

    what: str
    node_id: int
    alive: bool

    def holds(self, state: ClusterState) -> bool:
        return (self.node_id in state.brokers) is self.alive

    def seen(self, state: ClusterState) -> str:
        return f"brokers {list(state.brokers)}"


@dataclass(frozen=True, slots=True)
class AwaitGrowth:
    """A step that waits until the log of a replica has become longer than it was when the step began."""

    what: str
    host: str
    topic: str
    partition: int
    patience_s: float | None = None
    """As of ``Await``."""


@dataclass(frozen=True, slots=True)
class AwaitCheckpoint:
    """A step that waits until the high watermark of a replica that is on its host's disk has risen since
    the step began."""

    what: str
    host: str
    topic: str
    partition: int
    patience_s: float | None = None
    """As of ``Await``."""


@dataclass(frozen=True, slots=True)
class AskEnd:
    """A client that knows the leader's epoch as the broker on ``told_by`` has it asks another one, ``host``,
    where the log ends: an operation of the history. The schedule goes on at once."""

    host: str
    told_by: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Flush:
    """All that these hosts have written is on their data disks."""

    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeepDisk:
    """A copy of each host's data disk, as it is now, is kept for ``PowerCut(Disk.STALE, age_s=None)``."""

    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ElectUncleanly:
    """A person asks for a leader of these partitions, whoever is there."""

    topic: str
    partitions: tuple[int, ...]


GuidedStep = (
    Inject
    | Heal
    | Sleep
    | Await
    | AwaitBroker
    | AwaitGrowth
    | AwaitCheckpoint
    | AskEnd
    | Flush
    | KeepDisk
    | ElectUncleanly
)


@dataclass(frozen=True, slots=True)
class Aim:
    """The state from which a schedule is made: the cluster before the first step, and which partition it
    is about."""

    state: ClusterState
    nodes: Mapping[int, Node]
    topic: str
    partition: int

    def host(self, node_id: int) -> str:
        node = self.nodes.get(node_id)
        if node is None:
            raise GuidedError(f"node {node_id} of {self.topic} is not one of ours")
        return node.host.name

    def healthy(self, *, replicas: int) -> PartitionState:
        """The aimed-at partition. Raises GuidedError unless it has that many replicas, all in the ISR."""
        result = self.state.partition(self.topic, self.partition)
        name = f"{self.topic}-{self.partition}"
        if result is None:
            raise GuidedError(f"the cluster knows no partition {name}")
        if len(result.replicas) < replicas or not result.full_isr or result.leader not in result.replicas:
            raise GuidedError(
                f"{name} needs {replicas} replicas, all in the ISR; it has leader {result.leader}, "
                f"ISR {list(result.isr)} of {list(result.replicas)}"
            )
        return result

    def like(self, one: PartitionState) -> tuple[int, ...]:
        """The partitions of the topic with the same leader and the same successors in the same order."""

        def key(state: PartitionState) -> tuple[int, list[int]]:
            return state.leader, [node for node in state.replicas if node != state.leader]

        return tuple(
            state.partition
            for state in self.state.partitions
            if state.topic == one.topic and state.full_isr and key(state) == key(one)
        )
