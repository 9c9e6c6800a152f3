"""The power switch of a ``netns`` fleet (docs/architecture.md section 5): link down, freeze, shut the disk
down, kill, unmount."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from wrackline.fleets.base import Disk, FleetError, Host, PowerCut
from wrackline.fleets.local import throttle
from wrackline.fleets.local.disk import compare, make_image
from wrackline.fleets.local.look import FileSeen, files_seen
from wrackline.fleets.local.namespaces import signal_all, wait_dead
from wrackline.fleets.netns.machine import Machine


@dataclass(slots=True)
class _Switch:
    machine: Machine
    mutex: threading.Lock = field(default_factory=threading.Lock)
    last_cut: PowerCut | None = None
    before: Mapping[str, FileSeen] = field(default_factory=dict)
    copy: Path | None = None
    """Of the data disk, kept for `NetnsPower.swap_disk`."""
    bytes_per_s: int | None = None
    """What the data disk is held back to."""

    def hold_back(self) -> None:
        """Raises FleetError."""
        device = self.machine.loop()
        if device is not None and self.bytes_per_s is not None:
            throttle.limit(device, self.bytes_per_s)
        elif device is not None:
            throttle.free(device)


class NetnsPower:
    """Thread-safe; hosts are switched independently of one another."""

    def __init__(
        self, machines: Mapping[str, Machine], prefix_length: int, forget: Callable[[Host], None]
    ) -> None:
        """``forget`` is called with a host whose connections died with it."""
        self._switches = {name: _Switch(machine) for name, machine in machines.items()}
        self._prefix_length = prefix_length
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
            machine.freeze()
            switch.before = {}
            try:
                with files_seen(machine.data) as switch.before:
                    machine.lose_dirty_data()
            except OSError:
                # The disk answers no more (it was shut down before, or failed): nothing of it can reach the
                # image.
                with contextlib.suppress(FleetError):
                    machine.lose_dirty_data()
            switch.last_cut = PowerCut(host.name, decided_ns, time.monotonic_ns())
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
            machine.plug(self._prefix_length)
            machine.boot()
            switch.hold_back()
            lost = compare(switch.before, machine.data)
            machine.wait_ssh()
            cut, switch.last_cut, switch.before = switch.last_cut, None, {}
            return replace(cut, files=lost) if cut is not None else None

    def drop_page_cache(self, host: Host) -> PowerCut:
        """Kill the programs that use the data disk and lose what they had not synced, while the host stays
        on: its network, its other programs and its SSH connections do not notice. Starting the programs again
        is the caller's. Raises FleetError, also when the host is off."""
        switch = self._switch(host)
        with switch.mutex:
            decided_ns = time.monotonic_ns()
            machine = switch.machine
            if not machine.is_on:
                raise FleetError(f"host {host.name} is off: it has no page cache to lose; switch it on first")
            users: set[int] = set()
            # Stopped one and all before the first dies: none may write, or learn, of another's end.
            while new := set(machine.disk_users()) - users:
                signal_all(sorted(new), signal.SIGSTOP)
                users |= new
            with files_seen(machine.data) as before:
                machine.lose_dirty_data()
                lost_ns = time.monotonic_ns()
            signal_all(sorted(users), signal.SIGKILL)
            wait_dead(users)
            machine.remount()
            switch.hold_back()
            return PowerCut(host.name, decided_ns, lost_ns, compare(before, machine.data))

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
                    machine.image.unlink()
                    make_image(machine.image, machine.state.filesystem, machine.state.disk_mb)

    def throttle(self, host: Host, bytes_per_s: int | None) -> None:
        """From now on the data disk reads and writes so many bytes a second each at most; None: as many as it
        can. Also for a host that is off, from its power-on. Idempotent. Raises FleetError."""
        switch = self._switch(host)
        with switch.mutex:
            switch.bytes_per_s = bytes_per_s
            switch.hold_back()

    def is_on(self, host: Host) -> bool:
        return self._switch(host).machine.is_on

    def _switch(self, host: Host) -> _Switch:
        try:
            return self._switches[host.name]
        except KeyError:
            known = ", ".join(self._switches)
            raise FleetError(f"no host {host.name} in this fleet; it has {known}") from None
