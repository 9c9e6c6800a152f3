"""Finding records by time: ListOffsets with a timestamp (protocol.md 5.2).

Batches are found by their headers. Inside an uncompressed batch the record itself is found, as Kafka does;
a compressed batch is never opened, so it answers with its first record (a reader from there misses nothing)
or, for the newest, its last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from broker.core.batch import HEADER_BYTES, BatchHeader, parse_header, read_varint
from broker.storage.segment import BatchBounds, Segment

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
            at = body + length
    except IndexError:
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
    best: tuple[Segment, BatchBounds] | None = None
    for segment in segments:
        if best is not None and segment.max_timestamp <= best[1].max_timestamp:
            continue
        for batch in segment.walk(0):
            if batch.last_offset < end_offset and (
                best is None or batch.max_timestamp > best[1].max_timestamp
            ):
                best = (segment, batch)
    if best is None:
        return None
    segment, batch = best
    raw = segment.read_batch(batch)
    header = parse_header(raw)
    if _opens(header):
        for offset, record_time in _record_times(header, raw):
            if record_time == header.max_timestamp:
                return Found(offset, record_time, header.leader_epoch)
    return Found(header.last_offset, header.max_timestamp, header.leader_epoch)
