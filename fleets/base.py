"""The interface of a fleet: hosts with SSH, and a power switch (docs/architecture.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Protocol, runtime_checkable

from wrackline.errors import InfrastructureError


def further_disks(first: PurePosixPath, count: int) -> tuple[PurePosixPath, ...]:
    """Returns the mount points of disk 2, disk 3, ... of a host with so many: ``/data2``, ``/data3``."""
    return tuple(first.with_name(f"{first.name}{number}") for number in range(2, count + 1))


class FleetError(InfrastructureError):
    """A host, its SSH or its power switch failed. The message names the host, the command and the way out."""


class Become(StrEnum):
    """The rights of a user who is not root to run commands as root, by ``sudo`` without a password."""

    NOBODY = "nobody"
    """Nothing."""
    NAMED = "named"
    """A few commands (`wrackline.fleets.become`)."""
    ROOT = "root"
    """Everything; every command is carried out as root."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine we can log in to."""

    name: str
    """Short and stable: ``n1``, ``n2``, ``c1``."""
    address: str
    user: str = "root"
    port: int = 22
    key_file: Path | None = None
    data_dir: PurePosixPath = PurePosixPath("/data")
    """Mount point of the disk that loses unsynced data in a power cut."""
    more_disks: tuple[PurePosixPath, ...] = ()
    """Mount points of further such disks, for nodes that keep their data on several."""
    python: str = "/usr/bin/python3"
    root: PurePosixPath = PurePosixPath("/")
    """Where the folders of a system begin (``opt/wrackline`` and others): ``/`` where we may write there."""
    is_folder: bool = False
    """It is only a folder of a machine, and shares processes and network with its neighbours there."""
    shared: PurePosixPath | None = None
    """A folder that it sees alike with all other hosts, and that no power cut touches."""
    reads_here: bool = False
    """It may read files of this machine by their own paths: those that it does not see it must be sent."""
    login_address: str = ""
    """Where its SSH answers, where that is not ``address``."""
    become: Become = Become.NOBODY
    """As whom commands are carried out, where ``user`` is not root."""
    alias: str = ""
    """What its owner calls it."""

    @property
    def disks(self) -> tuple[PurePosixPath, ...]:
        """Returns the mount points of the data disks: disk 1, disk 2, ..."""
        return (self.data_dir, *self.more_disks)

    @property
    def ssh_address(self) -> str:
        return self.login_address or self.address

    @property
    def called(self) -> str:
        """Returns the host's name for people, in errors."""
        return f"{self.name} ({self.alias})" if self.alias else self.name


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command on a host."""

    host: str
    command: str
    exit_code: int
    stdout: str
    stderr: str
    duration_s: float

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


class Stream(Protocol):
    """A command on a host that goes on, and what it says meanwhile."""

    def read(self, timeout_s: float) -> bytes:
        """Returns the output since the last call (errors too), as soon as there is some; ``b""`` when the
        command or the connection has ended. Raises TimeoutError when there was none for so long, as also a
        host without power does."""

    def close(self) -> None:
        """Stop listening: the command meets a broken pipe when it says the next thing."""


class Remote(Protocol):
    """A kept SSH connection to one host; safe to use from several threads; reconnects by itself after a power
    cut."""

    host: Host

    def run(self, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        """Run ``command`` in a shell. Raises FleetError when the host cannot be reached, on the deadline, and
        (with ``check``) on an exit code other than 0."""

    def follow(self, command: str, *, timeout_s: float = 30.0) -> Stream:
        """Start a command that goes on, over a connection of its own: neither the deadline of another command
        nor ``close`` ends it. Raises FleetError when it could not be started in time."""

    def put(self, content: Path | bytes, path: str, *, mode: int = 0o644) -> None:
        """Write a file on the host, atomically, making its folders."""

    def get(self, path: str) -> bytes:
        """A file of the host. Raises FleetError when it is not there."""

    def get_tree(self, path: str, into: Path, *, patterns: Sequence[str] = ("*",)) -> list[Path]:
        """Fetch the files below a folder of the host (one compressed stream). Returns the local paths."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class FileLoss:
    """Bytes that one file lost in a power cut."""

    before_bytes: int
    """Size as programs on the host saw it just before the power went."""
    after_bytes: int
    """Size after power-on and recovery of the file system, without zeros where data was; 0 when the file is
    gone."""
    changed: bool = False
    """The size stayed, but the last bytes are others: zeros, or an older version of a file that was
    replaced."""

    @property
    def lost_bytes(self) -> int:
        return max(0, self.before_bytes - self.after_bytes)


