"""Sequences, swarms and watchers: the search is biased by what happens in clusters, never by the defect at
hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import Refused
from wrackline.broker.model.types import TopicPartition
from wrackline.simulator.cli import _setup, simulate
from wrackline.simulator.faults.actions import actions
from wrackline.simulator.faults.driver import FaultDriver
from wrackline.simulator.faults.kinds import KINDS, Fault, FaultOptions, Role, Wait
from wrackline.simulator.faults.sequences import SEQUENCES, drawn
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.faults.swarm import swarm
from wrackline.simulator.guided.catalogue import SCHEDULES
from wrackline.simulator.guided.setting import Setting, T
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.invariants.watchers import Deaf, EndOffsets, Flaps, Stalls, Watcher
from wrackline.simulator.run import run
from wrackline.simulator.world.world import World, WorldOptions


def test_the_drawn_setup_depends_on_the_seed_and_not_on_the_defect() -> None:
    seen = set()
    for seed in range(40):
        plain = swarm(Setup(seed=seed))
        assert swarm(Setup(seed=seed, defects=("trunc_hw",))) == replace(plain, defects=("trunc_hw",))
        assert plain.plan() == swarm(Setup(seed=seed, defects=("trunc_hw",))).plan()
        seen.add((plain.brokers, plain.controllers, plain.tcp, plain.weak, plain.broker))
    assert len(seen) > 20


def test_settings_that_a_defect_needs_are_not_drawn_anew() -> None:
    needed = Setup(seed=3, controllers=3, brokers=5, controller=(("session_timeout_ms", 9_000),))
    for seed in range(10):
        found = swarm(replace(needed, seed=seed))
        assert (found.controllers, found.brokers) == (3, 5)
        assert dict(found.controller)["session_timeout_ms"] == 9_000


@pytest.mark.parametrize("seed", range(12))
def test_the_printed_command_of_a_drawn_setup_is_complete(seed: int) -> None:
    setup = swarm(Setup(seed=seed, defects=("trunc_hw",)))
    arguments = setup.command().split()[2:]
    assert _setup(simulate.make_context("simulate", arguments).params) == setup


def test_every_chain_can_be_drawn_and_waits_for_roles_it_has() -> None:
    for steps in SEQUENCES:
        kinds = {
            kind for step in steps for kind in ((step.kind,) if isinstance(step.kind, str) else step.kind)
        }
        faults = drawn(Random(1), kinds, 0.0, 0, 1)
        assert kinds <= set(KINDS)
        assert faults
    assert drawn(Random(1), set(), 0.0, 0, 1) == []


def a_world(**more: object) -> World:
    world = World(1, WorldOptions(**more))  # type: ignore[arg-type]
    world.create_topic("t", 1, (1, 2, 3))
    return world


def a_driver(world: World, *, combined: bool = False) -> FaultDriver:
    return FaultDriver(world, "t", 1, FaultOptions(), actions(), combined=combined)


def test_a_step_waits_for_the_one_before() -> None:
    world = a_world(broker={"replica_lag_time_max_ms": 500})
    out, in_again = Wait("out", "one"), Wait("in", "one")
    driver = a_driver(world)
    driver.schedule(
        [
            Fault(0, "lag", 0.0, 50.0, "one", sequence=1, until=out),
            Fault(1, "hold-alter-request", 0.0, 0.0, "first-leader", sequence=1, after=out, until=in_again),
        ]
    )
    world.run(20_000)
    (lag_ms, lag, _), (hold_ms, hold, said) = driver.done
    assert (lag.kind, hold.kind) == ("lag", "hold-alter-request")
    assert hold_ms > lag_ms + 400, "not before the follower had left the ISR"
    assert said.endswith("from n1"), "the sequence's leader"
    partition = world.image.partition(TopicPartition("t", 0))
    assert partition is not None
    assert set(partition.isr) == {1, 2, 3}


@pytest.mark.parametrize("role", ["one", "other", "first-leader"])
def test_roles_of_a_chain_stay_who_they_are(role: Role) -> None:
    world = a_world()
    driver = a_driver(world)
    faults = [Fault(number, "skew", number * 3_000.0, 100.0, role, sequence=4) for number in range(3)]
    faults.append(Fault(9, "kill", 1_000.0, 9_000.0, "leader", sequence=5))
    driver.schedule(sorted(faults, key=lambda fault: fault.at_ms))
    world.run(12_000)
    nodes = {said.split()[0] for _, fault, said in driver.done if fault.sequence == 4}
    assert len(nodes) == 1


def test_a_combined_machine_dies_as_one() -> None:
    world = a_world(controllers=3)
    driver = a_driver(world, combined=True)
    driver.schedule([Fault(0, "kill", 0.0, 2_000.0, "leader", sequence=1)])
    world.run(100)
    assert up(world) == {2, 3, 102, 103}
    world.run(3_000)
    assert up(world) == {1, 2, 3, 101, 102, 103}


def up(world: World) -> set[int]:
    return {server.id for server in world.servers() if server.up}


def test_what_follows_a_refused_write_is_not_carried_out() -> None:
    stage = Stage(Setting())
    stage.commit(b"m1")
    disk = stage.world.brokers[1].disk
    disk.refuses = lambda tp: "no space left on device" if tp == T else ""
    call = stage.produce(1, b"m2", acks=1)
    stage.run(200)
    assert call.done
    if call.failed:  # the process was gone before its answer was here
        assert call.response is None
    else:
        assert isinstance(call.response, Refused)
        assert call.response.error is ErrorCode.kafka_storage_error
    assert stage.leo(1) == 1
    assert not stage.up(1), "without its log directory the broker is of no use"


@pytest.mark.parametrize(
    "kinds", [("disk-error", "disk-full", "kill"), ("min-isr", "isolate", "kill", "power")]
)
def test_disk_errors_and_changes_of_min_isr_lose_nothing(kinds: tuple[str, ...]) -> None:
    for seed in (1, 2):
        setup = Setup(seed=seed, seconds=10.0, kinds=kinds, fault_every_ms=700.0)  # type: ignore[arg-type]
        result = run(setup)
        assert result.violation is None, result.violation
        assert {fault.kind for _, fault, _ in result.faults} & set(kinds)


WATCHED = (T,)


def watched(watcher: Watcher, name: str, *, broken: bool, first_ms: float = 0.0) -> set[str]:
    guided = SCHEDULES[name]
    stage = Stage(guided.setting, guided.defects if broken else guided.harmless)
    stage.world.observers.append(watcher)
    stage.run(first_ms)
    guided.play(stage)
    stage.run(1_000)
    return {violation.oracle for violation in watcher.found}


def test_watchers_see_the_defect_and_not_the_rule() -> None:
    cases: list[tuple[Callable[[], Watcher], str, str, float]] = [
        (lambda: EndOffsets(WATCHED), "no_offset_not_available", "end-offset", 0.0),
        (lambda: Stalls(WATCHED, "kip966"), "no_adv_on_isr", "stall", 0.0),
        (lambda: Flaps(WATCHED), "isr_no_recency", "flapping", 0.0),
        (lambda: Deaf(WATCHED), "stop_md_on_shutdown", "deaf", 3_000.0),
    ]
    for make, name, oracle, first_ms in cases:
        assert watched(make(), name, broken=True, first_ms=first_ms) == {oracle}
        assert watched(make(), name, broken=False, first_ms=first_ms) == set()


def test_watchers_report_nothing_while_other_schedules_are_played() -> None:
    for name in ("shrink_before_commit", "ack_by_hwm_only"):
        for watcher in (EndOffsets(WATCHED), Stalls(WATCHED, "kip966"), Flaps(WATCHED), Deaf(WATCHED)):
            assert watched(watcher, name, broken=False) == set()
