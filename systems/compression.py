"""The records of a compressed batch, opened: gzip, zstd and LZ4 frames, and of snappy either one raw block,
as librdkafka writes it, or the stream of snappy-java. It shares no code with the broker that it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cramjam

MASK = 0x07
"""The bits of a batch's attributes that say how it is compressed."""
NAMES = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_JAVA = b"\x82SNAPPY\x00"
_JAVA_HEADER_BYTES = len(_JAVA) + 8
"""Two versions follow, of four bytes each."""


class Undecodable(ValueError):
    """The bytes are not what the batch says they are."""


def opened(codec: int, data: bytes) -> bytes:
    """Returns the records behind the header of a batch. Raises Undecodable."""
    if codec not in _OPENERS:
        raise Undecodable(f"there is no codec {codec}")
    try:
        return _OPENERS[codec](data)
    except cramjam.DecompressionError as error:
        raise Undecodable(f"not {NAMES[codec]}: {error}") from error


def _snappy(data: bytes) -> bytes:
    return b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in _blocks(data))


def _blocks(data: bytes) -> Iterator[bytes]:
    if not data.startswith(_JAVA):
        yield data
        return
    at = _JAVA_HEADER_BYTES
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            raise Undecodable(f"not snappy: the block at byte {at} ends at byte {end} of {len(data)}")
        yield data[at + 4 : end]
        at = end


def _frames(codec: Any) -> Callable[[bytes], bytes]:
    return lambda data: bytes(codec.decompress(data))


_OPENERS: Mapping[int, Callable[[bytes], bytes]] = {
    1: _frames(cramjam.gzip),
    2: _snappy,
    3: _frames(cramjam.lz4),
    4: _frames(cramjam.zstd),
}
