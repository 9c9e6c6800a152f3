"""Batches that are not what was written: how they are told from a torn tail, and where they are put
(R05-R08).

A power cut or a kill leaves the last writes short, zero or half there, and nobody was promised them. Bytes
that had been flushed and are not right any more are another matter: they may be the last copy of what was
acknowledged, so nothing of them is deleted. They go into files beside the log whose names end in
``.damaged``.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, zip_longest
from pathlib import Path

from wrackline.broker.model.batches.batch import HEADER_BYTES, CorruptBatch, crc_is_right, parse_header
from wrackline.broker.model.types import EpochEntry
from wrackline.broker.storage.files import fsync_dir, read_whole, write_whole
from wrackline.broker.storage.logs.segment import Segment, file_name

SUFFIX = ".damaged"
_PIECE_BYTES = 1 << 20
_SEARCHED_BYTES = 64 << 20
"""Of a tail, for a whole batch in it."""


def whole_batch_behind(segment: Segment, next_offset: int) -> bool:
    """Is there a whole, later batch in the file behind its good part? Then that part does not end where a
    write was torn: something in the middle was changed."""
    size = os.fstat(segment.fd).st_size
    if size - segment.size <= HEADER_BYTES:
        return False
    # The upper half of the base offset, and the magic: a lookahead, so that no place is stepped over.
    begins = re.escape(struct.pack(">q", next_offset)[:4])
    pattern = re.compile(rb"(?=" + begins + rb".{12}\x02)", re.DOTALL)
    with mmap.mmap(segment.fd, size, prot=mmap.PROT_READ) as content, memoryview(content) as view:
        last = min(size, segment.size + _SEARCHED_BYTES)
        return any(
            _is_whole(view, match.start(), next_offset)
            for match in pattern.finditer(content, segment.size + 1, last)
        )


def _is_whole(view: memoryview, at: int, next_offset: int) -> bool:
    try:
        header = parse_header(view, at)
    except CorruptBatch:
        return False
    end = at + header.size_bytes
    return header.base_offset >= next_offset and end <= len(view) and crc_is_right(header, view[at:end])


def put_aside(segments: Sequence[Segment], directory: Path, later: Sequence[int]) -> tuple[Path, ...]:
    """Copy what lies behind the good part of each segment, and rename the ``later`` ones (base offsets): the
    files, durable on return. The segments themselves are not cut here. Raises OSError."""
    kept = []
    for segment in segments:
        size = os.fstat(segment.fd).st_size
        if size > segment.size:
            kept.append(_copy(segment, size))
    for base in later:
        path = directory / file_name(base)
        kept.append(path.rename(_free(path.with_name(path.name + SUFFIX))))
        path.with_suffix(".index").unlink(missing_ok=True)
    fsync_dir(directory)
    return tuple(kept)


def _copy(segment: Segment, size: int) -> Path:
    path = _free(segment.path.with_name(f"{segment.path.name}.from-byte-{segment.size}{SUFFIX}"))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        for at in range(segment.size, size, _PIECE_BYTES):
            piece = read_whole(segment.fd, min(_PIECE_BYTES, size - at), at)
            write_whole(fd, (piece,), at - segment.size)
        os.fsync(fd)
    finally:
        os.close(fd)
    return path


def _free(path: Path) -> Path:
    """Returns a free path, so that what was put aside before stays."""
    names = (path.with_name(f"{path.name}.{n}") if n else path for n in count())
    return next(name for name in names if not name.exists())


@dataclass(slots=True)
class EpochRun:
    """Batches of one leader epoch, one after the other, for which the checkpoint knows one epoch."""

    epoch: int
    known: int
    """By the checkpoint; -1: it says nothing of these offsets."""
    start_offset: int
    batches: int = 0


class EpochWitness:
    """Holds the leader epochs of a log against the checkpoint's, batch by batch.

    The CRC leaves the leader epoch out. The checkpoint is written before the first batch of an epoch, so the
    two agree; when a single batch does not, it is the batch that changed. When several in a row agree with
    each other against one line of the checkpoint, that line is wrong.
    """

    def __init__(self, checkpoint: Sequence[EpochEntry]) -> None:
        self._latest = max((entry.epoch for entry in checkpoint), default=-1)
        self._ahead = deque(checkpoint)
        self._known = -1
        self._runs: list[EpochRun] = []

    def hear(self, epoch: int, offset: int) -> None:
        """The next batch."""
        while self._ahead and self._ahead[0].start_offset <= offset:
            self._known = self._ahead.popleft().epoch
        run = self._runs[-1] if self._runs else None
        if run is None or run.epoch != epoch or run.known != self._known:
            run = EpochRun(epoch, self._known, offset)
            self._runs.append(run)
        run.batches += 1

    def wrong(self, *, exact: bool) -> int | None:
        """The offset of a batch whose leader epoch is not what it was, None when there is none. Unless the
        checkpoint is ``exact`` (the stop was clean) it may end before the log does: an epoch newer than it
        knows is wrong only when older ones follow."""
        for run, following in zip_longest(self._runs, self._runs[1:]):
            newer = run.epoch > self._latest and (following is None or following.epoch >= run.epoch)
            if run.batches == 1 and run.known not in (-1, run.epoch) and (exact or not newer):
                return run.start_offset
        return None
