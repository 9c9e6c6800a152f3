"""Faults that take a broker out of the cluster for good, as far as the cluster can tell: it is emptied, or
replaced by another one, stopped and forgotten. At the end it is started again, and joins without replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.nemesis.faults.admin_steps import DescribeBroker, Unregister
from wrackline.nemesis.faults.cluster.admin import output_of
from wrackline.nemesis.faults.cluster.growth import JOIN_S, PLAN_S, SETTLE_S, moves_said
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    AssignReplicas,
    AwaitReassignment,
    Commands,
    Evacuate,
    FaultContext,
    FaultError,
    ProbeLog,
    Proof,
    StartNode,
    StopNode,
    Target,
)


def _alone(name: str, context: FaultContext) -> Target:
    if len(context.targets) != 1:
        raise FaultError(f"{name}: one broker goes at a time, not {len(context.targets)}")
    [one] = context.targets
    if not one.is_broker or one.pid is None:
        raise FaultError(f"{name}: {one.host} has no broker that runs")
    return one


def _commands(one: Target, fault_id: str, begin: Step) -> Commands:
    gone = (
        begin,
        AwaitReassignment(one.host, fault_id, SETTLE_S, must=True),
        StopNode(one.host, one.node_id),
        Unregister(one.host, one.node_id),
    )
    look = DescribeBroker(one.host, one.node_id)
    return Commands(do=gone, undo=(StartNode(one.host, one.node_id),), probe=(look,), control=(look,))


def _prove(context: FaultContext, probe_log: ProbeLog, begun_by: type) -> Proof:
    [one] = context.targets
    moved = moves_said(probe_log.do, begun_by)
    settled = output_of(probe_log.do, AwaitReassignment)
    if moved is None or settled is None:
        return Proof(False, f"node {one.node_id} was not emptied")
    if output_of(probe_log.do, Unregister) is None:
        return Proof(False, f"node {one.node_id} was not forgotten")
    for when, probe in (("at the beginning", probe_log.active), ("at the end", probe_log.final)):
        if probe and (seen := output_of(probe, DescribeBroker)) != "not there":
            return Proof(False, f"{when} the cluster said of node {one.node_id}: {seen or 'nothing'}")
    return Proof(True, f"node {one.node_id} on {one.host} is gone from the cluster; {moved}")


def _residue(context: FaultContext, probe_log: ProbeLog) -> str:
    [one] = context.targets
    seen = output_of(probe_log.control, DescribeBroker)
    return "" if seen == "there" else f"node {one.node_id} is not in the cluster again: {seen or 'no answer'}"


@dataclass(frozen=True, slots=True)
class RemoveBroker:
    """A broker loses its replicas to other brokers, then is stopped and unregistered.

    Proved when the moves were complete and the cluster's metadata knows the broker no more."""

    name: ClassVar[str] = "remove-broker"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        one = _alone(self.name, context)
        return _commands(one, context.fault_id, Evacuate(one.host, one.node_id, context.fault_id, PLAN_S))

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        return _prove(context, probe_log, Evacuate)

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return _residue(context, probe_log)


@dataclass(frozen=True, slots=True)
class ReplaceBroker:
    """A spare broker joins and gets all its replicas, then it is stopped and unregistered. Proved alike."""

    name: ClassVar[str] = "replace-broker"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        one = _alone(self.name, context)
        spare = next((other for other in context.others if other.spare), None)
        if spare is None:
            raise FaultError(f"{self.name}: no spare broker is left (fleet.spares)")
        take_over = AssignReplicas(
            one.host, one.node_id, spare.host, spare.node_id, context.fault_id, JOIN_S, PLAN_S
        )
        return _commands(one, context.fault_id, take_over)

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        return _prove(context, probe_log, AssignReplicas)

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return _residue(context, probe_log)


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
