"""Faults of processes that end more than once: a crash loop, a rolling restart, a rolling upgrade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults.node_state import NOBODY, looks_at, nodes_seen, not_down, while_down
from wrackline.nemesis.faults.spec import FaultSpec, Role, UnprivilegedSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    KillNode,
    ProbeLog,
    Proof,
    Roll,
    Shell,
    StartNode,
    Target,
)
from wrackline.plugins.fields import SECONDS
from wrackline.systems.kafka.releases import NEWEST
from wrackline.systems.spec import SystemSpec

ROLL_S = 60.0
"""For each node to end, and for the ISR to be full again."""
START_S = 10.0
ALL_S = 9 * (2 * ROLL_S + START_S)


@dataclass(frozen=True, slots=True)
class CrashLoop:
    """Killed, started and killed again, so many times; on undo the node starts and is left alone.

    Proved when as many processes as it should be were there and are gone, each another one, and none was
    there from then to the end.
    """

    name: ClassVar[str] = "crash-loop"
    holds_node: ClassVar[bool] = True

    times: int = 3
    up_s: float = 1.0

    def commands(self, context: FaultContext) -> Commands:
        return while_down(context, (step for one in context.targets for step in self._loop(one)))

    def _loop(self, target: Target) -> list[Step]:
        target.running(self.name)
        kill, start = KillNode(target.host, target.node_id), StartNode(target.host, target.node_id)
        up = Shell(target.host, f"sleep {self.up_s:g}", timeout_s=self.up_s + 15)
        return [kill, *(step for _ in range(self.times - 1) for step in (start, up, kill))]

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        texts = []
        for one in context.targets:
            kills = [
                done.output.split()
                for done in probe_log.do
                if isinstance(done.step, KillNode) and done.step.host == one.host and not done.error
            ]
            killed = [before for before, after in kills if before != NOBODY and after == NOBODY]
            text = f"{one.host}: {len(set(killed))} processes were killed ({', '.join(killed) or 'none'})"
            if len(set(killed)) != self.times:
                return Proof(False, f"{text}, not {self.times}")
            texts.append(text)
        if flaw := not_down(context, probe_log):
            return Proof(False, f"{'; '.join(texts)}; then {flaw}")
        return Proof(True, "; ".join(texts))


class CrashLoopSpec(UnprivilegedSpec):
    """Settings of the fault ``crash-loop``."""

    makes = CrashLoop
    fault: Literal["crash-loop"]
    """The process is killed, and again each time it has come up."""
    times: Annotated[int, Field(ge=2, le=50)] = 3
    """How often it is killed."""
    up_s: Annotated[float, Field(ge=0, le=60), SECONDS] = 1.0
    """How long it is up before it is killed again. It is down for as long as the fault lasts then."""

    @property
    def begins_s(self) -> float:
        return self.times * (self.up_s + START_S)


@dataclass(frozen=True, slots=True)
class Rolling:
    """One node after another is stopped cleanly and started again, as another version where one is named; the
    next one's turn comes when every replica is in the ISR again.

    Proved when each node is another process, of the version it should be, and the ISR was full after each.
    """

    holds_node: ClassVar[bool] = True

    to: str | None = None
    settle_s: float = 0.0

    @property
    def name(self) -> str:
        return "rolling-restart" if self.to is None else "rolling-upgrade"

    def commands(self, context: FaultContext) -> Commands:
        for one in context.targets:
            one.running(self.name)
        first = context.targets[0].host
        return Commands(
            do=(Roll(first, tuple(one.node_id for one in context.targets), self.to, ROLL_S, self.settle_s),),
            undo=tuple(StartNode(one.host, one.node_id) for one in context.targets),
            probe=looks_at(context.targets),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        seen = nodes_seen(probe_log.active)
        said = "\n".join(
            done.output for done in probe_log.do if isinstance(done.step, Roll) and not done.error
        )
        lines = {line.split()[0]: line.split()[1:] for line in said.splitlines()}
        texts = []
        for one in context.targets:
            if one.host not in lines:
                return Proof(False, f"{one.host} was not restarted")
            _, _, took_s, old, new = lines[one.host]
            before, after = str(one.pid), seen.get(one.host, NOBODY).split()[0]
            if after in (NOBODY, before):
                return Proof(False, f"{one.host}: process {before} was not followed by another ({after})")
            if self.to is not None and (new != self.to or old == self.to):
                return Proof(False, f"{one.host} went from version {old} to {new}, not to {self.to}")
            versions = "" if self.to is None else f", {old} -> {new}"
            texts.append(f"{one.host}: process {before} -> {after}{versions}, full ISR after {took_s} s")
        return Proof(True, "; ".join(texts))


class RollingRestartSpec(UnprivilegedSpec):
    """Settings of the fault ``rolling-restart``."""

    makes = Rolling
    fault: Literal["rolling-restart"]
    """One node after another is stopped cleanly and started, each when the ISR is full again."""
    target: Role = "all"
    """Which nodes, a role or hosts by name; by name they are restarted in the order given."""

    @property
    def begins_s(self) -> float:
        return ALL_S


class RollingUpgradeSpec(FaultSpec):
    """Settings of the fault ``rolling-upgrade``."""

    makes = Rolling
    example: ClassVar[Mapping[str, Any]] = {"to": "4.4.0"}

    fault: Literal["rolling-upgrade"]
    """One node after another is stopped and started as another version, which stays."""
    target: Role = "all"
    """Which nodes, a role or hosts by name; by name they are upgraded in the order given."""
    to: str = NEWEST
    """The version that they become, a later or an earlier one: of Apache Kafka one that is installed on this
    machine (`wrackline get kafka`), of our own broker a profile."""
    settle_s: Annotated[float, Field(ge=0, le=60), SECONDS] = 0.0
    """So long every ISR must stay full before the next one's turn. Without a controller a broker that
    restarts stays in the ISR until a write has waited for it (`replica_lag_time_max_ms`), whatever it
    lacks."""

    @property
    def begins_s(self) -> float:
        return ALL_S + 9 * self.settle_s

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if (why := super().refusal(fleet, system)) is not None:
            return why
        if why := system.cannot_become(self.to, fleet):
            return f"rolling-upgrade to {self.to}: {why}"
        return None
