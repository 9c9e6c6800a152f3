"""The sparse offset index beside a segment: Kafka's 8-byte entries ``int32 offset - base, int32 position``.

An entry names the *last* offset of a batch and the byte where that batch begins, as Kafka's own does. The
file is for Kafka's tools and for people: it is a hint, never trusted nor read, and rebuilt from the segment
at start. So it needs no flush of its own, may be empty, short or stale after a power cut, and is open only
while it is written to.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Callable
from pathlib import Path

from wrackline.broker.storage.descriptors import open_file, out_of_descriptors
from wrackline.broker.storage.files import write_whole

_ENTRY = struct.Struct(">ii")
ENTRY_BYTES = _ENTRY.size
_MAX_INT32 = 0x7FFFFFFF


class OffsetIndex:
    """Offsets are absolute here; the file keeps them relative to the segment's base."""

    def __init__(self, path: Path, base_offset: int) -> None:
        """The file is there from ``make`` or the first change on."""
        self.path = path
        self.base_offset = base_offset
        self._offsets = array("q")
        self._positions = array("q")
        self._deferred = False

    def __len__(self) -> int:
        return len(self._offsets)

    def make(self) -> None:
        """Raises OSError."""
        self._change(lambda _: None)

    def append(self, last_offset: int, position: int) -> None:
        """Raises OSError."""
        relative = last_offset - self.base_offset
        if max(relative, position) > _MAX_INT32 or (self._offsets and last_offset <= self._offsets[-1]):
            return
        entry, at = _ENTRY.pack(relative, position), len(self._offsets) * ENTRY_BYTES
        if self._deferred or self._change(lambda fd: write_whole(fd, (entry,), at)):
            self._offsets.append(last_offset)
            self._positions.append(position)

    def truncate(self, size_bytes: int) -> None:
        """Forget the entries of batches at or past byte ``size_bytes`` of the segment."""
        keep = len(self._positions)
        while keep and self._positions[keep - 1] >= size_bytes:
            keep -= 1
        if self._change(lambda fd: os.ftruncate(fd, keep * ENTRY_BYTES)):
            del self._offsets[keep:]
            del self._positions[keep:]

    def rebuild(self, entries: list[tuple[int, int]]) -> None:
        """Replace everything by (last offset, position) pairs, and those appended before ``write``."""
        self._offsets = array("q", (last for last, _ in entries))
        self._positions = array("q", (position for _, position in entries))
        self._deferred = True

    def write(self) -> None:
        """The end of a rebuilding. Raises OSError."""
        if not self._deferred:
            return
        self._deferred = False
        entries = zip(self._offsets, self._positions, strict=True)
        content = b"".join(_ENTRY.pack(last - self.base_offset, position) for last, position in entries)

        def whole(fd: int) -> None:
            if os.pread(fd, len(content) + 1, 0) != content:
                os.ftruncate(fd, 0)
                write_whole(fd, (content,), 0)

        if not self._change(whole):
            self._deferred = True

    def _change(self, change: Callable[[int], object]) -> bool:
        """False when there was no descriptor for it: then the file says less, or what is no more so."""
        try:
            fd = open_file(self.path, os.O_RDWR | os.O_CREAT)
        except OSError as failure:
            if out_of_descriptors(failure):
                return False
            raise
        try:
            change(fd)
        finally:
            os.close(fd)
        return True