@dataclass(frozen=True, slots=True)
class PowerCut:
    """The outcome of one power cut. ``files`` is filled in by power-on: paths relative to the data disk."""

    host: str
    decided_ns: int
    """Monotonic clock when the cut was asked for."""
    lost_ns: int
    """Monotonic clock when the unsynced bytes were gone."""
    files: Mapping[str, FileLoss] = field(default_factory=dict)
    counted: bool = True
    """False: this fleet cannot look at its hosts' disks, so any file may have lost bytes."""

    @property
    def lost_bytes(self) -> int:
        return sum(loss.lost_bytes for loss in self.files.values())


class PowerSwitch(Protocol):
    """The only thing that may reach around SSH."""

    def cut(self, host: Host) -> PowerCut:
        """Power off now: everything not synced is lost. A host that is off already stays off."""

    def on(self, host: Host) -> PowerCut | None:
        """Power on and wait for SSH; what the last cut lost, or None when the host was on. Idempotent."""

    def is_on(self, host: Host) -> bool: ...


class Disk(StrEnum):
    """The data disk that a host finds at power-on."""

    KEPT = "kept"
    """Its own, with all that was synced."""
    STALE = "stale"
    """An older copy of its own."""
    WIPED = "wiped"
    """An empty one."""


@runtime_checkable
class PageCache(Protocol):
    """An optional ability of a power switch: it takes the unsynced bytes alone."""

    def drop_page_cache(self, host: Host) -> PowerCut:
        """Kill the programs that use the data disk and lose what they had not synced, while the host stays
        on. Starting them again is the caller's. Raises FleetError, also when the host is off."""


@runtime_checkable
class DiskPower(Protocol):
    """An optional ability of a power switch: it takes one data disk from a host that stays on. Disks are
    counted from 1."""

    def cut_disk(self, host: Host, number: int) -> PowerCut:
        """Take a disk from under its programs: what it had not synced is lost, and everything that is asked
        of it fails. Raises FleetError, also when the host is off."""

    def restore_disk(self, host: Host, number: int) -> PowerCut | None:
        """Kill the programs that still hold on to the disk, and mount it anew. Returns what the last
        ``cut_disk`` lost; None when there was none. Idempotent. Raises FleetError, also when the host is
        off."""


@runtime_checkable
class SwappedDisk(Protocol):
    """An optional ability of a power switch: it gives a host another data disk."""

    def copy_disk(self, host: Host) -> None:
        """Keep a copy of the data disk as it is now, all of it synced, in place of an earlier copy. The host
        is on, and stands still meanwhile. Raises FleetError."""

    def swap_disk(self, host: Host, disk: Disk) -> None:
        """Puts an empty disk or the last copy in the place of the disk of a host that is off; the former disk
        is gone then. Raises FleetError, also when the host is on or has no copy."""


@runtime_checkable
class Throttle(Protocol):
    """An optional ability of a power switch: it slows a host's data disk."""

    def throttle(self, host: Host, bytes_per_s: int | None) -> None:
        """Limits the disk to so many bytes a second for reads and for writes; None: no limit. Also for a host
        that is off, from its power-on. Idempotent. Raises FleetError."""


@runtime_checkable
class Hypervisor(Protocol):
    """An optional ability of a power switch of virtual machines: it acts as their hypervisor. All of it ends
    with the host's power. Every method raises FleetError, also for a host that is off."""

    def link(self, host: Host, *, up: bool) -> None:
        """Pull the host's network cable, or plug it in; the host sees its carrier go."""

    def pause(self, host: Host) -> None:
        """Stop all processors of the host."""

    def resume(self, host: Host) -> None:
        """Resumes the host; its clock goes on from where it stood."""


CLIENTS = "clients"
"""What the machine is called that the clients are on."""


@runtime_checkable
class ClientsSide(Protocol):
    """An optional ability of a fleet: faults may use the network that the clients are in."""

    @property
    def clients(self) -> Remote:
        """Commands there, as root. Its host is called `CLIENTS`, has the address that clients come from, and
        as ``root`` a folder for what is to lie there, which goes away with the fleet."""


class Fleet(Protocol):
    """A set of hosts. ``up`` is idempotent, ``down`` leaves nothing, both clean up after a killed
    predecessor."""

    name: str
    hosts: tuple[Host, ...]

    @property
    def power(self) -> PowerSwitch: ...

    def up(self) -> None: ...

    def down(self) -> None: ...

    def detach(self) -> None:
        """Lets the hosts live on when this process ends."""

    def remote(self, host: Host) -> Remote:
        """The kept connection to a host (one per host, made on first use)."""

    def entered(self) -> AbstractContextManager[None]:
        """Opens sockets of this thread, and of threads started inside, in the fleet's network."""
