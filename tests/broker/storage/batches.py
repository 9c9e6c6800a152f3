"""Record batches for tests: built by hand, or by kafka-python's own builder as a foreign hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crc32c import crc32c

from wrackline.broker.model.batches.batch import build, stamp


def batch(
    base_offset: int,
    count: int = 1,
    *,
    epoch: int = 0,
    size: int = 20,
    timestamp: int = 1_000,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """``count`` records of ``size`` bytes; ``producer`` is (id, epoch, base sequence)."""
    raw = bytearray(build([bytes([65 + i % 26]) * size for i in range(count)], base_offset, epoch, timestamp))
    struct.pack_into(">qhi", raw, 43, *producer)
    struct.pack_into(">I", raw, 17, crc32c(memoryview(raw)[21:]))
    return bytes(raw)


def run_of(count: int, *, start: int = 0, epoch: int = 0, size: int = 20, records: int = 1) -> list[bytes]:
    """``count`` batches one after the other."""
    return [
        batch(start + i * records, records, epoch=epoch, size=size, timestamp=1_000 + i) for i in range(count)
    ]


def foreign_batch(values: Sequence[bytes], base_offset: int, *, epoch: int, codec: int = 0) -> bytes:
    """As kafka-python writes it, stamped as a leader would."""
    from kafka.record import MemoryRecordsBuilder

    builder = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=1 << 20)
    for value in values:
        builder.append(timestamp=5_000, key=None, value=value)
    builder.close()
    return stamp(builder.buffer(), base_offset, epoch)
