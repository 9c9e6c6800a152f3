"""A fault of operators: clients get quotas that are too small (KIP-13, KIP-124)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import admin_steps as steps
from wrackline.nemesis.faults.admin_steps import Entity
from wrackline.nemesis.faults.outputs import carried_out, output_of
from wrackline.nemesis.faults.spec import Role, UnprivilegedSpec
from wrackline.nemesis.faults.steps import ClusterFault, Commands, FaultContext, ProbeLog, Proof, StepResult
from wrackline.systems.spec import SystemSpec

QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")


@dataclass(frozen=True, slots=True)
class Quota(ClusterFault):
    """Every client has these quotas at each broker, while everything runs; undone by those that held before.

    Proved when the cluster names them and each target throttles requests of our own by them, at the beginning
    and at the end, and does not afterwards."""

    name: ClassVar[str] = "quota"
    holds_node: ClassVar[bool] = False

    values: tuple[tuple[str, str], ...]

    def commands(self, context: FaultContext) -> Commands:
        host, names = context.targets[0].host, tuple(name for name, _ in self.values)
        looks = (
            steps.DescribeSettings(host, Entity.CLIENTS, names),
            *(steps.MeasureThrottle(one.host, one.node_id, names) for one in context.targets),
        )
        return Commands(
            do=(steps.ChangeSettings(host, context.fault_id, Entity.CLIENTS, self.values),),
            undo=(steps.RestoreSettings(host, context.fault_id, Entity.CLIENTS),),
            probe=looks,
            control=looks,
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        if not carried_out(probe_log.do, steps.ChangeSettings):
            return Proof(False, "no quota was given")
        expected = dict(self.values)
        probes = [("at the beginning", probe_log.active)]
        if probe_log.undo:
            probes.append(("at the end", probe_log.final))
        for when, probe in probes:
            if (held := _quotas(probe)) != expected:
                return Proof(False, f"{when} clients had {_listed(held)}, not {_listed(expected)}")
            throttled = _throttled(probe)
            for one in context.targets:
                for name in expected:
                    if not throttled.get(one.host, {}).get(name):
                        return Proof(False, f"{when} {one.host} throttled nothing by {name}")
        longest_ms = max(ms for each in _throttled(probe_log.active).values() for ms in each.values())
        return Proof(True, f"{_listed(expected)}; requests of ours were throttled for up to {longest_ms} ms")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        before = json.loads(output_of(probe_log.do, steps.ChangeSettings) or "{}")
        after, flaws = _quotas(probe_log.control), []
        if before and after != before:
            flaws.append(f"clients have {_listed(after)} after the undo, not {_listed(before)}")
        free = [name for name, value in before.items() if value is None]
        throttled = _throttled(probe_log.control)
        for one in context.targets:
            for name in free:
                if (ms := throttled.get(one.host, {}).get(name)) != 0:
                    flaws.append(f"{one.host} throttles by {name} after the undo: {ms} ms")
        return "; ".join(flaws)


def _quotas(dones: Sequence[StepResult]) -> Mapping[str, str | None]:
    result: Mapping[str, str | None] = json.loads(output_of(dones, steps.DescribeSettings) or "{}")
    return result


def _throttled(dones: Sequence[StepResult]) -> Mapping[str, Mapping[str, int]]:
    return {done.step.host: json.loads(done.output) for done in carried_out(dones, steps.MeasureThrottle)}


def _listed(values: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {value or 'none'}" for name, value in values.items()) or "nobody knows what"


Rate = Annotated[float, Field(gt=0, le=100_000)]


class QuotaSpec(UnprivilegedSpec):
    """Settings of the fault ``quota``."""

    example: ClassVar[Mapping[str, Any]] = {"producer_byte_rate": 2_000}

    fault: Literal["quota"]
    """Clients get quotas."""
    target: Role = "all"
    """Whoever it is: every client is meant, and the targets are asked whether they throttle."""
    producer_byte_rate: Rate | None = None
    """Bytes a second that a client may send to a broker; up to 100,000, of which the proof can exceed it."""
    consumer_byte_rate: Rate | None = None
    """Bytes a second that a client may fetch from a broker; up to 100,000."""
    request_percentage: Annotated[float, Field(gt=0, le=10)] | None = None
    """The share of one thread's time that a broker gives a client's requests."""

    @model_validator(mode="after")
    def _one_at_least(self) -> Self:
        if not self.values:
            raise ValueError(f"quota needs one of {', '.join(QUOTAS)}")
        return self

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, f"{value:g}") for name in QUOTAS if (value := getattr(self, name)) is not None)

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        return system.without_quotas() or super().refusal(fleet, system)

    def build(self) -> Quota:
        return Quota(self.values)
