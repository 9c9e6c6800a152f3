"""The disks of a ``qemu`` host, on this machine.

The data disk is a file that QEMU writes through this machine's page cache: a flush of the guest becomes an
fdatasync of the file. Killing QEMU would therefore lose nothing that the guest has written, flushed or not.
So that it is lost, as by a disk whose own cache has no battery, the file lies on a file system of its own
(the *shelf*), which is shut down in a power cut without writing anything back, and mounted again at power-on.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.disk import (
    MKFS,
    MOUNT_OPTIONS,
    attach_loop,
    make_image,
    shut_down,
    wait_released,
)
from wrackline.fleets.local.namespaces import mounts, run_tool
from wrackline.fleets.local.state import FleetFolder
from wrackline.fleets.qemu.settings import SYSTEM_MB

SHELF = "ext4"
Cache = Literal["volatile", "kept"]


def shelf_mb(disk_mb: int) -> int:
    """Room for a whole data disk, and for what the shelf's file system needs: it must never be full."""
    return disk_mb + disk_mb // 16 + 48


@dataclass(frozen=True, slots=True)
class Disks:
    """Of one host."""

    folder: FleetFolder
    host: str
    filesystem: str
    disk_mb: int
    cache: Cache

    @property
    def image(self) -> Path:
        """The shelf, or the data disk itself where the cache is kept. Nobody has it open while the host is
        off."""
        return self.folder.image(self.host)

    @property
    def shelf(self) -> Path:
        """Where the shelf is mounted while the host is on."""
        return self.folder.path / f"{self.host}.shelf"

    @property
    def data(self) -> Path:
        return self.image if self.cache == "kept" else self.shelf / "data.img"

    @property
    def system(self) -> Path:
        """What the host itself writes on its system disk; outlives a power cut."""
        return self.folder.path / f"{self.host}.system"

    def make(self) -> None:
        """Raises FleetError."""
        make_image(self.system, "ext4", SYSTEM_MB)
        if self.cache == "kept":
            make_image(self.image, self.filesystem, self.disk_mb)
            return
        make_image(self.image, SHELF, shelf_mb(self.disk_mb))
        self.shelf.mkdir(mode=0o700, exist_ok=True)
        self.attach()
        with self.data.open("wb") as file:
            file.truncate(self.disk_mb * 2**20)
        run_tool([*MKFS[self.filesystem], str(self.data)])
        run_tool(["umount", str(self.shelf)])
        wait_released(self.folder.path, self.image)

    def attach(self) -> None:
        """Mount the shelf. Raises FleetError."""
        if self.cache == "kept":
            return
        loop = attach_loop(self.image)
        try:
            options = ["-o", MOUNT_OPTIONS[SHELF]] if MOUNT_OPTIONS[SHELF] else []
            run_tool(["mount", "-t", SHELF, *options, loop.path, str(self.shelf)])
        finally:
            loop.close()

    def lose_cache(self) -> None:
        """What was not flushed is gone. Raises FleetError."""
        if self.cache == "volatile":
            shut_down(self.shelf, self.image)

    def detach(self, *, timeout_s: float = 5.0) -> None:
        """Unmount the shelf; what is dirty on it by now is thrown away. Idempotent. Raises FleetError."""
        deadline = time.monotonic() + timeout_s
        while any(mount.point == self.shelf for mount in mounts()):
            with contextlib.suppress(FleetError):
                self.lose_cache()
            try:
                run_tool(["umount", str(self.shelf)])
            except FleetError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        wait_released(self.folder.path, self.image)
