"""The log of one partition on disk: segments, and the flushes they still need
(docs/protocol.md 2.14, R01-R10).

All methods belong to the event loop's thread, except ``FlushJob.run``, which works on duplicated
descriptors, so that a roll, truncation or deletion meanwhile cannot pull a file from under it, and
``PartitionLog.flush_at_rest``, while nobody writes. Making the log, and its small files, are tasks of its
``DirectoryQueue``.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from wrackline.broker.model.messages.requests import LookupByTime
from wrackline.broker.model.types import EpochEntry, LogOverrides, LogSlice, TopicPartition
from wrackline.broker.storage import checkpoint
from wrackline.broker.storage.backlog import DirectoryQueue
from wrackline.broker.storage.descriptors import duplicate, out_of_descriptors
from wrackline.broker.storage.files import fsync_dir, fsync_path
from wrackline.broker.storage.logs.segment import BatchBounds, Segment, bounds_of
from wrackline.broker.storage.logs.timestamps import Found, newest_in, search_batch


@dataclass(frozen=True, slots=True)
class LogSettings:
    segment_bytes: int = 1 << 30
    index_interval_bytes: int = 4_096
    continue_after_error: bool = False
    """The defect of B57: what a failed write left is written over, and a hole in the offsets written past."""


class LogFailed(OSError):
    """The log met a disk error before and takes no more writes (KAFKA-10778)."""


@dataclass(slots=True)
class FlushJob:
    """fdatasync of what was unflushed when the job was made. ``run`` in any thread, then
    ``PartitionLog.flushed``."""

    upto: int
    files: list[tuple[Segment, int, int]]
    """(segment, its size then, duplicate descriptor)"""
    directory: Path | None
    queue: DirectoryQueue
    small: Mapping[Path, int]
    """What the queue's tasks have written: on the disk before the records are."""
    done: bool = field(default=False)

    def run(self) -> None:
        """Raises OSError: nothing is known then of what reached the disk."""
        try:
            self.queue.sync(self.small)
            for _, _, fd in self.files:
                os.fdatasync(fd)
            if self.directory is not None:
                fsync_dir(self.directory)
            self.done = True
        finally:
            for _, _, fd in self.files:
                os.close(fd)


