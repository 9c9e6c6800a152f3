"""Faults of a data disk as a whole: it is full, or slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wrackline.fleets.abilities import Ability
from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.disks.power import OURS, OnDiskSpec, restart_node
from wrackline.nemesis.faults.host_steps import HoldDisk
from wrackline.nemesis.faults.outputs import last, throughout
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    ProbeLog,
    Proof,
    Shell,
    Target,
)

ENOSPC = "No space left on device"
FILL, PROBE = f"{OURS}fill", f"{OURS}probe"
LEAST_PROBE_BYTES = 262_144
BLOCK_BYTES = 65_536
SLACK = 1.3
"""A disk that is held back counts as slow up to so many times its limit: a limit is kept on average."""
FASTER = 2.0
"""So many times its limit the same disk must do when it is not held back."""


@dataclass(frozen=True, slots=True)
class DiskFull:
    """A file takes all the room on the data disk, and whatever becomes free again; on undo it is removed and
    the node starts, if it ended, and starts anew where it has several disks.

    Proved when no 64 KiB can be written at the beginning and at the end, and they can afterwards.
    """

    name: ClassVar[str] = "disk-full"
    holds_node: ClassVar[bool] = True

    on_disk: int | None = None

    def commands(self, context: FaultContext) -> Commands:
        fill = tuple(
            Shell(
                one.host,
                programs.start(
                    context.fault_id, "fill", _fill(one.disk(self.on_disk)), ready="^full", wait_s=30
                ),
                45,
            )
            for one in context.targets
        )
        undo = tuple(
            step
            for one in context.targets
            for step in (
                Shell(
                    one.host,
                    f"{programs.end(context.fault_id, 'fill')}; rm -f {one.disk(self.on_disk)}/{FILL}",
                ),
                *restart_node(one),
            )
        )
        probe = tuple(_write(one, one.disk(self.on_disk)) for one in context.targets)
        return Commands(do=fill, undo=undo, probe=probe, control=probe, lasting=fill)

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        for one in context.targets:
            said = throughout(probe_log, one)
            if not all(ENOSPC in text for text in said):
                return Proof(False, f"{one.host}: its data disk was not full throughout: {' | '.join(said)}")
        if probe_log.undo and (flaw := self.residue(context, probe_log)):
            return Proof(False, flaw)
        hosts = ", ".join(one.host for one in context.targets)
        after = ", and could again after the undo" if probe_log.undo else ""
        return Proof(True, f"{hosts}: 64 KiB could not be written ({ENOSPC}){after}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        said = {one.host: last(probe_log.control, one) for one in context.targets}
        return "; ".join(
            f"{host}: nothing can be written after the undo, either: {text or 'no answer'}"
            for host, text in said.items()
            if "written" not in text
        )


def _fill(disk: str) -> str:
    """Falls back on writing where a file system cannot allocate, and fills up what becomes free."""
    file = f"{disk}/{FILL}"
    free = f"$(df --output=avail -B1 {disk} | tail -n 1)"
    return (
        f"LC_ALL=C; fallocate -l {free} {file} 2>/dev/null; "
        f'while :; do cat /dev/zero 2>/dev/null >>{file}; [ -n "$told" ] || echo full; told=1; '
        "sleep 0.1; done"
    )


def _write(target: Target, disk: str) -> Shell:
    file = f"{disk}/{PROBE}"
    dd = f"LC_ALL=C dd if=/dev/zero of={file} bs={BLOCK_BYTES} count=1 conv=fsync status=none"
    return Shell(target.host, f"{dd} 2>&1 && echo written; rm -f {file}")


class DiskFullSpec(OnDiskSpec):
    """Settings of the fault ``disk-full``."""

    makes = DiskFull
    needs = (Ability.ROOT, Ability.DISK)

    fault: Literal["disk-full"]
    """There is no room on the data disk. A node that ends for it is started when there is room again."""


@dataclass(frozen=True, slots=True)
class SlowDisk:
    """The data disk reads and writes so many bytes a second each.

    Proved when as many bytes as it may write in a second take about a second or longer, at the beginning and
    at the end, and far less afterwards.
    """

    name: ClassVar[str] = "slow-disk"
    holds_node: ClassVar[bool] = False

    bytes_per_s: int = 1_000_000

    def commands(self, context: FaultContext) -> Commands:
        probe = tuple(self._timed(one) for one in context.targets)
        return Commands(
            do=tuple(HoldDisk(one.host, self.bytes_per_s) for one in context.targets),
            undo=tuple(HoldDisk(one.host, None) for one in context.targets),
            probe=probe,
            control=probe,
        )

    def _timed(self, target: Target) -> Shell:
        """Prints nanoseconds and bytes."""
        blocks = max(LEAST_PROBE_BYTES, self.bytes_per_s) // BLOCK_BYTES
        file = f"{target.data_dir}/{PROBE}"
        return Shell(
            target.host,
            f"began=$(date +%s%N); dd if=/dev/zero of={file} bs={BLOCK_BYTES} count={blocks} oflag=direct "
            f"conv=fsync status=none; echo $(($(date +%s%N) - began)) {blocks * BLOCK_BYTES}; rm -f {file}",
            timeout_s=60,
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        texts = []
        for one in context.targets:
            speeds = [_bytes_per_s(said) for said in throughout(probe_log, one)]
            if any(speed is None or speed > SLACK * self.bytes_per_s for speed in speeds):
                return Proof(False, f"{one.host}: its data disk wrote {_listed(speeds)} bytes a second")
            text = f"{one.host}: its data disk wrote {_listed(speeds)} bytes a second"
            if probe_log.undo:
                text += f", {_listed([_bytes_per_s(last(probe_log.control, one))])} after the undo"
            texts.append(text)
        if probe_log.undo and self.residue(context, probe_log):
            return Proof(False, f"{'; '.join(texts)}: so it is no faster without")
        return Proof(True, "; ".join(texts))

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        after = {one.host: _bytes_per_s(last(probe_log.control, one)) for one in context.targets}
        return "; ".join(
            f"{host}: its data disk writes {_listed([speed])} bytes a second after the undo"
            for host, speed in after.items()
            if speed is None or speed < FASTER * self.bytes_per_s
        )


def _bytes_per_s(said: str) -> float | None:
    words = said.split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return None
    return int(words[1]) * 1e9 / max(1, int(words[0]))


def _listed(speeds: list[float | None]) -> str:
    return " and ".join("an unknown number of" if one is None else f"{one:,.0f}" for one in speeds)


class SlowDiskSpec(FaultSpec):
    """Settings of the fault ``slow-disk``."""

    makes = SlowDisk
    needs = (Ability.DISK, Ability.THROTTLE)

    fault: Literal["slow-disk"]
    """The data disk is held back from outside of the host."""
    bytes_per_s: Annotated[int, Field(ge=65_536, le=100_000_000)] = 1_000_000
    """So many bytes it reads in a second at most, and so many it writes."""
