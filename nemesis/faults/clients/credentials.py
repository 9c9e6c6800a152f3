"""A fault of operators: the password of clients is rotated before they know the new one (KIP-554)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import admin_steps as steps
from wrackline.nemesis.faults.outputs import carried_out
from wrackline.nemesis.faults.spec import Role, UnprivilegedSpec
from wrackline.nemesis.faults.steps import ClusterFault, Commands, FaultContext, ProbeLog, Proof, StepResult
from wrackline.systems.base import LetIn
from wrackline.systems.spec import SystemSpec


@dataclass(frozen=True, slots=True)
class RotateCredentials(ClusterFault):
    """The user of the clients has another SCRAM password than clients use; undone by the first one.
    Connections go on with what they began with, and whoever connects anew is refused.

    Proved when each target lets a client of ours in by the new password alone, at the beginning and at the
    end, and by the first one alone afterwards."""

    name: ClassVar[str] = "rotate-credentials"
    holds_node: ClassVar[bool] = False

    def commands(self, context: FaultContext) -> Commands:
        host = context.targets[0].host
        looks = tuple(steps.DescribeCredential(one.host, one.node_id) for one in context.targets)
        return Commands(
            do=(steps.RotateCredential(host),),
            undo=(steps.RestoreCredential(host),),
            probe=looks,
            control=looks,
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        if not carried_out(probe_log.do, steps.RotateCredential):
            return Proof(False, "no other password was given")
        probes = [("at the beginning", probe_log.active)]
        if probe_log.undo:
            probes.append(("at the end", probe_log.final))
        for when, probe in probes:
            for one in context.targets:
                if (by := _let_in(probe).get(one.host, _UNKNOWN)) != LetIn.SECOND:
                    return Proof(False, f"{when} {one.host} let clients in by {by}, not by {LetIn.SECOND}")
        hosts = ", ".join(one.host for one in context.targets)
        return Proof(True, f"{hosts} refused the password that clients use, and took {LetIn.SECOND}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        if not carried_out(probe_log.do, steps.RotateCredential):
            return ""
        by = _let_in(probe_log.control)
        return "; ".join(
            f"{one.host} lets clients in by {by.get(one.host, _UNKNOWN)} after the undo, not by {LetIn.FIRST}"
            for one in context.targets
            if by.get(one.host) != LetIn.FIRST
        )


_UNKNOWN = "nobody knows what"


def _let_in(dones: Sequence[StepResult]) -> Mapping[str, str]:
    return {done.step.host: done.output for done in carried_out(dones, steps.DescribeCredential)}


class RotateCredentialsSpec(UnprivilegedSpec):
    """Settings of the fault ``rotate-credentials``."""

    makes = RotateCredentials
    fault: Literal["rotate-credentials"]
    """The clients' user has another password than clients use."""
    target: Role = "all"
    """Whoever it is: every broker is meant, and the targets are asked whom they let in."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        return system.without_passwords() or super().refusal(fleet, system)
