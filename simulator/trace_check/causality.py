"""The facts that a node can only have heard from another one, and the line of the other one by which each
is known to be so:

- A follower fetches from its log's end, in a life (the broker epoch) and under a leader (the leader epoch).
  So a leader that knows of an end rests on the follower's log having had it then. An end that the follower
  has cut since does not count: a fetch that finds the logs to differ tells the leader nothing.
- A follower has its high watermark from a leader whose own was as high.
- A registration is of a life that has begun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from wrackline.broker.model.types import NodeId
from wrackline.simulator.trace_check.lines import COMMIT, START, Line, Step

Stay = tuple[NodeId, str, int, int]
"""Node, partition, broker epoch, leader epoch."""


class Causality:
    """The record of which lines' causes the steps that were taken have shown. A line does not wait for
    what no trace shows."""

    def __init__(self, streams: Mapping[NodeId, Sequence[Step]]) -> None:
        self._ever, self._now = Shown(forgets=False), Shown()
        for steps in streams.values():
            for step in steps:
                self._ever.take(step)

    def caused(self, step: Step, line: Line) -> bool:
        """Tells whether all that the line rests on has been taken."""
        fields = line.fields
        match line.kind:
            case "follower":
                stay = fields["id"], fields["tp"], fields["broker_epoch"], fields["leader_epoch"]
                end: int = fields["leo"]
                return end in self._now.ends[stay] or end not in self._ever.ends[stay]
            case "hwm" if fields["new"] > fields["old"] and not self._now.leads(fields["tp"], step):
                tp, new = fields["tp"], fields["new"]
                return bool(new <= self._now.highest[tp] or new > self._ever.highest[tp])
            case _ if line.kind == COMMIT and fields["record"]["type"] == "RegisterBrokerRecord":
                life = fields["record"]["incarnation_id"]
                return life in self._now.lives or life not in self._ever.lives
            case _:
                return True

    def took(self, step: Step) -> None:
        self._now.take(step)


class Shown:
    """The facts that the steps that were taken have shown."""

    def __init__(self, *, forgets: bool = True) -> None:
        """``forgets``: the ends that a log has had and was cut below since."""
        self.lives: set[str] = set()
        self.ends: dict[Stay, set[int]] = defaultdict(set)
        """Where the log has ended in each stay."""
        self.highest: dict[str, int] = defaultdict(int)
        """The highest that any leader's high watermark has been."""
        self._forgets = forgets
        self._broker_epochs: dict[NodeId, int] = defaultdict(lambda: -1)
        self._leader_epochs: dict[tuple[NodeId, str], int] = defaultdict(lambda: -1)
        self._logs: dict[NodeId, dict[str, int]] = defaultdict(dict)
        """Where each log ends."""
        self._leaders: set[tuple[NodeId, str]] = set()

    def leads(self, tp: str, step: Step) -> bool:
        """Tells whether the node leads the partition, also in the step in which it becomes the leader."""
        return (step.node, tp) in self._leaders or any(
            line.kind == "role" and line.fields["tp"] == tp and line.fields["role"] == "leader"
            for line in step.lines
        )

    def take(self, step: Step) -> None:
        node, logs = step.node, self._logs[step.node]
        for line in step.lines:
            fields = line.fields
            match line.kind:
                case _ if line.kind == START:
                    self.lives.add(step.incarnation)
                    self._leaders = {(other, tp) for other, tp in self._leaders if other != node}
                    logs.clear()
                    logs.update({tp: log["leo"] for tp, log in fields["logs"].items()})
                case "register" if fields["broker"] == node:
                    self._registered(node, fields["epoch"])
                case "registered":
                    self._registered(node, fields["created"])
                case "md_apply":
                    self._epoch(node, fields)
                case "role":
                    self._role(node, fields)
                case "create":
                    logs[fields["tp"]] = 0
                case "append":
                    self._ends_at(node, fields["tp"], fields["last"] + 1)
                case "truncate":
                    self._cut(node, fields["tp"], fields["to"])
                case "delete":
                    logs.pop(fields["tp"], None)
                    self._leaders.discard((node, fields["tp"]))
                case "hwm" if self.leads(fields["tp"], step):
                    self._raise(fields["tp"], fields["new"])
                case _:
                    pass

    def _registered(self, node: NodeId, broker_epoch: int) -> None:
        self._broker_epochs[node] = broker_epoch
        for tp, end in list(self._logs[node].items()):
            self._ends_at(node, tp, end)

    def _epoch(self, node: NodeId, fields: Mapping[str, Any]) -> None:
        tp = fields["tp"]
        self._leader_epochs[node, tp] = fields["leader_epoch"]
        self._ends_at(node, tp, self._logs[node].get(tp, 0))

    def _role(self, node: NodeId, fields: Mapping[str, Any]) -> None:
        tp = fields["tp"]
        self._leaders.discard((node, tp))
        if "leader_epoch" in fields:  # in profile zk08 who has no role names none
            self._epoch(node, fields)
        if fields["role"] == "leader":
            self._leaders.add((node, tp))
            self._raise(tp, fields["hwm"])

    def _raise(self, tp: str, high_watermark: int) -> None:
        self.highest[tp] = max(self.highest[tp], high_watermark)

    def _stay(self, node: NodeId, tp: str) -> Stay:
        return node, tp, self._broker_epochs[node], self._leader_epochs[node, tp]

    def _ends_at(self, node: NodeId, tp: str, end: int) -> None:
        self._logs[node][tp] = end
        self.ends[self._stay(node, tp)].add(end)

    def _cut(self, node: NodeId, tp: str, to: int) -> None:
        if self._forgets:
            stay = self._stay(node, tp)
            self.ends[stay] = {end for end in self.ends[stay] if end <= to}
        self._ends_at(node, tp, to)
