"""A fault of brokers with several log directories (JBOD): replicas move from one directory to another.

Nothing breaks by it, and a cluster must keep its promises meanwhile: the broker copies each log into a
*future* log in the other directory, which replaces the current one when it has caught up (KIP-113).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import admin_steps as steps
from wrackline.nemesis.faults.outputs import carried_out, output_of
from wrackline.nemesis.faults.spec import UnprivilegedSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import Commands, FaultContext, FaultError, ProbeLog, Proof, StepResult
from wrackline.systems.base import DeployError, LogDir, LogDirectories, Node, Place, System
from wrackline.systems.spec import SystemSpec

MOVED_S = 90.0
"""How long the undo waits until the moves are complete, and again until the logs are back."""
ASK_S = 10.0
POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class MoveReplica:
    """The replicas of the run's topics on the targets move to their broker's next log directory; on undo,
    once they are there, back.

    Proved when the broker itself (DescribeLogDirs) has all that moved in the other directory at the end of
    the fault, and no future log of them; restored when they are in the former one.
    """

    name: ClassVar[str] = "move-replica"
    holds_node: ClassVar[bool] = False

    def commands(self, context: FaultContext) -> Commands:
        aimed, fault_id = context.targets, context.fault_id
        look = tuple(steps.DescribeReplicaDirs(one.host, one.node_id) for one in aimed)
        return Commands(
            do=tuple(steps.MoveReplicas(one.host, one.node_id, fault_id) for one in aimed),
            undo=tuple(
                step
                for one in aimed
                for step in (
                    steps.AwaitReplicaMoves(one.host, one.node_id, fault_id, MOVED_S),
                    steps.ReturnReplicas(one.host, one.node_id, fault_id, MOVED_S),
                )
            ),
            probe=look,
            control=look,
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        texts = []
        for one in context.targets:
            moves = _moves(probe_log.do, one.host)
            if not moves:
                return Proof(False, f"{one.host}: no replica began to move")
            names = ", ".join(f"{name} {before} to {after}" for name, (before, after) in moves.items())
            if not (probe_log.final or probe_log.undo):
                texts.append(f"{one.host}: {names}")
                continue
            there = _places(probe_log.undo, steps.AwaitReplicaMoves, one.host)
            late = [name for name, (_, after) in moves.items() if there.get(name) != [after]]
            if late:
                places = ", ".join(f"{name} in {' and '.join(there.get(name, ['no']))}" for name in late)
                return Proof(False, f"{one.host}: not complete: {places}; begun were {names}")
            texts.append(f"{one.host}: {names}, complete by its own word")
        if probe_log.undo and (flaw := self.residue(context, probe_log)):
            return Proof(False, f"{'; '.join(texts)}; {flaw}")
        return Proof(True, "; ".join(texts))

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        """Replicas that the broker has no more, since others moved them, are in no former directory."""
        misplaced = []
        for one in context.targets:
            now = _places(probe_log.control, steps.DescribeReplicaDirs, one.host)
            for name, (before, _) in _moves(probe_log.do, one.host).items():
                if now.get(name, [before]) != [before]:
                    misplaced.append(f"{one.host}: {name} is in {' and '.join(now[name])}, not in {before}")
        return "; ".join(misplaced)


def _moves(dones: Sequence[StepResult], host: str) -> dict[str, tuple[str, str]]:
    """Partition -> the log directory before and after, of the moves that were begun."""
    output = output_of([done for done in dones if done.step.host == host], steps.MoveReplicas)
    return {name: (before, after) for name, (before, after) in json.loads(output or "{}").items()}


def _places(dones: Sequence[StepResult], kind: type[Step], host: str) -> Mapping[str, list[str]]:
    """Partition -> its log directories, by the last step of a kind that was carried out."""
    outputs = [done.output for done in carried_out(dones, kind) if done.step.host == host]
    result: Mapping[str, list[str]] = json.loads(outputs[-1]) if outputs else {}
    return result


class MoveReplicaSpec(UnprivilegedSpec):
    """Settings of the fault ``move-replica``."""

    makes = MoveReplica
    fault: Literal["move-replica"]
    """The target's replicas of the run's topics move to its next log directory, and back."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if (why := super().refusal(fleet, system)) is not None:
            return why
        if fleet.disks < 2:
            return "move-replica needs brokers with several log directories: say how many in fleet.disks"
        return None


# --- carrying out -------------------------------------------------------------------------------------------


