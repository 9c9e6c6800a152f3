"""The records of a compressed batch, opened up to a limit: no batch costs more memory than its limit allows.

Kafka's framings (KIP-110, DefaultRecordBatch): gzip and zstd members, LZ4 frames, and for snappy either one
raw block (librdkafka) or the stream of snappy-java (Java clients).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Final

import cramjam

_STREAM_MAGIC = b"\x82SNAPPY\x00"
_STREAM_HEADER_BYTES = len(_STREAM_MAGIC) + 8
"""Then come the version and the oldest version that can read it, four bytes each."""
_FULL = "failed to write whole buffer"
"""What cramjam says when the output buffer is too small."""


class Compression(IntEnum):
    """The lowest three bits of a batch's attributes; 5 to 7 mean nothing."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


COMPRESSION_MASK: Final = 0x07


class Undecodable(ValueError):
    """The bytes are not what the batch says they are."""


class TooLarge(ValueError):
    """The records would take more bytes than allowed."""


def decompress(kind: int, data: bytes | memoryview, limit_bytes: int) -> bytes | memoryview:
    """The records behind the header of a batch; ``kind`` is one of Compression but NONE.

    Raises Undecodable, and TooLarge when they would take more than ``limit_bytes``: not more is ever written.
    """
    if kind == Compression.SNAPPY:
        return _snappy(data, limit_bytes)
    return _into(_STREAMS[kind], data, limit_bytes)


def _into(opener: Callable[..., int], data: bytes | memoryview, limit_bytes: int) -> memoryview:
    # The pages of the buffer are the system's until something is written to them.
    out = bytearray(limit_bytes)
    try:
        size = opener(data, out)
    except cramjam.DecompressionError as error:
        if str(error) == _FULL:
            raise TooLarge(f"more than {limit_bytes} bytes of records") from error
        raise Undecodable(str(error)) from error
    return memoryview(out)[:size]


def _snappy(data: bytes | memoryview, limit_bytes: int) -> bytes | memoryview:
    view = memoryview(data)
    if view[: len(_STREAM_MAGIC)] != _STREAM_MAGIC:
        return _snappy_block(view, limit_bytes)
    parts = []
    left = limit_bytes
    for block in _snappy_blocks(view):
        part = _snappy_block(block, left)
        left -= len(part)
        parts.append(part)
    return b"".join(parts)


def _snappy_blocks(stream: memoryview) -> Iterator[memoryview]:
    at = _STREAM_HEADER_BYTES
    while at < len(stream):
        end = at + 4 + int.from_bytes(stream[at : at + 4], "big")
        if at + 4 >= end or end > len(stream):
            raise Undecodable(f"snappy: the block at byte {at} ends at byte {end} of {len(stream)}")
        yield stream[at + 4 : end]
        at = end


def _snappy_block(block: memoryview, limit_bytes: int) -> memoryview:
    """A block says its own size in front."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit_bytes:
            raise TooLarge(f"a block of {size} bytes of records, {limit_bytes} are left")
        out = bytearray(size)
        if cramjam.snappy.decompress_raw_into(block, out) != size:
            raise Undecodable(f"snappy: a block is shorter than the {size} bytes it tells")
    except cramjam.DecompressionError as error:
        raise Undecodable(str(error)) from error
    return memoryview(out)


_STREAMS: Mapping[int, Callable[..., int]] = {
    Compression.GZIP: cramjam.gzip.decompress_into,
    Compression.LZ4: cramjam.lz4.decompress_into,
    Compression.ZSTD: cramjam.zstd.decompress_into,
}
