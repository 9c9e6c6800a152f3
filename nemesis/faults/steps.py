"""Steps of a fault as values, which `wrackline.nemesis.stage` carries out.

A fault only says which steps do it, undo it and probe it; it touches nothing itself. Steps of different hosts
run at the same time, steps of one host in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from wrackline.fleets.base import PowerCut
from wrackline.fleets.canary import CanaryLoss
from wrackline.nemesis.faults.programs import FOLDER
from wrackline.nemesis.faults.step import NodeStep, Step
from wrackline.systems.external.commands.operations import BrokerCommand


class FaultError(Exception):
    """A fault cannot be done to these targets. The message names the fault, the host and the reason."""


@dataclass(frozen=True, slots=True)
class Target:
    """A host of the system and its node, as they were when the fault was aimed."""

    host: str
    address: str
    node_id: int
    port: int
    data_dir: str
    is_broker: bool = True
    pid: int | None = None
    """None: the node does not run."""
    controller_port: int | None = None
    """Where a combined node's controller listens."""
    spare: bool = False
    """Its broker has not joined, and may."""
    python: str = "/usr/bin/python3"
    """What runs programs of faults there."""
    programs: str = FOLDER
    """Where these programs lie (`wrackline.nemesis.faults.programs`), as a word of a shell."""
    hands_on: bool = False
    """It hands on what others send to each other, which no fault of its own traffic means."""
    is_zookeeper: bool = False
    replication_port: int | None = None
    """Where other nodes ask its broker; None: at ``port``, as clients do."""
    more_disks: tuple[str, ...] = ()
    """Mount points of further data disks."""
    shared: str = ""
    """The folder that all hosts see alike, where there is one."""

    @property
    def disks(self) -> tuple[str, ...]:
        return (self.data_dir, *self.more_disks)

    def disk(self, number: int | None) -> str:
        """Returns the mount point of a data disk, counted from 1; None: the first. Raises FaultError where
        there is none."""
        if number is not None and number > len(self.disks):
            raise FaultError(f"{self.host} has {len(self.disks)} data disks, and no disk {number}")
        return self.disks[(number or 1) - 1]

    def running(self, fault: str) -> int:
        """Returns the node's process id. Raises FaultError of a node that does not run."""
        if self.pid is None:
            raise FaultError(f"{fault}: node {self.node_id} on {self.host} does not run")
        return self.pid


@dataclass(frozen=True, slots=True)
class FaultContext:
    """The facts that a fault may know: its targets, and the other nodes."""

    fault_id: str
    targets: tuple[Target, ...]
    others: tuple[Target, ...]
    clients: Target | None = None
    """The machine that the clients are on, where faults can have its network."""

    @property
    def hosts(self) -> tuple[Target, ...]:
        return (*self.targets, *self.others)


@dataclass(frozen=True, slots=True)
class Shell(Step):
    """A command in a shell of a host; its output is what a probe reads."""

    command: str
    timeout_s: float = 15.0


@dataclass(frozen=True, slots=True)
class TcpProbe(Step):
    """Try a TCP connection from the control node, where the clients are."""

    address: str
    port: int
    wait_s: float = 0.2


@dataclass(frozen=True, slots=True)
class Way:
    """The way of a TCP probe: from one host to a port of another."""

    name: str
    """``n1>n2:9092``."""
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class TcpProbeFrom(Step):
    """Try TCP connections from a host, all at once. Output: a line for each, the way, what came of it, and
    after how many seconds."""

    ways: tuple[Way, ...]
    wait_s: float = 0.3


@dataclass(frozen=True, slots=True)
class PowerOff(Step):
    """Take a host's power: what it has not synced is gone."""

    fault_id: str = ""
    among: int = 1
    """Of so many hosts at once: the first waits until the last of the fault is there."""


class PowerOn(Step):
    """Give a host its power back, and wait until it answers."""


class StartNode(NodeStep):
    """Output: the process id it has then."""


class DescribeNode(NodeStep):
    """Output: the process id of a node and the letter of its state (proc(5); T: stopped), ``None`` where none
    runs."""


class KillNode(NodeStep):
    """kill -9, waited for. Output: the process ids before and after, ``None`` where none runs."""


@dataclass(frozen=True, slots=True)
class Roll(Step):
    """Restart nodes one after another, ``host`` that of the first; each when every replica is in the ISR
    again. Output: a line for each."""

    node_ids: tuple[int, ...]
    to: str | None
    """The version that each is started as; None: its own."""
    wait_s: float
    settle_s: float = 0.0
    """So long the ISR must stay full then."""


@dataclass(frozen=True, slots=True)
class StopNode(NodeStep):
    """Clean shutdown, waited for."""

    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Join(NodeStep):
    """A broker that was started is waited for, then gets its share of the replicas. Output: the moves
    begun."""

    fault_id: str
    join_s: float
    plan_s: float


