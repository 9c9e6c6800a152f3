"""The invariants of docs/invariants.md and what they have in common (``checker`` asks them).

Each invariant is one small function that looks only at what the step touched. Those of
profile zk08, I21 and I22 among them, are in ``zookeeper``. docs/invariants.md tells of each how it is checked
and when it does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.step import ObservedStep

KIP966 = "kip966"
ALL_PROFILES = frozenset({"kip966", "kraft35", "kip101"})


@dataclass(frozen=True, slots=True)
class Violation:
    id: str
    name: str
    step: int
    at_ms: float
    node: NodeId
    """Where the step was."""
    tp: TopicPartition | None
    message: str

    @property
    def oracle(self) -> str:
        return self.id

    @property
    def text(self) -> str:
        return f"{self.name}: {self.message}"

    def __str__(self) -> str:
        where = "" if self.tp is None else f" {self.tp}"
        when = f"at step {self.step} ({self.at_ms:.1f} ms, node {self.node})"
        return f"{self.id} {self.name} {when}{where}: {self.message}"


Wrong = Iterator[tuple[TopicPartition | None, str]]
"""What does not hold after a step: the partition that it is of (None: of none), and how."""
Check = Callable[[ObservedCluster, ObservedStep], Wrong]
"""The cluster has observed the step already, and the step is what it came to."""


@dataclass(frozen=True)
class Invariant:
    id: str
    name: str
    reference: str
    """TLA+ or Kafka name, code or section of docs/protocol.md."""
    looks_at: int
    """Flags of ``observed.step``: the check is called after the steps that touch one of these, and needs no
    other."""
    begin: Callable[[], Check]
    """Makes the check of one run."""
    profiles: frozenset[str] = ALL_PROFILES

    def __call__(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        """Asks of one step alone."""
        return self.first(self.begin(), cluster, seen)

    def first(self, check: Check, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        """Returns the first thing that does not hold."""
        step = seen.step
        for tp, message in check(cluster, seen):
            return Violation(self.id, self.name, step.number, step.at_ms, step.node, tp, message)
        return None


def invariant(
    id_: str, name: str, reference: str, looks_at: int, profiles: frozenset[str] = ALL_PROFILES
) -> Callable[[Check], Invariant]:
    """Makes an invariant of a check that keeps nothing but what is in ``ObservedCluster.noted``."""
    return lambda check: Invariant(id_, name, reference, looks_at, lambda: check, profiles)
