"""Snapshots of the metadata log on disk, in its directory, under Kafka's names: 20 digits of end offset, 10
of epoch.

A snapshot is written to ``.checkpoint.part``, synced, renamed, and the directory synced: under its own name
there is only ever a whole one (KIP-630).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from wrackline.broker.model.types import SnapshotId, StoredSnapshot
from wrackline.broker.storage.descriptors import open_file
from wrackline.broker.storage.files import fsync_dir, read_whole, write_whole

_FILE = re.compile(r"^(\d{20})-(\d{10})\.checkpoint$")
_PART = ".part"


def file_name(snapshot: SnapshotId) -> str:
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}.checkpoint"


def write(directory: Path, snapshot: SnapshotId, data: bytes) -> None:
    """Durable on return; may be called in any thread. Raises OSError, and then there is none of this name."""
    path = directory / file_name(snapshot)
    part = path.with_name(path.name + _PART)
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_whole(fd, (data,), 0)
        os.fsync(fd)
    finally:
        os.close(fd)
    part.replace(path)
    fsync_dir(directory)


def delete(directory: Path, snapshot: SnapshotId) -> None:
    """Raises OSError."""
    (directory / file_name(snapshot)).unlink(missing_ok=True)
    fsync_dir(directory)


def find(directory: Path) -> tuple[StoredSnapshot, ...]:
    """Every one there is, oldest first. What a crash left of one in the making is removed. Raises OSError."""
    result = []
    if not directory.is_dir():
        return ()
    for path in sorted(directory.iterdir()):
        if path.name.endswith(".checkpoint" + _PART):
            path.unlink()
        elif match := _FILE.match(path.name):
            result.append(StoredSnapshot(SnapshotId(int(match[1]), int(match[2])), path.read_bytes()))
    return tuple(result)


def read(directory: Path, snapshot: SnapshotId, position: int, max_bytes: int) -> bytes:
    """b"" when there is no such snapshot any more. Raises OSError."""
    try:
        fd = open_file(directory / file_name(snapshot), os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return read_whole(fd, max_bytes, position)
    finally:
        os.close(fd)
