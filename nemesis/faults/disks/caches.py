"""Faults of the page cache: clean pages dropped, so that reads are cold, and all that is not synced dropped
while the host stays on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wrackline.fleets.abilities import Ability
from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.disks.power import OURS, lost_by_host, text_of, took_what_it_should
from wrackline.nemesis.faults.host_steps import DropPageCache
from wrackline.nemesis.faults.node_state import not_down, while_down
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import Commands, FaultContext, ProbeLog, Proof, Shell, Target
from wrackline.plugins.fields import SECONDS
from wrackline.systems.spec import SystemSpec

_ROUND = re.compile(r"^round (\d+) (\d+)$", re.MULTILINE)
WHOLE_HOST = "whole_host"
_PROGRAM = Path(__file__).with_name("evict_program.py")


@dataclass(frozen=True, slots=True)
class EvictCache:
    """Again and again the pages of the node's files are dropped from the page cache. Pages that are mapped,
    or that are not written yet, stay.

    Proved when the first round found pages and left fewer.
    """

    name: ClassVar[str] = "evict-cache"
    holds_node: ClassVar[bool] = False

    every_s: float = 1.0
    whole_host: bool = False

    def commands(self, context: FaultContext) -> Commands:
        started = tuple(
            Shell(one.host, programs.start(context.fault_id, "evict", self._rounds(one), ready="^round"))
            for one in context.targets
        )
        return Commands(
            do=started,
            undo=tuple(Shell(one.host, programs.end(context.fault_id, "evict")) for one in context.targets),
            probe=tuple(Shell(one.host, programs.log(context.fault_id, "evict")) for one in context.targets),
            lasting=started,
        )

    def _rounds(self, target: Target) -> str:
        arguments = (target.data_dir, OURS, "host" if self.whole_host else "files", f"{self.every_s:g}")
        return f"exec {programs.python_command(target.python, _PROGRAM, *arguments)}"

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        texts = []
        for one in context.targets:
            said = next((done.output for done in probe_log.active if done.step.host == one.host), "")
            last = next((done.output for done in probe_log.final if done.step.host == one.host), said)
            rounds = [(int(before), int(after)) for before, after in _ROUND.findall(last or said)]
            if not rounds:
                return Proof(False, f"{one.host}: nothing was evicted: {said.strip() or 'no answer'}")
            before, after = rounds[0]
            if not after < before:
                return Proof(False, f"{one.host}: {before} bytes were in the page cache, {after} still are")
            texts.append(
                f"{one.host}: of {before} bytes in the page cache {after} were left; "
                f"{sum(b - a for b, a in rounds)} bytes evicted in {len(rounds)} rounds"
            )
        return Proof(True, "; ".join(texts))


class EvictCacheSpec(FaultSpec):
    """Settings of the fault ``evict-cache``."""

    makes = EvictCache
    fault: Literal["evict-cache"]
    """Clean pages of the node's files are dropped from the page cache, again and again: reads come from the
    disk."""
    every_s: Annotated[float, Field(ge=0.1, le=60), SECONDS] = 1.0
    """Between two rounds."""
    whole_host: bool = False
    """Drop the clean pages of everything on the host, by the kernel's `drop_caches`. Without it pages of the
    node's files alone, of which those that are not written yet begin to be written."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if (why := super().refusal(fleet, system)) is not None or not self.whole_host:
            return why
        if why := fleet.lacks(Ability.KERNEL):
            return f"evict-cache with {WHOLE_HOST} needs {Ability.KERNEL}: {why}"
        return None


@dataclass(frozen=True, slots=True)
class DroppedPageCache:
    """The programs on the data disk are killed and what they had not synced is gone; the host stays on. On
    undo the node starts.

    Proved, as a power cut is, when the canary of every host lost what it should, and the node was down from
    beginning to end.
    """

    name: ClassVar[str] = "drop-page-cache"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        up = tuple(
            Shell(one.host, "cat /proc/sys/kernel/random/boot_id; cut -d ' ' -f 22 /proc/1/stat")
            for one in context.targets
        )
        return while_down(context, (*up, *(DropPageCache(one.host) for one in context.targets)), up)

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        dropped = {done.step.host: done for done in probe_log.do if done.cut}
        missed = [one.host for one in context.targets if one.host not in dropped]
        if missed:
            return Proof(False, f"the page cache of {', '.join(missed)} was not dropped")
        lost = lost_by_host(dropped, dropped)
        for one in context.targets:
            lives = {
                done.output
                for done in (*probe_log.do, *probe_log.active, *probe_log.final)
                if isinstance(done.step, Shell) and done.step.host == one.host
            }
            if len(lives) != 1:
                return Proof(False, f"{one.host} did not stay on", lost)
        if flaw := not_down(context, probe_log):
            return Proof(False, flaw, lost)
        proved = all(took_what_it_should(dropped[host]) for host in dropped)
        texts = (f"{host} stayed on: {text_of(dropped[host])}" for host in sorted(dropped))
        return Proof(proved, "; ".join(texts), lost)


class DropPageCacheSpec(FaultSpec):
    """Settings of the fault ``drop-page-cache``."""

    makes = DroppedPageCache
    needs = (Ability.DISK, Ability.PAGE_CACHE)

    fault: Literal["drop-page-cache"]
    """The node is killed and loses all unsynced bytes, while its host stays on."""
