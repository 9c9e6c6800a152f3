"""Faults that an administrator makes: other leaders, other settings, topics that go and come, another active
controller. Nothing breaks by them, and a cluster must keep its promises while they happen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import admin_steps as steps
from wrackline.nemesis.faults.admin_steps import Entity
from wrackline.nemesis.faults.cluster.cluster_state import by_place, cluster_seen
from wrackline.nemesis.faults.outputs import output_of
from wrackline.nemesis.faults.spec import TO_MOVE, Role, UnprivilegedSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    ClusterFault,
    Commands,
    FaultContext,
    FaultError,
    ProbeLog,
    Proof,
    Shell,
    StepResult,
)
from wrackline.plugins.acls import Acls, Resource
from wrackline.plugins.fields import Lax
from wrackline.systems.base import PartitionState, Place
from wrackline.systems.spec import SystemSpec

FAIL_OVER_S = 30.0
MIN_ISR = "min.insync.replicas"


def _first(context: FaultContext) -> str:
    """The host beside whose steps those of the cluster stand."""
    return context.targets[0].host


def _name(one: PartitionState) -> str:
    return f"{one.topic}-{one.partition}"


@dataclass(frozen=True, slots=True)
class ElectPreferred(ClusterFault):
    """The preferred leaders are elected. Nothing is undone.

    Proved by the cluster's metadata, when a partition that another replica led is led by its first one, and
    so are all that have it in their ISR. Where nobody had to change nothing was tried."""

    name: ClassVar[str] = "elect-preferred"
    holds_node: ClassVar[bool] = False

    def commands(self, context: FaultContext) -> Commands:
        look = steps.DescribeCluster(_first(context))
        return Commands((look, steps.ElectPreferred(_first(context))), (), (look,))

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:  # noqa: ARG002
        before, after = by_place(cluster_seen(probe_log.do)), by_place(cluster_seen(probe_log.active))
        if not before or not after:
            return Proof(False, "no election was held")
        able = {place for place, one in before.items() if one.replicas[0] in one.isr}
        expected = {place for place in able if before[place].leader != before[place].replicas[0]}
        led = {place for place in able if place in after and after[place].leader == before[place].replicas[0]}
        changes = [
            f"{_name(before[place])} {before[place].leader} to {after[place].leader}"
            for place in sorted(expected & led)
        ]
        unable = f"; of {len(before) - len(able)} it is not in the ISR" if len(able) < len(before) else ""
        text = (
            f"the first replica leads {len(led)} of {len(before)} partitions{unable}; "
            f"{len(changes)} changed their leader" + (f": {', '.join(changes)}" if changes else "")
        )
        return Proof(bool(changes) and able == led, text)


@dataclass(frozen=True, slots=True)
class TransferLeadership(ClusterFault):
    """Others become leaders of all that the targets lead, by an order of the replicas in which they stand
    first and an election; undone by the old order and another election.

    Proved when the cluster's metadata name another leader of each partition that the target led, at the
    beginning and at the end."""

    name: ClassVar[str] = "transfer-leadership"
    holds_node: ClassVar[bool] = False

    def commands(self, context: FaultContext) -> Commands:
        if len(context.targets) != 1:
            raise FaultError(f"{self.name}: one node gives up its leadership, not {len(context.targets)}")
        [one] = context.targets
        look = steps.DescribeCluster(one.host)
        return Commands(
            do=(look, steps.Transfer(one.host, one.node_id, context.fault_id)),
            undo=(steps.RestoreLeadership(one.host, context.fault_id),),
            probe=(look,),
            control=(look,),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        before, after = by_place(cluster_seen(probe_log.do)), by_place(cluster_seen(probe_log.active))
        given = self._given(context, before, after)
        if not given:
            return Proof(False, "no leader was changed")
        if probe_log.undo:
            kept = self._given(context, before, by_place(cluster_seen(probe_log.final)))
            if back := sorted(given - kept):
                names = ", ".join(_name(before[place]) for place in back)
                return Proof(False, f"at the end the leader of {names} was the old one, or unknown")
        changes = (
            f"{_name(before[place])} from {before[place].leader} to {after[place].leader}"
            for place in sorted(given)
        )
        return Proof(True, f"other leaders: {'; '.join(changes)}")

    @staticmethod
    def _given(
        context: FaultContext, before: Mapping[Place, PartitionState], now: Mapping[Place, PartitionState]
    ) -> set[Place]:
        """Returns the partitions that the target led before and another leads now."""
        gave = {one.node_id for one in context.targets}
        return {
            place
            for place, one in before.items()
            if one.leader in gave and place in now and now[place].leader not in gave
        }

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        """The order of the replicas and, unless other faults were in force meanwhile, the leader. Replicas
        that another fault has moved are in no old order."""
        before, now = by_place(cluster_seen(probe_log.do)), by_place(cluster_seen(probe_log.control))
        given = self._given(context, before, by_place(cluster_seen(probe_log.active)))
        error = []
        for place in sorted(given):
            was, has = before[place], now.get(place)
            if has is None:
                error.append(f"nobody knows {_name(was)}")
            elif set(has.replicas) == set(was.replicas) and has.replicas != was.replicas:
                error.append(f"{_name(was)} has replicas {list(has.replicas)}, not {list(was.replicas)}")
            elif has.leader != was.leader and was.leader in has.isr and not probe_log.late:
                error.append(f"{_name(was)} is led by {has.leader}, not by {was.leader}")
        return "; ".join(error)


@dataclass(frozen=True, slots=True)
class ChangeConfig(ClusterFault):
    """Settings of the run's topic, or of all brokers, are changed while everything runs, and taken back. Of
    several topics it is the first.

    Proved when the cluster names the new values at the beginning and at the end; restored when it names
    afterwards those that held before."""

    name: ClassVar[str] = "change-config"
    holds_node: ClassVar[bool] = False

    entity: Entity
    values: tuple[tuple[str, str], ...]

    def commands(self, context: FaultContext) -> Commands:
        host = _first(context)
        look = steps.DescribeSettings(host, self.entity, tuple(name for name, _ in self.values))
        return Commands(
            do=(steps.ChangeSettings(host, context.fault_id, self.entity, self.values),),
            undo=(steps.RestoreSettings(host, context.fault_id, self.entity),),
            probe=(look,),
            control=(look,),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:  # noqa: ARG002
        expected = dict(self.values)
        before = _settings(probe_log.do, steps.ChangeSettings)
        probes = [
            ("at the beginning", probe_log.active),
            ("at the end", probe_log.final if probe_log.undo else None),
        ]
        for when, probe in probes:
            if probe is not None and (result := _settings(probe, steps.DescribeSettings)) != expected:
                return Proof(
                    False, f"{when} the {self.entity} had {_listed(result)}, not {_listed(expected)}"
                )
        change = ", ".join(f"{name} {_value(before, name)} to {value}" for name, value in expected.items())
        if not probe_log.undo:
            return Proof(False, f"{self.entity}: {change}")
        after = _settings(probe_log.control, steps.DescribeSettings)
        return Proof(True, f"{self.entity}: {change}; afterwards {_listed(after)}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:  # noqa: ARG002
        before = _settings(probe_log.do, steps.ChangeSettings)
        after = _settings(probe_log.control, steps.DescribeSettings)
        if not before or after == before:
            return ""
        return f"the {self.entity} has {_listed(after)} after the undo, not {_listed(before)}"


def _settings(dones: Sequence[StepResult], kind: type[Step]) -> Mapping[str, str | None]:
    result: Mapping[str, str | None] = json.loads(output_of(dones, kind) or "{}")
    return result


def _value(settings: Mapping[str, str | None], name: str) -> str:
    value = settings.get(name)
    return "the default" if value is None else value


def _listed(settings: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {_value(settings, name)}" for name in settings) or "nobody knows what"


@dataclass(frozen=True, slots=True)
class RecreateTopic(ClusterFault):
    """A topic beside the run's is made, deleted, and made again; undone by deleting it. The run's own topic
    is left alone: with its deletion every promise about its records would end.

    Proved when the second topic of that name has another id, which is the one that is seen at the end."""

    name: ClassVar[str] = "recreate-topic"
    holds_node: ClassVar[bool] = False

    def commands(self, context: FaultContext) -> Commands:
        host = _first(context)
        look = steps.DescribeTopic(host, context.fault_id)
        return Commands(
            do=(steps.Recreate(host, context.fault_id),),
            undo=(steps.RemoveTopic(host, context.fault_id),),
            probe=(look,),
            control=(look,),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:  # noqa: ARG002
        first, _, second = (output_of(probe_log.do, steps.Recreate) or "").partition(" ")
        if not first or not second or first == second:
            return Proof(False, f"the topic was not made again (ids {first or 'none'}, {second or 'none'})")
        if probe_log.undo and (last := output_of(probe_log.final, steps.DescribeTopic)) != second:
            return Proof(False, f"at the end its id is {last or 'unknown'}, not {second}")
        return Proof(True, f"a topic with the id {first} was deleted and made again with the id {second}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:  # noqa: ARG002
        left = output_of(probe_log.control, steps.DescribeTopic)
        return "" if left == "" else f"the second topic is still there ({left or 'nobody answers'})"


@dataclass(frozen=True, slots=True)
class ControllerFailover:
    """The active controller is stopped for just as long as it takes until another is active.

    Proved when the cluster's metadata name the target as the active controller before, and another one
    afterwards."""

    name: ClassVar[str] = "controller-failover"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        if len(context.targets) != 1 or context.targets[0].pid is None:
            raise FaultError(f"{self.name}: it needs one controller that runs")
        [one] = context.targets
        assert one.pid is not None
        look = steps.DescribeCluster(one.host)
        return Commands(
            do=(look, steps.FailOver(one.host, one.node_id, one.pid, FAIL_OVER_S)),
            undo=(Shell(one.host, f"kill -CONT {one.pid} 2>/dev/null || true"),),
            probe=(look,),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        was, has = cluster_seen(probe_log.do), cluster_seen(probe_log.active)
        before = was.controller if was is not None else None
        after = has.controller if has is not None else None
        if before not in {one.node_id for one in context.targets} or after in (before, None, -1):
            return Proof(False, f"no other controller became active after {before or 'the first'}")
        return Proof(True, f"controller {before} was stopped until {after} was active")


# --- settings -----------------------------------------------------------------------------------------------


class ElectPreferredSpec(UnprivilegedSpec):
    """Settings of the fault ``elect-preferred``."""

    makes = ElectPreferred
    acls = TO_MOVE
    fault: Literal["elect-preferred"]
    """The preferred leaders are elected."""
    target: Role = "all"
    """Whoever it is: all partitions of the run's topic are meant."""


