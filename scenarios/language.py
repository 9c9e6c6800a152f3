"""The language of scenes: what befalls the replicas of one partition, step by step, as data.

A scene names roles, not nodes: L leads, F1 is the follower that comes first in replica order (so it is
elected first), F2 the last. It says which fault begins, which one ends, what state of the partition is
waited for, and how long nothing happens. Clients write and read all the time.

Two interpreters play it: ``wrackline.simulator.guided.scene`` in virtual time, and
``wrackline.nemesis.guided.scene`` on hosts. A schedule that needs the order of single messages, or single
records, is no scene; it stays with the interpreter that can give it that."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Any, Protocol


class Role(StrEnum):
    """The role of a node in a scene. The value is its name in the history of a run on hosts."""

    LEADER = "leader"
    FIRST = "first follower"
    LAST = "last replica"
    FOURTH = "added replica"
    """A broker without a replica of the partition."""
    CONTROLLER = "controller"
    """The only one."""
    NOBODY = "nobody"


L, F1, F2 = Role.LEADER, Role.FIRST, Role.LAST
FOURTH, CONTROLLER, NOBODY = Role.FOURTH, Role.CONTROLLER, Role.NOBODY
"""All six as scenes write them."""

Cast = Mapping[Role, int]
"""Role -> node id. ``NOBODY`` is -1."""

# --- faults ----------------------------------------------------------------------------------------------


class Fault(Enum):
    """The fault that is done to the nodes of a step, until it is undone."""

    KILL = auto()
    PAUSE = auto()
    RESTART = auto()
    """The process is stopped cleanly, and started when the fault is undone."""
    POWER_CUT = auto()
    """What the node had not synced is gone."""
    POWER_CUT_WIPED = auto()
    """What it had synced, too: an empty disk comes back."""
    POWER_CUT_STALE = auto()
    """The disk that ``KeepDisk`` has copied comes back."""
    CUT_FROM_BROKERS = auto()
    """Cut off from the other brokers; controllers and clients are still reached."""
    ISOLATED = auto()
    """Cut off from every other server; only clients get through."""
    EACH_OTHER = auto()
    """The two nodes do not reach each other."""
    DEAF = auto()
    """What the other brokers send is dropped, what the node sends arrives."""
    DEAF_TO_IT = auto()
    """The first node receives nothing from the second."""
    NO_CLIENTS = auto()
    SHORT_ANSWERS = auto()
    """What the second node sends the first arrives as long as it is short: answers without records."""
    SLOW_IN = auto()
    """Other brokers send the node 20 kB a second."""
    FAILING_WRITE = auto()
    """The next write to a file fails."""
    MIN_ISR_1 = auto()
    """The topic's min.insync.replicas is 1."""
    REASSIGN = auto()
    """The node's replica moves to a broker that has none."""
    REASSIGN_QUICKLY = auto()
    """The same, and it is given less time to be complete."""
    TRANSFER_LEADERSHIP = auto()


class Kept(Enum):
    """The messages that a ``Hold`` keeps back."""

    FETCH_REQUEST = auto()
    FETCH_ANSWER = auto()
    PROPOSAL = auto()
    """An AlterPartition request."""
    PROPOSAL_ANSWER = auto()


@dataclass(frozen=True, slots=True)
class Hold:
    """A fault: messages between the node ``of``, which asks, and the node of the step, which answers, are
    kept back for ``delay_s`` seconds each; 0: until the fault is undone."""

    kept: Kept
    of: Role
    delay_s: float = 0.0


# --- steps -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Do:
    id: str
    fault: Fault | Hold
    roles: tuple[Role, ...]
    words: str = ""
    """Names the roles in the history, where their values do not."""


@dataclass(frozen=True, slots=True)
class Undo:
    """A step that ends these faults, all at once. No ids: those that are left, and the full ISR is waited
    for."""

    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float
    why: str


class Partition(Protocol):
    """The partition as the cluster's metadata have it."""

    @property
    def leader(self) -> int: ...
    @property
    def replicas(self) -> Collection[int]: ...
    @property
    def isr(self) -> Collection[int]: ...


class State(Enum):
    LEADS = auto()
    LEADS_NO_MORE = auto()
    ANOTHER_LEADS = auto()
    ISR = auto()
    IN_ISR = auto()
    FULL_ISR = auto()


