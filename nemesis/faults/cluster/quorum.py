"""Faults that change who votes in the controller quorum (KIP-853): a controller joins, leaves, or comes back
with an empty disk as another voter.

Proved by the quorum's own report, which names each voter by its id and by the id of its disk's folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults.admin_steps import DescribeQuorum, JoinQuorum, LeaveQuorum, RenewDisk
from wrackline.nemesis.faults.cluster.quorum_state import members, read_quorum, read_transition
from wrackline.nemesis.faults.outputs import output_of
from wrackline.nemesis.faults.spec import Role, UnprivilegedSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    FaultError,
    KillNode,
    ProbeLog,
    Proof,
    StartNode,
    StopNode,
    Target,
)
from wrackline.nemesis.targets.words import SPARE_CONTROLLER
from wrackline.systems.base import Voter
from wrackline.systems.spec import SystemSpec

CHANGE_S = 60.0
"""So long the quorum is asked again: it changes one voter at a time, and not while it elects."""


def _one(name: str, context: FaultContext) -> Target:
    if len(context.targets) != 1:
        raise FaultError(f"{name}: one controller at a time, not {len(context.targets)}")
    [one] = context.targets
    if one.is_broker and one.controller_port is None:
        raise FaultError(f"{name}: node {one.node_id} on {one.host} is no controller")
    return one


def _flaw(probe_log: ProbeLog, expected: Voter | None, node_id: int) -> str:
    """Returns where the quorum's report differs from what it should say of a node while the fault is in
    force; empty where it does not. ``expected``: None for no voter."""
    for when, probe in probe_log.ends:
        quorum = read_quorum(probe)
        if quorum is None:
            return f"{when} nobody described the quorum"
        if quorum.voter(node_id) != expected:
            return f"{when} the voters were {members(quorum.voters)}"
    return "" if probe_log.ends else "nobody described the quorum"


def _not_a_voter(context: FaultContext, probe_log: ProbeLog) -> str:
    """Returns what the quorum said after the undo where the target is no voter then."""
    [one] = context.targets
    quorum = read_quorum(probe_log.control)
    if quorum is None:
        return f"node {one.node_id}: nobody described the quorum after the undo"
    if quorum.voter(one.node_id) is None:
        return f"node {one.node_id} is no voter after the undo: {members(quorum.voters)}"
    return ""


@dataclass(frozen=True, slots=True)
class AddController:
    """A spare controller is started, and becomes a voter once it has caught up. It stays.

    Proved when the quorum names it, with its directory, at the beginning and at the end."""

    name: ClassVar[str] = "add-controller"
    holds_node: ClassVar[bool] = False

    def commands(self, context: FaultContext) -> Commands:
        one = _one(self.name, context)
        if one.pid is not None:
            raise FaultError(f"{self.name}: node {one.node_id} on {one.host} runs already")
        return Commands(
            do=(StartNode(one.host, one.node_id), JoinQuorum(one.host, one.node_id, CHANGE_S)),
            undo=(),
            probe=(DescribeQuorum(one.host),),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        [one] = context.targets
        change = read_transition(probe_log.do, JoinQuorum)
        if change is None or (voter := change.after.voter(one.node_id)) is None:
            return Proof(False, f"node {one.node_id} on {one.host} did not become a voter")
        if change.before.voter(one.node_id) is not None:
            return Proof(False, f"{voter} was a voter before")
        if flaw := _flaw(probe_log, voter, one.node_id):
            return Proof(False, flaw)
        return Proof(True, f"{voter} on {one.host} became a voter: {change}")


@dataclass(frozen=True, slots=True)
class RemoveController:
    """A controller leaves the quorum, and is stopped ``first``, ``last`` or ``never``; on undo it runs and is
    a voter again.

    Proved when the quorum named it before, and neither at the beginning nor at the end."""

    name: ClassVar[str] = "remove-controller"
    holds_node: ClassVar[bool] = True

    stop: Literal["first", "last", "never"] = "last"

    def commands(self, context: FaultContext) -> Commands:
        one = _one(self.name, context)
        one.running(self.name)
        leave: Step = LeaveQuorum(one.host, one.node_id, CHANGE_S)
        end = StopNode(one.host, one.node_id)
        look = DescribeQuorum(one.host)
        return Commands(
            do={"first": (end, leave), "last": (leave, end), "never": (leave,)}[self.stop],
            undo=(StartNode(one.host, one.node_id), JoinQuorum(one.host, one.node_id, CHANGE_S)),
            probe=(look,),
            control=(look,),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        [one] = context.targets
        change = read_transition(probe_log.do, LeaveQuorum)
        if change is None:
            return Proof(False, f"node {one.node_id} on {one.host} did not leave the quorum")
        if (voter := change.before.voter(one.node_id)) is None:
            return Proof(False, f"node {one.node_id} on {one.host} was no voter before")
        if flaw := _flaw(probe_log, None, one.node_id):
            return Proof(False, flaw)
        led = f", which led in epoch {change.before.epoch}," if change.before.leader == one.node_id else ""
        return Proof(True, f"{voter} on {one.host}{led} left the quorum: {change}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return _not_a_voter(context, probe_log)


@dataclass(frozen=True, slots=True)
class ReplaceController:
    """A controller is killed and comes back with an empty disk, whose folder has another id: the old voter is
    removed, since two cannot have one id, and the new one added. It stays.

    Proved when the quorum named the old directory before, and the new one at the beginning and at the end."""

    name: ClassVar[str] = "replace-controller"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        one = _one(self.name, context)
        one.running(self.name)
        if one.is_broker:
            raise FaultError(
                f"{self.name}: {one.host} has a broker, too, whose replicas lie on the same disk"
            )
        start = StartNode(one.host, one.node_id)
        join = JoinQuorum(one.host, one.node_id, CHANGE_S)
        look = DescribeQuorum(one.host)
        return Commands(
            do=(KillNode(one.host, one.node_id), RenewDisk(one.host, one.node_id), start, join),
            undo=(start, join),
            probe=(look,),
            control=(look,),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        [one] = context.targets
        change = read_transition(probe_log.do, JoinQuorum)
        if output_of(probe_log.do, RenewDisk) is None or change is None:
            return Proof(False, f"node {one.node_id} on {one.host} did not come back with an empty disk")
        old, new = change.before.voter(one.node_id), change.after.voter(one.node_id)
        if old is None or new is None or old == new:
            return Proof(False, f"the voters did not change: {change}")
        if flaw := _flaw(probe_log, new, one.node_id):
            return Proof(False, flaw)
        return Proof(True, f"{old} on {one.host} was replaced by {new}: {change}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return _not_a_voter(context, probe_log)


class _QuorumSpec(UnprivilegedSpec):
    """The settings of a fault that changes who votes."""

    @property
    def begins_s(self) -> float:
        return CHANGE_S

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if why := system.without_voters():
            return f"{self.fault}: {why}"
        return super().refusal(fleet, system)


class AddControllerSpec(_QuorumSpec):
    """Settings of the fault ``add-controller``."""

    makes = AddController
    fault: Literal["add-controller"]
    """A controller on a spare host joins the quorum."""
    target: Role = SPARE_CONTROLLER
    """The target is a spare controller."""


class RemoveControllerSpec(_QuorumSpec):
    """Settings of the fault ``remove-controller``."""

    makes = RemoveController
    fault: Literal["remove-controller"]
    """A controller leaves the quorum; at the end it is a voter again."""
    target: Role = "controller"
    """Which controller: the active one, where nothing is said."""
    stop: Literal["first", "last", "never"] = "last"
    """Whether it is stopped before it leaves, afterwards, or goes on as an observer."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if why := super().refusal(fleet, system):
            return why
        if fleet.controllers + fleet.spare_controllers == 1:
            return "remove-controller: there is one controller only, and a quorum needs a voter"
        return None


class ReplaceControllerSpec(_QuorumSpec):
    """Settings of the fault ``replace-controller``."""

    makes = ReplaceController
    fault: Literal["replace-controller"]
    """A controller comes back with an empty disk, as another voter."""
    target: Role = "follower-controller"
    """Which controller: one that is not active, where nothing is said."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if why := super().refusal(fleet, system):
            return why
        if fleet.combined:
            return (
                "replace-controller: with fleet.combined a controller's disk has replicas of topics, too; "
                "give controllers hosts of their own"
            )
        if fleet.controllers + fleet.spare_controllers == 1:
            return "replace-controller: there is one controller only, and nobody to copy the log from"
        return None
