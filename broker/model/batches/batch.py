"""Record batches v2 as opaque bytes with a 61-byte header (docs/protocol.md 5.2).

The CRC covers everything from ``attributes`` on, so the leader may stamp base offset and leader epoch without
touching the payload. Compressed payloads are opened once, to be checked (``validation``), and kept as they
are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from crc32c import crc32c

from wrackline.broker.model.values import dataclass

HEADER_BYTES = 61
LENGTH_OFFSET = 12
"""Bytes before those that ``batch_length`` counts."""
_HEADER = struct.Struct(">qiibIhiqqqhii")
CRC_START = 21
_ONE_BYTE = [bytes([byte]) for byte in range(0x80)]


_LONGEST_NUMBER_BITS = 63
"""Of the ten bytes that 64 bits take as a varint, the last one's place."""


class CorruptBatch(ValueError):
    """The bytes are not whole, well-formed v2 record batches."""


class Miscounted(CorruptBatch):
    """The batch has no records, or more of them than offsets."""


@dataclass(frozen=True, slots=True)
class BatchHeader:
    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def size_bytes(self) -> int:
        return LENGTH_OFFSET + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        return -1 if self.base_sequence < 0 else (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def parse_header(data: bytes | memoryview, at: int = 0) -> BatchHeader:
    """The header at byte ``at``. Raises CorruptBatch when bytes are missing or the magic is not 2."""
    if len(data) - at < HEADER_BYTES:
        raise CorruptBatch(f"{len(data) - at} bytes left, a batch header has {HEADER_BYTES}")
    header = BatchHeader(*_HEADER.unpack_from(data, at))
    if header.magic != 2:
        raise CorruptBatch(f"magic {header.magic}, only record batches v2 are kept")
    if header.batch_length < HEADER_BYTES - LENGTH_OFFSET:
        raise CorruptBatch(f"batch length {header.batch_length} is shorter than its header")
    if header.last_offset_delta < 0 or header.count < 1 or header.last_offset_delta + 1 < header.count:
        raise Miscounted(f"{header.count} records in {header.last_offset_delta + 1} offsets")
    return header


def split(data: bytes | memoryview) -> Iterator[tuple[BatchHeader, bytes | memoryview]]:
    """The whole batches in ``data``, in order; ``data`` itself when it is just one. Raises CorruptBatch on a
    short tail."""
    size, at = len(data), 0
    view: memoryview | None = None
    while at < size:
        header = parse_header(data, at)
        end = at + header.size_bytes
        if end > size:
            raise CorruptBatch(f"batch of {header.size_bytes} bytes, {size - at} left")
        if at == 0 and end == size:
            yield header, data
            return
        if view is None:
            view = memoryview(data)
        yield header, view[at:end]
        at = end


def crc_is_right(header: BatchHeader, batch: bytes | memoryview) -> bool:
    return crc32c(memoryview(batch)[CRC_START : header.size_bytes]) == header.crc


def stamp(batch: bytes | memoryview, base_offset: int, leader_epoch: int) -> bytes:
    """The batch with the offset and epoch its leader gives it."""
    out = bytearray(batch)
    struct.pack_into(">q", out, 0, base_offset)
    struct.pack_into(">i", out, 12, leader_epoch)
    return bytes(out)


def _varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    if zigzag < 0x80:
        return _ONE_BYTE[zigzag]
    out = bytearray()
    while zigzag > 0x7F:
        out.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """(value, where the next field begins) of a zigzag varint. Raises IndexError where the bytes end, and
    CorruptBatch where the number does not end in time."""
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    shift = result = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7
        if shift > _LONGEST_NUMBER_BITS:
            raise CorruptBatch(f"the number before byte {at} is longer than ten bytes")


def build(values: Sequence[bytes], base_offset: int, leader_epoch: int, timestamp_ms: int) -> bytes:
    """One uncompressed batch of key-less records: how metadata records are stored."""
    records = bytearray()
    for delta, value in enumerate(values):
        body = b"\x00" + _varint(0) + _varint(delta) + _varint(-1) + _varint(len(value)) + value + _varint(0)
        records += _varint(len(body)) + body
    last = len(values) - 1
    tail = struct.pack(">hiqqqhii", 0, last, timestamp_ms, timestamp_ms, -1, -1, -1, len(values)) + records
    head = struct.pack(">qiibI", base_offset, 9 + len(tail), leader_epoch, 2, crc32c(tail))
    return head + tail


def values_of(header: BatchHeader, batch: bytes | memoryview) -> Iterator[tuple[int, bytes]]:
    """(offset, value) of each record of an uncompressed batch. Raises CorruptBatch on a malformed record."""
    if header.attributes & 0x07:
        raise CorruptBatch("a compressed batch cannot be opened here")
    view = memoryview(batch)
    at = HEADER_BYTES
    try:
        for _ in range(header.count):
            _, at = read_varint(view, at)
            at += 1
            _, at = read_varint(view, at)
            delta, at = read_varint(view, at)
            key_length, at = read_varint(view, at)
            at += max(key_length, 0)
            value_length, at = read_varint(view, at)
            value = bytes(view[at : at + max(value_length, 0)])
            at += max(value_length, 0)
            headers, at = read_varint(view, at)
            for _ in range(headers):
                for _ in range(2):
                    length, at = read_varint(view, at)
                    at += max(length, 0)
            yield header.base_offset + delta, value
    except IndexError as short:
        raise CorruptBatch(f"record ends past its batch at byte {at}") from short
