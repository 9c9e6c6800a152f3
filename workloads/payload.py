"""Self-checking record values: whoever reads one back knows whether it is what was sent.

Layout (big-endian)::

    0   4  magic "WRK1"
    4   4  CRC-32 of everything after these four bytes
    8   8  run (first 8 bytes of BLAKE2b of the test id)
    16  4  process      20 4 counter      24 1 attempt
    25  4  partition    29 4 CRC-32 of the topic's name
    33  8  timestamp, ms since 1970, also set on the record
    41  4  size of the whole payload
    45  .. padding, from a fixed block at a place the value chooses

The record's key is the value (8 bytes), so a key that travelled to another record shows too.
"""

from __future__ import annotations

import hashlib
import random
import struct
import zlib
from collections.abc import Callable

from wrackline.history.model import CORRUPT, FOREIGN, parts_of, value_of
from wrackline.history.values import dataclass

_HEAD = struct.Struct(">4sI")
_BODY = struct.Struct(">8sIIBiIqI")
MAGIC = b"WRK1"
HEADER = "wrackline"
"""The header of a tombstone that has its payload: its value is null."""
_BEGIN = _HEAD.size
OVERHEAD = _HEAD.size + _BODY.size
MAX_BYTES = 1 << 20
_PADDING = random.Random(2).randbytes(MAX_BYTES + 4096)


KeyOf = Callable[[int, int], bytes]
"""The key of a record, by partition and value."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A payload, decoded. ``value`` is CORRUPT or FOREIGN when it is not one of this run's, and ``detail``
    then says why. ``partition`` and ``topic_crc`` are where it was sent to (-1, 0 when that is not known)."""

    value: int
    partition: int = -1
    topic_crc: int = 0
    timestamp_ms: int = -1
    detail: str | None = None


NO_TIMESTAMP, NO_EPOCH = -1, -1


def kept_timestamp(timestamp_ms: int, leader_epoch: int) -> int | None:
    """A record's own timestamp; None where its format has none: that of before 0.10, which does not have the
    leader's epoch, either."""
    return None if timestamp_ms == NO_TIMESTAMP and leader_epoch == NO_EPOCH else timestamp_ms


def run_tag(test_id: str) -> bytes:
    """The eight bytes that tell this run's payloads from another's."""
    return hashlib.blake2b(test_id.encode(), digest_size=8).digest()


def topic_crc(topic: str) -> int:
    return zlib.crc32(topic.encode())


def key_of(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _key_of(partition: int, value: int) -> bytes:  # noqa: ARG001
    return key_of(value)


def encode(
    tag: bytes, value: int, topic: str, partition: int, timestamp_ms: int, size: int = OVERHEAD
) -> bytes:
    """The payload of one record, ``size`` bytes (or OVERHEAD, when that is more).

    Raises ValueError for a size over MAX_BYTES."""
    if size > MAX_BYTES:
        raise ValueError(f"a payload of {size} bytes is more than {MAX_BYTES}")
    process, counter, attempt = parts_of(value)
    size = max(size, OVERHEAD)
    body = _BODY.pack(tag, process, counter, attempt, partition, topic_crc(topic), timestamp_ms, size)
    place = (value * 31) & 0xFFF
    rest = body + _PADDING[place : place + size - OVERHEAD]
    return _HEAD.pack(MAGIC, zlib.crc32(rest)) + rest


def decode(
    tag: bytes,
    payload: bytes | None,
    *,
    key: bytes | None = None,
    timestamp_ms: int | None = None,
    key_of: KeyOf = _key_of,
) -> Decoded:
    """Check a payload and, where given, its record's timestamp and key, which is ``key_of`` its partition and
    value. Never raises on bad bytes."""
    if payload is None or len(payload) < OVERHEAD:
        return Decoded(CORRUPT, detail="no value" if payload is None else f"only {len(payload)} bytes")
    magic, crc = _HEAD.unpack_from(payload)
    if magic != MAGIC:
        return Decoded(CORRUPT, detail=f"begins with {magic.hex()}")
    actual = zlib.crc32(memoryview(payload)[_BEGIN:])
    if actual != crc:
        return Decoded(CORRUPT, detail=f"checksum {crc:08x}, content {actual:08x}")
    run, process, counter, attempt, partition, crc_of_topic, sent_ms, size = _BODY.unpack_from(
        payload, _BEGIN
    )
    if size != len(payload):
        return Decoded(CORRUPT, detail=f"{len(payload)} bytes of {size}")
    if run != tag:
        return Decoded(FOREIGN, partition, crc_of_topic, sent_ms, f"run {run.hex()}")
    value = value_of(process, counter, attempt)
    error = None
    if key is not None and key != key_of(partition, value):
        error = f"value {value} under key {key.hex()}"
    elif timestamp_ms is not None and timestamp_ms != sent_ms:
        error = f"value {value} sent at {sent_ms} ms has timestamp {timestamp_ms}"
    return Decoded(value if error is None else CORRUPT, partition, crc_of_topic, sent_ms, error)
