"""The settings of the fleet ``libvirt`` in a specification."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import field_validator

from wrackline.fleets.base import Fleet
from wrackline.fleets.libvirt.fleet import LibvirtFleet, computer
from wrackline.fleets.libvirt.virsh import URI, Virsh, is_here
from wrackline.fleets.qemu.virtual.spec import VirtualSpec


class LibvirtSpec(VirtualSpec):
    """Settings of the fleet ``libvirt``."""

    kind: Literal["libvirt"] = "libvirt"
    """Hosts are domains of libvirt on this machine."""
    uri: str = URI
    """The hypervisor, as `virsh --connect` takes it; one of this machine, with root's rights."""

    @field_validator("uri")
    @classmethod
    def _of_this_machine(cls, uri: str) -> str:
        if not is_here(uri):
            raise ValueError(
                f"{uri} is no hypervisor of this machine with root's rights, as qemu:///system is; domains "
                "elsewhere are hosts of the fleet inventory, with virsh in fleet.power"
            )
        return uri

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.kind,)

    def prepare(self, say: Callable[[str], None]) -> None:
        computer(Virsh(self.uri), self._hardware, self.accel, self.packages, say)

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
