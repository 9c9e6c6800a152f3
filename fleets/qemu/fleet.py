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

from collections.abc import Sequence
from typing import ClassVar, Unpack

from wrackline.fleets.base import Host
from wrackline.fleets.local.fleet import Options
from wrackline.fleets.local.network.namespaces import ip_batch
from wrackline.fleets.qemu.accelerators import Accelerator, chosen
from wrackline.fleets.qemu.disk import Cache, shelf_mb
from wrackline.fleets.qemu.image.build import build
from wrackline.fleets.qemu.image.initrd import initrd
from wrackline.fleets.qemu.image.recipe import check_machine, recipe
from wrackline.fleets.qemu.image.store import Say, Store
from wrackline.fleets.qemu.machine import Machine, Model
from wrackline.fleets.qemu.services import Init, packages_for
from wrackline.fleets.qemu.settings import Hardware, computer
from wrackline.fleets.qemu.snapshots import Snapshot
from wrackline.fleets.qemu.virtual.fleet import BOOT_S, WRITTEN_MB, VirtualFleet


class QemuFleet(VirtualFleet[Machine]):
    """Virtual machines (needs root). One owner per name; several fleets live side by side."""

    kind: ClassVar[str] = "qemu"

    def __init__(
        self,
        name: str,
        hosts: Sequence[str],
        *,
        hardware: Hardware | None = None,
        cache: Cache = "volatile",
        accel: Accelerator = "auto",
        boot_s: float = BOOT_S,
        snapshots: bool = True,
        packages: Sequence[str] = (),
        init: Init = "minimal",
        **more: Unpack[Options],
    ) -> None:
        """``cache``: whether what a guest has written and not flushed is lost in a power cut. ``init``: who
        runs the services of a host."""
        self._cache: Cache = cache
        self._snapshots = snapshots
        self._init: Init = init
        self._model: Model | None = None
        packages = packages_for(init, packages)
        super().__init__(
            name, hosts, hardware=hardware, accel=accel, boot_s=boot_s, packages=packages, **more
        )

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

    def _machine(self, host: Host) -> Machine:
        disks, length = self._disks(host, self._cache), self._network.prefixlen
        return Machine(self.state, self.folder, host, disks, self._boot_s, length, init=self._init)

    @property
    def _needed_mb(self) -> int:
        return shelf_mb(self.state.disk_mb) + WRITTEN_MB

    def _build_hosts(self, public_key: str, host_key: str) -> None:
        lines = []
        for machine in self._machines.values():
            machine.model = self._model
            lines += [f"tuntap add {machine.link} mode tap", f"link set {machine.link} master br0"]
        ip_batch(lines, netns=self.state.control)
        super()._build_hosts(public_key, host_key)
