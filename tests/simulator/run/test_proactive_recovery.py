"""The strategy proactive under random faults: it may lose, it says so each time, and nothing else gives way
(R27)."""

from __future__ import annotations

from tests.simulator.invariants.runs import Run
from wrackline.broker.model.effects import Trace
from wrackline.broker.model.types import RecoveryStrategy
from wrackline.simulator.invariants.liveness import settle
from wrackline.simulator.world.world import StepRecord, World

OPTIONS = {"unclean_recovery_strategy": RecoveryStrategy.PROACTIVE, "unclean_recovery_window_ms": 800}


def test_unclean_elections_under_faults_leave_no_divergence_and_are_all_told() -> None:
    told: list[str] = []
    elected: set[tuple[str, int]] = set()

    def listen(world: World, step: StepRecord) -> None:
        told.extend(
            effect.fields["why"]
            for effect in step.effects
            if isinstance(effect, Trace) and effect.kind == "recovery" and effect.loud
        )
        for partition in world.image.partitions() if step.node in world.controllers else ():
            if partition.leader_recovery_state and partition.leader >= 0:
                elected.add((str(partition.tp), partition.leader_epoch))

    for seed in range(4):
        run = Run(seed, controllers=3 if seed % 2 else 1, controller=OPTIONS)
        run.world.observers.append(listen)
        assert run.go(25_000) == [], (seed, run.done)
        run.recover()
        settle(run.world, 60_000)
        assert run.checker.violations == []
    # Elections of the same leader epoch of one partition in two runs count once.
    assert len(told) >= len(elected) > 3, (told, elected)
    assert all("possible data loss" in why for why in told)
