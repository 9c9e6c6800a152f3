"""What a specification may say of the fleet ``libvirt``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Fleet
from wrackline.fleets.libvirt.fleet import LibvirtFleet, computer
from wrackline.fleets.libvirt.virsh import URI, Virsh, is_here
from wrackline.fleets.local.subnet import Subnet
from wrackline.fleets.qemu.settings import Hardware
from wrackline.fleets.qemu.spec import PackageName
from wrackline.fleets.qemu.virtual_fleet import BOOT_S, SLOWNESS
from wrackline.fleets.spec import FleetSpec, HostNeeds
from wrackline.plugins.fields import SECONDS, Lax


class LibvirtSpec(FleetSpec):
    """Settings of the fleet ``libvirt``."""

    slowness: ClassVar[float] = SLOWNESS

    kind: Literal["libvirt"] = "libvirt"
    """Hosts are domains of libvirt on this machine."""
    uri: str = URI
    """The hypervisor, as `virsh --connect` takes it; one of this machine, with root's rights."""
    memory_mb: Annotated[int, Field(ge=192, le=65_536)] = 256
    """Memory of each host."""
    cpus: Annotated[int, Field(ge=1, le=16)] = 1
    """Processors of each host."""
    disk_mb: Annotated[int, Field(ge=64, le=65_536)] = 256
    """Size of each host's data disk."""
    filesystem: Literal["ext4", "xfs"] = "ext4"
    """The file system of each host's data disk."""
    subnet: Subnet = "198.18.0.0/24"
    """IPv4 addresses for the hosts."""
    boot_s: Annotated[float, Field(gt=0), SECONDS] = BOOT_S
    """A host answers after this time at most."""
    accel: Literal["auto", "tcg", "kvm"] = "auto"
    """KVM, or emulation: `auto` takes KVM where a guest came up by it."""
    packages: Annotated[tuple[PackageName, ...], Lax] = ()
    """Debian packages in the image besides those that every image has, and those that the system needs."""

    @field_validator("uri")
    @classmethod
    def _of_this_machine(cls, uri: str) -> str:
        if not is_here(uri):
            raise ValueError(
                f"{uri} is no hypervisor of this machine with root's rights, as qemu:///system is; domains "
                "elsewhere are hosts of the fleet inventory, with virsh in fleet.power"
            )
        return uri

    def prepare(self, say: Callable[[str], None]) -> None:
        computer(Virsh(self.uri), self._hardware, self.accel, self.packages, say)

    def carrying(self, needs: HostNeeds) -> Self:
        changed: dict[str, object] = {"packages": tuple(sorted({*self.packages, *needs.packages}))}
        if "memory_mb" not in self.model_fields_set:
            changed["memory_mb"] = max(self.memory_mb, needs.memory_mb)
        return self.model_copy(update=changed)

    def lacks(self, ability: Ability) -> str | None:
        """Nothing: a fault can have all there is of a virtual machine."""
        del ability
        return None

    @property
    def _hardware(self) -> Hardware:
        return Hardware(self.memory_mb, self.cpus, self.disk_mb)

    def build(self, name: str, state_dir: Path) -> Fleet:
        return LibvirtFleet(
            name,
            self.hosts,
            uri=self.uri,
            subnet=self.subnet,
            hardware=self._hardware,
            filesystem=self.filesystem,
            accel=self.accel,
            boot_s=self.boot_s,
            packages=self.packages,
            state_dir=state_dir,
        )
