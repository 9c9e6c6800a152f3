"""Frames on a byte stream: ``int32 size``, then that many bytes."""

from __future__ import annotations

import struct
from collections.abc import Generator

from wrackline.broker.wire.foreign import foreign
from wrackline.broker.wire.schema import WireError

_SIZE = struct.Struct(">i")
SIZE_BYTES = _SIZE.size
_LOOKED_AT = 256
"""Bytes of what came in place of a frame."""


class FrameReader:
    """Collects bytes as they come and yields whole frames, without their size.

    A frame's own bytes are copied once, out of the buffer; a small pipelined frame never moves the rest.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        """Bytes of a frame that has begun and not ended."""
        return len(self._buffer)

    def keep(self, data: bytes) -> None:
        """For the next ``feed``: the frames in it are not wanted yet."""
        self._buffer += data

    def feed(self, data: bytes) -> Generator[bytes]:
        """Raises WireError on a size that is negative or over the limit, before anything is kept for it."""
        buffer = self._buffer
        buffer += data
        at = 0
        try:
            while len(buffer) - at >= SIZE_BYTES:
                (size,) = _SIZE.unpack_from(buffer, at)
                if not 0 <= size <= self._max_bytes:
                    raise WireError(_refusal(size, self._max_bytes, bytes(buffer[at : at + _LOOKED_AT])))
                end = at + SIZE_BYTES + size
                if len(buffer) < end:
                    break
                frame = bytes(memoryview(buffer)[at + SIZE_BYTES : end])
                at = end
                yield frame
        finally:
            if at:
                del buffer[:at]


def _refusal(size: int, limit: int, begin: bytes) -> str:
    told = foreign(begin)
    if told is not None:
        return f"what came is {told}"
    return f"frame of {size} bytes, the limit is {limit} (socket_request_max_bytes); it begins {begin[:8]!r}"
