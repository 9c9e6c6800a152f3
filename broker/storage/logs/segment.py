"""One segment of a log: ``<20-digit base offset>.log``, raw record batches v2 one after the other, and its
index.

Byte for byte Kafka's own layout, so Kafka's dump tool reads it and one reader reads both.
"""

from __future__ import annotations

import errno
import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

from wrackline.broker.model.batches.batch import HEADER_BYTES, LENGTH_OFFSET
from wrackline.broker.storage.descriptors import OPEN, open_file
from wrackline.broker.storage.files import read_whole, write_whole
from wrackline.broker.storage.logs.index import OffsetIndex
from wrackline.broker.storage.logs.marks import Marks

_BOUNDS = struct.Struct(">qi11xi8xq")
"""base offset, batch length, last offset delta, max timestamp of a batch header."""
_CHECKED = struct.Struct(">qi4xbI2xi")
"""base offset, batch length, magic, CRC, last offset delta."""
_CRC_START = 21
_MAGIC = 2
_WALK_BYTES = 64 * 1024
_RECENT = 4_096
"""Batches at the tail whose place is remembered exactly: followers and consumers mostly read there."""


@dataclass(frozen=True, slots=True)
class BatchBounds:
    """The part of each batch that a walk along a segment needs."""

    base_offset: int
    last_offset: int
    size_bytes: int
    max_timestamp: int
    position: int

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes


def bounds_of(batch: bytes | memoryview, position: int, at: int = 0) -> BatchBounds:
    base, length, delta, max_timestamp = _BOUNDS.unpack_from(batch, at)
    return BatchBounds(base, base + delta, length + LENGTH_OFFSET, max_timestamp, position)


