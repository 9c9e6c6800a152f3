"""Carries out the steps of `wrackline.nemesis.faults.cluster.growth`: asks the cluster to move replicas, and
waits for the moves.

Safe to use from several threads. One fault's moves at a time are planned and begun, and a partition moves
again only when its last move was seen complete: another fault's proof must not be overwritten. What was begun
may be under way while others begin.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from wrackline.nemesis.faults.cluster.growth import Move, moves_off, planned_moves, say_moves, say_settled
from wrackline.nemesis.faults.steps import AssignReplicas, AwaitReassignment, Evacuate, FaultError, Join
from wrackline.systems.base import ClusterState, DeployError, Node, Place, System

POLL_S = 0.1
ASK_S = 3.0
CANCEL_S = 20.0


class ReassignmentExecutor:
    def __init__(self, system: System, topics: Sequence[str]) -> None:
        self._system = system
        self._topics = tuple(topics)
        self._planning = threading.Lock()
        self._mutex = threading.Lock()
        self._waiting: dict[str, list[Move]] = {}
        """Moves by fault, not seen complete yet."""
        self._done: dict[str, list[Move]] = {}

    def join(self, step: Join, node: Node) -> str:
        """Waits until the broker is in the cluster, then gives it its share of every topic. Raises
        DeployError."""
        self._joined(node.node_id, step.join_s)
        with self._planning:
            state = self._still(step.plan_s)
            plan: dict[Place, tuple[int, ...]] = {}
            for topic in self._topics:
                plan |= self._system.growth_plan(node, topic, timeout_s=step.plan_s)
            return self._begin(step.fault_id, planned_moves(state, plan), step.plan_s)

    def assign_replicas(self, step: AssignReplicas, node: Node) -> str:
        """Starts the spare ``node``, waits until it is in the cluster, and moves to it every replica of the
        other. Raises DeployError."""
        self._system.start(node)
        self._joined(node.node_id, step.join_s)
        with self._planning:
            state = self._still(step.plan_s)
            plan = {
                (one.topic, one.partition): tuple(
                    step.by_node if replica == step.node_id else replica for replica in one.replicas
                )
                for one in state.partitions
                if one.topic in self._topics and step.node_id in one.replicas
            }
            if not plan:
                raise DeployError(f"node {step.node_id} has no replica of {', '.join(self._topics)}")
            return self._begin(step.fault_id, planned_moves(state, plan), step.plan_s)

    def evacuate(self, step: Evacuate) -> str:
        """Raises DeployError when it cannot be done in time."""
        deadline = time.monotonic() + step.wait_s
        with self._planning:
            while True:
                seen = self._look()
                state = seen[0] if seen else None
                try:
                    if seen is None:
                        raise FaultError("no broker describes the cluster")
                    moves = moves_off(seen[0], step.node_id, self._topics, seen[1])
                    break
                except FaultError as nothing:  # a broker may come back, a move end
                    self._wait_or_give_up(deadline, str(nothing), state)
            return self._begin(step.fault_id, moves, step.wait_s)

    def await_reassignment(self, step: AwaitReassignment) -> str:
        """Waits for the moves of a fault; takes back those that are not complete in time. Does not raise for
        a cluster that is silent until then: that is what the wait is for."""
        began = time.monotonic()
        last = "no answer"
        while (waiting := self._of(step.fault_id)) and time.monotonic() - began < step.wait_s:
            seen = self._look()
            if seen is not None:
                waiting = self._of(step.fault_id)
                last = "; ".join(_seen(seen[0], move) for move in waiting)
            if waiting:
                time.sleep(POLL_S)
        if waiting:
            self._system.reassign(dict.fromkeys(move.place for move in waiting), timeout_s=CANCEL_S)
            if step.must:
                raise DeployError(f"not complete within {step.wait_s:g} s, taken back: {last}")
        with self._mutex:
            self._waiting.pop(step.fault_id, None)
            done = self._done.pop(step.fault_id, [])
        return say_settled(done, waiting, time.monotonic() - began, last)

    def _joined(self, node_id: int, join_s: float) -> None:
        """Waits until the broker is in the cluster. Raises DeployError."""
        deadline = time.monotonic() + join_s
        while (state := self._describe()) is None or node_id not in state.brokers:
            self._wait_or_give_up(deadline, f"node {node_id} did not join", state)

    # --- helpers ------------------------------------------------------------------------------------------

    def _begin(self, fault_id: str, moves: tuple[Move, ...], timeout_s: float) -> str:
        with self._mutex:  # first: an answer that was lost does not mean that nothing began
            self._waiting[fault_id] = list(moves)
        self._system.reassign({move.place: move.after for move in moves}, timeout_s=timeout_s)
        return say_moves(moves)

    def _of(self, fault_id: str) -> list[Move]:
        with self._mutex:
            return list(self._waiting.get(fault_id, ()))

    def _look(self) -> tuple[ClusterState, frozenset[Place]] | None:
        """The cluster, and the partitions that may not be moved now; notes which moves are complete. None:
        silence."""
        try:
            under_way = self._system.reassignments(timeout_s=ASK_S)
            state = self._system.describe(timeout_s=ASK_S)
        except DeployError:
            return None
        with self._mutex:
            for fault_id, moves in self._waiting.items():
                done = [move for move in moves if move.is_done(state, under_way)]
                self._done.setdefault(fault_id, []).extend(done)
                self._waiting[fault_id] = [move for move in moves if move not in done]
            return state, under_way | {move.place for moves in self._waiting.values() for move in moves}

    def _describe(self) -> ClusterState | None:
        try:
            return self._system.describe(timeout_s=ASK_S)
        except DeployError:
            return None

    def _still(self, timeout_s: float) -> ClusterState:
        """When nothing moves: the planner counts replicas that are on their way as if they stayed."""
        deadline = time.monotonic() + timeout_s
        while (seen := self._look()) is None or seen[1]:
            what = f"{len(seen[1])} partitions are moving already" if seen else "no broker answers"
            self._wait_or_give_up(deadline, what, None)
        return seen[0]

    @staticmethod
    def _wait_or_give_up(deadline: float, what: str, state: ClusterState | None) -> None:
        if time.monotonic() > deadline:
            seen = f"; live brokers: {list(state.brokers)}" if state else ""
            raise DeployError(f"{what}{seen}")
        time.sleep(POLL_S)


def _seen(state: ClusterState, move: Move) -> str:
    result = state.partition(*move.place)
    if result is None:
        return f"{move.topic}-{move.partition} unknown"
    return f"{move.topic}-{move.partition} replicas {list(result.replicas)} ISR {list(result.isr)}"
