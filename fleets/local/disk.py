"""The data disk of a host: a sparse image file behind a loop device, and the way to lose what is
not synced.

``FS_IOC_SHUTDOWN`` with ``NOLOGFLUSH`` (Linux: ext4, XFS, f2fs) makes a mounted file system stop at once:
dirty pages and the journal's unwritten transactions never reach the disk, which is what a power cut does to a
machine. What the kernel had written back by itself (after some 5 to 30 seconds) stays, as on a machine.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wrackline.fleets.base import FileLoss, FleetError
from wrackline.fleets.local import look, throttle
from wrackline.fleets.local.look import FileSeen, losses
from wrackline.fleets.local.network.namespaces import run_tool

LOOP_CONFIGURE = 0x4C0A
LOOP_CLR_FD = 0x4C01
LOOP_CTL_GET_FREE = 0x4C82
LO_FLAGS_AUTOCLEAR = 4
LOOP_MAJOR = 7
MIN_DISK_MB = {"ext4": 8, "xfs": 300}
"""Smallest disk that mkfs takes; xfsprogs refuses less than 300 MB."""
MKFS = {
    # The image is a hole, so it reads as zeros already: nothing has to be written for tables or journal.
    "ext4": ("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-K"),
}
MOUNT_OPTIONS = {"ext4": "noinit_itable", "xfs": ""}


def check_disk(filesystem: str, disk_mb: int) -> None:
    """Raises FleetError for a disk that cannot be made."""
    if filesystem not in MKFS:
        raise FleetError(f"unknown file system {filesystem!r}: the data disk is one of {', '.join(MKFS)}")
    if disk_mb < MIN_DISK_MB[filesystem]:
        raise FleetError(
            f"a {filesystem} disk needs at least disk_mb={MIN_DISK_MB[filesystem]}, not {disk_mb}"
        )


def check_room(folder: Path, needed_mb: int) -> None:
    """Raises FleetError when the machine's disk could fill up under the fleet's: a host would then see I/O
    errors that no test asked for."""
    free_mb = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize // 2**20
    if free_mb < needed_mb:
        raise FleetError(
            f"the fleet's disks need {needed_mb} MB in {folder}, which has {free_mb} MB free;"
            " make room, or choose another folder with --state-dir"
        )


def make_image(image: Path, filesystem: str, disk_mb: int) -> None:
    """A sparse image with an empty file system in it, unless it is there already."""
    if image.exists():
        return
    half_made = image.with_suffix(".new")
    with half_made.open("wb") as file:
        file.truncate(disk_mb * 2**20)
    run_tool([*MKFS[filesystem], str(half_made)])
    half_made.rename(image)


# -- loop devices --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop device that detaches itself when its last user (this descriptor or a mount) lets go."""

    path: str
    descriptor: int

    def close(self) -> None:
        os.close(self.descriptor)


def attach_loop(image: Path, *, timeout_s: float = 5.0) -> Loop:
    """Put ``image`` behind a free loop device. Hold the result until the device is mounted, then close it.
    Raises FleetError."""
    deadline = time.monotonic() + timeout_s
    try:
        control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise FleetError(
            f"/dev/loop-control: {error.strerror}; the data disks need loop devices and root"
        ) from error
    backing = os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
            loop = _configure(number, backing, image.name)
            if loop is not None:
                return loop
            if time.monotonic() > deadline:
                raise FleetError(
                    f"no loop device for {image} within {timeout_s:g} s: /dev/loop{number} was taken"
                )
    except OSError as error:
        raise FleetError(f"loop device for {image}: {error}") from error
    finally:
        os.close(backing)
        os.close(control)


