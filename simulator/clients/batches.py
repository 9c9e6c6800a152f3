"""Values of the clients as batches of records, and back."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

from crc32c import crc32c

from wrackline.broker.model.batches import batch
from wrackline.history.model import Record

_BATCH_HEAD = struct.Struct(">qiibI")
_BATCH_TAIL = struct.Struct(">hiqqqhii")


def encode(
    values: Sequence[int],
    timestamp_ms: int,
    producer: tuple[int, int, int] = (-1, -1, -1),
    record_bytes: int = 8,
) -> bytes:
    """One batch, a record per value, of at least 8 bytes each. ``producer``: id, epoch, first sequence."""
    plain = batch.build([value.to_bytes(record_bytes, "big") for value in values], 0, -1, timestamp_ms)
    if producer[0] < 0:
        return plain
    tail = (
        _BATCH_TAIL.pack(0, len(values) - 1, timestamp_ms, timestamp_ms, *producer, len(values))
        + plain[batch.HEADER_BYTES :]
    )
    return _BATCH_HEAD.pack(0, 9 + len(tail), -1, 2, crc32c(tail)) + tail


def decode(records: bytes, partition: int, from_offset: int = 0) -> list[Record]:
    """The records at or past an offset."""
    result: list[Record] = []
    at = 0
    while at < len(records):
        size = batch.LENGTH_OFFSET + int.from_bytes(records[at + 8 : at + 12], "big")
        result += _decoded(records[at : at + size], partition)
        at += size
    if result and result[0].offset < from_offset:
        return [record for record in result if record.offset >= from_offset]
    return result


@lru_cache(maxsize=4_096)
def _decoded(data: bytes, partition: int) -> tuple[Record, ...]:
    """One batch; every replica and every reader meets the same bytes. Raises CorruptBatch."""
    header = batch.parse_header(data)
    return tuple(
        Record(partition, offset, int.from_bytes(value, "big"), header.leader_epoch, header.base_timestamp)
        for offset, value in batch.values_of(header, data)
    )
