"""Faults of a cluster whose hosts are not ours: a user's own commands do them and undo them, and a command
too proves them. They keep the names that they have elsewhere, since they mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wrackline.fleets.base import Disk
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.steps import (
    Ask,
    Carry,
    ClusterFault,
    Commands,
    Fault,
    FaultContext,
    FaultError,
    ProbeLog,
    Proof,
    StepResult,
)
from wrackline.systems.base import Node, System
from wrackline.systems.external.commands.operations import FAULTS, UNDOES, BrokerCommand
from wrackline.systems.external.external_cluster import ExternalCluster

IN_FORCE, NOT_IN_FORCE = "in force", "not in force"


@dataclass(frozen=True, slots=True)
class ByCommand:
    """Proved when the probe says for every target that it is in force, at its beginning and at its end, and
    that it is not after the undo: a probe that always says yes proves nothing.

    Nobody can count what a host loses with its power, so after ``power-off`` every file of it may have lost
    bytes."""

    name: str
    holds_node: bool
    order: BrokerCommand

    def commands(self, context: FaultContext) -> Commands:
        ask = tuple(Ask(one.host, one.node_id, self.order) for one in context.targets)
        return Commands(
            do=tuple(Carry(one.host, one.node_id, self.order) for one in context.targets),
            undo=tuple(Carry(one.host, one.node_id, UNDOES[self.order]) for one in context.targets),
            probe=ask,
            control=ask,
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        lost: dict[str, dict[str, int]] = {}
        if self.order is BrokerCommand.POWER_OFF:
            lost = {one.host: {} for one in context.targets}
        probes = [("at its beginning", probe_log.active)]
        if probe_log.undo:
            probes.append(("at its end", probe_log.final))
        for when, probe in probes:
            if flaw := _short_of(context, probe, IN_FORCE, when):
                return Proof(False, flaw, lost)
        if not probe_log.undo:
            return Proof(False, "; ".join(done.output for done in probe_log.active), lost)
        if flaw := self.residue(context, probe_log):
            return Proof(False, flaw, lost)
        did = "; ".join(f"{done.step.host}: {done.output}" for done in probe_log.do)
        unknown = "; what was lost is not known" if lost else ""
        return Proof(
            True, f"{did}; its probe said yes at the beginning and the end, and no afterwards{unknown}", lost
        )

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return _short_of(context, probe_log.control, NOT_IN_FORCE, "after the undo")


def _short_of(context: FaultContext, probe: Sequence[StepResult], wanted: str, when: str) -> str:
    """Returns which target's probe did not give the expected answer; empty when all did."""
    said = {done.step.host: done.error or done.output for done in probe if isinstance(done.step, Ask)}
    for one in context.targets:
        answer = said.get(one.host, "nobody asked")
        if not answer.startswith(f"{wanted}: "):
            return f"{one.host} was not seen {wanted} {when}: {answer}"
    return ""


def here(system: System, fault: Fault) -> Fault:
    """The fault as it is done to this system. Raises FaultError when it cannot be."""
    if not isinstance(system, ExternalCluster) or isinstance(fault, ClusterFault):
        return fault
    if why := beyond_commands(fault):
        raise FaultError(why)
    return ByCommand(fault.name, fault.holds_node, FAULTS[fault.name])


def beyond_commands(fault: Fault) -> str | None:
    """Returns why no command could do the fault; None when one could."""
    if isinstance(fault, Partition) and fault != Partition():
        return (
            "partition: commands cut hosts off from all others, both ways (shape isolate), and nothing else"
        )
    if isinstance(fault, PowerCut) and fault.disk is not Disk.KEPT:
        return f"power-cut: no command gives a host another disk (disk: {fault.disk})"
    if fault.name not in FAULTS:
        return f"{fault.name} acts on hosts, and those of an external cluster are not ours"
    return None


def carried(system: System, node: Node, step: Carry | Ask) -> StepResult:
    """Raises DeployError."""
    assert isinstance(system, ExternalCluster)
    if isinstance(step, Carry):
        return StepResult(step, system.order(node, step.order))
    said = system.probe(node, step.order)
    return StepResult(step, f"{IN_FORCE if said.in_force else NOT_IN_FORCE}: {said.text}")


def doubtful(fault: Fault, probe_log: ProbeLog) -> dict[str, dict[str, int]]:
    """Hosts that may have lost bytes though the fault as a whole was never in force: their power was to go,
    and nobody can look."""
    if not isinstance(fault, ByCommand) or fault.order is not BrokerCommand.POWER_OFF:
        return {}
    return {done.step.host: {} for done in probe_log.do}
