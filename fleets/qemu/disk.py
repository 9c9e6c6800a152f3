"""The disks of a ``qemu`` host, on this machine.

The data disk is a file that QEMU writes through this machine's page cache: a flush of the guest becomes an
fdatasync of the file. Killing QEMU would therefore lose nothing that the guest has written, flushed or not.
So that it is lost, as by a disk whose own cache has no battery, the file lies on a file system of its own
(the *shelf*), which is shut down in a power cut without writing anything back, and mounted again at power-on.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wrackline.fleets.local.disk import (
    MKFS,
    MOUNT_OPTIONS,
    attach_loop,
    make_image,
    shut_down,
    wait_released,
)
from wrackline.fleets.local.network.namespaces import find_tool, run_tool
from wrackline.fleets.local.state import FleetFolder
from wrackline.fleets.qemu.settings import SYSTEM_MB

SHELF = "ext4"
Cache = Literal["volatile", "kept"]


def shelf_mb(disk_mb: int) -> int:
    """Room for a whole data disk, and for what the shelf's file system needs: it must never be full."""
    return disk_mb + disk_mb // 16 + 48


@dataclass(frozen=True, slots=True)
class Disks:
    """The disks of one host."""

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
        """Returns where the shelf is mounted, for the host's QEMU alone."""
        return self.folder.path / f"{self.host}.shelf"

    @property
    def data(self) -> Path:
        """The data disk, as the host's QEMU finds it."""
        return self.image if self.cache == "kept" else self.shelf / "data.img"

    @property
    def system(self) -> Path:
        """Returns the file of the host's own changes to its system disk, which outlive a power cut."""
        return self.folder.path / f"{self.host}.system"

    def make(self) -> None:
        """Raises FleetError."""
        make_image(self.system, "ext4", SYSTEM_MB)
        if self.cache == "kept":
            make_image(self.image, self.filesystem, self.disk_mb)
            return
        make_image(self.image, SHELF, shelf_mb(self.disk_mb))
        self.shelf.mkdir(mode=0o700, exist_ok=True)
        with self.shelved() as prefix:
            script = 'truncate -s "$1" "$2" && shift 2 && exec "$@"'
            data, size = str(self.data), str(self.disk_mb * 2**20)
            run_tool([*prefix, "sh", "-ec", script, "sh", size, data, *MKFS[self.filesystem], data])
        wait_released(self.folder.path, self.image)

    @contextlib.contextmanager
    def shelved(self) -> Iterator[list[str]]:
        """The beginning of a command, by which a program sees the shelf. It is mounted for the program alone:
        whoever else made a mount namespace meanwhile would keep a copy of the mount, and so the disk. Start
        the program inside the context, and stay until it runs. Raises FleetError."""
        if self.cache == "kept":
            yield []
            return
        loop = attach_loop(self.image)
        try:
            options = ["-o", MOUNT_OPTIONS[SHELF]] if MOUNT_OPTIONS[SHELF] else []
            mount = shlex.join(["mount", "-t", SHELF, *options, loop.path, str(self.shelf)])
            yield [
                *(find_tool("unshare"), "--mount", "--propagation", "private"),
                *(find_tool("sh"), "-ec", f'{mount}; exec "$@"', "sh"),
            ]
        finally:
            loop.close()

    @contextlib.contextmanager
    def cache_of(self, pid: int) -> Iterator[Callable[[], None]]:
        """Yields a function that loses the cache of the data disk that QEMU, process ``pid``, has: to be
        called when that was killed. Held open until then, the shelf is not unmounted, and so not written
        back, when it dies."""
        if self.cache == "kept":
            yield lambda: None
            return
        try:
            shelf = os.open(f"/proc/{pid}/root{self.shelf}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:  # it has ended by itself: a disk that nobody uses writes its cache back
            yield lambda: None
            return
        try:
            yield lambda: shut_down(Path(f"/proc/self/fd/{shelf}"), self.image)
        finally:
            os.close(shelf)

    def copy(self, pid: int) -> Path:
        """A copy of the data disk beside it, while QEMU, process ``pid``, has it and its guest writes
        nothing. Raises FleetError."""
        copy = self.image.with_suffix(".copy")
        shelf = f"/proc/{pid}/root{self.shelf}"
        if self.cache == "volatile":
            run_tool(["fsfreeze", "--freeze", shelf])
        try:
            run_tool(["cp", "--sparse=always", "--reflink=auto", str(self.image), str(copy)])
        finally:
            if self.cache == "volatile":
                run_tool(["fsfreeze", "--unfreeze", shelf])
        return copy

    def wipe(self) -> None:
        """An empty data disk in place of what was there. Nobody has it. Raises FleetError."""
        self.image.unlink()
        self.make()

    def release(self) -> None:
        """Waits until nobody has the shelf any more. Raises FleetError."""
        wait_released(self.folder.path, self.image)
