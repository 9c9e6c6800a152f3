"""A fault that an administrator makes at the end of an upgrade, or before a downgrade: a feature of the
cluster gets another level, and with a higher one its nodes do what only the later version does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import admin_steps as steps
from wrackline.nemesis.faults.outputs import output_of
from wrackline.nemesis.faults.spec import Role, UnprivilegedSpec
from wrackline.nemesis.faults.steps import ClusterFault, Commands, FaultContext, ProbeLog, Proof
from wrackline.systems.spec import SystemSpec

RAISE_S = 120.0
"""So long the cluster is asked again while it refuses: a node may be on its way to the later version."""


@dataclass(frozen=True, slots=True)
class UpdateFeature(ClusterFault):
    """The level is raised or lowered, and stays. With ``refused`` the cluster must refuse, since a node does
    not support that level yet.

    Proved when the cluster names the new level, and named another one before; or, with ``refused``, when it
    says why not, and names the old one.
    """

    name: ClassVar[str] = "update-feature"
    holds_node: ClassVar[bool] = False

    feature: str
    level: int
    refused: bool = False
    unsafe: bool = False

    def commands(self, context: FaultContext) -> Commands:
        wait_s = 0.0 if self.refused else RAISE_S
        host = context.targets[0].host
        return Commands((steps.UpdateFeature(host, self.feature, self.level, wait_s, self.unsafe),), ())

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:  # noqa: ARG002
        said = output_of(probe_log.do, steps.UpdateFeature)
        if said is None:
            return Proof(False, f"nobody asked for {self.feature}={self.level}")
        came = json.loads(said)
        before, after, refusal = came["before"] or 0, came["after"] or 0, came["refusal"]
        if self.refused:
            text = f"{self.feature}={self.level} was asked for at level {before}: {refusal or 'and done'}"
            return Proof(bool(refusal) and after == before != self.level, text)
        if refusal:
            return Proof(False, f"{self.feature} stayed at {after}: {refusal}")
        if before == after:
            return Proof(False, f"{self.feature} was at {before} before")
        way = "raised" if before < self.level else "lowered"
        return Proof(after == self.level, f"{self.feature} was {way} from {before} to {after}")


class UpdateFeatureSpec(UnprivilegedSpec):
    """Settings of the fault ``update-feature``."""

    makes = UpdateFeature
    example: ClassVar[Mapping[str, Any]] = {"feature": "metadata.version", "level": 23}

    fault: Literal["update-feature"]
    """A feature of the cluster gets a higher or, by a safe downgrade, a lower level, which stays."""
    target: Role = "all"
    """Whoever it is: the cluster is meant."""
    feature: str
    """The name of the feature: `metadata.version`."""
    level: Annotated[int, Field(ge=0)]
    """The level that it gets; 0 turns it off."""
    refused: bool = False
    """The cluster must refuse it: it is asked too early, or metadata would be lost."""
    unsafe: bool = False
    """A lower level is asked for even if metadata is lost by it; then Apache Kafka refuses it so far."""

    @property
    def begins_s(self) -> float:
        return 0.0 if self.refused else RAISE_S

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if why := system.without_levels():
            return f"update-feature: {why}"
        return super().refusal(fleet, system)
