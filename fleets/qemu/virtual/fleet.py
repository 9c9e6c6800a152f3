"""A fleet of virtual machines with our image, whoever runs them."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, Unpack

from wrackline.fleets.base import Host
from wrackline.fleets.local.fleet import LocalFleet, Options
from wrackline.fleets.qemu.accelerators import Accelerator
from wrackline.fleets.qemu.disk import Cache, Disks
from wrackline.fleets.qemu.image.store import Say
from wrackline.fleets.qemu.services import files_for
from wrackline.fleets.qemu.settings import Hardware
from wrackline.fleets.qemu.virtual.host import VirtualHost
from wrackline.fleets.qemu.virtual.power import VirtualPower

log = logging.getLogger(__name__)

SLOWNESS = 4.0
"""So many times as long as on a host that is this machine itself a command may take."""
BOOT_S = 120.0
"""A host answers SSH after so long at most."""
WRITTEN_MB = 512
"""Room that a host's own part of its system disk may come to take."""

V = TypeVar("V", bound=VirtualHost)


class VirtualFleet(LocalFleet[V]):
    """A kind of fleet says what runs its machines, and gives each machine what it is made of."""

    def __init__(
        self,
        name: str,
        hosts: Sequence[str],
        *,
        hardware: Hardware | None = None,
        accel: Accelerator = "auto",
        boot_s: float = BOOT_S,
        packages: Sequence[str] = (),
        **more: Unpack[Options],
    ) -> None:
        """``boot_s``: a host answers SSH after so long at most. ``packages``: of Debian, besides those of
        every image."""
        self._hardware = hardware or Hardware()
        self._accel: Accelerator = accel
        self._boot_s = boot_s
        self._packages = tuple(packages)
        super().__init__(name, hosts, disk_mb=self._hardware.disk_mb, slowness=SLOWNESS, **more)

    @abstractmethod
    def prepare(self, say: Say) -> None:
        """Builds the image of the hosts if it is not there. Raises FleetError."""

    def _prepare(self) -> None:
        self.prepare(log.info)

    def _switch(self) -> VirtualPower[V]:
        return VirtualPower(self._machines, self._forget)

    def _disks(self, host: Host, cache: Cache) -> Disks:
        return Disks(self.folder, host.name, self.state.filesystem, self.state.disk_mb, cache)

    def _build_hosts(self, public_key: str, host_key: str) -> None:
        super()._build_hosts(public_key, host_key)
        for machine in self._machines.values():
            machine.files = {**machine.files, **files_for(machine.init)}
