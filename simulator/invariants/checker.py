"""``Checker`` is an observer of the world that asks every invariant of the catalogue after each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.model.values import mypyc_attr
from wrackline.simulator.invariants.catalogue import INVARIANTS
from wrackline.simulator.invariants.invariant import Check, Invariant, Violation
from wrackline.simulator.invariants.observed.observer import Observer
from wrackline.simulator.world.world import StepRecord, World
from wrackline.simulator.world.zookeeper_door import of_zookeeper


@mypyc_attr(allow_interpreted_subclasses=True)
class Checker:
    """Attach with ``world.observers.append(checker)``. Violations are kept."""

    def __init__(
        self,
        world: World,
        *,
        profile: str | None = None,
        only: Iterable[str] | None = None,
        observer: Observer | None = None,
    ) -> None:
        """``observer``: None for one that follows the world."""
        self.profile = world.options.profile if profile is None else profile
        self.observer = Observer(world, self.profile) if observer is None else observer
        expected = None if only is None else frozenset(only)
        profiles = {self.profile, world.options.upgrade_to}
        self.invariants: Sequence[Invariant] = tuple(
            kind
            for kind in INVARIANTS
            if profiles & kind.profiles and (expected is None or kind.id in expected)
        )
        self._checks = {kind.id: kind.begin() for kind in self.invariants}
        self.violations: list[Violation] = []
        self._told: set[tuple[str, TopicPartition | None]] = set()
        self._concerned: dict[tuple[str, int], tuple[tuple[Invariant, Check], ...]] = {}
        """By the profile whose promises hold, and by what a step touches: the invariants it calls for."""

    @property
    def found(self) -> bool:
        return bool(self.violations)

    def leave_out(self, *ids: str) -> None:
        """Leaves these invariants out from now on."""
        self.invariants = tuple(kind for kind in self.invariants if kind.id not in ids)
        self._concerned.clear()

    def at_rest(self) -> Sequence[Violation]:
        """Returns no more violations at the end of a run, when nothing is under way."""
        return self.violations

    def __call__(self, world: World, step: StepRecord) -> None:  # noqa: ARG002
        seen = self.observer.observe(step)
        if seen is None or not (touches := seen.touches):
            return
        key = (self.observer.profile, touches)
        checks = self._concerned.get(key)
        if checks is None:
            now = [kind for kind in self.invariants if self.observer.profile in kind.profiles]
            checks = self._concerned[key] = tuple(
                (kind, self._checks[kind.id]) for kind in now if kind.looks_at & touches
            )
        for kind, check in checks:
            violation = kind.first(check, self.observer, seen)
            if violation is None or (violation.id, violation.tp) in self._told:
                continue
            self._told.add((violation.id, violation.tp))
            self.violations.append(violation)


class AnyChecker(Protocol):
    """A ``Checker``, or one of a cluster whose metadata is in ZooKeeper."""

    @property
    def violations(self) -> Sequence[Violation]: ...

    @property
    def found(self) -> bool: ...

    def __call__(self, world: World, step: StepRecord) -> None: ...

    def leave_out(self, *ids: str) -> None: ...

    def at_rest(self) -> Sequence[Violation]: ...


def checker_of(world: World) -> AnyChecker:
    """The invariants of the world's profile."""
    make: Callable[[World], AnyChecker] = Checker if world.zookeeper is None else of_zookeeper("checker")
    return make(world)
