"""Faults that change who holds what: a broker joins the running cluster, replicas move to other brokers.

Nothing breaks by them. They are faults since a cluster must keep its promises while they happen, and while
others happen beside them. Proved by the cluster's own metadata: the new replicas are in place, all of them in
the ISR.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from wrackline.nemesis.faults.outputs import output_of
from wrackline.nemesis.faults.spec import TO_MOVE, Role, UnprivilegedSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    AwaitReassignment,
    ClusterFault,
    Commands,
    Evacuate,
    FaultContext,
    FaultError,
    Join,
    ProbeLog,
    Proof,
    StartNode,
    StepResult,
)
from wrackline.nemesis.targets.words import SPARE
from wrackline.systems.base import ClusterState, Place

JOIN_S = 30.0
PLAN_S = 30.0
SETTLE_S = 60.0
"""How long a fault waits at its end until its moves are complete; then it takes them back."""


@dataclass(frozen=True, slots=True)
class Move:
    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    def is_done(self, state: ClusterState, under_way: Collection[Place]) -> bool:
        """Tells whether the partition's replicas are the new ones, and all in the ISR."""
        result = state.partition(*self.place)
        return (
            result is not None
            and self.place not in under_way
            and result.replicas == self.after
            and set(result.isr) >= set(self.after)
        )

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} {_ids(self.before)} to {_ids(self.after)}"


def _ids(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))


def planned_moves(state: ClusterState, plan: Mapping[Place, tuple[int, ...]]) -> tuple[Move, ...]:
    """A plan's target replicas beside what there is now. Raises FaultError for a partition nobody knows."""
    moves = []
    for place, after in sorted(plan.items()):
        result = state.partition(*place)
        if result is None:
            raise FaultError(f"the cluster knows no partition {place[0]}-{place[1]}")
        moves.append(Move(*place, result.replicas, after))
    return tuple(moves)


def moves_off(
    state: ClusterState, node_id: int, topics: Collection[str], busy: Collection[Place]
) -> tuple[Move, ...]:
    """Each replica the node holds of these topics goes to the live broker with the fewest that has none of
    the partition; its place in the order of replicas goes with it. Partitions in ``busy`` are moving already.

    Raises FaultError when nothing can be moved.
    """
    load = Counter(dict.fromkeys(state.brokers, 0))
    load.update(node for partition in state.partitions for node in partition.replicas)
    moves = []
    for partition in sorted(state.partitions, key=lambda one: (one.topic, one.partition)):
        place = partition.topic, partition.partition
        if partition.topic not in topics or node_id not in partition.replicas or place in busy:
            continue
        others = [one for one in state.brokers if one not in partition.replicas]
        if not others:
            continue
        to = min(others, key=lambda one: (load[one], one))
        load[to] += 1
        load[node_id] -= 1
        after = tuple(to if one == node_id else one for one in partition.replicas)
        moves.append(Move(*place, partition.replicas, after))
    if not moves:
        raise FaultError(
            f"no replica of node {node_id} can move: live are brokers {_ids(state.brokers)}, "
            f"moving already {len(busy)} partitions"
        )
    return tuple(moves)


# --- what steps say, and how it is read again ---------------------------------------------------------------


def say_moves(moves: Sequence[Move]) -> str:
    return json.dumps([asdict(move) for move in moves])


def say_settled(done: Sequence[Move], undone: Sequence[Move], seconds: float, last: str) -> str:
    return json.dumps(
        {
            "done": [asdict(move) for move in done],
            "undone": [asdict(move) for move in undone],
            "seconds": round(seconds, 3),
            "last": last,
        }
    )


def _read_moves(listed: Sequence[Mapping[str, Any]]) -> tuple[Move, ...]:
    return tuple(
        Move(one["topic"], one["partition"], tuple(one["before"]), tuple(one["after"])) for one in listed
    )


def _output(steps: Sequence[StepResult], kind: type[Step]) -> Any:
    """The output of the first step of this kind; None when there is none."""
    return json.loads(output_of(steps, kind) or "null")


