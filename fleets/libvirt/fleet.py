"""Domains of a libvirt of this machine, made from the image that the fleet ``qemu`` boots too.

What one fleet ``f`` with host ``n1`` consists of, and nothing else:

* network namespace ``wl-f`` with bridge ``br0`` (first address of the subnet). The harness enters it. The tap
  that libvirt makes for a domain is moved there, and is called ``p-n1`` then, before the domain runs:
  whatever network libvirtd is in, no packet of a host is ever seen in it;
* the domain ``wl-f-n1``, which libvirt forgets with its end;
* two files with the host's own system disk and its data disk;
* a folder below the state root with keys, disks, logs, and the socket of each host's first process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Unpack

from wrackline.fleets.base import FleetError, Host
from wrackline.fleets.libvirt.domain import Computer
from wrackline.fleets.libvirt.machine import DomainHost
from wrackline.fleets.libvirt.virsh import URI, Virsh
from wrackline.fleets.local.clean import BY_LIBVIRT
from wrackline.fleets.local.fleet import Options
from wrackline.fleets.qemu.accelerators import Accelerator, chosen
from wrackline.fleets.qemu.image.build import build
from wrackline.fleets.qemu.image.initrd import initrd
from wrackline.fleets.qemu.image.recipe import check_machine, recipe
from wrackline.fleets.qemu.image.store import Say, Store
from wrackline.fleets.qemu.settings import Hardware
from wrackline.fleets.qemu.virtual.fleet import BOOT_S, WRITTEN_MB, VirtualFleet


class LibvirtFleet(VirtualFleet[DomainHost]):
    """Domains of libvirt (needs root). One owner per name; several fleets live side by side."""

    kind: ClassVar[str] = BY_LIBVIRT

    def __init__(
        self,
        name: str,
        hosts: Sequence[str],
        *,
        uri: str = URI,
        hardware: Hardware | None = None,
        accel: Accelerator = "auto",
        boot_s: float = BOOT_S,
        packages: Sequence[str] = (),
        **more: Unpack[Options],
    ) -> None:
        """``uri``: of a libvirt of this machine."""
        self._virsh = Virsh(uri)
        self._computer: Computer | None = None
        super().__init__(
            name, hosts, hardware=hardware, accel=accel, boot_s=boot_s, packages=packages, **more
        )

    def prepare(self, say: Say) -> None:
        """The image, built now if it is not there. Raises FleetError, also when libvirt does not answer."""
        if self._computer is None:
            self._computer = computer(self._virsh, self._hardware, self._accel, self._packages, say)

    def _machine(self, host: Host) -> DomainHost:
        disks, length = self._disks(host, "kept"), self._network.prefixlen
        return DomainHost(self.state, self.folder, host, disks, self._boot_s, length, virsh=self._virsh)

    @property
    def _needed_mb(self) -> int:
        return self.state.disk_mb + WRITTEN_MB

    def _build_hosts(self, public_key: str, host_key: str) -> None:
        for machine in self._machines.values():
            machine.computer = self._computer
        super()._build_hosts(public_key, host_key)


def computer(
    virsh: Virsh, hardware: Hardware, accel: Accelerator, packages: Sequence[str], say: Say
) -> Computer:
    """Returns the machine that hosts are made of, and builds the image when it is not there. Raises
    FleetError."""
    try:
        models = virsh.security_models()
    except FleetError as error:
        raise FleetError(
            f"the fleet libvirt finds no libvirt at {virsh.uri}: {error}; start libvirtd, or name another by "
            "fleet.uri"
        ) from error
    check_machine()
    image = build(Store(), recipe(packages), say)
    first = initrd(image)
    accelerator = chosen(accel, image, first, say)
    return Computer(hardware, accelerator, image.vmlinux, first, image.root, models)
