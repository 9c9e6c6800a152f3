"""The invariants of a world with a ZooKeeper; of a cluster that goes from it to a controller, those of the
profile that is in charge (docs/rolling-upgrades.md).

What was committed and acknowledged while ZooKeeper was in charge is asked for afterwards too, and no epoch
that a leader took there may be another leader's: the two checkers share what is known of each partition.
"""

from __future__ import annotations

from collections.abc import Sequence

from wrackline.simulator.invariants.checker import Checker
from wrackline.simulator.invariants.invariant import Violation
from wrackline.simulator.world.world import StepRecord, World
from wrackline.zookeeper.simulator.checker import ZookeeperChecker


class MigrationChecker:
    """Attach with ``world.observers.append(checker)``. Violations are kept."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._former = ZookeeperChecker(world)
        self._later = Checker(world, profile=world.options.upgrade_to)
        self._later.observer.partitions = self._former.partitions
        self._later.observer.began_without_epochs = True
        self._taken_over = False

    @property
    def violations(self) -> Sequence[Violation]:
        return [*self._former.violations, *self._later.violations]

    @property
    def found(self) -> bool:
        return bool(self._former.violations or self._later.violations)

    def __call__(self, world: World, step: StepRecord) -> None:
        if not self._taken_over and not world.on_zookeeper:
            self._taken_over = True
            self._later.observer.begin_with_members()
        if not self._taken_over:
            self._former(world, step)
        self._later(world, step)

    def leave_out(self, *ids: str) -> None:
        """Leaves these invariants out from now on."""
        self._former.leave_out(*ids)
        self._later.leave_out(*ids)

    def at_rest(self) -> Sequence[Violation]:
        """Returns the violations at the end of a run, when nothing is under way."""
        if not self._taken_over:
            self._former.at_rest()
        return self.violations


def checker_of(world: World) -> ZookeeperChecker | MigrationChecker:
    return MigrationChecker(world) if world.bridges else ZookeeperChecker(world)
