"""A fleet of virtual machines with our image, whoever runs them."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, TypeVar

from wrackline.fleets.base import Host
from wrackline.fleets.local.fleet import LocalFleet
from wrackline.fleets.local.keys import host_files, sshd_config
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


class VirtualFleet(LocalFleet, Generic[V]):
    """A kind of fleet says what runs its machines, and gives each machine what it is made of."""

    power: VirtualPower

    def __init__(
        self,
        name: str,
        hosts: Sequence[str],
        *,
        subnet: str,
        state_dir: Path,
        hardware: Hardware,
        filesystem: str,
        detached: bool,
    ) -> None:
        super().__init__(
            name,
            hosts,
            subnet=subnet,
            state_dir=state_dir,
            disk_mb=hardware.disk_mb,
            filesystem=filesystem,
            detached=detached,
            slowness=SLOWNESS,
        )
        self._hardware = hardware
        self._machines = {host.name: self._machine(host) for host in self.hosts}
        self.power = VirtualPower(self._machines, self._forget)

    @abstractmethod
    def prepare(self, say: Say) -> None:
        """Builds the image of the hosts if it is not there. Raises FleetError."""

    @abstractmethod
    def _machine(self, host: Host) -> V:
        """Returns the machine of a host, which is not started yet."""

    def _machine_list(self) -> Sequence[V]:
        return list(self._machines.values())

    def _prepare(self) -> None:
        self.prepare(log.info)

    def _build_hosts(self, public_key: str, host_key: str) -> None:
        sshd = sshd_config()
        for machine in self._machines.values():
            etc = host_files(machine.host, self.hosts, public_key=public_key, host_key=host_key, sshd=sshd)
            machine.files = {**etc, **files_for(machine.init)}
        self._each(lambda host: self._machines[host.name].disks.make())
