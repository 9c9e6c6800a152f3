"""Files that must survive a power cut: directory fsync, replace-as-a-whole, whole writes at a position."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from wrackline.broker.storage.descriptors import open_file

_IOV_MAX = 1024
_LIBC = ctypes.CDLL(None, use_errno=True)


def fsync_dir(path: Path) -> None:
    """Make creations, renames and removals in ``path`` durable. Raises OSError."""
    fsync_path(path, os.O_DIRECTORY)


def fsync_path(path: Path, flags: int = 0) -> None:
    """Syncs a file or a directory that nobody has open here. Raises OSError."""
    fd = open_file(path, os.O_RDONLY | flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_filesystem(path: Path) -> None:
    """Syncs everything written to the file system that holds ``path``, for one wait (syncfs(2)). Raises
    OSError, since Linux 5.8 also for what could not be written earlier."""
    fd = open_file(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _LIBC.syncfs(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(fd)


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Give ``path`` new content as a whole: a reader or a crash sees the old file or the new one.

    With ``durable`` the new content has also reached the disk on return. Raises OSError.
    """
    temporary = path.with_name(path.name + ".tmp")
    fd = open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_whole(fd, (content,), 0)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    if durable:
        fsync_dir(path.parent)


def write_whole(fd: int, buffers: Sequence[bytes | memoryview], position: int) -> int:
    """Write all buffers at ``position``; the number of bytes written. Raises OSError (ENOSPC, EIO, EFBIG)
    when the disk takes only a part: the caller cuts the file back."""
    start = position
    pending: list[bytes | memoryview] = [buffer for buffer in buffers if len(buffer)]
    while pending:
        written = os.pwritev(fd, pending[:_IOV_MAX], position)
        position += written
        while pending and written >= len(pending[0]):
            written -= len(pending.pop(0))
        if pending and written:
            pending[0] = memoryview(pending[0])[written:]
    return position - start


def read_whole(fd: int, size: int, position: int) -> bytes:
    """Reads up to ``size`` bytes at ``position``; fewer only at the end of the file."""
    data = os.pread(fd, size, position)
    if len(data) == size or not data:
        return data
    parts = [data]
    got = len(data)
    while got < size:
        data = os.pread(fd, size - got, position + got)
        if not data:
            break
        parts.append(data)
        got += len(data)
    return b"".join(parts)
