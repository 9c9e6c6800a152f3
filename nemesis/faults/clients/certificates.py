"""A fault of operators: the certificates of brokers are rotated while everything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import admin_steps as steps
from wrackline.nemesis.faults.outputs import carried_out
from wrackline.nemesis.faults.spec import Role, UnprivilegedSpec
from wrackline.nemesis.faults.steps import ClusterFault, Commands, FaultContext, ProbeLog, Proof, StepResult
from wrackline.systems.spec import SystemSpec


@dataclass(frozen=True, slots=True)
class RotateCertificates(ClusterFault):
    """The targets' listeners serve a new certificate, of an authority that all believed before; undone by the
    first one. Connections go on with what they began with.

    Proved when each target serves its new certificate to a new client at the beginning and at the end, and
    another one before."""

    name: ClassVar[str] = "rotate-certificates"
    holds_node: ClassVar[bool] = False

    def commands(self, context: FaultContext) -> Commands:
        looks = tuple(steps.DescribeCertificate(one.host, one.node_id) for one in context.targets)
        return Commands(
            do=tuple(steps.RotateCertificate(one.host, one.node_id) for one in context.targets),
            undo=tuple(steps.RestoreCertificate(one.host, one.node_id) for one in context.targets),
            probe=looks,
            control=looks,
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        changes = _changes(probe_log.do)
        probes = [("at the beginning", probe_log.active)]
        if probe_log.undo:
            probes.append(("at the end", probe_log.final))
        rotated = []
        for one in context.targets:
            before, after = changes.get(one.host, ("", ""))
            if not after or before == after:
                return Proof(False, f"{one.host} got no new certificate")
            for when, probe in probes:
                if (served := _served(probe).get(one.host, "none that we know")) != after:
                    return Proof(False, f"{when} {one.host} served {served}, not {after}")
            rotated.append(f"{one.host} {before} to {after}")
        return Proof(True, f"serial numbers served: {', '.join(rotated)}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        changes, served = _changes(probe_log.do), _served(probe_log.control)
        return "; ".join(
            f"{one.host} serves {served.get(one.host, 'nobody knows what')} after the undo, "
            f"not {changes[one.host][0]}"
            for one in context.targets
            if one.host in changes and served.get(one.host) != changes[one.host][0]
        )


def _changes(dones: Sequence[StepResult]) -> Mapping[str, tuple[str, str]]:
    """Host -> the serial numbers before and after."""
    results = carried_out(dones, steps.RotateCertificate)
    both = {done.step.host: json.loads(done.output) for done in results}
    return {host: (one["before"], one["after"]) for host, one in both.items()}


def _served(dones: Sequence[StepResult]) -> Mapping[str, str]:
    return {done.step.host: done.output for done in carried_out(dones, steps.DescribeCertificate)}


class RotateCertificatesSpec(UnprivilegedSpec):
    """Settings of the fault ``rotate-certificates``."""

    makes = RotateCertificates
    fault: Literal["rotate-certificates"]
    """Brokers serve new certificates."""
    target: Role = "all"
    """Whose certificates are rotated."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        return system.without_certificates() or super().refusal(fleet, system)
