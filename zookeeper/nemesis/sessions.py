"""A fault of ZooKeeper's: it takes a broker for dead that lives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults.admin_steps import ExpireBrokerSession
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import Commands, FaultContext, FaultError, ProbeLog, Proof
from wrackline.systems.spec import SystemSpec

BACK_S = 30.0


@dataclass(frozen=True, slots=True)
class ExpireSession:
    """The session of each target with ZooKeeper ends while its process goes on, as if ZooKeeper had not
    heard of it for too long: whoever knows a session's id and password may take it over and close it. The
    broker's node vanishes, other brokers become leaders, and the broker, which is told, makes a new session.
    Nothing is undone.

    Proved when the broker's own node in ZooKeeper belongs to another session afterwards."""

    name: ClassVar[str] = "expire-session"
    holds_node: ClassVar[bool] = False

    def commands(self, context: FaultContext) -> Commands:
        for one in context.targets:
            if one.pid is None or one.is_zookeeper:
                what = "is a ZooKeeper server" if one.is_zookeeper else "does not run"
                raise FaultError(f"{self.name}: node {one.node_id} on {one.host} {what}")
        return Commands(
            tuple(ExpireBrokerSession(one.host, one.node_id, BACK_S) for one in context.targets), ()
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        ended = {
            done.step.host: json.loads(done.output)
            for done in probe_log.do
            if isinstance(done.step, ExpireBrokerSession) and done.output and not done.error
        }
        missing = [one.host for one in context.targets if one.host not in ended]
        if missing:
            return Proof(False, f"no session of {', '.join(missing)} was ended")
        texts = []
        for host, said in sorted(ended.items()):
            if not said["after"]:
                return Proof(False, f"{host} had no other session within {BACK_S:g} s")
            texts.append(
                f"{said['node']} of {host} belonged to session {said['before']:#x}, and belongs to "
                f"{said['after']:#x} since {said['absent_s']:.1f} s later"
            )
        return Proof(True, "; ".join(texts))


class ExpireSessionSpec(FaultSpec):
    """Settings of the fault ``expire-session``."""

    needs: ClassVar[tuple[Ability, ...]] = ()

    fault: Literal["expire-session"]
    """ZooKeeper ends the session of a broker that lives."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if not fleet.zookeeper:
            return "expire-session needs ZooKeeper: fleet.zookeeper is 0"
        return super().refusal(fleet, system)

    def build(self) -> ExpireSession:
        return ExpireSession()
