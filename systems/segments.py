"""Reader of Kafka log directories: segments of v2 record batches, or of the messages that were before 0.11
(wrackline.systems.message_sets), and the text checkpoints beside them.

One reader reads both ours and Apache Kafka's (docs/protocol.md 5.2 has the layout). It shares no code with
the broker it judges. Every batch is checked: CRC, magic, lengths, contiguous offsets. The first thing that is
wrong ends the reading and is reported; what came before it is kept.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from crc32c import crc32c

from wrackline.systems import compression
from wrackline.systems.base import ReplicaLog, StoredRecord
from wrackline.systems.message_sets import MAGIC_AT, Malformed, Message, message

T = TypeVar("T")
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"
_SEGMENT_NAME = re.compile(r"^(\d{20})\.log$")
_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_OFFSET = 12
_CRC_START = 21
_LOG_APPEND_TIME = 0x08
_CONTROL = 0x20
HEADER = b"wrackline"
"""Of a tombstone of the workload ``compact``, whose value is null: what others have in their values."""
NO_EPOCH = -1
"""Of a record of magic 0 or 1: nobody wrote down who led."""


class SegmentError(Exception):
    """The files do not have Kafka's layout. The message names the file and the byte."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The header of one record batch, and where it lies."""

    position: int
    base_offset: int
    size_bytes: int
    leader_epoch: int
    attributes: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    message: Message | None = None
    """Of magic 0 or 1: what is here in place of a batch."""

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)


def batches(data: bytes, *, file: str = "segment") -> Iterator[tuple[Batch, memoryview]]:
    """The whole, CRC-checked batches of one segment with their bytes. Raises SegmentError at the first bad
    one."""
    view = memoryview(data)
    at = 0
    while at < len(view):
        batch = _header(view, at, file)
        yield batch, view[at : at + batch.size_bytes]
        at += batch.size_bytes


def _header(view: memoryview, at: int, file: str) -> Batch:
    left = len(view) - at
    if left > MAGIC_AT and view[at + MAGIC_AT] < 2 and any(view[at + 8 : at + 12]):  # a message has a length
        return _old(view, at, file)
    if left < _HEADER.size:
        raise SegmentError(f"{file}: {left} bytes at byte {at} are no whole batch header")
    (base, length, epoch, magic, crc, attributes, delta, first_ts, max_ts, pid, p_epoch, sequence, count) = (
        _HEADER.unpack_from(view, at)
    )
    size = _LENGTH_OFFSET + length
    if magic != 2 or size < _HEADER.size or delta < 0:
        raise SegmentError(f"{file}: no v2 record batch at byte {at} (magic {magic}, length {length})")
    if size > left:
        raise SegmentError(
            f"{file}: the batch of offset {base} at byte {at} has {size} bytes, only {left} are there"
        )
    if crc32c(view[at + _CRC_START : at + size]) != crc:
        raise SegmentError(f"{file}: wrong CRC in the batch of offset {base} at byte {at}")
    return Batch(
        at, base, size, epoch, attributes, base + delta, first_ts, max_ts, pid, p_epoch, sequence, count
    )


def _old(view: memoryview, at: int, file: str) -> Batch:
    try:
        one = message(view, at)
    except Malformed as error:
        raise SegmentError(f"{file}: at byte {at}: {error}") from error
    return Batch(
        position=at,
        base_offset=one.offset,
        size_bytes=one.size_bytes,
        leader_epoch=NO_EPOCH,
        attributes=one.attributes,
        last_offset=one.offset,
        base_timestamp=one.timestamp_ms,
        max_timestamp=one.timestamp_ms,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=1,
        message=one,
    )


def records(batch: Batch, data: memoryview, *, file: str = "segment") -> Iterator[StoredRecord]:
    """The records of one batch; none for a control batch. Raises SegmentError."""
    if not batch.is_control or batch.message is not None:
        yield from _records(batch, data, file)


def control_records(batch: Batch, data: memoryview, *, file: str = "segment") -> Iterator[StoredRecord]:
    """The records of one control batch; none for any other. Raises SegmentError."""
    if batch.is_control and batch.message is None:
        yield from _records(batch, data, file)


def _records(batch: Batch, data: memoryview, file: str) -> Iterator[StoredRecord]:
    codec = batch.attributes & compression.MASK
    if (one := batch.message) is not None:
        if codec:
            raise SegmentError(
                f"{file}: the message of offset {batch.base_offset} is compressed with "
                f"{compression.NAMES.get(codec, f'codec {codec}')}, which this reader does not open: "
                "produce with compression: none"
            )
        yield StoredRecord(one.offset, NO_EPOCH, one.timestamp_ms, one.key, one.value)
        return
    at = _HEADER.size
    if codec:
        try:
            data, at = memoryview(compression.opened(codec, bytes(data[at:]))), 0
        except compression.Undecodable as wrong:
            raise SegmentError(f"{file}: the batch of offset {batch.base_offset}: {wrong}") from wrong
    try:
        for _ in range(batch.count):
            record, at = _record(batch, data, at)
            yield record
    except IndexError as short:
        raise SegmentError(
            f"{file}: a record of the batch of offset {batch.base_offset} ends past it"
        ) from short
    if at != len(data):
        raise SegmentError(
            f"{file}: {len(data) - at} bytes follow the records of the batch of offset {batch.base_offset}"
        )


