"""The default fleet: hosts on one Linux machine, each in namespaces of its own, on a network of their own.

What one fleet ``f`` with host ``n1`` consists of, and nothing else:

* network namespace ``wl-f`` with bridge ``br0`` (first address of the subnet). The harness enters it;
* network namespace ``wl-f-n1`` with ``eth0``, joined to the bridge; the machine's own network has no part in
  it;
* the processes of ``hostinit.py``: PID 1 of the host in its mount, PID, UTS and IPC namespaces, and sshd;
* an image file behind a loop device, mounted at ``/data`` in the host's mount namespace only;
* a folder of the fleet's that every host sees as ``/shared``;
* a folder below the state root with keys, images and logs, and a tmpfs in it with what hosts write elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import ClassVar

from wrackline.fleets.base import FleetError, Host, PowerCut
from wrackline.fleets.local.fleet import LocalFleet
from wrackline.fleets.local.look import FileSeen
from wrackline.fleets.local.power import LocalPower
from wrackline.fleets.netns.machine import Machine


class NetnsFleet(LocalFleet[Machine]):
    """Hosts in namespaces of this machine (needs root). One owner per name; several fleets live side by
    side."""

    kind: ClassVar[str] = "netns"
    reads_here: ClassVar[bool] = True
    shared: ClassVar[PurePosixPath] = PurePosixPath("/shared")

    def _machine(self, host: Host) -> Machine:
        return Machine(self.state, self.folder, host, self._network.prefixlen)

    def _switch(self) -> NetnsPower:
        return NetnsPower(self._machines, self._forget)


class NetnsPower(LocalPower[Machine]):
    """The power switch of such hosts, which also takes single disks from them. Thread-safe."""

    def __init__(self, machines: Mapping[str, Machine], forget: Callable[[Host], None]) -> None:
        super().__init__(machines, forget)
        self._taken: dict[tuple[str, int], tuple[PowerCut, Mapping[str, FileSeen]]] = {}
        """By host and disk: the cut that it has not come back from, and the files that were there before."""

    def cut_disk(self, host: Host, number: int) -> PowerCut:
        switch = self._switch(host)
        with switch.mutex:
            decided_ns = time.monotonic_ns()
            if not switch.machine.is_on:
                raise FleetError(f"host {host.name} is off: none of its disks can be taken from it")
            if (taken := self._taken.get((host.name, number))) is not None:
                return taken[0]
            before = switch.machine.cut_disk(number)
            cut = PowerCut(host.name, decided_ns, time.monotonic_ns())
            self._taken[host.name, number] = cut, before
            return cut

    def restore_disk(self, host: Host, number: int) -> PowerCut | None:
        switch = self._switch(host)
        with switch.mutex:
            if not switch.machine.is_on:
                raise FleetError(f"host {host.name} is off: its disks come back when its power does")
            cut, before = self._taken.get((host.name, number), (None, {}))
            lost = switch.machine.restore_disk(number, before)
            self._taken.pop((host.name, number), None)
            switch.hold_back()
            return replace(cut, files=lost) if cut is not None else None