class LogDirExecutor:
    """Carries out the steps of `MoveReplica`. Safe to use from several threads."""

    def __init__(self, system: System, topics: Sequence[str]) -> None:
        self._system = system
        self._topics = frozenset(topics)
        self._nodes = {node.node_id: node for node in system.nodes}
        self._mutex = threading.Lock()
        self._begun: dict[tuple[str, int], dict[Place, tuple[str, str]]] = {}
        """By fault and node: the log directory before and after of each move."""

    def carry_out(self, step: steps.OfNode) -> str:
        """Carries out the step and returns its output. Raises FaultError or DeployError."""
        node = self._nodes[step.node_id]
        match step:
            case steps.MoveReplicas(fault_id=fault_id):
                return self._move(node, fault_id)
            case steps.AwaitReplicaMoves(fault_id=fault_id, wait_s=wait_s):
                moves = self._of(node, fault_id)
                return _say(self._wait(node, {place: after for place, (_, after) in moves.items()}, wait_s))
            case steps.ReturnReplicas(fault_id=fault_id, wait_s=wait_s):
                return self._return(node, fault_id, wait_s)
        return _say(self._placed(self._dirs(node)))

    def _move(self, node: Node, fault_id: str) -> str:
        dirs = self._dirs(node)
        alive = [one.path for one in dirs if not one.has_failed]
        if len(alive) < 2:
            raise FaultError(f"{node.host.name} has one log directory that works: {', '.join(alive)}")
        moves: dict[Place, tuple[str, str]] = {}
        for place, paths in self._placed(dirs).items():
            if len(paths) == 1:  # else it moves already
                moves[place] = paths[0], alive[(alive.index(paths[0]) + 1) % len(alive)]
        if not moves:
            raise FaultError(f"{node.host.name} has no replica that could move")
        with self._mutex:  # first: an answer that was lost does not mean that nothing began
            self._begun[fault_id, node.node_id] = moves
        self._ask.move_logs(node, {place: after for place, (_, after) in moves.items()}, timeout_s=ASK_S)
        return json.dumps({f"{topic}-{number}": move for (topic, number), move in moves.items()})

    def _return(self, node: Node, fault_id: str, wait_s: float) -> str:
        before = {place: path for place, (path, _) in self._of(node, fault_id).items()}
        self._wait(node, before, wait_s, again=True)
        return _say(self._placed(self._dirs(node)))

    def _wait(
        self, node: Node, targets: Mapping[Place, str], wait_s: float, *, again: bool = False
    ) -> dict[Place, list[str]]:
        """Waits until the logs are in these directories and nowhere else. ``again``: they are asked to move
        there meanwhile. Returns where they were seen last. Raises DeployError for a broker that never
        answered."""
        deadline = time.monotonic() + wait_s
        placed: dict[Place, list[str]] | None = None
        while True:
            try:
                placed = self._placed(self._dirs(node))
                waiting = {place: to for place, to in targets.items() if placed.get(place, [to]) != [to]}
                if not waiting:
                    return placed
                if again:
                    self._ask.move_logs(node, waiting, timeout_s=ASK_S)
            except DeployError:  # it is down, or its disk is gone: it may come back
                if placed is None and time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                return placed or {}
            time.sleep(POLL_S)

    def _placed(self, dirs: Sequence[LogDir]) -> dict[Place, list[str]]:
        """Each partition of the run's topics -> the log directories that have it, the current one first."""
        logs = [(log, one.path) for one in dirs for log in one.logs if log.place[0] in self._topics]
        result: dict[Place, list[str]] = {}
        for log, path in sorted(logs, key=lambda one: (one[0].place, one[0].is_future)):
            result.setdefault(log.place, []).append(path)
        return result

    def _dirs(self, node: Node) -> Sequence[LogDir]:
        return self._ask.log_dirs(node, timeout_s=ASK_S)

    def _of(self, node: Node, fault_id: str) -> dict[Place, tuple[str, str]]:
        with self._mutex:
            return self._begun.get((fault_id, node.node_id), {})

    @property
    def _ask(self) -> LogDirectories:
        if not isinstance(self._system, LogDirectories):
            raise FaultError(f"{self._system.name} cannot be asked for its log directories")
        return self._system


def _say(placed: Mapping[Place, Any]) -> str:
    return json.dumps({f"{topic}-{number}": paths for (topic, number), paths in placed.items()})
