"""The power switch of virtual machines with our image, and what a hypervisor does to one that is on."""

from __future__ import annotations

from typing import TypeVar

from wrackline.fleets.base import Host
from wrackline.fleets.local.power import LocalPower
from wrackline.fleets.qemu.virtual.host import VirtualHost

V = TypeVar("V", bound=VirtualHost)


class VirtualPower(LocalPower[V]):
    """Thread-safe; hosts are switched independently of one another."""

    def link(self, host: Host, *, up: bool) -> None:
        """Pull the host's network cable, or plug it in; the host sees its carrier go. Raises FleetError."""
        self._switch(host).machine.set_link(up=up)

    def pause(self, host: Host) -> None:
        """Stop all processors of the host. Raises FleetError."""
        self._switch(host).machine.pause()

    def resume(self, host: Host) -> None:
        """Resumes the host; its clock goes on from where it stood. Raises FleetError."""
        self._switch(host).machine.resume()
