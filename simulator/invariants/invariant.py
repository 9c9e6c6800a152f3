"""The invariants of docs/invariants.md and what they have in common (``checker`` asks them).

Each invariant is one small class with a ``check`` that looks only at what the step touched. Those of
profile zk08, I21 and I22 among them, are in ``zookeeper``. docs/invariants.md tells of each how it is checked
and when it does not hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

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


class Invariant(ABC):
    id: ClassVar[str]
    name: ClassVar[str]
    reference: ClassVar[str]
    """TLA+ or Kafka name, code or section of docs/protocol.md."""
    profiles: ClassVar[frozenset[str]] = ALL_PROFILES
    looks_at: ClassVar[int]
    """Flags of ``cluster``: ``check`` is called after the steps that touch one of these, and needs no
    other."""

    @abstractmethod
    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        """``cluster`` has observed the step already; ``seen`` is what it came to."""

    def violated(self, seen: ObservedStep, tp: TopicPartition | None, message: str) -> Violation:
        step = seen.step
        return Violation(self.id, self.name, step.number, step.at_ms, step.node, tp, message)