def file_name(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


class DamagedLog(OSError):
    """The disk gives back other bytes than were written. To everybody else a disk that fails to read, which
    it is."""

    def __init__(self, path: Path, position: int, what: str) -> None:
        super().__init__(
            errno.EIO,
            f"{path} byte {position}: {what}; the next start puts the rest of this log aside, and fetches it "
            "from the leader",
        )


def fault_of(
    batches: bytes | memoryview, start_offset: int, *, contiguous: bool = True
) -> tuple[int, str] | None:
    """Returns what is wrong with batches read from a log, the first of which must hold ``start_offset``:
    (byte, what). Their CRC leaves the base offset out, so they must also go on from each other (unless the
    log may have holes)."""
    view, at, due = memoryview(batches), 0, start_offset
    while at < len(view):
        if len(view) - at < HEADER_BYTES:
            return at, f"{len(view) - at} bytes, a batch header has {HEADER_BYTES}"
        base, length, magic, crc, delta = _CHECKED.unpack_from(view, at)
        end = at + LENGTH_OFFSET + length
        if length < HEADER_BYTES - LENGTH_OFFSET or end > len(view) or magic != _MAGIC:
            return at, f"a batch of {length} bytes and magic {magic}"
        if crc32c(view[at + _CRC_START : end]) != crc:
            return at, f"the CRC of the batch at {base} is wrong"
        if contiguous and not (base <= due <= base + delta if at == 0 else base == due):
            return at, f"a batch at {base} where {due} is due"
        at, due = end, base + delta + 1
    return None


class Segment:
    """Knows its size and offsets from its opener (recovery walks the file, a roll starts empty)."""

    def __init__(
        self, directory: Path, base_offset: int, *, index_interval_bytes: int, made: bool = True
    ) -> None:
        """Unless it is ``made``, there is no file until ``make`` is called."""
        self.base_offset = base_offset
        self.path = directory / file_name(base_offset)
        self.size = 0
        self.next_offset = base_offset
        self.max_timestamp = -1
        self.first_timestamp: int | None = None
        """Of the first batch: its newest record's."""
        self.flushed_size = 0
        self.index_interval_bytes = index_interval_bytes
        self._unindexed_bytes = 0
        self._recent_offsets: list[int] = []
        self._recent_positions: list[int] = []
        self._marks = Marks()
        self._fd: int | None = None
        self.index = OffsetIndex(self.path.with_suffix(".index"), base_offset)
        if made:
            self.make()

    def make(self) -> None:
        """Both files, empty where they are not there. Raises OSError."""
        os.close(open_file(self.path, os.O_RDWR | os.O_CREAT))
        self.index.make()

    @property
    def fd(self) -> int:
        """Open from now on, until ``release``. Raises OSError."""
        if self._fd is None:
            OPEN.make_room()
            self._fd = open_file(self.path, os.O_RDWR)
        OPEN.used(self)
        return self._fd

    def release(self) -> None:
        """Give the descriptor back; whoever needs the file opens it again."""
        OPEN.forget(self)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @contextmanager
    def _to_read(self) -> Iterator[int]:
        """A segment at rest is opened for as long as it is read."""
        if self._fd is not None:
            yield self.fd
            return
        fd = open_file(self.path, os.O_RDONLY)
        try:
            yield fd
        finally:
            os.close(fd)

    # --- writing ---------------------------------------------------------------------------------------

    def append(self, batches: list[bytes]) -> None:
        """Write whole batches at the end. Raises OSError; the file is then cut back to where it was, if the
        disk still allows that, and must not be written to again (KAFKA-10778, bug B57)."""
        try:
            write_whole(self.fd, batches, self.size)
        except OSError:
            self._cut_back()
            raise
        for batch in batches:
            self.account(bounds_of(batch, self.size))

    def account(self, batch: BatchBounds) -> None:
        """A batch that is in the file at the end of what is known of it becomes part of the segment."""
        self._unindexed_bytes += batch.size_bytes
        if self._unindexed_bytes > self.index_interval_bytes:
            self.index.append(batch.last_offset, batch.position)
            self._unindexed_bytes = 0
        self._marks.add(batch.position, batch.last_offset, batch.max_timestamp)
        self._recent_offsets.append(batch.base_offset)
        self._recent_positions.append(batch.position)
        if len(self._recent_offsets) > 2 * _RECENT:
            del self._recent_offsets[:_RECENT]
            del self._recent_positions[:_RECENT]
        if self.first_timestamp is None:
            self.first_timestamp = batch.max_timestamp
        self.size = batch.end_position
        self.next_offset = batch.last_offset + 1
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self.fd, self.size)
        except OSError:
            # The disk is beyond writing; recovery cuts the torn batch at the next start.
            return

    def cut_at(self, to_offset: int) -> tuple[int, int, int]:
        """(the byte behind the last batch that ends before ``to_offset``, the offset there, the newest time
        up to it). Raises OSError."""
        start, newest = self._marks.before_offset(to_offset)
        end, next_offset = 0, self.base_offset
        for batch in self.walk(start):
            if batch.last_offset >= to_offset:
                break
            end, next_offset = batch.end_position, batch.last_offset + 1
            newest = max(newest, batch.max_timestamp)
        return end, next_offset, newest

    def truncate(self, to_offset: int) -> None:
        """Drop the batches that hold ``to_offset`` or anything after it. Raises OSError."""
        end, next_offset, newest = self.cut_at(to_offset)
        os.ftruncate(self.fd, end)
        self.index.truncate(end)
        self._marks.truncate(end, newest)
        keep = bisect_left(self._recent_positions, end)
        del self._recent_offsets[keep:]
        del self._recent_positions[keep:]
        self.size, self.next_offset, self.max_timestamp = end, next_offset, newest
        self.flushed_size = min(self.flushed_size, end)
        self.first_timestamp = self.first_timestamp if end else None
        self._unindexed_bytes = 0

    # --- reading ---------------------------------------------------------------------------------------

    def walk(self, position: int) -> Iterator[BatchBounds]:
        """The batches from byte ``position`` (where a batch begins) to the end. Raises OSError."""
        window, start = b"", position
        while position < self.size:
            if position - start + HEADER_BYTES > len(window):
                start = position
                with self._to_read() as fd:
                    window = read_whole(fd, min(_WALK_BYTES, self.size - position), position)
                if len(window) < HEADER_BYTES:
                    raise DamagedLog(self.path, position, "the file ends here")
            batch = bounds_of(window, position, position - start)
            if batch.size_bytes < HEADER_BYTES or batch.end_position > self.size:
                raise DamagedLog(self.path, position, f"a batch of {batch.size_bytes} bytes")
            yield batch
            position = batch.end_position

    def first_as_new_as(self, timestamp: int) -> BatchBounds | None:
        """The first batch with a record at or after a time. Raises OSError."""
        if self.max_timestamp < timestamp:
            return None
        return next(
            (
                batch
                for batch in self.walk(self._marks.before_time(timestamp))
                if batch.max_timestamp >= timestamp
            ),
            None,
        )

    def newest_before(self, end_offset: int) -> int:
        """The greatest time of a record in the batches that end before ``end_offset``, -1 when there is none.
        Raises OSError."""
        if end_offset >= self.next_offset:
            return self.max_timestamp
        start, newest = self._marks.before_offset(end_offset)
        for batch in self.walk(start):
            if batch.last_offset >= end_offset:
                break
            newest = max(newest, batch.max_timestamp)
        return newest

    def position_of(self, offset: int) -> int:
        """The byte where the batch that holds ``offset`` begins (or the next batch, over a gap)."""
        if self._recent_offsets and offset >= self._recent_offsets[0]:
            if offset >= self.next_offset:
                return self.size
            return self._recent_positions[bisect_right(self._recent_offsets, offset) - 1]
        for batch in self.walk(self._marks.before_offset(offset)[0]):
            if batch.last_offset >= offset:
                return batch.position
        return self.size

    def whole(self, batch: BatchBounds) -> bytes:
        """Returns the batch as it is in the file. Raises OSError."""
        with self._to_read() as fd:
            return read_whole(fd, batch.size_bytes, batch.position)

    def read_batch(self, batch: BatchBounds) -> bytes:
        """Checked. Raises OSError."""
        data = self.whole(batch)
        if (fault := fault_of(data, batch.base_offset)) is not None:
            raise DamagedLog(self.path, batch.position, fault[1])
        return data

    def read(
        self,
        start_offset: int,
        end_offset: int,
        max_bytes: int,
        *,
        at_least_one: bool,
        contiguous: bool = True,
    ) -> bytes:
        """Whole batches, from the one that holds ``start_offset``, all of them before ``end_offset``. Each is
        checked: who leads with bytes that nobody takes would keep the good copies of others from being read.
        Raises OSError."""
        position, data = self._read(start_offset, end_offset, max_bytes, at_least_one=at_least_one)
        if (fault := fault_of(data, start_offset, contiguous=contiguous)) is not None:
            raise DamagedLog(self.path, position + fault[0], fault[1])
        return data

    def _read(
        self, start_offset: int, end_offset: int, max_bytes: int, *, at_least_one: bool
    ) -> tuple[int, bytes]:
        """Returns (where they begin, the batches as they are in the file)."""
        position = self.position_of(start_offset)
        limit = self.size if end_offset >= self.next_offset else self.position_of(end_offset)
        if position >= limit:
            return position, b""
        expected = min(limit - position, max(max_bytes, HEADER_BYTES))
        with self._to_read() as fd:
            data = read_whole(fd, expected, position)
        if len(data) < expected:
            raise DamagedLog(self.path, position + len(data), "the file ends here")
        if expected == limit - position and expected <= max_bytes:
            return position, data
        whole = self._whole_batches(data, max_bytes)
        if whole:
            return position, data[:whole]
        first = bounds_of(data, position)
        if first.size_bytes < HEADER_BYTES or first.end_position > limit:
            raise DamagedLog(self.path, position, f"a batch of {first.size_bytes} bytes")
        if not at_least_one:
            return position, b""
        with self._to_read() as fd:
            return position, read_whole(fd, first.size_bytes, position)

    @staticmethod
    def _whole_batches(data: bytes, max_bytes: int) -> int:
        """Returns how many bytes of ``data`` are whole batches within ``max_bytes``."""
        end = 0
        limit = min(len(data), max_bytes)
        while end + HEADER_BYTES <= limit:
            size = LENGTH_OFFSET + int.from_bytes(data[end + 8 : end + 12], "big")
            if size < HEADER_BYTES or end + size > limit:
                break
            end += size
        return end

    # --- life ------------------------------------------------------------------------------------------

    def close(self) -> None:
        self.release()

    def remove(self) -> None:
        """Close, and take both files away under a name recovery knows to be rubbish. Raises OSError."""
        self.close()
        for path in (self.path, self.index.path):
            doomed = path.with_name(path.name + ".deleted")
            path.rename(doomed)
            doomed.unlink()