@dataclass(frozen=True, slots=True)
class Until:
    """A step that waits until the partition is in this state."""

    state: State
    roles: tuple[Role, ...] = ()
    patience_s: float | None = None
    """So long it is waited for, and then the scene goes on; None: what is never met ends the scene."""

    def holds(self, seen: Partition, cast: Cast) -> bool:
        nodes = {cast[role] for role in self.roles}
        match self.state:
            case State.LEADS:
                return seen.leader in nodes
            case State.LEADS_NO_MORE:
                return seen.leader not in nodes
            case State.ANOTHER_LEADS:
                return seen.leader not in {*nodes, cast[NOBODY]}
            case State.ISR:
                return set(seen.isr) == nodes
            case State.IN_ISR:
                return nodes <= set(seen.isr)
            case State.FULL_ISR:
                return set(seen.isr) == set(seen.replicas)

    def text(self, cast: Cast) -> str:
        each = [str(NOBODY) if role is NOBODY else f"node {cast[role]}" for role in self.roles]
        nodes = " or ".join(each)
        match self.state:
            case State.LEADS:
                return f"{nodes} leads"
            case State.LEADS_NO_MORE:
                return f"{nodes} leads no more"
            case State.ANOTHER_LEADS:
                return f"another leader than {nodes}"
            case State.ISR:
                return f"ISR {sorted(cast[role] for role in self.roles)}"
            case State.IN_ISR:
                return f"{' and '.join(each)} in the ISR"
            case State.FULL_ISR:
                return "the full ISR"


@dataclass(frozen=True, slots=True)
class UntilBroker:
    """A step that waits until the cluster counts the broker among those that are alive (not fenced), or no
    more."""

    role: Role
    alive: bool


@dataclass(frozen=True, slots=True)
class Flush:
    """All that the node has written is on its disk."""

    role: Role


@dataclass(frozen=True, slots=True)
class KeepDisk:
    """A copy of the node's disk is kept for ``POWER_CUT_STALE``."""

    role: Role


@dataclass(frozen=True, slots=True)
class ElectUncleanly:
    """A person asks for a leader, whoever is there."""


@dataclass(frozen=True, slots=True)
class WhereController:
    """The steps that are done only where the broker is a controller, too."""

    role: Role
    steps: tuple[Step, ...]


Step = Do | Undo | Wait | Until | UntilBroker | Flush | KeepDisk | ElectUncleanly | WhereController

RESTORE = Undo()
FULL_ISR = Until(State.FULL_ISR)


def do(id_: str, fault: Fault | Hold, *roles: Role, words: str = "") -> Do:
    return Do(id_, fault, roles, words)


def undo(*ids: str) -> Undo:
    return Undo(ids)


def led_by(*roles: Role) -> Until:
    return Until(State.LEADS, roles)


def leads_no_more(role: Role) -> Until:
    return Until(State.LEADS_NO_MORE, (role,))


def isr_is(*roles: Role, patience_s: float | None = None) -> Until:
    return Until(State.ISR, roles, patience_s)


def in_isr(*roles: Role, patience_s: float | None = None) -> Until:
    return Until(State.IN_ISR, roles, patience_s)


def alive(role: Role) -> UntilBroker:
    return UntilBroker(role, alive=True)


def fenced(role: Role) -> UntilBroker:
    return UntilBroker(role, alive=False)


# --- scenes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected findings of a scene in virtual time: with ``defects`` (or the settings ``exposing``,
    where the configuration is the fault) one of the oracles fires, without them none does."""

    name: str
    """Of the schedule in the kill table."""
    code: str
    """In the catalogue of docs/protocol.md: B01 and so on."""
    oracles: tuple[str, ...]
    defects: tuple[str, ...] = ()
    """Empty: the one that the schedule is named for, and none where settings do the harm."""
    lag_ms: int = 2_000
    """This is replica.lag.time.max.ms."""
    session_ms: int = 2_000
    setting: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of ``wrackline.simulator.guided.setting.Setting``."""
    exposing: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the same, for the arm that must fail."""
    harmless: tuple[str, ...] = ()
    """Those of the defects that do no harm alone; the clean arm has them, too."""
    text: str = ""
    """Says what happens, where no defect does."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The steps, and the cluster that they fit."""

    name: str
    """Of the schedule on hosts (``nemesis.guided.name`` of a specification)."""
    steps: tuple[Step, ...]
    shows: tuple[Expectation, ...] = ()
    """None: the scene is for hosts alone."""
    replicas: int = 3
    brokers: int = 0
    """At least so many; 0: as many as there are replicas."""
    apart: bool = True
    """The controllers are on hosts of their own."""

    def all_steps(self) -> tuple[Step, ...]:
        """Returns all steps, also those that are done in some clusters only."""
        inner = (step.steps if isinstance(step, WhereController) else (step,) for step in self.steps)
        return tuple(step for steps in inner for step in steps)

    @property
    def one_controller(self) -> bool:
        """Tells whether a step hits the controller: there must be one, and no other."""
        return any(isinstance(step, Do) and CONTROLLER in step.roles for step in self.all_steps())


def scene(
    name: str,
    *steps: Step,
    shows: tuple[Expectation, ...] = (),
    replicas: int = 3,
    brokers: int = 0,
    apart: bool = True,
) -> Scene:
    return Scene(name, steps, shows, replicas, brokers, apart)
