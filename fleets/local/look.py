"""The files of a data disk as programs see them, and what became of them after a power cut.

On the standard library alone: a ``qemu`` host runs this file itself, since nobody else can look at its disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

FS_IOC_SHUTDOWN = 0x8004587D
NOLOGFLUSH = 2
TAIL_BYTES = 4096
MAX_TAILS = 256
# Looking must not change anything: an access time would be one more journal entry, and waits for the
# journal's turn.
LOOK = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOATIME


class FileSeen(NamedTuple):
    """A file as programs see it."""

    size_bytes: int
    tail: int | None
    """CRC-32 of its last bytes (up to TAIL_BYTES), which shows zeros and older content at an unchanged size;
    None for all but the MAX_TAILS files written last."""


class Loss(NamedTuple):
    """The loss of one file; `wrackline.fleets.base.FileLoss` says what the numbers mean."""

    before_bytes: int
    after_bytes: int
    changed: bool = False


@contextlib.contextmanager
def files_seen(mount_point: Path) -> Iterator[dict[str, FileSeen]]:
    """Every regular file below a mount point, by relative path. What is lost must be lost inside the context:
    the files stay open until its end, because ext4 starts to write a truncated file back as soon as anybody
    closes it."""
    stats = _stat_all(mount_point)
    latest = sorted(stats, key=lambda path: stats[path].st_mtime_ns)[-MAX_TAILS:]
    with contextlib.ExitStack() as opened:
        tails: dict[str, int] = {}
        for path in latest:
            # A program that is not stopped may remove a file under our eyes (only hosts that stay on have
            # such).
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(mount_point / path, LOOK)
                opened.callback(os.close, descriptor)
                size = stats[path].st_size
                tails[path] = zlib.crc32(os.pread(descriptor, TAIL_BYTES, max(0, size - TAIL_BYTES)))
        yield {path: FileSeen(stat.st_size, tails.get(path)) for path, stat in stats.items()}


def _stat_all(mount_point: Path) -> dict[str, os.stat_result]:
    stats: dict[str, os.stat_result] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        descriptor = os.open(mount_point / folder, LOOK | os.O_DIRECTORY)
        try:
            for entry in os.scandir(descriptor):
                relative = f"{folder}/{entry.name}" if folder else entry.name
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_dir(follow_symlinks=False):
                        # Nobody's files; reading it would wait behind all that the disk has to write.
                        if relative != "lost+found":
                            folders.append(relative)
                    elif entry.is_file(follow_symlinks=False):
                        stats[relative] = entry.stat(follow_symlinks=False)
        finally:
            os.close(descriptor)
    return stats


def losses(before: Mapping[str, FileSeen], mount_point: Path) -> dict[str, Loss]:
    """Returns the loss of each file that shrank, vanished, or ends in other bytes than before."""
    result: dict[str, Loss] = {}
    with files_seen(mount_point) as seen:
        after = seen
    for path, old in sorted(before.items()):
        new = after.get(path)
        if new is None:
            result[path] = Loss(old.size_bytes, 0)
        elif new.size_bytes < old.size_bytes:
            result[path] = Loss(old.size_bytes, new.size_bytes)
        elif new.size_bytes == old.size_bytes and None not in (old.tail, new.tail) and new.tail != old.tail:
            kept = new.size_bytes - _trailing_zeros(mount_point / path)
            result[path] = Loss(old.size_bytes, min(kept, old.size_bytes), changed=True)
    return result


def _trailing_zeros(path: Path) -> int:
    """Length in bytes of the run of zeros at a file's end."""
    descriptor = os.open(path, LOOK)
    try:
        size = end = os.fstat(descriptor).st_size
        while end > 0:
            begin = max(0, end - 65536)
            kept = os.pread(descriptor, end - begin, begin).rstrip(b"\0")
            if kept:
                return size - begin - len(kept)
            end = begin
        return size
    finally:
        os.close(descriptor)


def is_alive(pid: int) -> bool:
    """Tells whether a process still runs; a zombie does not: it holds nothing any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def stop_all(find: Callable[[], Iterable[int]]) -> set[int]:
    """SIGSTOP for all that are found, and again until nobody new is: a process may fork, or come, between a
    look and its signal."""
    stopped: set[int] = set()
    while new := set(find()) - stopped:
        signal_all(sorted(new), signal.SIGSTOP)
        stopped |= new
    return stopped


def shut_down(descriptor: int) -> None:
    """Stops the file system of an open file at once; nothing that is dirty gets written. Raises OSError."""
    fcntl.ioctl(descriptor, FS_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))


def holders(pids: Iterable[int], device: int) -> list[int]:
    """Returns the processes among these with an open file, or their working directory, on a device."""
    return [pid for pid in pids if any(_is_on(device, path) for path in _holds(pid))]


def _holds(pid: int) -> Iterator[str]:
    """Links to what a process holds on file systems."""
    yield f"/proc/{pid}/cwd"
    for folder in ("fd", "map_files"):
        with contextlib.suppress(OSError):
            yield from (entry.path for entry in os.scandir(f"/proc/{pid}/{folder}"))


def _is_on(device: int, path: str) -> bool:
    try:
        return Path(path).stat().st_dev == device
    except OSError:
        return False
