"""A broker joins and replicas move: the right ones move, a probe proves it, and an incomplete move is taken
back."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from tests.nemesis.doubles import FakeFleet, FakeSystem, cluster, context, node, partition
from wrackline.nemesis.faults.cluster.growth import (
    AddBroker,
    Move,
    Reassign,
    moves_off,
    say_moves,
    say_settled,
)
from wrackline.nemesis.faults.cluster.reassignments import ReassignmentExecutor
from wrackline.nemesis.faults.steps import AwaitReassignment, Evacuate, FaultError, Join, ProbeLog, StepResult
from wrackline.systems.base import ClusterState, DeployError, Place

MOVE = Move("log", 0, (1, 2, 3), (4, 2, 3))
JOIN = Join("n4", 4, "f1", 5.0, 5.0)
OFF = Evacuate("n2", 2, "f1", 0.0)


def four(*partitions: object, brokers: tuple[int, ...] = (1, 2, 3, 4)) -> ClusterState:
    state = cluster(*partitions)  # type: ignore[arg-type]
    return ClusterState(state.controller, brokers, state.partitions)


def moved(state: ClusterState, node_id: int, busy: Sequence[Place] = ()) -> dict[int, tuple[int, ...]]:
    return {one.partition: one.after for one in moves_off(state, node_id, ("log",), busy)}


def test_replicas_move_to_live_brokers_without_one_the_least_loaded_first() -> None:
    state = ClusterState(
        101,
        (1, 2, 3, 4, 5),
        (
            partition(0, 1, (1, 2, 3)),
            partition(1, 2, (2, 3, 1)),
            partition(2, 3, (3, 1, 4)),
            partition(3, 2, (2, 1, 5)),
            partition(0, 2, (2, 3, 1), topic="other"),
        ),
    )
    assert moved(state, 2) == {0: (1, 4, 3), 1: (5, 3, 1), 3: (4, 1, 5)}
    assert moved(state, 2, [("log", 0)]) == {1: (4, 3, 1), 3: (4, 1, 5)}, "what moves already stays as it is"
    without_five = ClusterState(101, (1, 2, 3, 4), state.partitions)
    assert 5 not in {to for after in moved(without_five, 2).values() for to in after[:1]}


@pytest.mark.parametrize(
    "state",
    [
        cluster(partition(0)),  # three brokers, all of them replicas
        four(partition(0, 1, (1, 3, 4))),  # it holds nothing
        four(partition(0), brokers=(1, 2, 3)),  # the fourth is not live
    ],
)
def test_a_move_that_cannot_be_is_refused(state: ClusterState) -> None:
    with pytest.raises(FaultError, match="no replica of node 2 can move: live are brokers"):
        moves_off(state, 2, ("log",), ())


@pytest.mark.parametrize(
    ("state", "busy", "done"),
    [
        (four(partition(0, 1, (4, 2, 3))), (), True),
        (four(partition(0, 1, (4, 2, 3), isr=(2, 3))), (), False),
        (four(partition(0, 1, (4, 2, 3))), (("log", 0),), False),
        (four(partition(0, 1, (1, 2, 3))), (), False),
        (four(partition(1, 1, (4, 2, 3))), (), False),
    ],
)
def test_a_move_is_done_when_metadata_shows_its_replicas_all_in_the_isr(
    state: ClusterState, busy: tuple[Place, ...], done: bool
) -> None:
    assert MOVE.is_done(state, busy) is done


def test_a_broker_that_runs_cannot_join_and_only_one_joins_at_a_time() -> None:
    with pytest.raises(FaultError, match="node 3 on n3 runs already"):
        AddBroker().commands(context("n3"))
    with pytest.raises(FaultError, match="one broker joins at a time, not 2"):
        AddBroker().commands(context("n2", "n3", pid=None))
    with pytest.raises(FaultError, match="of one host move at a time, not of 2"):
        Reassign().commands(context("n2", "n3"))


@pytest.mark.parametrize(("fault", "begun_by"), [(AddBroker(), JOIN), (Reassign(), OFF)])
def test_only_complete_moves_prove_a_fault(fault: AddBroker | Reassign, begun_by: Join | Evacuate) -> None:
    began = StepResult(begun_by, say_moves([MOVE]))
    settle = AwaitReassignment("n4", "f1", 5.0)

    def proof(probe_log: ProbeLog) -> tuple[bool, str]:
        found = fault.prove(context("n1"), probe_log)
        return found.proved, found.text

    assert proof(ProbeLog())[0] is False
    assert "no replica began to move" in proof(ProbeLog(do=[StepResult(begun_by, error="refused")]))[1]
    active = proof(ProbeLog(do=[began]))
    assert active[0] is False
    assert "moving: log-0 1,2,3 to 4,2,3" in active[1]
    whole = proof(ProbeLog(do=[began], undo=[StepResult(settle, say_settled([MOVE], [], 2.0, ""))]))
    assert whole[0] is True
    assert "1 partitions have their new replicas, all in the ISR: log-0 1,2,3 to 4,2,3" in whole[1]
    late = proof(ProbeLog(do=[began], undo=[StepResult(settle, say_settled([], [MOVE], 60.0, "ISR [2, 3]"))]))
    assert late[0] is False
    assert "taken back: log-0 1,2,3 to 4,2,3; last seen: ISR [2, 3]" in late[1]
    other = Move("log", 1, (1, 2, 3), (4, 2, 3))
    assert (
        proof(ProbeLog(do=[began], undo=[StepResult(settle, say_settled([other], [], 2.0, ""))]))[0] is False
    )


def mover(state: ClusterState) -> tuple[ReassignmentExecutor, FakeSystem]:
    system = FakeSystem(FakeFleet(), state)
    return ReassignmentExecutor(system, ("log",)), system


def test_a_broker_that_joined_gets_its_share_and_the_fault_waits_until_it_has_it() -> None:
    made, system = mover(cluster(partition(0)))
    system.plan = {("log", 0): (4, 2, 3)}
    later = threading.Timer(0.2, lambda: setattr(system, "state", four(partition(0))))
    later.start()
    assert made.join(JOIN, node("n4", 4, 14)) == say_moves([MOVE])
    assert system.moving == {("log", 0): (4, 2, 3)}
    complete = threading.Timer(0.2, system.complete_moves)
    complete.start()
    said = made.await_reassignment(AwaitReassignment("n4", "f1", 5.0))
    assert '"undone": []' in said
    assert '"after": [4, 2, 3]' in said
    assert system.cancelled == []
    assert made.await_reassignment(AwaitReassignment("n4", "f1", 5.0)).startswith(
        '{"done": [], "undone": []'
    ), "undo is idempotent"


def test_a_move_that_does_not_complete_in_time_is_taken_back() -> None:
    made, system = mover(four(partition(0)))
    made.evacuate(OFF)
    assert system.moving == {("log", 0): (1, 4, 3)}
    said = made.await_reassignment(AwaitReassignment("n2", "f1", 0.3))
    assert "log-0 replicas [1, 2, 3] ISR [1, 2, 3]" in said
    assert system.cancelled == [("log", 0)]
    assert system.moving == {}


def test_a_broker_that_never_joins_and_a_cluster_that_cannot_move_are_told() -> None:
    made, _ = mover(cluster(partition(0)))
    with pytest.raises(DeployError, match=r"node 4 did not join; live brokers: \[1, 2, 3\]"):
        made.join(Join("n4", 4, "f1", 0.0, 1.0), node("n4", 4, 14))
    with pytest.raises(DeployError, match="no replica of node 2 can move"):
        made.evacuate(OFF)


def test_a_partition_moves_again_only_when_its_last_move_was_seen_complete() -> None:
    """Or the first fault could never be proved, though its moves were complete for a while."""
    made, system = mover(four(partition(0), partition(1, 2, (2, 3, 1))))
    made.evacuate(Evacuate("n1", 1, "f1", 0.0))
    with pytest.raises(DeployError, match="moving already 2 partitions"):
        made.evacuate(Evacuate("n4", 4, "f2", 0.0))
    system.complete_moves()
    short = partition(1, 2, (2, 3, 4), isr=(2, 3))
    system.state = four(system.state.partitions[0], short)
    assert made.evacuate(Evacuate("n4", 4, "f2", 0.0)) == say_moves([Move("log", 0, (4, 2, 3), (1, 2, 3))])
    system.complete_moves()
    first, second = (made.await_reassignment(AwaitReassignment("n1", fault, 0.3)) for fault in ("f1", "f2"))
    assert '"undone": []' in first
    assert first.count('"after"') == 2
    assert '"undone": []' in second


def test_moves_off_another_node_prove_nothing() -> None:
    began = [StepResult(OFF, say_moves([MOVE]))]
    ended = [StepResult(AwaitReassignment("n4", "f1", 5.0), say_settled([MOVE], [], 2.0, ""))]
    assert Reassign().prove(context("n1"), ProbeLog(do=began, undo=ended)).proved
    other = Reassign().prove(context("n2"), ProbeLog(do=began, undo=ended))
    assert (other.proved, other.text) == (False, "not off the target: log-0 1,2,3 to 4,2,3")
