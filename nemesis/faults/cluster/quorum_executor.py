"""Carries out the steps of `wrackline.nemesis.faults.cluster.quorum`: a controller joins the quorum, leaves
it, or gets an empty disk. Safe to use from several threads."""

from __future__ import annotations

import time
from collections.abc import Callable

from wrackline.nemesis.faults.admin_steps import DescribeQuorum, JoinQuorum, LeaveQuorum, RenewDisk
from wrackline.nemesis.faults.cluster.quorum_state import say_quorum, say_transition
from wrackline.nemesis.faults.steps import FaultError
from wrackline.systems.base import DeployError, Node, Quorum, System, Voting

ASK_S = 10.0
LOOK_S = 15.0
"""How long the quorum may take to describe itself: it may be electing."""
POLL_S = 0.2


class QuorumExecutor:
    def __init__(self, system: System) -> None:
        self._system = system

    def carry_out(self, step: DescribeQuorum | JoinQuorum | LeaveQuorum | RenewDisk) -> str:
        """Carries out the step and returns its output. Raises FaultError or DeployError when it cannot be
        done."""
        system = self._system
        if not isinstance(system, Voting):
            raise FaultError(f"the controllers of {system.name} are the same from beginning to end")
        if isinstance(step, DescribeQuorum):
            return say_quorum(system.quorum(timeout_s=LOOK_S))
        [node] = [one for one in system.nodes if one.node_id == step.node_id]
        match step:
            case JoinQuorum():
                return self._change(system, lambda now: self._join(system, node, now), step.wait_s)
            case LeaveQuorum():
                return self._change(system, lambda now: self._leave(system, node, now), step.wait_s)
            case RenewDisk():
                if system.is_running(node):
                    raise FaultError(f"node {node.node_id} runs: its disk stays as it is")
                system.renew_disk(node)
                return str(system.voter_on(node))

    @staticmethod
    def _join(system: Voting, node: Node, now: Quorum) -> bool:
        """Takes the next step until the voter with the node's id is the one on its disk. Two voters cannot
        have one id, so an earlier one goes first. Returns whether nothing is left to do."""
        voter = now.voter(node.node_id)
        if voter == system.voter_on(node):
            return True
        if system.joins_by_itself:
            raise DeployError(f"node {node.node_id} has not joined by itself yet")
        if voter is None:
            system.add_voter(node, timeout_s=ASK_S)
        else:
            system.remove_voter(voter, timeout_s=ASK_S)
        return False

    @staticmethod
    def _leave(system: Voting, node: Node, now: Quorum) -> bool:
        voter = now.voter(node.node_id)
        if voter is not None:
            system.remove_voter(voter, timeout_s=ASK_S)
        return voter is None

    @staticmethod
    def _change(system: Voting, advance: Callable[[Quorum], bool], wait_s: float) -> str:
        """Asks again while the quorum refuses, and until its own report shows the change. Raises
        DeployError with what it said last."""
        deadline = time.monotonic() + wait_s
        before: Quorum | None = None
        while True:
            last = "its report does not show the change yet"
            try:
                now = system.quorum(timeout_s=ASK_S)
                before = before or now
                if advance(now):
                    return say_transition(before, now)
            except DeployError as refusal:
                last = str(refusal)
            if time.monotonic() > deadline:
                raise DeployError(f"the quorum did not change within {wait_s:g} s; last seen: {last}")
            time.sleep(POLL_S)
