"""Carries out the step of `wrackline.nemesis.faults.processes.restarts` that goes from node to node: each is
stopped, brought to another version where that was asked for, started, and waited for until every replica is
in the ISR again."""

from __future__ import annotations

import time
from collections.abc import Sequence

from wrackline.nemesis.faults.steps import FaultError, Roll
from wrackline.systems.base import ClusterState, DeployError, Node, System, Upgradable

POLL_S = 0.2
ASK_S = 3.0


class Roller:
    def __init__(self, system: System, topics: Sequence[str]) -> None:
        self._system = system
        self._topics = tuple(topics)

    def roll(self, step: Roll, nodes: Sequence[Node]) -> str:
        """A line for each node: its host, its process before and after, how long after the start every
        replica was in the ISR, and its version before and after, ``-`` where nobody asked. Raises DeployError
        and FaultError; the nodes after the one that failed are left alone."""
        return "\n".join(self._one(step, node) for node in nodes) + "\n"

    def _one(self, step: Roll, node: Node) -> str:
        before, old = self._system.pid(node), self._version(step, node)
        self._system.stop(node, timeout_s=step.wait_s)
        if step.to is not None and isinstance(self._system, Upgradable):
            self._system.upgrade(node, step.to)
        self._system.start(node)
        began = time.monotonic()
        took_s = self._until_full_isr(node, began + step.wait_s, step.settle_s) - began
        after, new = self._system.pid(node), self._version(step, node)
        return f"{node.host.name} {before} {after} {took_s:.2f} {old} {new}"

    def _version(self, step: Roll, node: Node) -> str:
        if step.to is None:
            return "-"
        if not isinstance(self._system, Upgradable):
            raise FaultError(f"the system {self._system.name} has one version only")
        return self._system.running_version(node)

    def _until_full_isr(self, node: Node, deadline: float, settle_s: float) -> float:
        """When it became full, and has stayed so since, long enough. Raises DeployError."""
        since: float | None = None
        while True:
            try:
                lacks = self._lacks(self._system.describe(timeout_s=ASK_S), node)
            except DeployError as silent:
                lacks = str(silent)
            now = time.monotonic()
            since = None if lacks else since or now
            if since is not None and now - since >= settle_s:
                return since
            if now > deadline + settle_s:
                raise DeployError(
                    f"after the restart of {node.host.name} the ISR was not full in time: {lacks}"
                )
            time.sleep(POLL_S)

    def _lacks(self, state: ClusterState, node: Node) -> str:
        if node.is_broker and node.node_id not in state.brokers:
            return f"broker {node.node_id} is not in the cluster"
        short = [
            f"{one.topic}-{one.partition} leader {one.leader} ISR {list(one.isr)}"
            for one in state.partitions
            if one.topic in self._topics and (not one.full_isr or one.leader < 0)
        ]
        return ", ".join(short)
