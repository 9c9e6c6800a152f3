"""The power switch of hosts on this machine. What a host does when its power goes, and when it comes back,
its machine says: a namespace, or a virtual machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from wrackline.fleets.base import Disk, FileLoss, FleetError, Host, PowerCut
from wrackline.fleets.local.look import FileSeen


class Powered(Protocol):
    """A host as a machine with a power button. Not thread-safe: its switch keeps one caller at a time."""

    @property
    def is_on(self) -> bool: ...

    @property
    def image(self) -> Path:
        """Returns the host's data disk, as a file of this machine."""

    def unplug(self) -> None:
        """Link down: from here on no packet leaves or reaches the host."""

    def lose_power(self) -> Mapping[str, FileSeen] | None:
        """Every program stands still, then all that the data disk has not synced is lost. The files that were
        there before; None: the host did not say in time, and its power went all the same. Raises
        FleetError."""

    def destroy(self) -> None:
        """End what is left of it; its disks stay. Idempotent."""

    def boot(self, before: Mapping[str, FileSeen]) -> Mapping[str, FileLoss]:
        """Power on; what became of the files that were there ``before``. Returns when the disks are mounted
        and sshd was started. Raises FleetError."""

    def wait_ssh(self) -> None:
        """Waits until sshd answers. Raises FleetError with the last thing seen."""

    def drop_page_cache(self) -> tuple[Mapping[str, FileLoss], float]:
        """Kill the programs that use the data disk, lose what they had not synced, and mount it again. What
        was lost, and how many seconds ago that was. Raises FleetError."""

    def copy_disk(self) -> Path:
        """A copy of the data disk, all of it synced; the host stands still meanwhile. Raises FleetError."""

    def wipe_disk(self) -> None:
        """An empty data disk in place of what was there, while the host is off. Raises FleetError."""

    def hold_back(self, bytes_per_s: int | None) -> None:
        """The data disk reads and writes so many bytes a second each at most. Raises FleetError."""


M = TypeVar("M", bound=Powered)


@dataclass(slots=True)
class _Switch(Generic[M]):
    machine: M
    mutex: threading.Lock = field(default_factory=threading.Lock)
    last_cut: PowerCut | None = None
    before: Mapping[str, FileSeen] = field(default_factory=dict)
    copy: Path | None = None
    """Of the data disk, kept for `LocalPower.swap_disk`."""
    bytes_per_s: int | None = None
    """What the data disk is held back to."""

    def hold_back(self) -> None:
        """A disk that was mounted anew knows nothing of it. Raises FleetError."""
        if self.bytes_per_s is not None:
            self.machine.hold_back(self.bytes_per_s)


class LocalPower(Generic[M]):
    """Thread-safe; hosts are switched independently of one another."""

    def __init__(self, machines: Mapping[str, M], forget: Callable[[Host], None]) -> None:
        """``forget`` is called with a host whose connections died with it."""
        self._switches = {name: _Switch(machine) for name, machine in machines.items()}
        self._forget = forget

    def cut(self, host: Host) -> PowerCut:
        """Power off now: everything not synced is lost. A host that is off already stays off."""
        switch = self._switch(host)
        with switch.mutex:
            decided_ns = time.monotonic_ns()
            machine = switch.machine
            if not machine.is_on:
                return switch.last_cut or PowerCut(host.name, decided_ns, decided_ns)
            machine.unplug()
            seen = machine.lose_power()
            switch.before = seen or {}
            switch.last_cut = PowerCut(host.name, decided_ns, time.monotonic_ns(), counted=seen is not None)
            machine.destroy()
            self._forget(host)
            return switch.last_cut

    def on(self, host: Host) -> PowerCut | None:
        """Power on and wait for SSH; what the last cut lost, or None when the host was on. Idempotent."""
        switch = self._switch(host)
        with switch.mutex:
            machine = switch.machine
            if machine.is_on:
                return None
            machine.destroy()
            try:
                lost = machine.boot(switch.before)
                switch.hold_back()
                machine.wait_ssh()
            except BaseException:
                machine.destroy()
                raise
            cut, switch.last_cut, switch.before = switch.last_cut, None, {}
            return replace(cut, files=lost) if cut is not None else None

    def is_on(self, host: Host) -> bool:
        return self._switch(host).machine.is_on

    def drop_page_cache(self, host: Host) -> PowerCut:
        """Kill the programs that use the data disk and lose what they had not synced, while the host stays
        on: its network, its other programs and its SSH connections do not notice. Starting the programs again
        is the caller's. Raises FleetError, also when the host is off."""
        switch = self._switch(host)
        with switch.mutex:
            decided_ns = time.monotonic_ns()
            if not switch.machine.is_on:
                raise FleetError(f"host {host.name} is off: it has no page cache to lose; switch it on first")
            lost, ago_s = switch.machine.drop_page_cache()
            lost_ns = time.monotonic_ns() - int(ago_s * 1e9)
            switch.hold_back()
            return PowerCut(host.name, decided_ns, lost_ns, lost)

    def copy_disk(self, host: Host) -> None:
        """Keep a copy of the data disk as it is now, all of it synced, in place of an earlier copy. The host
        is on, and stands still meanwhile. Raises FleetError."""
        switch = self._switch(host)
        with switch.mutex:
            if not switch.machine.is_on:
                raise FleetError(f"host {host.name} is off: its disk is copied while it is on")
            switch.copy = switch.machine.copy_disk()

    def swap_disk(self, host: Host, disk: Disk) -> None:
        """Puts an empty disk or the last copy in the place of the disk of a host that is off; the former disk
        is gone then. Raises FleetError, also when the host is on or has no copy."""
        switch = self._switch(host)
        with switch.mutex:
            machine = switch.machine
            if machine.is_on:
                raise FleetError(f"host {host.name} is on: its disk is exchanged while it is off")
            match disk:
                case Disk.STALE:
                    if switch.copy is None:
                        raise FleetError(f"there is no copy of the disk of {host.name}")
                    switch.copy.replace(machine.image)
                    switch.copy = None
                case Disk.WIPED:
                    machine.wipe_disk()

    def throttle(self, host: Host, bytes_per_s: int | None) -> None:
        """Limits the data disk to so many bytes a second for reads and for writes; None: no limit. Also for a
        host that is off, from its power-on. Idempotent. Raises FleetError."""
        switch = self._switch(host)
        with switch.mutex:
            switch.bytes_per_s = bytes_per_s
            if switch.machine.is_on:
                switch.machine.hold_back(bytes_per_s)

    def _switch(self, host: Host) -> _Switch[M]:
        try:
            return self._switches[host.name]
        except KeyError:
            known = ", ".join(self._switches)
            raise FleetError(f"no host {host.name} in this fleet; it has {known}") from None
