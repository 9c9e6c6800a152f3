"""Finding records by time: ListOffsets with a timestamp (docs/protocol.md 5.2).

Batches are found by their headers, from a mark close by. Inside an uncompressed batch the record itself is
found, as Kafka does; a compressed batch is not opened, so it answers with its first record (a reader from
there misses nothing) or, for the newest, its last. A batch that was not checked when it came (from a disk
that an older broker wrote) ends a search inside it early, never late: no record is shorter than
``MIN_RECORD_BYTES``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from wrackline.broker.model.batches.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    parse_header,
    read_varint,
)
from wrackline.broker.model.batches.batch_checks import MIN_RECORD_BYTES
from wrackline.broker.storage.logs.segment import Segment

_COMPRESSION = 0x07
_LOG_APPEND_TIME = 0x08


@dataclass(frozen=True, slots=True)
class Found:
    offset: int
    timestamp: int
    leader_epoch: int


def _record_times(header: BatchHeader, raw: bytes) -> Iterator[tuple[int, int]]:
    """(offset, timestamp) of each record of an uncompressed batch; stops at a malformed record."""
    at = HEADER_BYTES
    try:
        for _ in range(header.count):
            length, body = read_varint(raw, at)
            timestamp_delta, after = read_varint(raw, body + 1)
            offset_delta, _ = read_varint(raw, after)
            yield header.base_offset + offset_delta, header.base_timestamp + timestamp_delta
            if length < MIN_RECORD_BYTES - 1 or body + length > len(raw):
                return
            at = body + length
    except (IndexError, CorruptBatch):
        return


def _opens(header: BatchHeader) -> bool:
    return not header.attributes & (_COMPRESSION | _LOG_APPEND_TIME)


def search_batch(raw: bytes, timestamp: int) -> Found:
    """The first record of the batch at or after ``timestamp``; the batch's newest is known to be."""
    header = parse_header(raw)
    if _opens(header):
        for offset, record_time in _record_times(header, raw):
            if record_time >= timestamp:
                return Found(offset, record_time, header.leader_epoch)
    return Found(header.base_offset, header.max_timestamp, header.leader_epoch)


def newest_in(segments: Iterable[Segment], end_offset: int) -> Found | None:
    """The first record with the greatest timestamp below ``end_offset``."""
    best: tuple[int, Segment] | None = None
    for segment in segments:
        if segment.size and segment.base_offset < end_offset:
            newest = segment.newest_before(end_offset)
            if best is None or newest > best[0]:
                best = (newest, segment)
    if best is None:
        return None
    segment = best[1]
    batch = segment.first_as_new_as(best[0])
    if batch is None or batch.last_offset >= end_offset:
        return None
    raw = segment.read_batch(batch)
    header = parse_header(raw)
    if _opens(header):
        for offset, record_time in _record_times(header, raw):
            if record_time == header.max_timestamp:
                return Found(offset, record_time, header.leader_epoch)
    return Found(header.last_offset, header.max_timestamp, header.leader_epoch)
