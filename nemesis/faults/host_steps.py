"""Steps that faults ask of the machine under a node, and of its disk and clock: values that
`wrackline.nemesis.executor` carries out."""

from __future__ import annotations

from dataclasses import dataclass

from wrackline.fleets.base import Disk
from wrackline.nemesis.faults.step import NodeStep, Step


@dataclass(frozen=True, slots=True)
class PlugHost(Step):
    """Pull the network cable of a virtual machine, or plug it in."""

    up: bool


@dataclass(frozen=True, slots=True)
class StopHost(Step):
    """Stop all processors of a virtual machine, or let them go on."""

    stopped: bool


class DropPageCache(Step):
    """Take the programs that use a host's data disk, and what they had not synced; the host stays on."""


@dataclass(frozen=True, slots=True)
class CutDisk(Step):
    """Take one data disk from a host that stays on, with what it has not synced."""

    number: int


@dataclass(frozen=True, slots=True)
class RestoreDisk(Step):
    """Mount a data disk anew; programs that still hold on to it are killed."""

    number: int


class CopyDisk(Step):
    """Keep a copy of a host's data disk as it is now."""


@dataclass(frozen=True, slots=True)
class SwapDisk(Step):
    """Put another disk in the place of the data disk of a host that is off."""

    disk: Disk


class InstallTools(NodeStep):
    """Lay a node's data folder out as its installation did, where it is empty."""


@dataclass(frozen=True, slots=True)
class HoldDisk(Step):
    """Limits a host's data disk to so many bytes a second for reads and for writes; None: no limit."""

    bytes_per_s: int | None


class OwnKernel(Step):
    """Make sure that a host's kernel is not that of this machine, whose clock and memory are everybody's."""


@dataclass(frozen=True, slots=True)
class ReadClock(Step):
    """Asks a host for the time, so many times. Output: a line for each with three numbers, in seconds: our
    own clock (monotonic), by how much the host's is ahead of ours, and how uncertain that is."""

    command: str
    """Prints nanoseconds since 1970."""
    times: int = 1
    every_s: float = 0.1
