"""Recovery of a log after a stop of any kind: read it back, cut it at the first thing that is not whole.

After a power cut a file may lack its unsynced tail, hold zeros there, or hold anything in it; an index may be
empty; a directory may lack its newest files. After ``kill -9`` only the write in progress may be torn. After
any stop, also a clean one, a disk may give back other bytes than it was given. So, at every start:

1. left-overs (``*.deleted``, ``*.tmp``, ``.swap``, ``*-delete`` directories, an index without its log) go;
2. segments are walked in order, from the first byte of the log: offsets must go on without a hole, every CRC
   must be right, every leader epoch the one the checkpoint knows. The first batch that is not so ends the
   log;
3. the log is cut there, later segments go, and what is left is synced, that of all logs at once, before the
   node says anything of it: it survives the next power cut. What was written and never flushed is deleted;
   where more than that is wrong (``damage``) the bytes are put aside first;
4. index, leader-epoch cache and producer state are rebuilt from the headers that were walked anyway.

Every byte is read for 2. in any case; checking the CRCs adds little to a start (0 to 30 % were measured).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from wrackline.broker.model.batches.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    crc_is_right,
    parse_header,
)
from wrackline.broker.model.batches.producers import ProducerTable
from wrackline.broker.model.epochs import EpochCache
from wrackline.broker.model.types import (
    METADATA,
    METADATA_TOPIC_ID,
    EpochEntry,
    ProducerSnapshot,
    RecoveredLog,
    TopicPartition,
)
from wrackline.broker.storage import checkpoint
from wrackline.broker.storage.logs.damage import EpochWitness, put_aside, whole_batch_behind
from wrackline.broker.storage.logs.log import LogSettings, PartitionLog
from wrackline.broker.storage.logs.segment import Segment, bounds_of, file_name

_LOG = logging.getLogger("broker.storage")
_SEGMENT_FILE = re.compile(r"^(\d{20})\.log$")
_RUBBISH = (".deleted", ".tmp", ".swap", ".cleaned")
_WINDOW_BYTES = 1 << 20


class RecoveryError(Exception):
    """The directory cannot be taken for a log of ours without losing data."""


class TopicUnknown(RecoveryError):
    """Records without the id of their topic."""


@dataclass(slots=True)
class Recovered:
    """A log opened from disk, and what its files say."""

    log: PartitionLog
    epochs: tuple[EpochEntry, ...]
    producers: dict[int, ProducerSnapshot]
    cut: str | None
    """Why the log was cut, or ends before it should, when it does."""
    damaged: bool
    """What was lost had been flushed, or something in the middle was changed: more than a torn write."""
    unsynced: bool = False
    """The next power cut may bring another log than this."""
    aside: tuple[Path, ...] = ()
    """The files in which the bytes behind a damaged place are now."""


@dataclass(slots=True)
class _Scan:
    """One pass over all segments."""

    next_offset: int
    witness: EpochWitness
    bad_offset: int | None = None
    """Of a batch that another pass found wrong, by its leader epoch."""
    epochs: EpochCache = field(default_factory=EpochCache)
    producers: ProducerTable = field(default_factory=ProducerTable)
    segments: list[Segment] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    """Base offsets of the segments that do not go on where the one before ends."""
    cut: str | None = None

    def add(self, header: BatchHeader) -> None:
        if header.leader_epoch >= 0 and header.leader_epoch != self.epochs.latest:
            self.epochs = self.epochs.assign(header.leader_epoch, header.base_offset)
        self.witness.hear(header.leader_epoch, header.base_offset)
        self.producers.appended(header)
        self.next_offset = header.last_offset + 1

    def fault(self, header: BatchHeader, data: memoryview) -> str | None:
        """Returns why the batch cannot be the next one of the log."""
        if header.base_offset != self.next_offset:
            return f"offset {header.base_offset} where {self.next_offset} is due"
        if not crc_is_right(header, data):
            return f"the CRC of the batch at {header.base_offset} is wrong"
        if header.base_offset == self.bad_offset:
            return (
                f"leader epoch {header.leader_epoch} of the batch at {header.base_offset} "
                "is not the checkpoint's"
            )
        return None

    def close(self) -> None:
        for segment in self.segments:
            segment.close()


def recover(
    directory: Path,
    tp: TopicPartition,
    settings: LogSettings,
    *,
    recovery_point: int,
    log_start: int,
    clean: bool,
    high_watermark: int = 0,
    irreplaceable: bool = False,
) -> Recovered:
    """Open the log in ``directory``; the caller syncs what is ``unsynced``.

    ``clean``: the last stop flushed everything, up to the recovery point. ``high_watermark``, from the
    checkpoint, bounds what a later truncation can need of the producers.
    ``irreplaceable``: nobody may go on without what was flushed; a damaged log is left as it is.

    Raises TopicUnknown when the directory holds records but not the id of its topic, RecoveryError for a
    damaged log that is irreplaceable, and OSError.
    """
    remove_rubbish(directory)
    bases = sorted(int(path.name[:20]) for path in directory.iterdir() if _SEGMENT_FILE.match(path.name))
    retired = [base for base, following in pairwise(bases) if following <= log_start]
    # A power cut may have taken back the removal of one of them, and not of the next: no hole of the log.
    _remove(directory, retired)
    bases = bases[len(retired) :]
    topic_id = _topic_id(directory, tp)
    known = _known_epochs(directory)
    start = _Start(directory, settings, tuple(bases or [log_start]), known or (), high_watermark)
    scan = start.scan(None)
    error = scan.witness.wrong(exact=clean)
    if error is not None:
        scan.close()
        scan = start.scan(error)
    if scan.cut is None and (clean or irreplaceable) and scan.next_offset < recovery_point:
        scan.cut = f"it ends at {scan.next_offset}, and went on to {recovery_point} when it was closed"
    was_flushed = scan.cut is not None and (clean or scan.next_offset < recovery_point)
    damaged = was_flushed or (scan.cut is not None and _changed(scan))
    if was_flushed and irreplaceable:
        scan.close()
        raise RecoveryError(
            f"{directory}: {scan.cut}, and what was on disk of this log counts: "
            f"{checkpoint.empty_controller(directory.parent)}"
        )
    aside = put_aside(scan.segments, directory, scan.later) if damaged else ()
    _cut(scan, directory)
    first = min(max(log_start, start.bases[0]), scan.next_offset)
    log = PartitionLog(tp, topic_id, directory, settings, scan.segments, first)
    log.mark_flushed()
    changed = scan.cut is not None or known != scan.epochs.entries
    if known != scan.epochs.entries:
        # It may have been written ahead of records that are gone.
        checkpoint.write_epochs(directory / checkpoint.EPOCHS_FILE, scan.epochs.entries, durable=False)
    return Recovered(
        log,
        scan.epochs.entries,
        scan.producers.snapshots(),
        scan.cut,
        damaged,
        unsynced=changed or not clean or not bases or bool(retired),
        aside=aside,
    )


def _topic_id(directory: Path, tp: TopicPartition) -> UUID:
    topic_id = checkpoint.read_topic_id(directory)
    if topic_id is None and tp == METADATA:
        checkpoint.write_topic_id(directory, METADATA_TOPIC_ID)
        return METADATA_TOPIC_ID
    if topic_id is None:
        raise TopicUnknown(
            f"{directory / checkpoint.PARTITION_METADATA_FILE} is missing or unreadable, "
            "so the records beside it belong to no known topic; they are put aside when another replica "
            "leads the partition. Where none can, move the directory away to go on without them, or write "
            "the file by hand: 'version: 0', and 'topic_id: ' with the id in the cluster's metadata"
        )
    return topic_id


@dataclass(frozen=True, slots=True)
class _Start:
    """The state that every pass begins with."""

    directory: Path
    settings: LogSettings
    bases: tuple[int, ...]
    epochs: tuple[EpochEntry, ...]
    """As the checkpoint has them."""
    high_watermark: int

    def scan(self, bad_offset: int | None) -> _Scan:
        """Scans the log and changes nothing but the indexes, which are rebuilt."""
        producers = ProducerTable(committed=self.high_watermark)
        scan = _Scan(self.bases[0], EpochWitness(self.epochs), bad_offset, producers=producers)
        for at, base in enumerate(self.bases):
            if base != scan.next_offset:
                why = f"{file_name(base)} does not begin at {scan.next_offset}, where the one before it ends"
                scan.cut, scan.later = scan.cut or why, list(self.bases[at:])
                break
            interval = self.settings.index_interval_bytes
            segment = Segment(self.directory, base, index_interval_bytes=interval)
            scan.segments.append(segment)
            # Rubbish behind the last whole batch of a segment loses nothing when the next one goes on there.
            fault = _scan_segment(segment, scan)
            scan.cut = scan.cut or fault
        return scan


def _scan_segment(segment: Segment, scan: _Scan) -> str | None:
    """Account for the good batches of a segment; why it does not end behind them, or None when it does."""
    segment.index.rebuild([])
    for header, data, position in _headers(segment.fd, os.fstat(segment.fd).st_size):
        fault = header if isinstance(header, str) else scan.fault(header, data)
        if isinstance(header, str) or fault is not None:
            return f"{segment.path.name} byte {position}: {fault}"
        segment.account(bounds_of(data, position))
        scan.add(header)
    return None


def _changed(scan: _Scan) -> bool:
    return bool(scan.segments) and whole_batch_behind(scan.segments[-1], scan.next_offset)


def _cut(scan: _Scan, directory: Path) -> None:
    """Cuts the log behind its last good batch."""
    if scan.cut is not None:
        for segment in scan.segments:
            os.ftruncate(segment.fd, segment.size)
        _remove(directory, list(reversed(scan.later)))


def _headers(fd: int, size: int) -> Iterator[tuple[BatchHeader | str, memoryview, int]]:
    """(header, whole batch, position) along a file; a reason instead of a header where it stops being
    batches."""
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
                expected = max(_WINDOW_BYTES, header.size_bytes)
                window, start = memoryview(os.pread(fd, expected, position)), position
        except CorruptBatch as error:
            yield str(error), memoryview(b""), position
            return
        yield header, window[position - start : position - start + header.size_bytes], position
        position += header.size_bytes


def _known_epochs(directory: Path) -> tuple[EpochEntry, ...] | None:
    """Returns the leader epochs of the checkpoint; None when it cannot be read."""
    try:
        return checkpoint.read_epochs(directory / checkpoint.EPOCHS_FILE)
    except checkpoint.CheckpointError as error:
        _LOG.warning("%s; written anew from the log", error)
        return None


def _remove(directory: Path, bases: list[int]) -> None:
    """Removes segments, in this order, but for those that were put aside and have another name by now."""
    for base in bases:
        path = directory / file_name(base)
        path.unlink(missing_ok=True)
        path.with_suffix(".index").unlink(missing_ok=True)


def remove_rubbish(directory: Path) -> None:
    """Removes rubbish, also an index whose segment is gone."""
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
