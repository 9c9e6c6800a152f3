"""The settings of any fleet of virtual machines with our image in a specification."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from wrackline.fleets.abilities import Ability
from wrackline.fleets.local.network.subnet import Subnet
from wrackline.fleets.qemu.settings import Hardware
from wrackline.fleets.qemu.virtual.fleet import BOOT_S, SLOWNESS
from wrackline.fleets.spec import FleetSpec, HostNeeds
from wrackline.plugins.fields import SECONDS, Lax, Like

PackageName = Annotated[str, Like(r"^[a-z0-9][a-z0-9+.-]+$", "give the name of a Debian package")]


class VirtualSpec(FleetSpec):
    """Settings that the fleets of virtual machines share."""

    slowness: ClassVar[float] = SLOWNESS

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

    def carrying(self, needs: HostNeeds) -> Self:
        changed: dict[str, object] = {"packages": tuple(sorted({*self.packages, *needs.packages}))}
        if "memory_mb" not in self.model_fields_set:
            changed["memory_mb"] = max(self.memory_mb, needs.memory_mb)
        return self.model_copy(update=changed)

    def lacks(self, ability: Ability) -> str | None:  # noqa: ARG002
        """Returns nothing: a virtual machine has every ability."""
        return None

    @property
    def _hardware(self) -> Hardware:
        return Hardware(self.memory_mb, self.cpus, self.disk_mb)
