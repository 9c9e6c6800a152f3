"""Holding a data disk back: the block I/O controller of cgroups (version 1) limits what a loop device reads
and writes in a second, whoever asks it to.

A limit stays with the device's number when the disk is gone, so whoever takes a disk away, and whoever puts
an image behind a device, ends it.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from wrackline.fleets.base import FleetError

FOLDER = Path("/sys/fs/cgroup/blkio")
FILES = ("blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device")
LOOP_MAJOR = 7


def missing() -> str | None:
    """Returns why this machine cannot throttle disks, in one line; None when it can."""
    if all((FOLDER / name).exists() for name in FILES):
        return None
    return (
        f"this machine has no {FOLDER}/{FILES[1]}: the kernel needs CONFIG_BLK_DEV_THROTTLING, and the "
        "controller blkio of cgroups version 1 must be mounted there"
    )


def limit(device: str, bytes_per_s: int | None) -> None:
    """Limits a device such as ``/dev/loop3``; None removes the limit. Raises FleetError."""
    if why := missing():
        raise FleetError(f"{device} cannot be held back: {why}")
    match = re.fullmatch(r"/dev/loop(\d+)", device)
    if match is None:
        raise FleetError(f"{device} is no loop device: only those of hosts are held back")
    try:
        for name in FILES:
            (FOLDER / name).write_text(f"{LOOP_MAJOR}:{match[1]} {bytes_per_s or 0}\n")
    except OSError as error:
        raise FleetError(f"{device} cannot be held back: {error}") from error


def free(device: str) -> None:
    """Removes the limit of a device where there may be one."""
    if missing() is None:
        with contextlib.suppress(FleetError):
            limit(device, None)
