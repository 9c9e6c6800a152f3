"""The words of random faults: kinds, roles, what they wait for. ``plan`` draws them, ``driver`` carries them
out.

The plan names kinds, times and roles ("the leader of t-0"), not nodes: roles are looked up when the time has
come, which is what makes random faults hit where it hurts. Each fault draws from a generator of its own, so a
plan without one of its faults leaves the others as they are: that is what shrinking rests on.

Bias (docs/protocol.md 4.4: uniform search misses the rare ones): a plan is made of single faults, of *pairs*
around one partition (hold AlterPartition or metadata, restart or cut somebody meanwhile), and of *sequences*
(``sequences``), whose steps wait for each other: take a follower out of the ISR, keep back the proposal that
takes it in again, cut its power in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from wrackline.broker.model.types import NodeId

Kind = Literal[
    "kill",
    "power",
    "clean",
    "kill-midway",
    "power-midway",
    "pause",
    "isolate",
    "cut",
    "cut-one-way",
    "cut-controller",
    "lag",
    "hold-alter-request",
    "hold-alter-response",
    "hold-fetch-response",
    "hold-fetch-request",
    "hold-metadata",
    "hold-produce-response",
    "hold-heartbeat",
    "skew",
    "disk-error",
    "disk-full",
    "wipe",
    "restore",
    "controller-kill",
    "controller-power",
    "controller-pause",
    "controller-isolate",
    "controller-deaf",
    "elect",
    "move-leader",
    "reassign",
    "reassign-cancel",
    "min-isr",
    "session-expiry",
    "connection-loss",
    "zookeeper-leader",
    "cut-zookeeper",
    "move-replicas",
    "delete-records",
    "churn-topic",
    "hold-any",
    "controller-midway",
    "flush-error",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
OF_ZOOKEEPER: tuple[Kind, ...] = (
    "session-expiry",
    "connection-loss",
    "zookeeper-leader",
    "cut-zookeeper",
    "move-replicas",
)
"""There is something to do them to in profile zk08 alone."""
OF_SWARMS: tuple[Kind, ...] = (
    "delete-records",
    "churn-topic",
    "hold-any",
    "controller-midway",
    "flush-error",
)
"""Drawn by swarms; a run with one setting has them on request, so that its seed means what it always has."""
DEFAULT_KINDS = tuple(kind for kind in KINDS if kind not in ("wipe", "restore", *OF_ZOOKEEPER, *OF_SWARMS))
"""Without those that need an operator's mistake: R37 and the contracts exclude them."""
ZK08_KINDS: tuple[Kind, ...] = (
    "kill",
    "power",
    "clean",
    "kill-midway",
    "power-midway",
    "pause",
    "isolate",
    "cut",
    "cut-one-way",
    "lag",
    "hold-fetch-response",
    "hold-fetch-request",
    "hold-produce-response",
    "disk-error",
    "disk-full",
    *OF_ZOOKEEPER,
)
"""What can be done to brokers that have no controller."""

Role = Literal[
    "leader", "follower", "isr-follower", "out-of-sync", "any", "first-leader", "one", "other", "spare"
]
"""The last four are bound once for all faults of a sequence: its leader when it begins, two followers, a
broker without a replica (where there is none: one of the followers)."""
ROLES: tuple[Role, ...] = ("leader", "follower", "isr-follower", "out-of-sync", "any")

Word = Literal["out", "in", "fenced", "back", "proposed", "leads"]
"""What a fault can wait for: somebody is out of the ISR, in it, fenced, up and unfenced, has a proposal that
is not answered yet, leads and knows it."""


@dataclass(frozen=True, slots=True)
class Wait:
    word: Word
    role: Role

    def __str__(self) -> str:
        return f"{self.word}({self.role})"


@dataclass(frozen=True, slots=True)
class Fault:
    """``at_ms`` from the start of the main phase. It begins then or, with ``after``, as soon as that has come
    to pass; it is taken back (a restart, a healing) ``for_ms`` after it began or after ``until`` has come to
    pass."""

    id: int
    kind: Kind
    at_ms: float
    for_ms: float
    role: Role
    partition: int = 0
    sequence: int = 0
    """Faults with one number share what their roles are bound to."""
    after: Wait | None = None
    until: Wait | None = None
    on: tuple[NodeId, ...] = ()
    """The very nodes, where they are known: of a cut the first from the others. Empty: whoever has the
    role."""

    def __str__(self) -> str:
        words = f"f{self.id} {self.kind} {self.role}({self.partition})"
        if self.after is not None:
            words += f" after {self.after}"
        if self.until is not None:
            words += f" until {self.until} and"
        return f"{words} for {self.for_ms:.0f} ms"


@dataclass(frozen=True, slots=True)
class FaultOptions:
    kinds: tuple[Kind, ...] = DEFAULT_KINDS
    every_ms: float = 1_500.0
    """Mean pause between two plans (a single fault, a pair, a sequence)."""
    pairs: float = 0.25
    """Share of plans that are pairs."""
    sequences: float = 0.35
    """Share of plans that are sequences."""
    one_by_one: bool = False
    """A fault begins only when every member of the ISR has what is committed and no fault in force reaches
    one: what profile zk08 promises to survive. Those that come earlier are left out."""
    max_lossy: int = 1
    """Lossy faults at a time, at most: MinISR - 1 keeps the promise, more breaks it."""
