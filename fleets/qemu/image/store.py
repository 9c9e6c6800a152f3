"""The images of this machine, each in a folder of the cache that is named after its recipe:

=====================  ==================================================================================
``root.img``           the system disk, ext4; guests only ever read it, so that all share one
``vmlinux``            the kernel
``modules/``           what of it the first moments need
``image.json``         what is in it; written last: a folder without it was not finished and is made anew
``initrd-*.cpio``      first moments of a guest, by the content of the programs that run then
``snapshots/*.ram``    guests that have begun and wait for their names (`wrackline.fleets.qemu.snapshots`)
``kvm-*.json``         whether KVM brings this image up here (`wrackline.fleets.qemu.accelerators`)
=====================  ==================================================================================

Nothing in it is secret, and nothing is a host's own: keys and names are given to a guest when it starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wrackline.cache import cache_folder
from wrackline.fleets.base import FleetError
from wrackline.fleets.local.network.namespaces import mounts, run_tool

DESCRIPTION = "image.json"
DESCRIBED = ("release", "packages", "python", "kernel", "built")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is whole."""

    folder: Path
    digest: str
    release: str
    packages: tuple[str, ...]
    python: str
    """Minor version of its Python: ``3.11``."""
    kernel: str
    """Release of its kernel: ``6.1.0-0-cloud-amd64``."""
    built: str
    """When, in ISO 8601."""

    @property
    def root(self) -> Path:
        return self.folder / "root.img"

    @property
    def vmlinux(self) -> Path:
        return self.folder / "vmlinux"

    @property
    def modules(self) -> Path:
        return self.folder / "modules"

    @property
    def size_bytes(self) -> int:
        """Returns the size on the disk; images are sparse."""
        return sum(file.stat().st_blocks * 512 for file in self.folder.rglob("*") if file.is_file())


class Store:
    """The folder of all images. Several processes may use it at the same time."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_folder() / "images"

    def find(self, digest: str) -> Image | None:
        folder = self.root / digest
        try:
            said = json.loads((folder / DESCRIPTION).read_text())
            return Image(folder, digest, **{**said, "packages": tuple(said["packages"])})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def all(self) -> tuple[Image, ...]:
        """Returns the images that are complete, oldest first."""
        folders = self.root.iterdir() if self.root.is_dir() else ()
        result = (self.find(folder.name) for folder in folders if not folder.name.startswith("."))
        return tuple(sorted(filter(None, result), key=lambda image: image.built))

    @contextlib.contextmanager
    def locked(self, name: str, say: Say) -> Iterator[None]:
        """One process at a time makes or removes what has this name; another waits. Raises FleetError."""
        path = self.root / f".{name}.lock"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            file = path.open("a")
        except OSError as error:
            raise FleetError(
                f"{self.root} cannot be written: {error.strerror}; XDG_CACHE_HOME names another folder"
            ) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"image {name}: another process is at work on it; waiting")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def scratch(self, digest: str) -> Path:
        """An empty folder to build in; to be called with the lock held."""
        folder = self.root / f".build-{digest}"
        self.clear(folder)
        folder.mkdir()
        return folder

    @staticmethod
    def clear(folder: Path) -> None:
        """Remove a folder to build in; what a killed build had mounted there is unmounted. Raises
        FleetError."""
        for point in sorted((mount.point for mount in mounts()), reverse=True):
            if point.is_relative_to(folder):
                run_tool(["umount", str(point)])
        shutil.rmtree(folder, ignore_errors=True)

    def finish(self, scratch: Path, image: Image) -> Image:
        """Moves a finished image into the store; to be called with the lock held."""
        shutil.rmtree(image.folder, ignore_errors=True)
        scratch.rename(image.folder)
        said = {name: getattr(image, name) for name in DESCRIBED}
        write_atomically(image.folder / DESCRIPTION, json.dumps(said, indent=1))
        return image

    def remove(self, digest: str, say: Say) -> bool:
        """False when there was nothing of it. Guests that run from it keep the files they have open."""
        folder = self.root / digest
        with self.locked(digest, say):
            if not folder.is_dir():
                return False
            (folder / DESCRIPTION).unlink(missing_ok=True)  # first: what is half removed is not whole
            shutil.rmtree(folder)
        return True


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes a file so that a reader finds the old one, or none, or all of the new one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(content.encode() if isinstance(content, str) else content)
    fresh.rename(path)
