"""The check that a fault is gone after its undo, by what its hosts show then, and not by what the undo said.

Looked for after every fault: chains and programs by the fault's id, on each host that its steps touched; and
the node of each target, which must run again and not be stopped, where the fault had taken it. What else a
fault must restore (settings, leaders, a disk) its own control steps show (`Restorable.residue`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from wrackline.fleets.base import CLIENTS
from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.faults.node_state import NOBODY, STOPPED, looks_at, nodes_seen
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    Fault,
    FaultContext,
    ProbeLog,
    Restorable,
    Shell,
    StepResult,
    Target,
)

WAIT_S = 20.0
"""How long a fault may take to be gone after its undo: a node starts, an election is held."""
POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Restoration:
    """The result of the undo."""

    restored: bool | None
    """None: nobody can tell yet, for a host has no power or another fault is in force."""
    text: str


@dataclass(frozen=True, slots=True)
class Remains:
    """The rest of a fault that one look after the undo saw."""

    certain: str = ""
    """What is this fault's beyond doubt."""
    own: str = ""
    """What the fault's control steps saw, which another fault in force may account for."""
    unseen: str = ""
    """A host without power, of which nothing can be seen."""

    @property
    def text(self) -> str:
        return "; ".join(filter(None, (self.certain, self.own, self.unseen)))


class Restorer:
    """Looks at faults after their undo, and again at those of which nobody could tell then."""

    def __init__(
        self,
        run: Callable[[Sequence[Step]], Awaitable[list[StepResult]]],
        folders: Collection[str],
        *,
        looks: bool,
    ) -> None:
        """``folders``: hosts that are folders of this machine, where no fault may leave anything and what is
        seen is everybody's. ``looks``: whether hosts are ours to look at, besides a fault's own control."""
        self._run = run
        self._folders = folders
        self._looks = looks
        self.live: set[str] = set()
        """Faults that have begun and are not over."""
        self._doubtful: list[tuple[Fault, FaultContext, Commands, ProbeLog]] = []

    async def look(
        self, fault: Fault, scene: FaultContext, commands: Commands, trail: ProbeLog
    ) -> tuple[Restoration, ProbeLog]:
        """Looks until nothing of the fault is there, or it has had time enough. The trail comes back with the
        control steps on it."""
        if not scene.targets:
            return Restoration(True, "nothing was done"), trail
        deadline = time.monotonic() + WAIT_S
        steps = _looks(fault, scene, commands, self._folders) if self._looks else ()
        while True:
            seen, control = await self._run(steps), await self._run(commands.control)
            trail = replace(trail, control=control)
            left = _remains(fault, scene, trail, seen)
            if not left.text:
                return Restoration(True, "nothing of it was left"), trail
            others = ", ".join(sorted(self.live - {scene.fault_id}))
            if not trail.late and (left.unseen or (others and not left.certain)):
                self._doubtful.append((fault, scene, commands, trail))
                meanwhile = f"; in force meanwhile: {others}" if others else ""
                return Restoration(None, left.text + meanwhile), trail
            if time.monotonic() > deadline:
                return Restoration(False, left.text), trail
            await asyncio.sleep(POLL_S)

    async def look_again(self) -> list[tuple[str, str, Restoration]]:
        """When no fault is in force any more: id and name of each of which nobody could tell before."""
        doubtful, self._doubtful = self._doubtful, []
        result = await asyncio.gather(
            *(
                self.look(fault, scene, commands, replace(trail, late=True))
                for fault, scene, commands, trail in doubtful
            )
        )
        return [
            (scene.fault_id, fault.name, restoration)
            for (fault, scene, _, _), (restoration, _) in zip(doubtful, result, strict=True)
        ]


def _looks(
    fault: Fault, scene: FaultContext, commands: Commands, folders: Collection[str]
) -> tuple[Step, ...]:
    """Returns the steps that look at iptables, programs and nodes: what every fault must have given back."""
    known = {one.host: one for one in (*scene.hosts, *([scene.clients] if scene.clients else []))}
    touched = dict.fromkeys(step.host for step in (*commands.do, *commands.undo) if isinstance(step, Shell))
    left = tuple(
        _left(scene.fault_id, known[host]) for host in touched if host in known and host not in folders
    )
    return (*left, *(looks_at(scene.targets) if fault.holds_node else ()))


def _left(fault_id: str, host: Target) -> Shell:
    """Prints a line for each chain and program of the fault that is still there."""
    chain, folder = iptables.chain(fault_id), f"{host.programs}/{fault_id}"
    return Shell(
        host.host,
        f"( {iptables.LIST_CHAINS} ) | sed -n 's/^{chain}$/chain &/p'; "
        f"ls {folder} 2>/dev/null | sed 's/^/program /'; true",
    )


def _remains(fault: Fault, scene: FaultContext, trail: ProbeLog, seen: Sequence[StepResult]) -> Remains:
    certain = [
        f"{done.step.host}: {' and '.join(done.output.splitlines())} still there"
        for done in seen
        if isinstance(done.step, Shell) and done.output.strip()
    ]
    certain += [f"{done.step.host}: {done.error}" for done in seen if done.error]
    if fault.holds_node:
        certain += _nodes(scene, nodes_seen(seen), {done.step.host for done in seen if done.skipped})
    unseen = sorted({done.step.host for done in (*seen, *trail.control) if done.skipped})
    own = fault.residue(scene, trail) if isinstance(fault, Restorable) else ""
    dark = f"{', '.join(unseen)} had no power to be looked at" if unseen else ""
    return Remains("; ".join(certain), own, dark)


def _nodes(scene: FaultContext, seen: Mapping[str, str], dark: set[str]) -> list[str]:
    error = []
    for one in scene.targets:
        state = seen.get(one.host, "")
        if one.host in dark or one.host == CLIENTS or not state:
            continue
        if state == NOBODY:
            error.append(f"node {one.node_id} on {one.host} does not run")
        elif state.endswith(STOPPED):
            error.append(f"process {state.split()[0]} on {one.host} is stopped")
    return error
