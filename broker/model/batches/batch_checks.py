"""Checks of a producer's batch before it may enter a log: Kafka's checks of a client's records (LogValidator,
DefaultRecordBatch, DefaultRecord, and ProduceRequest.validateRecords).

Stricter than Kafka in one thing: it counts the offsets of uncompressed records without looking at them. A
batch that passes can be walked by anyone: its records are as many as it says, numbered 0, 1, 2 ..., and fill
its bytes exactly. So the walks over stored batches need no more than a bound.
"""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

from wrackline.broker.model.batches.batch import HEADER_BYTES, BatchHeader
from wrackline.broker.model.batches.compression import (
    COMPRESSION_MASK,
    Compression,
    TooLarge,
    Undecodable,
    decompress,
)
from wrackline.broker.model.values import dataclass

NO_TIMESTAMP: Final = -1
MIN_RECORD_BYTES: Final = 7
"""Length, attributes, two deltas, the lengths of key and value, and how many headers: a byte each."""
_LARGEST = (1 << 63) - 1
_VARINT_BITS = 70
"""Of ten bytes, the longest number there is."""
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DECOMPRESSED_FACTOR: Final = 4


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    error: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a topic."""

    max_bytes: int
    """Of a batch as it is sent, ``max.message.bytes``. Its records, decompressed, may take four times as
    much."""
    oldest_ms: float = float("-inf")
    newest_ms: float = float("inf")
    """Of the time of a record."""
    zstd: bool = True
    """Only since version 7 of Produce (KIP-110)."""


def check_header(header: BatchHeader, limits: Limits) -> None:
    """Checks what the header says by itself; its CRC is right. Raises Refusal."""
    attributes = header.attributes
    kind = attributes & COMPRESSION_MASK
    if kind and (kind > Compression.ZSTD or (kind == Compression.ZSTD and not limits.zstd)):
        raise Refusal(ErrorCode.unsupported_compression_type, f"compression type {kind}")
    if header.base_offset:
        raise _invalid(f"base offset {header.base_offset}, a producer's is 0")
    if header.count < 1 or header.count != header.last_offset_delta + 1:
        raise _invalid(f"{header.count} records in {header.last_offset_delta + 1} offsets")
    if attributes & (_TRANSACTIONAL | _CONTROL):
        raise _invalid("transactional and control batches are not supported")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise _invalid("a producer id without sequence or epoch")
    if attributes & _LOG_APPEND_TIME:
        raise Refusal(ErrorCode.invalid_timestamp, "the time of appending is not a producer's to set")


def check_records(header: BatchHeader, batch: bytes, limits: Limits) -> int:
    """The newest time of the records, at least -1. Raises Refusal."""
    kind = header.attributes & COMPRESSION_MASK
    if not kind:
        data, at = batch, HEADER_BYTES
    else:
        data, at = _opened(kind, batch, limits.max_bytes * _DECOMPRESSED_FACTOR), 0
    if header.count * MIN_RECORD_BYTES > len(data) - at:
        raise _invalid(f"{header.count} records in {len(data) - at} bytes")
    try:
        newest, oldest = _walk(data, at, header.count)
    except IndexError:
        raise _invalid("the last record ends past its batch") from None
    except _Malformed as error:
        raise _invalid(str(error)) from None
    return _check_times(header.base_timestamp, newest, oldest, limits)


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.invalid_record, message)


def _opened(kind: int, batch: bytes, limit_bytes: int) -> bytes:
    try:
        return bytes(decompress(kind, memoryview(batch)[HEADER_BYTES:], limit_bytes))
    except Undecodable as error:
        raise _invalid(f"not {Compression(kind).name.lower()}: {error}") from error
    except TooLarge as error:
        # What a client does with this error is right: it makes smaller batches.
        raise Refusal(ErrorCode.message_too_large, str(error)) from error


def _check_times(base: int, newest_delta: int, oldest_delta: int, limits: Limits) -> int:
    newest, oldest = base + newest_delta, base + oldest_delta
    if oldest == NO_TIMESTAMP == newest:
        return NO_TIMESTAMP
    low, high = max(limits.oldest_ms, -_LARGEST), min(limits.newest_ms, _LARGEST)
    if newest > high or (oldest < low and oldest != NO_TIMESTAMP):
        raise Refusal(
            ErrorCode.invalid_timestamp,
            f"records of {oldest} to {newest} ms, {low:.0f} to {high:.0f} are taken",
        )
    return max(newest, NO_TIMESTAMP)


class _Malformed(Exception):
    pass


def _walk(data: bytes, at: int, count: int) -> tuple[int, int]:
    """The largest and the smallest delta of time of ``count`` records that begin at byte ``at``.

    Every record of every producer comes by here: numbers of one byte, and lengths of two, are read in place,
    and numbers stay in zigzag, where a null is odd. Raises IndexError where the bytes end, and _Malformed.
    """
    newest = oldest = seen = None
    for expected in range(0, 2 * count, 2):
        length = data[at]
        at += 1
        if length > 0x7F:
            byte = data[at]
            at += 1
            length = (length & 0x7F) | byte << 7
            if byte > 0x7F:
                length, at = _number(data, at - 2)
        if length & 1:
            raise _Malformed(f"record {expected >> 1} has a negative length")
        end = at + (length >> 1)
        time = data[at + 1]
        at += 2
        if time > 0x7F:
            time, at = _number(data, at - 1)
        if time != seen:
            seen = time
            delta = (time >> 1) ^ -(time & 1)
            if newest is None or oldest is None:
                newest = oldest = delta
            elif delta > newest:
                newest = delta
            elif delta < oldest:
                oldest = delta
        number = data[at]
        at += 1
        if number > 0x7F:
            number, at = _number(data, at - 1)
        if number != expected:
            raise _Malformed(f"record {expected >> 1} has offset delta {(number >> 1) ^ -(number & 1)}")
        key = data[at]
        at += 1
        if key > 0x7F:
            key, at = _number(data, at - 1)
        if not key & 1:
            at += key >> 1
        value = data[at]
        at += 1
        if value > 0x7F:
            byte = data[at]
            at += 1
            value = (value & 0x7F) | byte << 7
            if byte > 0x7F:
                value, at = _number(data, at - 2)
        if not value & 1:
            at += value >> 1
        headers = data[at]
        at += 1
        if headers:
            at = _skip_headers(data, at - 1, end)
        if at != end:
            raise _Malformed(f"record {expected >> 1} ends at byte {at}, its length says {end}")
    if at != len(data):
        raise _Malformed(f"{len(data) - at} bytes behind the last record")
    assert newest is not None
    assert oldest is not None
    return newest, oldest


def _skip_headers(data: bytes, at: int, end: int) -> int:
    """The byte behind a record's headers; ``at`` is where their number is."""
    count, at = _number(data, at)
    if count & 1 or count > end - at:
        raise _Malformed(f"{(count >> 1) ^ -(count & 1)} headers in {end - at} bytes")
    for _ in range(count >> 1):
        key, at = _number(data, at)
        if key & 1:
            raise _Malformed("a header without a key")
        value, at = _number(data, at + (key >> 1))
        if not value & 1:
            at += value >> 1
        if at > end:
            raise _Malformed("a header ends past its record")
    return at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """(a number in zigzag, where the next field begins)."""
    result = 0
    for shift in range(0, _VARINT_BITS, 7):
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
    raise _Malformed(f"the number before byte {at} is longer than ten bytes")
