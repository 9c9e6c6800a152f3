"""The messages of Kafka before 0.11: an offset, a length, and one message of magic 0 or 1.

The first 17 bytes have the same places as in a batch of magic 2, so that a segment may hold all three.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

MAGIC_AT = 16
_HEAD = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_LENGTH_OFFSET = 12
_CRC_START = 16
_LOG_APPEND_TIME = 0x08
NO_TIMESTAMP = -1
"""Of a message of magic 0."""


class Malformed(ValueError):
    """Raised for a malformed message set, without its place."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it lies in a segment."""

    offset: int
    size_bytes: int
    """With its offset and length."""
    magic: int
    attributes: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def message(view: memoryview, at: int) -> Message:
    """The whole, CRC-checked message at a place. Raises Malformed."""
    left = len(view) - at
    if left < _HEAD.size:
        raise Malformed(f"{left} bytes are no whole message")
    offset, length, crc, magic, attributes = _HEAD.unpack_from(view, at)
    size = _LENGTH_OFFSET + length
    if size > left:
        raise Malformed(f"the message of offset {offset} has {size} bytes, only {left} are there")
    body = view[at : at + size]
    if size < _HEAD.size or zlib.crc32(body[_CRC_START:]) != crc:
        raise Malformed(f"wrong CRC in the message of offset {offset}")
    place, timestamp = _HEAD.size, NO_TIMESTAMP
    try:
        if magic == 1:
            [timestamp] = _TIMESTAMP.unpack_from(body, place)
            place += _TIMESTAMP.size
        key, place = _sized(body, place)
        value, place = _sized(body, place)
    except struct.error as short:
        raise Malformed(f"the message of offset {offset} ends too early") from short
    if place != size:
        raise Malformed(f"{size - place} bytes follow the message of offset {offset}")
    return Message(offset, size, magic, attributes, timestamp, key, value)


def _sized(body: memoryview, at: int) -> tuple[bytes | None, int]:
    """Raises struct.error."""
    [length] = _LENGTH.unpack_from(body, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    if at + length > len(body):
        raise struct.error("short")
    return bytes(body[at : at + length]), at + length
