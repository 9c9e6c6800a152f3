"""Frames on a byte stream: ``int32 size``, then that many bytes; and what comes in place of one."""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping

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
        """Keeps the data for the next ``feed``: the frames in it are not wanted yet."""
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


# --- other protocols ----------------------------------------------------------------------------------------
#
# They come to a Kafka port by mistake, and are recognized by their first bytes. Their first four read as the
# size of a frame that no limit allows, and "frame of 369295617 bytes" says nothing of a client that was
# configured with TLS.

_TLS = {
    0x16: "a TLS hello",
    0x15: "a TLS alert",
}
_TLS_VERSION = 3
"""The second byte of every record since SSL 3.0."""
_HTTP = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"CONN", b"PATC", b"TRAC", b"PRI ", b"HTTP")
_ZOOKEEPER = (
    *(b"ruok", b"stat", b"srvr", b"mntr", b"conf", b"cons", b"crst", b"dump", b"envi", b"srst"),
    *(b"wchs", b"wchc", b"wchp", b"isro", b"dirs", b"gtmk", b"stmk", b"hash"),
)
_OTHERS: Mapping[bytes, str] = {b"SSH-": "an SSH greeting", b"PROX": "a header of the PROXY protocol"}
_QUOTED_BYTES = 60


def foreign(begin: bytes) -> str | None:
    """Returns what came instead of a frame, and how to mend it; None for bytes that nobody knows.
    ``begin``: four of them, or more."""
    if len(begin) > 1 and begin[0] in _TLS and begin[1] == _TLS_VERSION:
        return f"{_TLS[begin[0]]}, and this port speaks no TLS: set security.protocol=PLAINTEXT at the client"
    head = begin[:4]
    if head in _HTTP:
        return (
            f"an HTTP message ({_line(begin)}), and this port speaks Kafka's protocol: ask the metrics_port"
        )
    if head in _ZOOKEEPER:
        return f"the ZooKeeper command {_line(begin)}, and this is no ZooKeeper: ask one of its servers"
    if head in _OTHERS:
        return f"{_OTHERS[head]} ({_line(begin)}), and this port speaks Kafka's protocol alone"
    return None


def _line(begin: bytes) -> str:
    """The first line, as a sender cannot write lines of its own with it."""
    return repr(begin[:_QUOTED_BYTES].split(b"\n")[0].rstrip(b"\r").decode("latin-1"))
