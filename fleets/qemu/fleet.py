"""Virtual machines of this machine, each with a kernel, a clock and a disk of its own.

What one fleet ``f`` with host ``n1`` consists of, and nothing else:

* network namespace ``wl-f`` with bridge ``br0`` (first address of the subnet). The harness enters it, and the
  QEMU of each host runs in it, on the link ``p-n1`` of the bridge;
* a file with what the host writes on its system disk, over the image that all guests share;
* a file with the *shelf*, which carries the host's data disk (`wrackline.fleets.qemu.disk`), behind a loop
  device and mounted while the host is on;
* a folder below the state root with keys, disks and logs, and a tmpfs in it with the sockets of each QEMU.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from wrackline.fleets.base import Host
from wrackline.fleets.local.fleet import LocalFleet
from wrackline.fleets.local.keys import host_files, sshd_config
from wrackline.fleets.local.namespaces import ip_batch
from wrackline.fleets.local.state import DEFAULT_STATE_ROOT
from wrackline.fleets.qemu.accelerators import Accelerator, chosen
from wrackline.fleets.qemu.disk import Cache, Disks, shelf_mb
from wrackline.fleets.qemu.image.build import build
from wrackline.fleets.qemu.image.initrd import initrd
from wrackline.fleets.qemu.image.recipe import check_machine, recipe
from wrackline.fleets.qemu.image.store import Say, Store
from wrackline.fleets.qemu.machine import Machine, Model
from wrackline.fleets.qemu.power import VirtualPower
from wrackline.fleets.qemu.services import Init, files_for, packages_for
from wrackline.fleets.qemu.settings import Hardware, computer
from wrackline.fleets.qemu.snapshots import Snapshot

log = logging.getLogger(__name__)

SLOWNESS = 4.0
"""So many times as long as on a host that is this machine itself a command may take."""
BOOT_S = 120.0
WRITTEN_MB = 512
"""Room that a host's own part of its system disk may come to take."""


class QemuFleet(LocalFleet):
    """Virtual machines (needs root). One owner per name; several fleets live side by side."""

    kind: ClassVar[str] = "qemu"
    power: VirtualPower

    def __init__(
        self,
        name: str,
        hosts: Sequence[str],
        *,
        subnet: str = "198.18.0.0/24",
        state_dir: Path = DEFAULT_STATE_ROOT,
        hardware: Hardware | None = None,
        filesystem: str = "ext4",
        cache: Cache = "volatile",
        accel: Accelerator = "auto",
        boot_s: float = BOOT_S,
        snapshots: bool = True,
        packages: Sequence[str] = (),
        init: Init = "minimal",
        detached: bool = False,
    ) -> None:
        """``cache``: whether what a guest has written and not flushed is lost in a power cut. ``boot_s``: a
        host answers SSH after so long at most. ``packages``: of Debian, besides those of every image.
        ``init``: who runs the services of a host."""
        self._hardware = hardware or Hardware()
        super().__init__(
            name,
            hosts,
            subnet=subnet,
            state_dir=state_dir,
            disk_mb=self._hardware.disk_mb,
            filesystem=filesystem,
            detached=detached,
            slowness=SLOWNESS,
        )
        self._accel: Accelerator = accel
        self._snapshots = snapshots
        self._init: Init = init
        self._packages = packages_for(init, packages)
        self._model: Model | None = None
        self._machines = {
            host.name: Machine(
                self.state,
                self.folder,
                host,
                Disks(self.folder, host.name, filesystem, self._hardware.disk_mb, cache),
                boot_s,
                self._network.prefixlen,
                init=init,
            )
            for host in self.hosts
        }
        self.power = VirtualPower(self._machines, self._forget)

    def prepare(self, say: Say) -> None:
        """The image, built now if it is not there. Raises FleetError."""
        if self._model is not None:
            return
        check_machine()
        image = build(Store(), recipe(self._packages), say)
        first = initrd(image)
        accelerator = chosen(self._accel, image, first, say)
        words = computer(self._hardware, accelerator, vmlinux=image.vmlinux, initrd=first, root=image.root)
        snapshot = Snapshot.of(image, words, self._hardware.disk_mb) if self._snapshots else None
        self._model = Model(words, snapshot)

    def _machine_list(self) -> Sequence[Machine]:
        return list(self._machines.values())

    def _prepare(self) -> None:
        self.prepare(log.info)

    @property
    def _needed_mb(self) -> int:
        return shelf_mb(self.state.disk_mb) + WRITTEN_MB

    def _build_hosts(self, public_key: str, host_key: str) -> None:
        sshd = sshd_config()
        lines = []
        for host in self.hosts:
            machine = self._machines[host.name]
            machine.model = self._model
            etc = host_files(host, self.hosts, public_key=public_key, host_key=host_key, sshd=sshd)
            machine.files = {**etc, **files_for(self._init)}
            lines += [f"tuntap add {machine.link} mode tap", f"link set {machine.link} master br0"]
        ip_batch(lines, netns=self.state.control)
        self._each(self._make_disks)

    def _make_disks(self, host: Host) -> None:
        self._machines[host.name].disks.make()
