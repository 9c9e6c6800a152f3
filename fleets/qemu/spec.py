"""The settings of the fleet ``qemu`` in a specification."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from wrackline.fleets.base import Fleet
from wrackline.fleets.qemu.accelerators import chosen
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.fleets.qemu.image.build import build
from wrackline.fleets.qemu.image.initrd import initrd
from wrackline.fleets.qemu.image.recipe import check_machine, recipe
from wrackline.fleets.qemu.image.store import Store
from wrackline.fleets.qemu.services import packages_for
from wrackline.fleets.qemu.virtual.spec import VirtualSpec


class QemuSpec(VirtualSpec):
    """Settings of the fleet ``qemu``."""

    kind: Literal["qemu"] = "qemu"
    """Hosts are virtual machines of this machine."""
    cache: Literal["volatile", "kept"] = "volatile"
    """The cache of each host's data disk: whether a power cut takes what was written and not flushed."""
    snapshots: bool = True
    """Power-on goes on from a snapshot of a host that is nobody yet; false: every power-on is a cold boot."""

    init: Literal["minimal", "systemd"] = "minimal"
    """Who runs the services of a host: nobody but for sshd, or systemd, and then it is on later."""

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.kind,)

    def prepare(self, say: Callable[[str], None]) -> None:
        check_machine()
        image = build(Store(), recipe(packages_for(self.init, self.packages)), say)
        chosen(self.accel, image, initrd(image), say)

    def build(self, name: str, state_dir: Path) -> Fleet:
        return QemuFleet(
            name,
            self.hosts,
            subnet=self.subnet,
            hardware=self._hardware,
            filesystem=self.filesystem,
            cache=self.cache,
            accel=self.accel,
            boot_s=self.boot_s,
            snapshots=self.snapshots,
            packages=self.packages,
            init=self.init,
            state_dir=state_dir,
        )
