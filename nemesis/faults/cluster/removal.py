"""Faults that take a broker out of the cluster for good, as far as the cluster can tell: it is emptied, or
replaced by another one, stopped and forgotten. At the end it is started again, and joins without replicas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.nemesis.faults.admin_steps import DescribeBroker, Unregister
from wrackline.nemesis.faults.cluster.growth import JOIN_S, PLAN_S, SETTLE_S, moves_said
from wrackline.nemesis.faults.outputs import output_of
from wrackline.nemesis.faults.spec import UnprivilegedSpec
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


class Removal(ABC):
    """A broker is emptied by one step, then stopped and unregistered.

    Proved when the moves were complete and the cluster's metadata knows the broker no more."""

    __slots__ = ()
    name: ClassVar[str]
    holds_node: ClassVar[bool] = True
    begun_by: ClassVar[type[Step]]

    @abstractmethod
    def begin(self, one: Target, context: FaultContext) -> Step:
        """The step by which the broker's replicas begin to move."""

    def commands(self, context: FaultContext) -> Commands:
        if len(context.targets) != 1:
            raise FaultError(f"{self.name}: one broker goes at a time, not {len(context.targets)}")
        [one] = context.targets
        if not one.is_broker or one.pid is None:
            raise FaultError(f"{self.name}: {one.host} has no broker that runs")
        gone = (
            self.begin(one, context),
            AwaitReassignment(one.host, context.fault_id, SETTLE_S, must=True),
            StopNode(one.host, one.node_id),
            Unregister(one.host, one.node_id),
        )
        look = DescribeBroker(one.host, one.node_id)
        return Commands(do=gone, undo=(StartNode(one.host, one.node_id),), probe=(look,), control=(look,))

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        [one] = context.targets
        moved = moves_said(probe_log.do, self.begun_by)
        settled = output_of(probe_log.do, AwaitReassignment)
        if moved is None or settled is None:
            return Proof(False, f"node {one.node_id} was not emptied")
        if output_of(probe_log.do, Unregister) is None:
            return Proof(False, f"node {one.node_id} was not forgotten")
        for when, probe in probe_log.ends:
            if (seen := output_of(probe, DescribeBroker)) != "not there":
                return Proof(False, f"{when} the cluster said of node {one.node_id}: {seen or 'nothing'}")
        return Proof(True, f"node {one.node_id} on {one.host} is gone from the cluster; {moved}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        [one] = context.targets
        seen = output_of(probe_log.control, DescribeBroker)
        return (
            ""
            if seen == "there"
            else f"node {one.node_id} is not in the cluster again: {seen or 'no answer'}"
        )


@dataclass(frozen=True, slots=True)
class RemoveBroker(Removal):
    """A broker loses its replicas to other brokers, and is removed."""

    name: ClassVar[str] = "remove-broker"
    begun_by: ClassVar[type[Step]] = Evacuate

    def begin(self, one: Target, context: FaultContext) -> Step:
        return Evacuate(one.host, one.node_id, context.fault_id, PLAN_S)


@dataclass(frozen=True, slots=True)
class ReplaceBroker(Removal):
    """A spare broker joins and gets all replicas of another, which is removed."""

    name: ClassVar[str] = "replace-broker"
    begun_by: ClassVar[type[Step]] = AssignReplicas

    def begin(self, one: Target, context: FaultContext) -> Step:
        spare = next((other for other in context.others if other.spare and other.is_broker), None)
        if spare is None:
            raise FaultError(f"{self.name}: no spare broker is left (fleet.spares)")
        return AssignReplicas(
            one.host, one.node_id, spare.host, spare.node_id, context.fault_id, JOIN_S, PLAN_S
        )


class RemoveBrokerSpec(UnprivilegedSpec):
    """Settings of the fault ``remove-broker``."""

    makes = RemoveBroker
    fault: Literal["remove-broker"]
    """A broker is emptied, stopped and forgotten; at the end it joins again, empty."""


class ReplaceBrokerSpec(UnprivilegedSpec):
    """Settings of the fault ``replace-broker``."""

    makes = ReplaceBroker
    fault: Literal["replace-broker"]
    """A spare broker takes over all that another has, which is stopped and forgotten."""
