"""Steps that faults ask of the machine under a node, and of its disk and clock: values that
`wrackline.nemesis.executor` carries out."""

from __future__ import annotations

from dataclasses import dataclass

from wrackline.fleets.base import Disk


@dataclass(frozen=True, slots=True)
class PlugHost:
    """Pull the network cable of a virtual machine, or plug it in."""

    host: str
    up: bool


@dataclass(frozen=True, slots=True)
class StopHost:
    """Stop all processors of a virtual machine, or let them go on."""

    host: str
    stopped: bool


@dataclass(frozen=True, slots=True)
class DropPageCache:
    """Take the programs that use a host's data disk, and what they had not synced; the host stays on."""

    host: str


@dataclass(frozen=True, slots=True)
class CopyDisk:
    """Keep a copy of a host's data disk as it is now."""

    host: str


@dataclass(frozen=True, slots=True)
class SwapDisk:
    """Put another disk in the place of the data disk of a host that is off."""

    host: str
    disk: Disk


@dataclass(frozen=True, slots=True)
class InstallTools:
    """Lay a node's data folder out as its installation did, where it is empty."""

    host: str
    node_id: int


@dataclass(frozen=True, slots=True)
class HoldDisk:
    """Limits a host's data disk to so many bytes a second for reads and for writes; None: no limit."""

    host: str
    bytes_per_s: int | None


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """Make sure that a host's kernel is not that of this machine, whose clock and memory are everybody's."""

    host: str


@dataclass(frozen=True, slots=True)
class ReadClock:
    """Asks a host for the time, so many times. Output: a line for each with three numbers, in seconds: our
    own clock (monotonic), by how much the host's is ahead of ours, and how uncertain that is."""

    host: str
    command: str
    """Prints nanoseconds since 1970."""
    times: int = 1
    every_s: float = 0.1