def _configure(number: int, backing: int, name: str) -> Loop | None:
    """Attaches a backing file to a loop device; None when somebody else took the device first."""
    path = f"/dev/loop{number}"
    with contextlib.suppress(FileExistsError):
        # Containers have a /dev of their own, in which new devices do not appear by themselves.
        os.mknod(path, stat.S_IFBLK | 0o660, os.makedev(LOOP_MAJOR, number))
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    info = struct.pack(
        "<5Q4I64s64s32s2Q", 0, 0, 0, 0, 0, 0, 0, 0, LO_FLAGS_AUTOCLEAR, name.encode()[:63], b"", b"", 0, 0
    )
    try:
        fcntl.ioctl(descriptor, LOOP_CONFIGURE, struct.pack("<II", backing, 0) + info + bytes(64))
    except OSError as error:
        os.close(descriptor)
        if error.errno == errno.EBUSY:
            return None
        raise
    throttle.free(path)  # what a killed run may have left of its own disk
    return Loop(path, descriptor)


def loops_below(folder: Path) -> dict[str, Path]:
    """Loop devices in use whose image is in ``folder``: ``/dev/loopN`` → image."""
    result = {}
    for entry in Path("/sys/block").glob("loop*"):
        with contextlib.suppress(OSError):
            backing = (entry / "loop" / "backing_file").read_text().strip().removesuffix(" (deleted)")
            if Path(backing).is_relative_to(folder):
                result[f"/dev/{entry.name}"] = Path(backing)
    return result


def wait_released(folder: Path, image: Path | None = None, *, timeout_s: float = 10.0) -> None:
    """Waits until no loop device holds ``image`` (or any image in ``folder``): the old file system is really
    gone, so a mount makes a new one. Devices still there at the deadline are detached by force, then
    FleetError."""
    deadline = time.monotonic() + timeout_s
    forced = False
    while held := {d: i for d, i in loops_below(folder).items() if image is None or i == image}:
        if time.monotonic() > deadline:
            if forced:
                raise FleetError(f"{', '.join(held)} still hold the images of {folder}; see `losetup -a`")
            for device in held:
                _detach(device)
            forced, deadline = True, time.monotonic() + 2.0
        time.sleep(0.002)


def _detach(device: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(descriptor, LOOP_CLR_FD, 0)
        finally:
            os.close(descriptor)


# -- what is lost --------------------------------------------------------------------------------------------


def backed_by(mount_point: Path, image: Path) -> bool:
    """Tells whether ``mount_point`` is on the file system in ``image``, and on no other."""
    try:
        return _image_of(mount_point.stat().st_dev) == image
    except OSError:
        return False


def _image_of(device: int) -> Path | None:
    if os.major(device) != LOOP_MAJOR:
        return None
    with contextlib.suppress(FileNotFoundError):
        return Path(
            Path(f"/sys/dev/block/{LOOP_MAJOR}:{os.minor(device)}/loop/backing_file").read_text().strip()
        )
    return None


def shut_down(mount_point: Path, image: Path) -> None:
    """Stop the file system at once; nothing that is dirty gets written. Raises FleetError, before anything
    else when the mount point is not on ``image``: the machine's own disks understand this call too."""
    try:
        descriptor = os.open(mount_point, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise FleetError(f"data disk {image} at {mount_point}: {error.strerror}") from error
    try:
        if _image_of(os.fstat(descriptor).st_dev) != image:
            raise FleetError(f"{mount_point} is not the data disk {image}: not shut down")
        look.shut_down(descriptor)
    except OSError as error:
        raise FleetError(
            f"FS_IOC_SHUTDOWN on {mount_point}: {error.strerror}; see `wrackline doctor`"
        ) from error
    finally:
        os.close(descriptor)


def discard(mount_point: Path, image: Path) -> bool:
    """Throw away what is dirty of a data disk that nobody will read again; whether that was one. Best
    effort."""
    with contextlib.suppress(OSError, FleetError):
        if backed_by(mount_point, image):
            shut_down(mount_point, image)
            return True
    return False


def compare(before: Mapping[str, FileSeen], mount_point: Path) -> dict[str, FileLoss]:
    """Returns the loss of each file that shrank, vanished, or ends in other bytes than before."""
    return {path: FileLoss(*loss) for path, loss in losses(before, mount_point).items()}