def moves_said(steps: Sequence[StepResult], begun_by: type[Step]) -> str | None:
    """The moves that a step began, for people; None when none began."""
    begun = _output(steps, begun_by)
    return None if begun is None else "; ".join(map(str, _read_moves(begun)))


def _prove_moves(probe_log: ProbeLog, begun_by: type[Step]) -> Proof:
    begun = _output(probe_log.do, begun_by)
    if begun is None:
        return Proof(False, "no replica began to move")
    moves = _read_moves(begun)
    settled = _output(probe_log.undo, AwaitReassignment)
    if settled is None:
        return Proof(False, "moving: " + "; ".join(map(str, moves)))
    if settled["undone"]:
        late = "; ".join(map(str, _read_moves(settled["undone"])))
        return Proof(False, f"not complete, taken back: {late}; last seen: {settled['last']}")
    done = _read_moves(settled["done"])
    if set(done) != set(moves):
        return Proof(False, f"{len(moves)} moves began, {len(done)} were seen complete")
    listed = "; ".join(map(str, moves))
    return Proof(True, f"{len(moves)} partitions have their new replicas, all in the ISR: {listed}")


@dataclass(frozen=True, slots=True)
class AddBroker:
    """A spare broker is started, joins, and gets its share of the replicas. On undo it stays: undone is only
    the wait, and what is not complete in time is taken back."""

    name: ClassVar[str] = "add-broker"
    holds_node: ClassVar[bool] = False

    settle_s: float = SETTLE_S

    def commands(self, context: FaultContext) -> Commands:
        if len(context.targets) != 1:
            raise FaultError(f"{self.name}: one broker joins at a time, not {len(context.targets)}")
        [one] = context.targets
        if one.pid is not None:
            raise FaultError(f"{self.name}: node {one.node_id} on {one.host} runs already")
        return Commands(
            do=(
                StartNode(one.host, one.node_id),
                Join(one.host, one.node_id, context.fault_id, JOIN_S, PLAN_S),
            ),
            undo=(AwaitReassignment(one.host, context.fault_id, self.settle_s),),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        proof = _prove_moves(probe_log, Join)
        joined = ", ".join(f"node {one.node_id} on {one.host}" for one in context.targets)
        return Proof(
            proof.proved, f"{joined} joined; {proof.text}" if _output(probe_log.do, Join) else proof.text
        )


@dataclass(frozen=True, slots=True)
class Reassign(ClusterFault):
    """The replicas of the target move to brokers that have none of the partition. Undo waits until they are
    complete, and takes back what is not in time."""

    name: ClassVar[str] = "reassign"
    holds_node: ClassVar[bool] = False

    settle_s: float = SETTLE_S

    def commands(self, context: FaultContext) -> Commands:
        if len(context.targets) != 1:
            raise FaultError(
                f"{self.name}: the replicas of one host move at a time, not of {len(context.targets)}"
            )
        [one] = context.targets
        return Commands(
            do=(Evacuate(one.host, one.node_id, context.fault_id, PLAN_S),),
            undo=(AwaitReassignment(one.host, context.fault_id, self.settle_s),),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        proof = _prove_moves(probe_log, Evacuate)
        left = {one.node_id for one in context.targets}
        begun = _output(probe_log.do, Evacuate)
        strange = [move for move in _read_moves(begun or ()) if not left & ({*move.before} - {*move.after})]
        if strange:
            return Proof(False, f"not off the target: {'; '.join(map(str, strange))}")
        return proof


class AddBrokerSpec(UnprivilegedSpec):
    """Settings of the fault ``add-broker``."""

    makes = AddBroker
    fault: Literal["add-broker"]
    """A broker on a spare host joins."""
    target: Role = SPARE
    """The target is a spare host."""


class ReassignSpec(UnprivilegedSpec):
    """Settings of the fault ``reassign``."""

    makes = Reassign
    acls = TO_MOVE
    fault: Literal["reassign"]
    """The target's replicas move to other brokers."""
