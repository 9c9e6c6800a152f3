"""The settings of the fleet ``netns`` in a specification."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Fleet
from wrackline.fleets.local import throttle
from wrackline.fleets.local.network.subnet import Subnet
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.fleets.spec import MOST_DISKS, FleetSpec


class NetnsSpec(FleetSpec):
    """Settings of the fleet ``netns``."""

    most_disks: ClassVar[int] = MOST_DISKS
    shares_folder: ClassVar[bool] = True

    kind: Literal["netns"] = "netns"
    """Hosts are namespaces of this machine."""
    disk_mb: Annotated[int, Field(ge=64, le=65_536)] = 256
    """Size of each data disk of a host."""
    filesystem: Literal["ext4", "xfs"] = "ext4"
    """The file system of each host's data disk."""
    subnet: Subnet = "198.18.0.0/24"
    """IPv4 addresses for the hosts."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ("xfs" if self.filesystem == "xfs" else self.kind,)

    def lacks(self, ability: Ability) -> str | None:
        if ability is Ability.KERNEL:
            return "hosts of the fleet netns share this machine's kernel; those of the fleet qemu do not"
        if ability is Ability.HYPERVISOR:
            return "hosts of the fleet netns are no virtual machines; those of the fleet qemu are"
        if ability is Ability.THROTTLE:
            return throttle.missing()
        return None

    def build(self, name: str, state_dir: Path) -> Fleet:
        return NetnsFleet(
            name,
            self.hosts,
            subnet=self.subnet,
            disk_mb=self.disk_mb,
            filesystem=self.filesystem,
            disks=self.disks,
            state_dir=state_dir,
        )
