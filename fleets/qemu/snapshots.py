"""Snapshots of guests that have begun and wait to be told who they are: power-on in a second or two.

One is good for every host of every fleet with the same image, hardware and QEMU, because such a guest is
nobody yet: its root is a disk that nobody writes to, and its other disks have not been opened
(`wrackline.fleets.qemu.guest.init`).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.network.namespaces import run_tool
from wrackline.fleets.qemu import qmp
from wrackline.fleets.qemu.image.store import Image, Store
from wrackline.fleets.qemu.settings import PROGRAM

log = logging.getLogger(__name__)

FASTEST_BYTES_S = 2**30
SAVE_TIMEOUT_S = 120.0
KEPT = 6
"""Snapshots of an image, the youngest; each has some 100 MB."""


def digest(words: Sequence[str], disk_mb: int) -> str:
    """Returns the digest of everything a snapshot depends on: QEMU, what the guest sees of the machine, sizes
    of its disks."""
    version = run_tool([PROGRAM, "--version"]).splitlines()[0]
    return hashlib.sha256("\0".join([version, *words, str(disk_mb)]).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of a booted guest, which need not exist."""

    path: Path

    @staticmethod
    def of(image: Image, words: Sequence[str], disk_mb: int) -> Snapshot:
        return Snapshot(image.folder / "snapshots" / f"{digest(words, disk_mb)}.ram")

    @property
    def exists(self) -> bool:
        return self.path.exists()

    @property
    def arguments(self) -> tuple[str, ...]:
        """Returns the arguments with which QEMU goes on from the snapshot."""
        return ("-incoming", f"exec:exec cat {shlex.quote(str(self.path))}")

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """One guest at a time becomes the snapshot, of all processes; others wait. Raises FleetError."""
        self.path.parent.mkdir(exist_ok=True)
        with Store(self.path.parent).locked(self.path.stem, log.info):
            yield

    def save(self, socket: Path) -> None:
        """Write down the guest behind a QMP socket; it goes on afterwards. Raises FleetError."""
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            qmp.ask(socket, "migrate-set-parameters", {"max-bandwidth": FASTEST_BYTES_S})
            qmp.ask(socket, "migrate", {"uri": f"exec:exec cat >{shlex.quote(str(fresh))}"})
            deadline = time.monotonic() + SAVE_TIMEOUT_S
            while (status := qmp.ask(socket, "query-migrate").get("status")) != "completed":
                if status == "failed" or time.monotonic() > deadline:
                    raise FleetError(f"a snapshot could not be saved in {self.path.parent}: {status}")
                time.sleep(0.05)
            fresh.rename(self.path)
            self._prune()
        finally:
            fresh.unlink(missing_ok=True)
        qmp.ask(socket, "cont")

    def _prune(self) -> None:
        """Each change of the guest's programs, and of a fleet's hardware, leaves one behind."""
        saved = sorted(self.path.parent.glob("*.ram"), key=lambda file: file.stat().st_mtime)
        for old in saved[:-KEPT]:
            old.unlink(missing_ok=True)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
