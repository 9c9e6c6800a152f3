"""Guided schedules as values: whom they hit, and when they refuse."""

from __future__ import annotations

import pytest
from nem_doubles import COMBINED, NODES, cluster, partition

from harness.systems.base import ClusterState, Node
from nemesis.guided import SCHEDULES
from nemesis.guided_steps import Aim, Await, GuidedError, Heal, Inject

BY_ID = {node.node_id: node for node in NODES}


def aim(state: ClusterState, number: int = 0) -> Aim:
    return Aim(state, BY_ID, "log", number)


THREE = cluster(
    partition(0, leader=2, replicas=(1, 2, 3)),
    partition(1, leader=3, replicas=(2, 3, 1)),
    partition(2, leader=2, replicas=(2, 1, 3)),
    partition(3, leader=2, replicas=(2, 3, 1)),
    partition(4, leader=2, replicas=(2, 1, 3), topic="other"),
)


def hits(name: str, state: ClusterState, number: int = 0) -> list[tuple[str, str]]:
    steps = SCHEDULES[name](aim(state, number))
    return [(step.fault.name, *step.hosts) for step in steps if isinstance(step, Inject)]  # type: ignore[misc]


def test_b01_makes_the_last_replica_deaf_and_kills_the_leaders_before_it() -> None:
    assert hits("b01-truncate-to-hw", THREE) == [("partition", "n3"), ("kill", "n2"), ("kill", "n1")]
    assert hits("b01-truncate-to-hw", THREE, 1) == [("partition", "n1"), ("kill", "n3"), ("kill", "n2")]


def test_b01_brings_a_killed_controller_back_before_the_majority_is_gone() -> None:
    steps = SCHEDULES["b01-truncate-to-hw"](Aim(THREE, {node.node_id: node for node in COMBINED}, "log", 0))
    down: set[str] = set()
    apart: set[str] = set()
    for step in steps:
        match step:
            case Inject(id=fault_id, fault=fault, hosts=(host,)) if fault.name == "kill":
                down.add(fault_id)
                assert len(down) == 1, f"{host} would leave one of three controllers"
            case Inject(hosts=(host,), role=role) if role.startswith("former leader"):
                apart.add(host)
            case Heal(ids=ids):
                assert "g2" not in ids or apart == {"n2"}, "it must not fetch what the next leader has"
                down -= set(ids)
    assert not down


def test_b01_waits_for_all_partitions_that_fare_alike() -> None:
    waits = [step for step in SCHEDULES["b01-truncate-to-hw"](aim(THREE)) if isinstance(step, Await)]
    assert {wait.partitions for wait in waits} == {(0, 2)}
    first, second, healed = waits
    elected = cluster(*(partition(number, leader=1, isr=(1, 3)) for number in (0, 2)))
    assert not first.holds(THREE)
    assert first.holds(elected)
    assert not second.holds(elected)
    assert healed.holds(THREE)
    assert not healed.holds(elected)
    assert not healed.holds(cluster(partition(0)))


@pytest.mark.parametrize("nodes", [NODES, COMBINED], ids=["apart", "combined"])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_every_fault_of_a_schedule_is_healed_by_it(name: str, nodes: tuple[Node, ...]) -> None:
    steps = SCHEDULES[name](Aim(THREE, {node.node_id: node for node in nodes}, "log", 0))
    injected = {step.id for step in steps if isinstance(step, Inject)}
    healed = {fault_id for step in steps if isinstance(step, Heal) for fault_id in step.ids}
    assert injected == healed


def test_the_other_schedules_hit_leader_and_follower() -> None:
    assert hits("acks1-leader-power-cut", THREE) == [("partition", "n2"), ("power-cut", "n2")]
    assert hits("power-cut-lossy", THREE) == [("power-cut", "n3")]


@pytest.mark.parametrize("name", sorted(SCHEDULES))
@pytest.mark.parametrize(
    ("state", "why"),
    [
        (cluster(partition(0, leader=1, isr=(1, 2))), "all in the ISR; it has leader 1, ISR .1, 2. of"),
        (cluster(partition(0, leader=-1)), "leader -1"),
        (cluster(partition(0, leader=1, replicas=(1,))), "needs . replicas"),
        (cluster(partition(7)), "knows no partition log-0"),
    ],
)
def test_a_cluster_that_is_not_ready_is_refused(name: str, state: ClusterState, why: str) -> None:
    with pytest.raises(GuidedError, match=why):
        SCHEDULES[name](aim(state))
