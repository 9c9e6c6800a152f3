"""The invariants of docs/invariants.md and what they have in common. ``Checker`` is an observer of the world.

Each invariant is one small class with a ``check`` that looks only at what the step touched. I21 and I22
belong to the ZooKeeper-era profile zk08, which we do not have. docs/invariants.md tells of each how it is
checked and when it does not hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.invariants.observed_step import Seen
from wrackline.simulator.invariants.observer import Ghost
from wrackline.simulator.world.world import StepRecord, World

Check = Callable[[Ghost, Seen], "Violation | None"]
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
        return f"{self.id} {self.name} at step {self.step} ({self.at_ms:.1f} ms, node {self.node}){where}: {self.message}"


class InvariantViolated(AssertionError):
    """The first violation of a run; its StepRecord was the last."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


class Invariant(ABC):
    id: ClassVar[str]
    name: ClassVar[str]
    reference: ClassVar[str]
    """TLA+ or Kafka name, code or section of docs/protocol.md."""
    profiles: ClassVar[frozenset[str]] = ALL_PROFILES
    looks_at: ClassVar[int]
    """Flags of ``ghost``: ``check`` is called after the steps that touch one of these, and needs no other."""

    @abstractmethod
    def check(self, ghost: Ghost, seen: Seen) -> Violation | None:
        """``ghost`` has observed the step already; ``seen`` is what it came to."""

    def violated(self, seen: Seen, tp: TopicPartition | None, message: str) -> Violation:
        step = seen.step
        return Violation(self.id, self.name, step.number, step.at_ms, step.node, tp, message)


class Checker:
    """Attach with ``world.observers.append(checker)``. Violations are kept, and raised where ``strict``."""

    def __init__(
        self,
        world: World,
        *,
        profile: str | None = None,
        only: Iterable[str] | None = None,
        strict: bool = False,
    ) -> None:
        from wrackline.simulator.invariants.catalogue import INVARIANTS  # the catalogue imports this module

        self.profile = world.options.profile if profile is None else profile
        self.ghost = Ghost(world, self.profile)
        wanted = None if only is None else frozenset(only)
        self.invariants: Sequence[Invariant] = tuple(
            kind()
            for kind in INVARIANTS
            if self.profile in kind.profiles and (wanted is None or kind.id in wanted)
        )
        self.violations: list[Violation] = []
        self.strict = strict
        self._told: set[tuple[str, TopicPartition | None]] = set()
        self._concerned: dict[int, tuple[Check, ...]] = {}
        """By what a step touches: the checks it calls for."""

    def leave_out(self, *ids: str) -> None:
        """From now on these invariants are not checked."""
        self.invariants = tuple(kind for kind in self.invariants if kind.id not in ids)
        self._concerned.clear()

    def __call__(self, world: World, step: StepRecord) -> None:  # noqa: ARG002
        seen = self.ghost.observe(step)
        touches = 0 if seen is None else seen.touches
        if seen is None or not touches:
            return
        checks = self._concerned.get(touches)
        if checks is None:
            checks = tuple(kind.check for kind in self.invariants if kind.looks_at & touches)
            self._concerned[touches] = checks
        for check in checks:
            violation = check(self.ghost, seen)
            if violation is None or (violation.id, violation.tp) in self._told:
                continue
            self._told.add((violation.id, violation.tp))
            self.violations.append(violation)
            if self.strict:
                raise InvariantViolated(violation)
