"""Faults that take a broker out of the cluster for good, as far as the cluster can tell: it is emptied, or
replaced by another one, stopped and forgotten. At the end it is started again, and joins without replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.nemesis.faults.admin_steps import LookForBroker, Unregister
from wrackline.nemesis.faults.cluster.admin import output_of
from wrackline.nemesis.faults.cluster.growth import JOIN_S, PLAN_S, SETTLE_S, moves_said
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultError,
    MoveOff,
    Proof,
    Scene,
    Settle,
    StartNode,
    Step,
    StopNode,
    TakeOver,
    Target,
    Trail,
)


def _alone(name: str, scene: Scene) -> Target:
    if len(scene.targets) != 1:
        raise FaultError(f"{name}: one broker goes at a time, not {len(scene.targets)}")
    [one] = scene.targets
    if not one.is_broker or one.pid is None:
        raise FaultError(f"{name}: {one.host} has no broker that runs")
    return one


def _commands(one: Target, fault_id: str, begin: Step) -> Commands:
    gone = (
        begin,
        Settle(one.host, fault_id, SETTLE_S, must=True),
        StopNode(one.host, one.node_id),
        Unregister(one.host, one.node_id),
    )
    look = LookForBroker(one.host, one.node_id)
    return Commands(do=gone, undo=(StartNode(one.host, one.node_id),), probe=(look,), control=(look,))


def _prove(scene: Scene, trail: Trail, begun_by: type) -> Proof:
    [one] = scene.targets
    moved = moves_said(trail.do, begun_by)
    settled = output_of(trail.do, Settle)
    if moved is None or settled is None:
        return Proof(False, f"node {one.node_id} was not emptied")
    if output_of(trail.do, Unregister) is None:
        return Proof(False, f"node {one.node_id} was not forgotten")
    for when, probe in (("at the beginning", trail.active), ("at the end", trail.final)):
        if probe and (seen := output_of(probe, LookForBroker)) != "not there":
            return Proof(False, f"{when} the cluster said of node {one.node_id}: {seen or 'nothing'}")
    return Proof(True, f"node {one.node_id} on {one.host} is gone from the cluster; {moved}")


def _residue(scene: Scene, trail: Trail) -> str:
    [one] = scene.targets
    seen = output_of(trail.control, LookForBroker)
    return "" if seen == "there" else f"node {one.node_id} is not in the cluster again: {seen or 'no answer'}"


@dataclass(frozen=True, slots=True)
class RemoveBroker:
    """Its replicas move to other brokers, then it is stopped and unregistered.

    Proved when the moves were complete and the cluster's metadata knows the broker no more."""

    name: ClassVar[str] = "remove-broker"
    holds_node: ClassVar[bool] = True

    def commands(self, scene: Scene) -> Commands:
        one = _alone(self.name, scene)
        return _commands(one, scene.fault_id, MoveOff(one.host, one.node_id, scene.fault_id, PLAN_S))

    def prove(self, scene: Scene, trail: Trail) -> Proof:
        return _prove(scene, trail, MoveOff)

    def residue(self, scene: Scene, trail: Trail) -> str:
        return _residue(scene, trail)


@dataclass(frozen=True, slots=True)
class ReplaceBroker:
    """A spare broker joins and gets all its replicas, then it is stopped and unregistered. Proved alike."""

    name: ClassVar[str] = "replace-broker"
    holds_node: ClassVar[bool] = True

    def commands(self, scene: Scene) -> Commands:
        one = _alone(self.name, scene)
        spare = next((other for other in scene.others if other.spare), None)
        if spare is None:
            raise FaultError(f"{self.name}: no spare broker is left (fleet.spares)")
        take_over = TakeOver(one.host, one.node_id, spare.host, spare.node_id, scene.fault_id, JOIN_S, PLAN_S)
        return _commands(one, scene.fault_id, take_over)

    def prove(self, scene: Scene, trail: Trail) -> Proof:
        return _prove(scene, trail, TakeOver)

    def residue(self, scene: Scene, trail: Trail) -> str:
        return _residue(scene, trail)


class RemoveBrokerSpec(FaultSpec):
    """Settings of the fault ``remove-broker``."""

    needs: ClassVar[tuple[Ability, ...]] = ()

    fault: Literal["remove-broker"]
    """A broker is emptied, stopped and forgotten; at the end it joins again, empty."""

    def build(self) -> RemoveBroker:
        return RemoveBroker()


class ReplaceBrokerSpec(FaultSpec):
    """Settings of the fault ``replace-broker``."""

    needs: ClassVar[tuple[Ability, ...]] = ()

    fault: Literal["replace-broker"]
    """A spare broker takes over all that another has, which is stopped and forgotten."""

    def build(self) -> ReplaceBroker:
        return ReplaceBroker()