def _record(batch: Batch, data: memoryview, at: int) -> tuple[StoredRecord, int]:
    length, at = _varint(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise IndexError
    at += 1  # attributes: unused in v2
    time_delta, at = _varint(data, at)
    offset_delta, at = _varint(data, at)
    key, at = _sized(data, at, end)
    value, at = _sized(data, at, end)
    if value is None:
        value = _header_value(data, at, end)
    timestamp = (
        batch.max_timestamp if batch.attributes & _LOG_APPEND_TIME else batch.base_timestamp + time_delta
    )
    return StoredRecord(batch.base_offset + offset_delta, batch.leader_epoch, timestamp, key, value), end


def _header_value(data: memoryview, at: int, end: int) -> bytes | None:
    """The value of the header by which a tombstone says who sent it; None without one."""
    count, at = _varint(data, at)
    for _ in range(count):
        name, at = _sized(data, at, end)
        value, at = _sized(data, at, end)
        if name == HEADER:
            return value
    return None


def _sized(data: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = _varint(data, at)
    if length < 0:
        return None, at
    if at + length > end:
        raise IndexError
    return bytes(data[at : at + length]), at + length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    shift = result = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7
        if shift > 63:
            raise IndexError


def parse_checkpoint(text: str, *, file: str = "checkpoint") -> dict[tuple[str, int], int]:
    """Kafka's offset checkpoint: ``topic partition offset`` lines."""

    def entry(topic: str, partition: str, offset: str) -> tuple[tuple[str, int], int]:
        return (topic, int(partition)), int(offset)

    return dict(_entries(text, file, "an offset checkpoint", entry))


def read_checkpoint(file: Path) -> dict[tuple[str, int], int]:
    """Empty when there is no such file."""
    return parse_checkpoint(file.read_text(), file=file.name) if file.exists() else {}


def parse_epochs(text: str, *, file: str = EPOCHS) -> list[tuple[int, int]]:
    """Kafka's checkpoint of leader epochs: ``epoch offset`` lines."""

    def entry(epoch: str, start: str) -> tuple[int, int]:
        return int(epoch), int(start)

    return _entries(text, file, "a checkpoint of leader epochs", entry)


def _entries(text: str, file: str, what: str, entry: Callable[..., T]) -> list[T]:
    """A checkpoint's entries: version 0, number of entries, then a line each. An empty file has none: Kafka
    makes it so, and writes to it a minute later."""
    if not text:
        return []
    lines = text.split("\n")
    try:
        version, count = int(lines[0]), int(lines[1])
        entries = [entry(*line.split(" ")) for line in lines[2:] if line]
    except (ValueError, IndexError, TypeError) as error:
        raise SegmentError(f"{file}: not {what}: {text[:80]!r}") from error
    if version != 0 or count != len(entries):
        raise SegmentError(f"{file}: version {version}, {len(entries)} entries where {count} are announced")
    return entries


def read_log(
    folder: Path,
    *,
    node_id: int,
    topic: str,
    partition: int,
    high_watermarks: Mapping[tuple[str, int], int],
    log_starts: Mapping[tuple[str, int], int],
) -> ReplicaLog:
    """One replica's log from its own folder (``<topic>-<partition>``). Never raises for what the files hold:
    that is a finding, reported in ``problem``."""
    segments = sorted(file for file in folder.glob("*.log") if _SEGMENT_NAME.match(file.name))
    first = int(segments[0].stem) if segments else 0
    start = max(first, log_starts.get((topic, partition), first))
    result: list[StoredRecord] = []
    leo = first
    problem = None if segments else f"{folder.name}: no segment files"
    holes: list[str] = []
    try:
        for segment in segments:
            leo = _read_segment(segment, leo, result, holes)
    except SegmentError as error:
        problem = f"{folder.name}/{error}"
        leo = max(leo, result[-1].offset + 1) if result else leo
    return ReplicaLog(
        node_id=node_id,
        topic=topic,
        partition=partition,
        log_start=start,
        leo=leo,
        high_watermark=high_watermarks.get((topic, partition), -1),
        records=[record for record in result if record.offset >= start],
        problem=problem,
        epochs=_epochs_in(folder),
        hole=f"{folder.name}/{holes[0]}" if holes else None,
    )


def _epochs_in(folder: Path) -> list[tuple[int, int]] | None:
    """Reads the leader epochs of a folder; None also of a file that cannot be read: a broker takes it for
    absent, and reads its log instead."""
    file = folder / EPOCHS
    try:
        return parse_epochs(file.read_text(errors="replace")) if file.exists() else None
    except SegmentError:
        return None


def _read_segment(segment: Path, leo: int, into: list[StoredRecord], holes: list[str]) -> int:
    """Add the segment's records, and the holes between its batches; the offset after its last batch. Raises
    SegmentError where offsets go back."""
    base = int(segment.stem)
    if base < leo:
        raise SegmentError(f"{segment.name}: the segment before it ends at offset {leo}")
    if base > leo:
        holes.append(f"{segment.name}: a hole: the segment before it ends at offset {leo}")
        leo = base
    for batch, data in batches(segment.read_bytes(), file=segment.name):
        if batch.base_offset != leo:
            where = f"offset {batch.base_offset} follows {leo - 1} at byte {batch.position}"
            if batch.base_offset < leo:
                raise SegmentError(f"{segment.name}: {where}")
            holes.append(f"{segment.name}: a hole: {where}")
        into.extend(records(batch, data, file=segment.name))
        leo = batch.last_offset + 1
    return leo