class TransferLeadershipSpec(UnprivilegedSpec):
    """Settings of the fault ``transfer-leadership``."""

    makes = TransferLeadership
    acls = TO_MOVE
    fault: Literal["transfer-leadership"]
    """What the target leads others lead."""
    target: Role = "leader"
    """The node that gives up what it leads."""


class ChangeConfigSpec(UnprivilegedSpec):
    """Settings of the fault ``change-config``."""

    acls: ClassVar[Acls] = {Resource.TOPIC: ("DescribeConfigs", "AlterConfigs")}
    example: ClassVar[Mapping[str, Any]] = {"configs": {"min.insync.replicas": 1}}

    fault: Literal["change-config"]
    """Settings of the topic or of all brokers are changed, and taken back."""
    target: Role = "all"
    """Whoever it is: the topic, or all brokers, are meant."""
    entity: Annotated[Entity, Lax] = Entity.TOPIC
    """Whose settings: of the run's ``topic``, of several the first, or of all ``brokers``."""
    configs: Annotated[dict[str, str | int | float | bool], Field(min_length=1)]
    """Kafka's names and the values that they have meanwhile."""

    @field_validator("entity")
    @classmethod
    def _that_has_settings(cls, entity: Entity) -> Entity:
        if entity is Entity.CLIENTS:
            raise ValueError("clients have quotas: use the fault quota")
        return entity

    @field_validator("configs")
    @classmethod
    def _sane_min_isr(cls, configs: dict[str, Any]) -> dict[str, Any]:
        least = configs.get(MIN_ISR, 1)
        if not str(least).isdigit() or int(least) < 1:
            raise ValueError(f"{MIN_ISR} is a number from 1 on, not {least!r}")
        return configs

    @property
    def texts(self) -> dict[str, str]:
        """The values as Kafka takes them."""
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.configs.items()
        }

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if self.entity is Entity.BROKERS and system.broker_names() is not None:
            return "change-config of brokers: they are not ours; entity: topic changes the run's own topic"
        return super().refusal(fleet, system)

    def build(self) -> ChangeConfig:
        return ChangeConfig(self.entity, tuple(sorted(self.texts.items())))


class RecreateTopicSpec(UnprivilegedSpec):
    """Settings of the fault ``recreate-topic``."""

    makes = RecreateTopic
    fault: Literal["recreate-topic"]
    """A topic beside the run's is deleted and made again."""
    target: Role = "all"
    """Whoever it is: the cluster is meant."""


class ControllerFailoverSpec(UnprivilegedSpec):
    """Settings of the fault ``controller-failover``."""

    makes = ControllerFailover
    fault: Literal["controller-failover"]
    """Another controller becomes active."""
    target: Role = "controller"
    """The active controller."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if fleet.hosts and fleet.controllers < 2 and not fleet.zookeeper:
            return "controller-failover needs another controller: fleet.controllers must be 3 or 5"
        return super().refusal(fleet, system)
