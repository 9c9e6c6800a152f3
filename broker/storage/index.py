"""The sparse offset index beside a segment: Kafka's 8-byte entries ``int32 offset - base, int32 position``.

An entry names the *last* offset of a batch and the byte where that batch begins, as Kafka's own does. The
file is a hint, never trusted: at start it is rebuilt from the segment, and a lookup is a place to begin to
walk batch headers from. So it needs no flush of its own and may be empty, short or stale after a power cut.
"""

from __future__ import annotations

import os
import struct
from array import array
from bisect import bisect_right
from pathlib import Path

from broker.storage.files import write_whole

_ENTRY = struct.Struct(">ii")
ENTRY_BYTES = _ENTRY.size
_MAX_RELATIVE = 0x7FFFFFFF


class OffsetIndex:
    """Offsets are absolute here; the file keeps them relative to the segment's base."""

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._offsets = array("q")
        self._positions = array("q")
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, last_offset: int, position: int) -> None:
        """Raises OSError."""
        relative = last_offset - self.base_offset
        if relative > _MAX_RELATIVE or (self._offsets and last_offset <= self._offsets[-1]):
            return
        write_whole(self._fd, (_ENTRY.pack(relative, position),), len(self._offsets) * ENTRY_BYTES)
        self._offsets.append(last_offset)
        self._positions.append(position)

    def position_before(self, offset: int) -> int:
        """A byte where a batch begins, at or before the batch that holds ``offset``."""
        at = bisect_right(self._offsets, offset) - 1
        # The entry's last offset is at or before the one sought: its batch begins at or before that one's.
        return self._positions[at] if at >= 0 else 0

    def truncate(self, size_bytes: int) -> None:
        """Forget the entries of batches at or past byte ``size_bytes`` of the segment."""
        keep = len(self._positions)
        while keep and self._positions[keep - 1] >= size_bytes:
            keep -= 1
        del self._offsets[keep:]
        del self._positions[keep:]
        os.ftruncate(self._fd, keep * ENTRY_BYTES)

    def rebuild(self, entries: list[tuple[int, int]]) -> None:
        """Replace everything by (last offset, position) pairs."""
        self._offsets = array("q", (last for last, _ in entries))
        self._positions = array("q", (position for _, position in entries))
        content = b"".join(_ENTRY.pack(last - self.base_offset, position) for last, position in entries)
        if os.pread(self._fd, len(content) + 1, 0) != content:
            os.ftruncate(self._fd, 0)
            write_whole(self._fd, (content,), 0)

    def flush(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)