class PartitionLog:
    """Opened by recovery or by ``create``. Offsets are contiguous: each append begins at ``leo``."""

    def __init__(
        self,
        tp: TopicPartition,
        topic_id: UUID,
        directory: Path,
        settings: LogSettings,
        segments: Sequence[Segment],
        log_start: int,
        queue: DirectoryQueue | None = None,
    ) -> None:
        self.tp = tp
        self.queue = DirectoryQueue() if queue is None else queue
        self.topic_id = topic_id
        self.directory = directory
        self.log_start = log_start
        self.flushed_upto = log_start
        self.failure: str | None = None
        self._settings = settings
        self._overrides = LogOverrides()
        self._segments = list(segments)
        for segment in segments:
            segment.index.write()
        self._directory_dirty = False
        self._ceiling: int | None = None

    @property
    def leo(self) -> int:
        return self._segments[-1].next_offset

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments)

    # --- writing ---------------------------------------------------------------------------------------

    def append(self, batches: Sequence[bytes]) -> bool:
        """Write batches at the end; True when a segment was filled and rolled: its flush is then due.

        Raises OSError when the disk refuses (LogFailed from then on); nothing of the batches that did not
        fit is kept. Raises ValueError when the first batch does not begin at ``leo``.
        """
        self._writable()
        rolled = False
        try:
            pending: list[bytes] = []
            pending_bytes = 0
            expected = self.leo
            for batch in batches:
                first = bounds_of(batch, 0)
                if first.base_offset != expected and not self._settings.continue_after_error:
                    raise ValueError(f"{self.tp}: batch at {first.base_offset}, the log ends at {expected}")
                if self._is_full(pending, pending_bytes, first):
                    self._segments[-1].append(pending)
                    pending, pending_bytes = [], 0
                    rolled = self._try_to_roll(first.base_offset) or rolled
                pending.append(batch)
                pending_bytes += len(batch)
                expected = first.last_offset + 1
            self._segments[-1].append(pending)
        except OSError as failure:
            self.fail(str(failure))
            raise
        return rolled

    def _is_full(self, pending: Sequence[bytes], pending_bytes: int, batch: BatchBounds) -> bool:
        """segment.bytes and segment.ms; an empty segment takes any batch."""
        segment, expected = self._segments[-1], self._overrides
        size = segment.size + pending_bytes
        limit = self._settings.segment_bytes if expected.segment_bytes is None else expected.segment_bytes
        if size and size + batch.size_bytes > limit:
            return True
        if expected.segment_ms is None or not size:
            return False
        oldest = segment.first_timestamp
        if oldest is None:
            oldest = bounds_of(pending[0], 0).max_timestamp
        return batch.max_timestamp - oldest > expected.segment_ms

    def configure(self, overrides: LogOverrides) -> None:
        """The topic's own settings, from now on."""
        self._overrides = overrides
        self._segments[-1].index_interval_bytes = self._index_interval_bytes

    @property
    def _index_interval_bytes(self) -> int:
        own = self._overrides.index_interval_bytes
        return self._settings.index_interval_bytes if own is None else own

    def _try_to_roll(self, base_offset: int) -> bool:
        """False when the process may open no other file: then the segment grows past its limit, and the next
        append tries again."""
        try:
            self._roll(base_offset)
        except OSError as failure:
            if out_of_descriptors(failure):
                return False
            raise
        return True

    def _roll(self, base_offset: int) -> None:
        # A power cut that took the first file of a new log, and not this one, would leave its end alone.
        self.queue.sync(self.queue.unsynced())
        interval = self._index_interval_bytes
        self._segments.append(Segment(self.directory, base_offset, index_interval_bytes=interval))
        self._directory_dirty = True

    def end_of_cut(self, to_offset: int) -> int:
        """Returns where ``truncate`` would let the log end: before ``to_offset`` when a batch lies across it.
        Raises OSError."""
        if to_offset >= self.leo:
            return self.leo
        segment = self._segments[self._at(to_offset)]
        return segment.cut_at(to_offset)[1] if to_offset > segment.base_offset else segment.base_offset

    def truncate(self, to_offset: int) -> int:
        """Drop every batch that holds ``to_offset`` or later; the new end. On return the cut is on the disk:
        what follows it must not meet the old tail again after a power cut. Raises OSError."""
        self._writable()
        if to_offset >= self.leo:
            return self.leo
        try:
            # Last segment first: a crash in the middle leaves a shorter log, never one with a hole.
            while len(self._segments) > 1 and self._segments[-1].base_offset >= to_offset:
                self._segments.pop().remove()
            last = self._segments[-1]
            last.truncate(to_offset)
            os.fdatasync(last.fd)
            fsync_dir(self.directory)
        except OSError as failure:
            self.fail(str(failure))
            raise
        last.flushed_size = min(last.flushed_size, last.size)
        self._lower_flushed(self.leo)
        return self.leo

    def old_before(self, retention_bytes: int, retention_ms: int, upto: int, now_ms: float) -> int:
        """Returns where the log would start if the whole old segments went that are past the limits (-1: no
        limit) and end at or below ``upto``. The active segment counts too when all of it is too old."""
        size = sum(segment.size for segment in self._segments)
        start = self.log_start
        for segment in self._segments:
            active = segment is self._segments[-1]
            expired = retention_ms >= 0 and segment.size > 0 and segment.max_timestamp < now_ms - retention_ms
            excess = retention_bytes >= 0 and not active and size - segment.size >= retention_bytes
            if segment.next_offset > upto or not (expired or excess):
                break
            size -= segment.size
            start = max(start, segment.next_offset)
        return start

    def move_start(self, to_offset: int) -> list[Segment]:
        """The whole segments below ``to_offset``, which are no more the log's, for ``remove``; an active one
        that lies below is replaced by an empty one. Raises OSError."""
        self._writable()
        gone: list[Segment] = []
        if to_offset <= self.log_start:
            return gone
        self.log_start = min(to_offset, self.leo)
        try:
            if self.leo <= self.log_start and self._segments[-1].size:
                self._roll(self.leo)
        except OSError as failure:
            self.fail(str(failure))
            raise
        while len(self._segments) > 1 and self._segments[0].next_offset <= self.log_start:
            gone.append(self._segments.pop(0))
            gone[-1].close()
        return gone

    def reset(self, start_offset: int) -> None:
        """Drop everything and begin again, empty, at ``start_offset``. Raises OSError."""
        self._writable()
        try:
            while self._segments:
                self._segments.pop().remove()
            self._roll(start_offset)
            fsync_dir(self.directory)
        except OSError as failure:
            self.fail(str(failure))
            raise
        self.log_start = start_offset
        self._lower_flushed(start_offset)
        self.flushed_upto = start_offset

    def fail(self, reason: str) -> None:
        if self.failure is None and not self._settings.continue_after_error:
            self.failure = reason

    def _writable(self) -> None:
        """Waits until what was asked of the directory is done. Raises OSError."""
        if self.failure is not None:
            raise LogFailed(f"{self.tp} takes no more writes since: {self.failure}")
        self.queue.work()

    # --- tasks of the queue ------------------------------------------------------------------------------

    def make(self) -> Iterable[Path]:
        """The first segment. Raises OSError."""
        self._segments[0].make()
        return (self.directory,)

    def remove(self, segments: Sequence[Segment]) -> Iterable[Path]:
        """The oldest first: a crash in the middle leaves a log without a hole. Raises OSError."""
        fsync_dir(self.directory)  # the segment that goes on must not be lost with those before it
        for segment in segments:
            segment.remove()
        return (self.directory,)

    def write_epochs(self, entries: Sequence[EpochEntry]) -> Iterable[Path]:
        """Raises OSError."""
        path = self.directory / checkpoint.EPOCHS_FILE
        checkpoint.write_epochs(path, entries, durable=False)
        return path, self.directory

    # --- flushing --------------------------------------------------------------------------------------

    def prepare_flush(self) -> FlushJob:
        """Raises LogFailed: after a failed fsync a second one proves nothing."""
        self._writable()
        files = [
            (segment, segment.size, duplicate(segment))
            for segment in self._segments
            if segment.flushed_size < segment.size
        ]
        directory = self.directory if self._directory_dirty else None
        self._directory_dirty = False
        self._ceiling = None
        return FlushJob(self.leo, files, directory, self.queue, self.queue.unsynced())

    def flushed(self, job: FlushJob) -> int:
        """The job has run: everything below the offset returned is on disk. A truncation meanwhile counts."""
        for segment, size, _ in job.files:
            segment.flushed_size = max(segment.flushed_size, min(size, segment.size))
        upto = job.upto if self._ceiling is None else min(job.upto, self._ceiling)
        if self._ceiling is not None:
            for segment, _, _ in job.files:
                segment.flushed_size = 0 if segment.next_offset > self._ceiling else segment.flushed_size
        self.flushed_upto = max(self.flushed_upto, upto)
        self._rest()
        return upto

    def _rest(self) -> None:
        """Segments that are full and on disk keep no file open: one a partition is enough."""
        for segment in self._segments[:-1]:
            if segment.flushed_size >= segment.size:
                segment.release()

    def flush(self) -> None:
        """Flush now, in this thread. Raises OSError."""
        job = self.prepare_flush()
        try:
            job.run()
        except OSError as failure:
            self.fail(str(failure))
            raise
        self.flushed(job)

    def flush_at_rest(self) -> None:
        """Flush now, in any thread, while nobody writes and no flush is under way. Raises OSError."""
        self._writable()
        self.queue.sync(self.queue.unsynced())
        for segment in self._segments:
            if segment.flushed_size < segment.size:
                # By a descriptor of its own: those of segments are the event loop's.
                fsync_path(segment.path)
                segment.flushed_size = segment.size
        if self._directory_dirty:
            fsync_dir(self.directory)
        self._directory_dirty, self.flushed_upto = False, self.leo

    def mark_flushed(self) -> None:
        """Recovery has synced every file."""
        for segment in self._segments:
            segment.flushed_size = segment.size
        self._rest()
        self.flushed_upto = self.leo

    def _lower_flushed(self, end: int) -> None:
        """A flush that is under way must not claim offsets that were cut off and written anew."""
        self.flushed_upto = min(self.flushed_upto, end)
        self._ceiling = end if self._ceiling is None else min(self._ceiling, end)

    # --- reading ---------------------------------------------------------------------------------------

    def _at(self, offset: int) -> int:
        """Returns which segment holds ``offset``."""
        return max(bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1, 0)

    def read(self, part: LogSlice) -> bytes:
        """The batches of a LogSlice, from one segment; b"" when there are none. Raises OSError."""
        end = min(part.end_offset, self.leo)
        if part.start_offset >= end:
            return b""
        segment = self._segments[self._at(part.start_offset)]
        return segment.read(
            part.start_offset,
            end,
            part.max_bytes,
            at_least_one=part.at_least_one,
            contiguous=not self._settings.continue_after_error,
        )

    def batches(self) -> list[bytes]:
        """Every batch of the log, whole. Only for small logs (the metadata log at start). Raises OSError."""
        return [segment.whole(batch) for segment in self._segments for batch in segment.walk(0)]

    def lookup(self, wanted: LookupByTime) -> Found | None:
        """First record at or after a time, or the newest one (MAX_TIMESTAMP); None when there is none."""
        if wanted.timestamp < 0:
            return newest_in(self._segments, wanted.end_offset)
        for segment in self._segments:
            if segment.base_offset >= wanted.end_offset:
                return None
            batch = segment.first_as_new_as(wanted.timestamp)
            if batch is not None:
                in_reach = batch.base_offset < wanted.end_offset
                return search_batch(segment.read_batch(batch), wanted.timestamp) if in_reach else None
        return None

    # --- life ------------------------------------------------------------------------------------------

    def close(self) -> None:
        for segment in self._segments:
            segment.close()
        self._segments = self._segments[-1:]


def create(
    tp: TopicPartition,
    topic_id: UUID,
    directory: Path,
    settings: LogSettings,
    start_offset: int,
    queue: DirectoryQueue | None = None,
) -> PartitionLog:
    """An empty log in a directory that is there when the tasks in its queue are done; its file is made by the
    next one."""
    interval = settings.index_interval_bytes
    first = Segment(directory, start_offset, index_interval_bytes=interval, made=False)
    log = PartitionLog(tp, topic_id, directory, settings, [first], start_offset, queue)
    log.queue.add(log.make)
    return log
