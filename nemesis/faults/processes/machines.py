"""Faults of a virtual machine as a whole, done by its hypervisor: all its processors stand still, or its
network cable is out. Nobody can log in to such a host meanwhile, so what shows them is asked from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.nemesis.faults.host_steps import PlugHost, StopHost
from wrackline.nemesis.faults.network.partition_proof import CLIENTS
from wrackline.nemesis.faults.network.tcp_probe import probe_results
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import Commands, FaultContext, ProbeLog, Proof, StepResult, TcpProbe

CONTROL_WAIT_S = 5.0
"""A host that has stood still has much to catch up with."""
SSH = 22


def _commands(context: FaultContext, do: Sequence[Step], undo: Sequence[Step]) -> Commands:
    """The kernel of a host answers at the port of SSH whatever its node does."""
    knocks = tuple(TcpProbe(one.host, one.address, SSH, 1.0) for one in context.targets)
    again = tuple(TcpProbe(one.host, one.address, SSH, CONTROL_WAIT_S) for one in context.targets)
    return Commands(tuple(do), tuple(undo), knocks, again, watch=knocks)


def _prove(context: FaultContext, probe_log: ProbeLog, what: str) -> Proof:
    """Proved when no host answered by TCP at the beginning and at the end, and each did after the undo."""
    names = ", ".join(one.host for one in context.targets)
    if errors := probe_log.errors():
        return Proof(False, "; ".join(errors))
    for look in probe_log.looks:
        if answered := _answered(look.done):
            return Proof(False, f"{', '.join(sorted(answered))} answered {look.when}")
    if not probe_log.undo:
        return Proof(False, f"{names} {what}: no TCP knock was answered")
    if flaw := _residue(context, probe_log):
        return Proof(False, flaw)
    return Proof(True, f"{names} {what}: no TCP knock was answered, each was after the undo")


def _residue(context: FaultContext, probe_log: ProbeLog) -> str:
    dumb = sorted({one.host for one in context.targets} - _answered(probe_log.control))
    return f"{', '.join(dumb)} did not answer after the undo either" if dumb else ""


def _answered(dones: Sequence[StepResult]) -> set[str]:
    return {knock.host for knock in probe_results(dones, CLIENTS) if knock.answered}


@dataclass(frozen=True, slots=True)
class FreezeHost:
    """The whole machine stands still, and its clock with it: it goes on as if no time had passed."""

    name: ClassVar[str] = "freeze-host"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        return _commands(
            context,
            [StopHost(one.host, stopped=True) for one in context.targets],
            [StopHost(one.host, stopped=False) for one in context.targets],
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        return _prove(context, probe_log, "stood still")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return _residue(context, probe_log)


@dataclass(frozen=True, slots=True)
class UnplugHost:
    """The network cable is out: the host sees its carrier go, and goes on without a network."""

    name: ClassVar[str] = "unplug-host"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        return _commands(
            context,
            [PlugHost(one.host, up=False) for one in context.targets],
            [PlugHost(one.host, up=True) for one in context.targets],
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        return _prove(context, probe_log, "had no network")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return _residue(context, probe_log)


class FreezeHostSpec(FaultSpec):
    """Settings of the fault ``freeze-host``."""

    needs: ClassVar[tuple[Ability, ...]] = (Ability.HYPERVISOR,)

    fault: Literal["freeze-host"]
    """A whole virtual machine stands still, its clock too, and goes on afterwards."""

    def build(self) -> FreezeHost:
        return FreezeHost()


class UnplugHostSpec(FaultSpec):
    """Settings of the fault ``unplug-host``."""

    needs: ClassVar[tuple[Ability, ...]] = (Ability.HYPERVISOR,)

    fault: Literal["unplug-host"]
    """The network cable of a virtual machine is out; the host sees that."""

    def build(self) -> UnplugHost:
        return UnplugHost()
