"""When faults stop, everything recovers within a bounded virtual time, and what does not is named."""

from __future__ import annotations

import pytest

from tests.simulator.invariants.runs import Run, T
from wrackline.broker.model.batches import batch
from wrackline.broker.model.messages.requests import ProducePartition, ProduceRequest
from wrackline.simulator.invariants.liveness import missing, settle
from wrackline.simulator.world.world import World, WorldOptions


@pytest.mark.parametrize(
    "options", [{}, {"controllers": 3}, {"profile": "kraft35"}, {"profile": "kip101"}], ids=str
)
def test_all_comes_right_after_faults(options: dict[str, object]) -> None:
    for seed in range(4):
        run = Run(seed, **options)
        assert run.go(15_000) == [], (seed, run.done)
        run.recover()
        assert settle(run.world) == [], (seed, run.done)
        assert run.checker.violations == []


def small() -> World:
    world = World(1, WorldOptions())
    world.create_topic("t", 1, replicas=(1, 2, 3))
    assert settle(world) == []
    return world


def test_a_broker_that_stays_away_is_named() -> None:
    world = small()
    world.kill(2)
    found = {violation.name: violation.message for violation in settle(world, 10_000)}
    assert found["brokers run"] == "broker 2 is down"
    assert "t-0 has ISR (1, 3)" in found["isr is full"]


def test_a_quorum_without_a_leader_is_named() -> None:
    world = small()
    world.kill(101)
    assert "quorum elects" in {violation.name for violation in settle(world, 10_000)}


def test_a_log_that_stays_behind_is_named() -> None:
    world = small()
    replica = world.brokers[1].core.replica(T)  # type: ignore[union-attr]
    assert replica is not None
    replica.log.leo += 1
    assert "logs_are_equal" in missing(world)


def test_a_partition_without_a_leader_is_named() -> None:
    world = small()
    for node in world.brokers:
        world.kill(node)
    world.run(10_000)
    assert "t-0 has no leader" in str(missing(world)["partitions_are_led"])


def test_a_stuck_proposal_is_named() -> None:
    world = small()
    world.kill(3)
    for node in (1, 2):
        world.cut(node, 101)
    data = batch.build([b"x"], 0, -1, 0)
    world.asked(1, ProduceRequest(1, 1_000, (ProducePartition(T, data),)))
    world.until(lambda: "proposals_are_resolved" in missing(world), 10_000)
