"""Ways to take away what a fault does, or what its undo does; whoever believes in it nevertheless is mended.

The steps are sabotaged, and everything that looks stays as it is: probes, watch, control and the looks that
follow every undo are made on the real hosts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pytest

from tests.nemesis.doubles import Recorded
from wrackline.fleets.base import Fleet
from wrackline.fleets.canary import Canaries
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    Fault,
    FaultContext,
    PowerOff,
    ProbeLog,
    Proof,
    Restorable,
    Shell,
)
from wrackline.nemesis.heal import Healer
from wrackline.nemesis.inject import injected, look_again
from wrackline.nemesis.spec import FAULT
from wrackline.nemesis.stage import Stage
from wrackline.systems.base import System

HOLD_S = 0.3


class Sabotage(StrEnum):
    NONE = "none"
    """The control: the fault as it is must be proved and restored."""
    OFF = "effect off"
    HALF = "on half of its hosts"
    OTHER = "on another host"
    AT_ONCE = "ended at once"
    UNDO_OFF = "undo off"
    UNDO_RAISES = "undo raises"


OF_UNDO = (Sabotage.UNDO_OFF, Sabotage.UNDO_RAISES)


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault as it is sabotaged. ``settings`` are those of a specification."""

    settings: Mapping[str, Any]
    hosts: tuple[str, ...] = ("n1",)
    elsewhere: str = "n2"
    """The other host that it is done to instead."""
    leaves_out: Mapping[Sabotage, str] = field(default_factory=dict)
    """What cannot be sabotaged so, and why."""
    hold_s: float = HOLD_S
    moves: bool = False
    """Its undo waits for replicas, and proves the fault by it: without it nothing is proved."""

    @property
    def fault(self) -> str:
        return str(self.settings["fault"])

    @property
    def sabotages(self) -> list[Sabotage]:
        return [one for one in Sabotage if one not in self.leaves_out]


@dataclass(frozen=True, slots=True)
class Sabotaged:
    """A fault with other steps, and the same eyes."""

    fault: Fault
    sabotage: Sabotage
    elsewhere: str
    pid_of: Callable[[str], int | None]
    """Of the node on a host."""
    made: list[Commands] = field(default_factory=list)
    """The steps of the fault as it is, and of the one elsewhere."""

    @property
    def name(self) -> str:
        return self.fault.name

    @property
    def holds_node(self) -> bool:
        return self.fault.holds_node

    def commands(self, context: FaultContext) -> Commands:
        real = self.fault.commands(context)
        self.made.append(real)
        match self.sabotage:
            case Sabotage.OFF:
                return replace(real, do=_looks(real), lasting=())
            case Sabotage.HALF:
                hosts = list(dict.fromkeys(step.host for step in real.do))
                assert len(hosts) > 1, "there is no half of one host"
                kept = hosts[: len(hosts) // 2]
                do = (_alone(step, len(kept)) for step in real.do if step.host in kept)
                return replace(real, do=tuple(do), lasting=())
            case Sabotage.OTHER:
                pid = self.pid_of(self.elsewhere)
                other = self.fault.commands(_aimed(context, self.elsewhere, pid))
                self.made.append(other)
                return replace(real, do=other.do, lasting=())
            case Sabotage.AT_ONCE:
                return replace(real, do=(*real.do, *real.undo), lasting=())
            case Sabotage.UNDO_OFF:
                return replace(real, undo=())
            case Sabotage.UNDO_RAISES:
                hosts = list(dict.fromkeys(step.host for step in real.undo))
                return replace(real, undo=tuple(Shell(host, "exit 7") for host in hosts))
        return real

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        return self.fault.prove(context, probe_log)

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        return self.fault.residue(context, probe_log) if isinstance(self.fault, Restorable) else ""


def _looks(real: Commands) -> tuple[Step, ...]:
    """Of the steps that do it only those that look: the same that also probe."""
    return tuple(step for step in real.do if step in real.probe)


def _alone(step: Step, among: int) -> Step:
    """Hosts that lose their power together wait for each other."""
    return replace(step, among=among) if isinstance(step, PowerOff) else step


def _aimed(context: FaultContext, host: str, pid: int | None) -> FaultContext:
    """At another host; the targets' own are among the others."""
    everybody = {one.host: one for one in context.hosts}
    others = tuple(one for one in context.hosts if one.host != host)
    return replace(context, targets=(replace(everybody[host], pid=pid),), others=others)


@dataclass
class Place:
    """Where faults are sabotaged."""

    fleet: Fleet
    system: System
    topics: tuple[str, ...] = ()
    canaries: Canaries | None = None

    def tried(self, trial: Trial, sabotage: Sabotage) -> Mapping[str, Any]:
        """The fault's last row; afterwards nothing of it is there."""
        recorded = Recorded()
        stage = Stage(self.fleet, self.system, recorded, self.topics, self.canaries)
        fault = FAULT.validate_python(dict(trial.settings)).build()
        nodes = {node.host.name: node for node in self.system.nodes}
        sabotaged = Sabotaged(fault, sabotage, trial.elsewhere, lambda host: self.system.pid(nodes[host]))
        try:
            asyncio.run(_held(stage, sabotaged, trial))
        finally:
            stage.close()
        repairs = Healer(self.fleet, self.system).heal()
        if sabotage is Sabotage.NONE:
            spares = tuple(f"{node.host.name}: " for node in self.system.nodes if node.spare)
            assert [one for one in repairs if not one.startswith(spares or "?")] == []
        return {**recorded.ended("f1"), "restored": recorded.restored("f1")}


async def _held(stage: Stage, fault: Sabotaged, trial: Trial) -> None:
    async with injected(stage, fault, fault_id="f1", hosts=trial.hosts, role="one"):
        await asyncio.sleep(trial.hold_s)
    await look_again(stage)
    if fault.sabotage is not Sabotage.NONE:
        for real in reversed(fault.made):
            await stage.run(real.undo, undoing=True)


def check(trial: Trial, place: Place, sabotage: Sabotage) -> None:
    """Nobody is taken in: what was not done, or not all the time, is not proved; what was not undone is not
    restored. Of the fault as it is both are said."""
    ended = place.tried(trial, sabotage)
    words = {key: ended.get(key) for key in ("proved", "proof", "restored", "restoration", "error")}
    if sabotage is Sabotage.NONE:
        assert (ended["proved"], ended["restored"]) == (True, True), words
        assert "error" not in ended, words
    elif sabotage not in OF_UNDO or trial.moves:
        assert ended["proved"] is False, words
        assert "does not run" not in str(ended.get("error")), "the sabotage itself did nothing"
    else:
        assert ended["restored"] is False, words


def every(trials: Mapping[str, Trial]) -> list[Any]:
    """Parameters of a test: each fault with each sabotage, named by both."""
    return [
        pytest.param(trial, sabotage, id=f"{name}: {sabotage}")
        for name, trial in trials.items()
        for sabotage in trial.sabotages
    ]
