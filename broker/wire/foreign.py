"""Other protocols that come to a Kafka port by mistake, told by their first bytes.

Their first four bytes read as the size of a frame that no limit allows, and "frame of 369295617 bytes" tells
nobody that a client was configured with TLS.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    """What came instead of a frame, and how to mend it; None for bytes that nobody knows. ``begin``: four of
    them, or more."""
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
