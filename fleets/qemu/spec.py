"""What a specification may say of the fleet ``qemu``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Fleet
from wrackline.fleets.local.subnet import Subnet
from wrackline.fleets.qemu.accelerators import chosen
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.fleets.qemu.image.build import build
from wrackline.fleets.qemu.image.initrd import initrd
from wrackline.fleets.qemu.image.recipe import check_machine, recipe
from wrackline.fleets.qemu.image.store import Store
from wrackline.fleets.qemu.services import packages_for
from wrackline.fleets.qemu.settings import Hardware
from wrackline.fleets.qemu.virtual_fleet import BOOT_S, SLOWNESS
from wrackline.fleets.spec import FleetSpec, HostNeeds
from wrackline.plugins.fields import SECONDS, Lax

PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]


class QemuSpec(FleetSpec):
    """Settings of the fleet ``qemu``."""

    slowness: ClassVar[float] = SLOWNESS

    kind: Literal["qemu"] = "qemu"
    """Hosts are virtual machines of this machine."""
    memory_mb: Annotated[int, Field(ge=192, le=65_536)] = 256
    """Memory of each host."""
    cpus: Annotated[int, Field(ge=1, le=16)] = 1
    """Processors of each host."""
    disk_mb: Annotated[int, Field(ge=64, le=65_536)] = 256
    """Size of each host's data disk."""
    filesystem: Literal["ext4", "xfs"] = "ext4"
    """The file system of each host's data disk."""
    cache: Literal["volatile", "kept"] = "volatile"
    """The cache of each host's data disk: whether a power cut takes what was written and not flushed."""
    subnet: Subnet = "198.18.0.0/24"
    """IPv4 addresses for the hosts."""
    boot_s: Annotated[float, Field(gt=0), SECONDS] = BOOT_S
    """A host answers after this time at most."""
    accel: Literal["auto", "tcg", "kvm"] = "auto"
    """KVM, or emulation: `auto` takes KVM where a guest came up by it."""
    snapshots: bool = True
    """Power-on goes on from a snapshot of a host that is nobody yet; false: every power-on is a cold boot."""
    packages: Annotated[tuple[PackageName, ...], Lax] = ()
    """Debian packages in the image besides those that every image has, and those that the system needs."""

    init: Literal["minimal", "systemd"] = "minimal"
    """Who runs the services of a host: nobody but for sshd, or systemd, and then it is on later."""

    def prepare(self, say: Callable[[str], None]) -> None:
        check_machine()
        image = build(Store(), recipe(packages_for(self.init, self.packages)), say)
        chosen(self.accel, image, initrd(image), say)

    def carrying(self, needs: HostNeeds) -> Self:
        changed: dict[str, object] = {"packages": tuple(sorted({*self.packages, *needs.packages}))}
        if "memory_mb" not in self.model_fields_set:
            changed["memory_mb"] = max(self.memory_mb, needs.memory_mb)
        return self.model_copy(update=changed)

    def lacks(self, ability: Ability) -> str | None:
        """Nothing: a fault can have all there is of a virtual machine."""
        del ability
        return None

    def build(self, name: str, state_dir: Path) -> Fleet:
        return QemuFleet(
            name,
            self.hosts,
            subnet=self.subnet,
            hardware=Hardware(self.memory_mb, self.cpus, self.disk_mb),
            filesystem=self.filesystem,
            cache=self.cache,
            accel=self.accel,
            boot_s=self.boot_s,
            snapshots=self.snapshots,
            packages=self.packages,
            init=self.init,
            state_dir=state_dir,
        )
