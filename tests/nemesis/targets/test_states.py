"""Every state is true of a cluster that is in it, and of none that lacks it, and names whom it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.nemesis.doubles import cluster, partition
from wrackline.nemesis.spec import FAULT
from wrackline.nemesis.targets.states import STATES, View, occurrences
from wrackline.systems.base import ClusterState, PartitionState

WELL = cluster(partition(epoch=4))


def of(*partitions: PartitionState, brokers: tuple[int, ...] = (1, 2, 3)) -> ClusterState:
    return replace(cluster(*partitions), brokers=brokers)


MOVING = of(partition(epoch=4, replicas=(1, 2, 3, 4), isr=(1, 2, 3)))
CASES: dict[str, list[tuple[View, tuple[int, ...]]]] = {
    "isr-of-one": [(View(of(partition(isr=(2,), leader=2)), WELL), (2,))],
    "left-isr": [(View(of(partition(epoch=4, isr=(1, 3))), WELL), (2,))],
    "returning": [(View(of(partition(isr=(1, 3))), of(partition(isr=(1, 3)))), (2,))],
    "rejoined": [(View(WELL, of(partition(epoch=4, isr=(1, 3)))), (2,))],
    "new-leader": [
        (View(of(partition(epoch=5, leader=3)), WELL), (3,)),
        (View(WELL, of(partition(epoch=3, leader=-1, isr=()))), (1,)),
    ],
    "same-leader": [(View(of(partition(epoch=5)), WELL), (1,))],
    "leaderless": [
        (View(of(partition(leader=-1, isr=(2,))), WELL), (2,)),
        (View(of(partition(leader=-1, isr=(), elr=(3,))), WELL), (3,)),
        (View(of(partition(leader=-1, isr=())), WELL), (1, 2, 3)),
    ],
    "eligible": [(View(of(partition(isr=(1,), elr=(3,))), WELL), (3,))],
    "moving": [(View(MOVING, MOVING, {("log", 0): 3}), (4,))],
    "rolling": [(View(of(partition(isr=(1, 2))), WELL, in_force=("rolling-restart",)), (1,))],
    "new-controller": [(View(cluster(controller=102), WELL), (102,))],
    "fenced": [(View(of(partition(epoch=4), brokers=(1, 3)), WELL), (2,))],
    "unclean-start": [(View(WELL, of(partition(epoch=4), brokers=(1, 3)), unclean=(2,)), (2,))],
}
NEARLY: dict[str, View] = {
    "isr-of-one": View(of(partition(replicas=(2,), leader=2)), WELL),
    "left-isr": View(of(partition(replicas=(1, 3))), WELL),
    "returning": View(of(partition(isr=(1, 3)), brokers=(1, 3)), WELL),
    "rejoined": View(of(partition(replicas=(1, 2, 4))), WELL),
    "new-leader": View(of(partition(epoch=5, leader=-1, isr=())), WELL),
    "same-leader": View(of(partition(epoch=5, leader=2)), WELL),
    "leaderless": View(of(partition(epoch=5, leader=2)), WELL),
    "eligible": View(of(partition(isr=(1,))), WELL),
    "moving": View(MOVING, MOVING, {("log", 0): 4}),
    "rolling": View(WELL, WELL, in_force=("rolling-restart",)),
    "new-controller": View(cluster(controller=-1), WELL),
    "fenced": View(WELL, of(partition(epoch=4), brokers=(1, 3))),
    "unclean-start": View(WELL, of(partition(epoch=4), brokers=(1, 3))),
}
"""As near to each state as it may be, and not in it."""


def test_every_state_has_its_cases() -> None:
    assert set(CASES) == set(NEARLY) == set(STATES)


@pytest.mark.parametrize("state", STATES)
def test_a_state_is_true_where_it_is_and_names_whom_it_is_about(state: str) -> None:
    for view, nodes in CASES[state]:
        assert [one.nodes for one in occurrences(view, (state,))] == [nodes]


@pytest.mark.parametrize("state", STATES)
def test_a_state_is_not_true_of_a_cluster_that_is_well_or_nearly_in_it(state: str) -> None:
    assert occurrences(View(WELL, WELL, {("log", 0): 3}), (state,)) == []
    assert occurrences(NEARLY[state], (state,)) == []


def test_a_partition_that_was_not_there_before_is_in_no_state() -> None:
    assert occurrences(View(of(partition(isr=(1,))), ClusterState(101, (1, 2, 3), ()))) == []


@pytest.mark.parametrize("state", STATES)
def test_what_leads_to_a_state_are_faults(state: str) -> None:
    assert STATES[state].brought_by or state == "rolling"
    assert all(FAULT.validate_python(one) for one in (*STATES[state].brought_by, *STATES[state].also))
