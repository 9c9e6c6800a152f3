"""What a log is after a stop of any kind: read it back, cut it at the first thing that is not whole.

After a power cut a file may lack its unsynced tail, hold zeros there, or hold anything in it; an index may be
empty; a directory may lack its newest files. After ``kill -9`` only the write in progress may be torn. So:

1. left-overs (``*.deleted``, ``*.tmp``, ``.swap``, ``*-delete`` directories, an index without its log) go;
2. segments are walked in order; offsets must go on without a hole. The first batch that is short, malformed
   or out of line ends the log; at or past the recovery point its CRC must be right too, unless the stop was clean;
3. the log is cut there, later segments go, and what is left is synced: it survives the next power cut;
4. index, leader-epoch cache and producer state are rebuilt from the headers that were walked anyway.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from broker.core.batch import HEADER_BYTES, BatchHeader, CorruptBatch, crc_is_right, parse_header
from broker.core.epochs import EpochCache
from broker.core.producers import ProducerTable
from broker.core.types import EpochEntry, ProducerSnapshot, RecoveredLog, TopicPartition
from broker.storage import checkpoint
from broker.storage.files import fsync_dir
from broker.storage.log import LogSettings, PartitionLog
from broker.storage.segment import Segment, bounds_of, file_name

_SEGMENT_FILE = re.compile(r"^(\d{20})\.log$")
_RUBBISH = (".deleted", ".tmp", ".swap", ".cleaned")
_WINDOW_BYTES = 1 << 20


class RecoveryError(Exception):
    """The directory cannot be a log of ours, and taking it for an empty one would lose data."""


@dataclass(slots=True)
class Recovered:
    """A log opened from disk, and what its files say."""

    log: PartitionLog
    epochs: tuple[EpochEntry, ...]
    producers: dict[int, ProducerSnapshot]
    cut: str | None
    """Why the log was cut, when it was."""
    cut_below_recovery_point: bool


@dataclass(slots=True)
class _Scan:
    """One pass over all segments."""

    next_offset: int
    epochs: EpochCache = field(default_factory=EpochCache)
    producers: ProducerTable = field(default_factory=ProducerTable)

    def add(self, header: BatchHeader) -> None:
        if header.leader_epoch >= 0 and header.leader_epoch != self.epochs.latest:
            self.epochs = self.epochs.assign(header.leader_epoch, header.base_offset)
        self.producers.appended(header)
        self.next_offset = header.last_offset + 1


def recover(
    directory: Path,
    tp: TopicPartition,
    settings: LogSettings,
    *,
    recovery_point: int,
    log_start: int,
    clean: bool,
    high_watermark: int = 0,
) -> Recovered:
    """Open the log in ``directory``. ``clean``: the last stop flushed everything, CRCs need no check.
    ``high_watermark``, from the checkpoint, bounds what a later truncation can need of the producers.

    Raises RecoveryError when the directory holds records but not the id of its topic, and OSError.
    """
    remove_rubbish(directory)
    names = sorted(path.name for path in directory.iterdir() if _SEGMENT_FILE.match(path.name))
    topic_id = checkpoint.read_topic_id(directory)
    if topic_id is None:
        raise RecoveryError(
            f"{directory / checkpoint.PARTITION_METADATA_FILE} is missing or unreadable, so the records beside it "
            "belong to no known topic; move the directory away to go on without them"
        )
    bases = [int(name[:20]) for name in names] or [log_start]
    scan = _Scan(bases[0], producers=ProducerTable(committed=high_watermark))
    segments: list[Segment] = []
    cut: str | None = None
    for at, base in enumerate(bases):
        if base != scan.next_offset:
            cut = (
                cut or f"{file_name(base)} does not begin at {scan.next_offset}, where the one before it ends"
            )
            _remove_later(directory, bases[at:])
            break
        segment = Segment(directory, base, index_interval_bytes=settings.index_interval_bytes)
        segments.append(segment)
        # Rubbish behind the last whole batch of a segment loses nothing when the next one goes on there.
        cut = _scan_segment(segment, scan, check_crc_from=None if clean else recovery_point) or cut
    log = PartitionLog(
        tp, topic_id, directory, settings, segments, min(max(log_start, bases[0]), scan.next_offset)
    )
    below = cut is not None and log.leo < recovery_point
    if cut is not None or not clean or not names:
        for segment in segments:
            os.fdatasync(segment.fd)
        fsync_dir(directory)
    log.mark_flushed()
    epochs = scan.epochs.entries
    _mend_epochs(directory, epochs)
    return Recovered(log, epochs, scan.producers.snapshots(), cut, below)


def _scan_segment(segment: Segment, scan: _Scan, check_crc_from: int | None) -> str | None:
    """Account for the whole batches of a segment and cut the rest off; why, or None when nothing was cut."""
    file_size = os.fstat(segment.fd).st_size
    segment.index.rebuild([])
    cut: str | None = None
    for header, data, position in _headers(segment.fd, file_size):
        if isinstance(header, str):
            cut = f"{segment.path.name} byte {position}: {header}"
            break
        if header.base_offset != scan.next_offset:
            cut = f"{segment.path.name} byte {position}: offset {header.base_offset} where {scan.next_offset} is due"
            break
        check = check_crc_from is not None and header.last_offset >= check_crc_from
        if check and not crc_is_right(header, data):
            cut = (
                f"{segment.path.name} byte {position}: the CRC of the batch at {header.base_offset} is wrong"
            )
            break
        segment.account(bounds_of(data, position))
        scan.add(header)
    if cut is not None:
        os.ftruncate(segment.fd, segment.size)
    return cut


def _headers(fd: int, size: int) -> Iterator[tuple[BatchHeader | str, memoryview, int]]:
    """(header, whole batch, position) along a file; a reason instead of a header where it stops being batches."""
    window, start, position = memoryview(b""), 0, 0
    while position < size:
        try:
            if len(window) - (position - start) < HEADER_BYTES:
                window, start = memoryview(os.pread(fd, _WINDOW_BYTES, position)), position
            header = parse_header(window, position - start)
            if position + header.size_bytes > size:
                yield f"batch of {header.size_bytes} bytes, {size - position} left", memoryview(b""), position
                return
            if len(window) - (position - start) < header.size_bytes:
                wanted = max(_WINDOW_BYTES, header.size_bytes)
                window, start = memoryview(os.pread(fd, wanted, position)), position
        except CorruptBatch as wrong:
            yield str(wrong), memoryview(b""), position
            return
        yield header, window[position - start : position - start + header.size_bytes], position
        position += header.size_bytes


def _mend_epochs(directory: Path, epochs: tuple[EpochEntry, ...]) -> None:
    """The checkpoint must say what the log says; it may have been written ahead of records that are gone."""
    path = directory / checkpoint.EPOCHS_FILE
    try:
        if checkpoint.read_epochs(path) == epochs:
            return
    except checkpoint.CheckpointError:
        pass
    checkpoint.write_epochs(path, epochs)


def _remove_later(directory: Path, bases: list[int]) -> None:
    for base in reversed(bases):
        path = directory / file_name(base)
        path.unlink()
        path.with_suffix(".index").unlink(missing_ok=True)
    fsync_dir(directory)


def remove_rubbish(directory: Path) -> None:
    """Also an index whose segment is gone."""
    for path in list(directory.iterdir()):
        stray_index = path.suffix == ".index" and not path.with_suffix(".log").exists()
        if path.name.endswith(_RUBBISH) or stray_index:
            path.unlink()


def as_recovered(found: Recovered, high_watermark: int) -> RecoveredLog:
    log = found.log
    return RecoveredLog(
        topic_id=log.topic_id,
        log_start=log.log_start,
        leo=log.leo,
        flushed=log.flushed_upto,
        high_watermark=min(max(high_watermark, log.log_start), log.leo),
        epochs=found.epochs,
        producers=found.producers,
    )
