"""Faults of a virtual machine as a whole, done by its hypervisor: all its processors stand still, or its
network cable is out. Nobody can log in to such a host meanwhile, so what shows them is asked from outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
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


class Silenced(ABC):
    """A machine that does not answer by TCP until its hypervisor lets it.

    Proved when no host answered by TCP at the beginning and at the end, and each did after the undo."""

    __slots__ = ()
    holds_node: ClassVar[bool] = True
    what: ClassVar[str]
    """What became of the hosts, for people."""

    @staticmethod
    @abstractmethod
    def switch(host: str, on: bool) -> Step:
        """The step that silences the host (not ``on``), or lets it go on."""

    def commands(self, context: FaultContext) -> Commands:
        """The kernel of a host answers at the port of SSH whatever its node does."""
        probe = tuple(TcpProbe(one.host, one.address, SSH, 1.0) for one in context.targets)
        return Commands(
            do=tuple(self.switch(one.host, False) for one in context.targets),
            undo=tuple(self.switch(one.host, True) for one in context.targets),
            probe=probe,
            control=tuple(replace(each, wait_s=CONTROL_WAIT_S) for each in probe),
            watch=probe,
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        names = ", ".join(one.host for one in context.targets)
        if errors := probe_log.errors():
            return Proof(False, "; ".join(errors))
        for look in probe_log.looks:
            if answered := _answered(look.done):
                return Proof(False, f"{', '.join(sorted(answered))} answered {look.when}")
        if not probe_log.undo:
            return Proof(False, f"{names} {self.what}: no TCP knock was answered")
        if flaw := self.residue(context, probe_log):
            return Proof(False, flaw)
        return Proof(True, f"{names} {self.what}: no TCP knock was answered, each was after the undo")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        dumb = sorted({one.host for one in context.targets} - _answered(probe_log.control))
        return f"{', '.join(dumb)} did not answer after the undo either" if dumb else ""


def _answered(dones: Sequence[StepResult]) -> set[str]:
    return {probed.host for probed in probe_results(dones, CLIENTS) if probed.answered}


@dataclass(frozen=True, slots=True)
class FreezeHost(Silenced):
    """The whole machine stands still, and its clock with it: it goes on as if no time had passed."""

    name: ClassVar[str] = "freeze-host"
    what: ClassVar[str] = "stood still"

    @staticmethod
    def switch(host: str, on: bool) -> Step:
        return StopHost(host, stopped=not on)


@dataclass(frozen=True, slots=True)
class UnplugHost(Silenced):
    """The network cable is out: the host sees its carrier go, and goes on without a network."""

    name: ClassVar[str] = "unplug-host"
    what: ClassVar[str] = "had no network"

    @staticmethod
    def switch(host: str, on: bool) -> Step:
        return PlugHost(host, up=on)


class FreezeHostSpec(FaultSpec):
    """Settings of the fault ``freeze-host``."""

    makes = FreezeHost
    needs = (Ability.HYPERVISOR,)

    fault: Literal["freeze-host"]
    """A whole virtual machine stands still, its clock too, and goes on afterwards."""


class UnplugHostSpec(FaultSpec):
    """Settings of the fault ``unplug-host``."""

    makes = UnplugHost
    needs = (Ability.HYPERVISOR,)

    fault: Literal["unplug-host"]
    """The network cable of a virtual machine is out; the host sees that."""
