"""Carries out the steps of `nemesis.growth`: asks the cluster to move replicas, and sees them through.

Safe to use from several threads. One fault's moves at a time are planned and begun, so that no two plans are
about the same partition; what was begun may be under way while others begin.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from harness.systems.base import ClusterState, DeployError, Node, Place, System
from nemesis.growth import Move, moves_off, planned_moves, say_moves, say_settled
from nemesis.steps import FaultError, Join, MoveOff, Settle

POLL_S = 0.1
ASK_S = 3.0
CANCEL_S = 20.0


class Mover:
    def __init__(self, system: System, topics: Sequence[str]) -> None:
        self._system = system
        self._topics = tuple(topics)
        self._planning = threading.Lock()
        self._moves: dict[str, tuple[Move, ...]] = {}
        """By fault."""

    def join(self, step: Join, node: Node) -> str:
        """Waits until the broker is in the cluster, then gives it its share of every topic. Raises DeployError."""
        deadline = time.monotonic() + step.join_s
        while True:
            state = self._describe()
            if state is not None and node.node_id in state.brokers:
                break
            self._wait_or_give_up(deadline, f"node {node.node_id} did not join", state)
        with self._planning:
            self._wait_until_still(step.plan_s)
            plan: dict[Place, tuple[int, ...]] = {}
            for topic in self._topics:
                plan |= self._system.growth_plan(node, topic, timeout_s=step.plan_s)
            return self._begin(step.fault_id, planned_moves(self._known(step.plan_s), plan), step.plan_s)

    def move_off(self, step: MoveOff) -> str:
        """Raises DeployError, or FaultError when nothing can move."""
        with self._planning:
            deadline = time.monotonic() + step.wait_s
            while True:
                state = self._known(step.wait_s)
                busy = self._system.reassignments(timeout_s=step.wait_s)
                try:
                    moves = moves_off(state, step.node_id, self._topics, busy)
                    break
                except FaultError as nothing:  # a broker may come back, a move end
                    self._wait_or_give_up(deadline, str(nothing), state)
            return self._begin(step.fault_id, moves, step.wait_s)

    def settle(self, step: Settle) -> str:
        """Waits for the moves of a fault; takes back those that are not complete in time. Does not raise for a
        cluster that is silent until then: that is what the wait is for."""
        began = time.monotonic()
        waiting = list(self._moves.pop(step.fault_id, ()))
        done: list[Move] = []
        last = "no answer"
        while waiting and time.monotonic() - began < step.wait_s:
            try:
                under_way = self._system.reassignments(timeout_s=ASK_S)
                state = self._system.describe(timeout_s=ASK_S)
            except DeployError as silent:
                last = str(silent)
            else:
                done += [move for move in waiting if move.is_done(state, under_way)]
                waiting = [move for move in waiting if move not in done]
                last = "; ".join(_seen(state, move) for move in waiting)
            if waiting:
                time.sleep(POLL_S)
        if waiting:
            self._system.reassign(dict.fromkeys(move.place for move in waiting), timeout_s=CANCEL_S)
        return say_settled(done, waiting, time.monotonic() - began, last)

    # --- helpers ------------------------------------------------------------------------------------------

    def _begin(self, fault_id: str, moves: tuple[Move, ...], timeout_s: float) -> str:
        # Noted first: an answer that was lost does not mean that nothing began.
        self._moves[fault_id] = moves
        self._system.reassign({move.place: move.after for move in moves}, timeout_s=timeout_s)
        return say_moves(moves)

    def _describe(self) -> ClusterState | None:
        try:
            return self._system.describe(timeout_s=ASK_S)
        except DeployError:
            return None

    def _known(self, timeout_s: float) -> ClusterState:
        deadline = time.monotonic() + timeout_s
        while (state := self._describe()) is None:
            self._wait_or_give_up(deadline, "no broker describes the cluster", None)
        return state

    def _wait_until_still(self, timeout_s: float) -> None:
        """The planner counts replicas that are on their way as if they stayed."""
        deadline = time.monotonic() + timeout_s
        while busy := self._system.reassignments(timeout_s=timeout_s):
            self._wait_or_give_up(deadline, f"{len(busy)} partitions are moving already", None)

    @staticmethod
    def _wait_or_give_up(deadline: float, what: str, state: ClusterState | None) -> None:
        if time.monotonic() > deadline:
            seen = f"; live brokers: {list(state.brokers)}" if state else ""
            raise DeployError(f"{what}{seen}")
        time.sleep(POLL_S)


def _seen(state: ClusterState, move: Move) -> str:
    found = state.partition(*move.place)
    if found is None:
        return f"{move.topic}-{move.partition} unknown"
    return f"{move.topic}-{move.partition} replicas {list(found.replicas)} ISR {list(found.isr)}"
