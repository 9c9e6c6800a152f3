"""Offsets that have records in Kafka's batches, and nothing else of the batches.

A second reader beside the clients' libraries and `wrackline.systems.segments`, which are asked first: it
shares no code with either, so a slip of theirs is none of its own. It looks at neither checksums nor values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH = 12
_MAGIC_AT = 16
_CODEC, _TRANSACTIONAL, _CONTROL = 0x07, 0x10, 0x20


def offsets_in(data: bytes, aborted: Mapping[int, list[int]] | None = None) -> Iterator[int]:
    """Offsets of the records of all whole batches, in their order. ``aborted``: producer id -> the first
    offset of each of its transactions that was aborted: their records are left out.

    Of a compressed batch with gaps nobody can tell what is in it, and it gives nothing."""
    ends: dict[int, int] = {}
    """Producer -> the last control batch that ended a transaction of it."""
    at = 0
    while at + _MAGIC_AT < len(data):
        base, length = struct.unpack_from(">qi", data, at)
        end = at + _BEFORE_LENGTH + length
        if length <= 0 or end > len(data):
            return
        if data[at + _MAGIC_AT] < 2:
            yield base
        elif length >= _HEADER.size - _BEFORE_LENGTH:
            yield from _of_batch(data, at, end, aborted or {}, ends)
        at = end


def next_offset(data: bytes) -> int:
    """The offset behind the last whole batch, records or not; -1 where there is none."""
    at, result = 0, -1
    while at + _MAGIC_AT < len(data):
        base, length = struct.unpack_from(">qi", data, at)
        at += _BEFORE_LENGTH + length
        if length <= 0 or at > len(data):
            break
        whole = (
            data[at - length - _BEFORE_LENGTH + _MAGIC_AT] >= 2 and length >= _HEADER.size - _BEFORE_LENGTH
        )
        delta = _HEADER.unpack_from(data, at - length - _BEFORE_LENGTH)[6] if whole else 0
        result = base + delta + 1
    return result


def _of_batch(
    data: bytes, at: int, end: int, aborted: Mapping[int, list[int]], ends: dict[int, int]
) -> Iterator[int]:
    base, _, _, _, _, attributes, delta, _, _, producer, _, _, count = _HEADER.unpack_from(data, at)
    if attributes & _CONTROL:
        ends[producer] = base
        return
    begun = (first for first in aborted.get(producer, ()) if first <= base + delta)
    if attributes & _TRANSACTIONAL and max(begun, default=-1) > ends.get(producer, -1):
        return
    if attributes & _CODEC:
        if count == delta + 1:
            yield from range(base, base + count)
        return
    at += _HEADER.size
    for _ in range(count):
        length, at = _varint(data, at)
        next_at = at + length
        _, at = _varint(data, at + 1)  # behind the attributes: the timestamp
        offset, at = _varint(data, at)
        yield base + offset
        at = next_at
        if at > end:
            return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(zigzag number, where the next byte is)."""
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7