@dataclass(frozen=True, slots=True)
class Evacuate(NodeStep):
    """The replicas on a node begin to move to other brokers. Output: the moves."""

    fault_id: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class AssignReplicas(NodeStep):
    """A spare broker is started, waited for, and begins to get all replicas of a node. Output: the moves."""

    by_host: str
    by_node: int
    fault_id: str
    join_s: float
    plan_s: float


@dataclass(frozen=True, slots=True)
class AwaitReassignment(Step):
    """Wait for the moves that a fault began; take back what is not complete in time. Output: what became of
    them."""

    fault_id: str
    wait_s: float
    must: bool = False
    """It fails when a move is not complete in time: what comes after it would do harm."""


@dataclass(frozen=True, slots=True)
class Carry(NodeStep):
    """Carry out a user's own command for a broker whose host is not ours. Output: what came of it."""

    order: BrokerCommand


@dataclass(frozen=True, slots=True)
class Ask(NodeStep):
    """Asks the user's own probe whether a command of the user is in force. Output: whether it is, and what it
    said."""

    order: BrokerCommand


@dataclass(frozen=True, slots=True)
class Commands:
    """The steps of a fault on its targets."""

    do: tuple[Step, ...]
    undo: tuple[Step, ...]
    """Idempotent, and right in any order with the undos of other faults."""
    probe: tuple[Step, ...] = ()
    """Run once when the fault is done and once before it is undone."""
    control: tuple[Step, ...] = ()
    """Run when it is undone: what the probe must not have seen for any other reason than the fault."""
    watch: tuple[Step, ...] = ()
    """Run every second while the fault is in force: what must hold all the time, and not at both ends
    alone."""
    lasting: tuple[Shell, ...] = ()
    """Done again on a host that comes back from a power cut while the fault is in force."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step."""

    step: Step
    output: str = ""
    error: str | None = None
    cut: PowerCut | None = None
    """Of PowerOff, PowerOn and DropPageCache."""
    canary: CanaryLoss | None = None
    """Of PowerOn and DropPageCache: what the host's canary lost; None when none watched the host."""
    skipped: bool = False
    """The host had no power: there was nothing to do it to."""


@dataclass(frozen=True, slots=True)
class Look:
    """The results of a probe, or of one round of the watch."""

    when: str
    """``at the beginning``, ``3.2 s after its beginning``, ``at the end``."""
    done: Sequence[StepResult]


@dataclass(frozen=True, slots=True)
class ProbeLog:
    """The results of all steps of one injection, so far."""

    do: Sequence[StepResult] = ()
    active: Sequence[StepResult] = ()
    """The probe after ``do``."""
    final: Sequence[StepResult] = ()
    """The probe before ``undo``."""
    undo: Sequence[StepResult] = ()
    control: Sequence[StepResult] = ()
    """After ``undo``; its errors are none of the fault's."""
    watched: Sequence[Look] = ()
    """The rounds of the watch. A step of it that failed says nothing."""
    late: bool = False
    """``control`` was run only when no other fault was in force any more."""

    @property
    def ends(self) -> list[tuple[str, Sequence[StepResult]]]:
        """Both looks of the probe, as far as they were taken, by when."""
        ends = (("at the beginning", self.active), ("at the end", self.final))
        return [(when, probe) for when, probe in ends if probe]

    @property
    def looks(self) -> list[Look]:
        """Every look at the fault while it was in force, in order."""
        ends = [Look("at the end", self.final)] if self.final else []
        return [Look("at the beginning", self.active), *self.watched, *ends]

    def errors(self) -> list[str]:
        return [
            f"{done.step.host}: {done.error}"
            for done in (*self.do, *self.active, *self.final, *self.undo)
            if done.error
        ]


@dataclass(frozen=True, slots=True)
class Proof:
    """Did the fault take effect?"""

    proved: bool
    text: str
    lost: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Host -> file -> bytes that a power cut took; a host without files lost nobody knows what."""
    damaged: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Host -> file -> bytes that had been synced and are others now, or gone, though the file is used on; a
    host without files has lost its whole disk, or got an older one."""


class Fault(Protocol):
    """One way of breaking something: pure, frozen; says how, and reads whether it worked."""

    @property
    def name(self) -> str: ...

    @property
    def holds_node(self) -> bool:
        """True when the node is not its own master meanwhile: no second such fault may hit it."""

    def commands(self, context: FaultContext) -> Commands:
        """Raises FaultError when it cannot be done to these targets."""

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof: ...


@runtime_checkable
class Restorable(Protocol):
    """A fault with more to restore than processes, chains and programs, which are looked at after every undo
    (`wrackline.nemesis.restoration`)."""

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        """Returns what of the fault the control steps still saw after the undo; empty when nothing was."""


class ClusterFault:
    """Base of faults that ask the cluster alone, and so can be done to one whose hosts are not ours."""

    __slots__ = ()
