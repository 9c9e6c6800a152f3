"""The power switch of virtual machines with our image."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from wrackline.fleets.base import Disk, FleetError, Host, PowerCut
from wrackline.fleets.local.look import FileSeen
from wrackline.fleets.qemu.virtual import VirtualHost


@dataclass(slots=True)
class _Switch:
    machine: VirtualHost
    mutex: threading.Lock = field(default_factory=threading.Lock)
    last_cut: PowerCut | None = None
    before: Mapping[str, FileSeen] = field(default_factory=dict)
    copy: Path | None = None
    """Of the data disk, kept for `VirtualPower.swap_disk`."""
    bytes_per_s: int | None = None
    """What the data disk is held back to."""


class VirtualPower:
    """Thread-safe; hosts are switched independently of one another."""

    def __init__(self, machines: Mapping[str, VirtualHost], forget: Callable[[Host], None]) -> None:
        """``forget`` is called with a host whose connections died with it."""
        self._switches = {name: _Switch(machine) for name, machine in machines.items()}
        self._forget = forget

    def cut(self, host: Host) -> PowerCut:
        """Power off now: everything not synced is lost. A host that is off already stays off. Its files are
        not counted when it does not say in time which it has, and the power goes all the same."""
        switch = self._switch(host)
        with switch.mutex:
            decided_ns = time.monotonic_ns()
            machine = switch.machine
            if not machine.is_on:
                return switch.last_cut or PowerCut(host.name, decided_ns, decided_ns)
            machine.unplug()
            seen = machine.freeze_and_look()
            machine.lose_power()
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
                if switch.bytes_per_s is not None:
                    machine.hold_back(switch.bytes_per_s)
                machine.wait_ssh()
            except BaseException:
                machine.destroy()
                raise
            cut, switch.last_cut, switch.before = switch.last_cut, None, {}
            return replace(cut, files=lost) if cut is not None else None

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
            return PowerCut(host.name, decided_ns, time.monotonic_ns() - int(ago_s * 1e9), lost)

    def copy_disk(self, host: Host) -> None:
        """Keep a copy of the data disk as it is now, all of it synced, in place of an earlier copy. The host
        is on, and stands still meanwhile. Raises FleetError."""
        switch = self._switch(host)
        with switch.mutex:
            if not switch.machine.is_on:
                raise FleetError(f"host {host.name} is off: its disk is copied while it is on")
            switch.copy = switch.machine.copy_disk()

    def swap_disk(self, host: Host, disk: Disk) -> None:
        """While the host is off, put an empty disk or the last copy in the place of its disk, which is gone
        then. Raises FleetError, also when the host is on or has no copy."""
        switch = self._switch(host)
        with switch.mutex:
            if switch.machine.is_on:
                raise FleetError(f"host {host.name} is on: its disk is exchanged while it is off")
            disks = switch.machine.disks
            match disk:
                case Disk.STALE:
                    if switch.copy is None:
                        raise FleetError(f"there is no copy of the disk of {host.name}")
                    switch.copy.replace(disks.image)
                    switch.copy = None
                case Disk.WIPED:
                    disks.wipe()

    def is_on(self, host: Host) -> bool:
        return self._switch(host).machine.is_on

    # -- what the hypervisor does to a host that is on ------------------------------------------------------

    def throttle(self, host: Host, bytes_per_s: int | None) -> None:
        """From now on the data disk reads and writes so many bytes a second each at most; None: as many as it
        can. Also for a host that is off, from its power-on. Idempotent. Raises FleetError."""
        switch = self._switch(host)
        with switch.mutex:
            switch.bytes_per_s = bytes_per_s
            if switch.machine.is_on:
                switch.machine.hold_back(bytes_per_s)

    def link(self, host: Host, *, up: bool) -> None:
        """Pull the host's network cable, or plug it in; the host sees its carrier go. Raises FleetError."""
        self._switch(host).machine.set_link(up=up)

    def pause(self, host: Host) -> None:
        """Stop all processors of the host. Raises FleetError."""
        self._switch(host).machine.pause()

    def resume(self, host: Host) -> None:
        """Its clock goes on from where it stood. Raises FleetError."""
        self._switch(host).machine.resume()

    def _switch(self, host: Host) -> _Switch:
        try:
            return self._switches[host.name]
        except KeyError:
            known = ", ".join(self._switches)
            raise FleetError(f"no host {host.name} in this fleet; it has {known}") from None
