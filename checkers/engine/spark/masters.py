"""Is there a Spark master, and does it give us anything? Spark itself asks for minutes without a word."""

from __future__ import annotations

import re
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from wrackline.errors import InputError

MASTER_KNOCK_S = 5.0
_STANDALONE, _KUBERNETES = "spark://", "k8s://"
_MASTERS = re.compile(
    r"local|local\[(\*|\d+)(, "
    r"*\d+)?\]|local-cluster\[.*\]|yarn|k8s://.+|spark://[^,\s]+:\d{1,5}(,[^,\s]+:\d{1,5})*"
)
_STREAM_REQUEST, _STREAM_FAILURE = 6, 8
_TYPE_AT = 8
"""The first byte after a frame's length."""
_LONGEST = 4096
"""Bytes of an answer that are read."""
_TLS_ALERT = b"\x15\x03"
"""Spark's RPC can be wrapped in TLS, and then wants more than a frame."""
_NO_FILE = b"/files/wrackline-knocks"


class SparkUnavailable(InputError):
    """Spark cannot be started here. One line: what, where, how to mend. The command line exits with code
    2."""


def check_master(master: str) -> None:
    """Is there a master at all, and does it speak? Raises SparkUnavailable within ``MASTER_KNOCK_S``, and at
    once for what is no master's name."""
    if not _MASTERS.fullmatch(master):
        raise SparkUnavailable(
            f"{master!r} is no Spark master: give local[*], local[4], spark://HOST:PORT[,HOST:PORT...], yarn "
            "or k8s://..."
        )
    if master.startswith(_KUBERNETES):
        said = [_trouble_of_kubernetes(master.removeprefix(_KUBERNETES))]
    elif master.startswith(_STANDALONE):
        addresses = master.removeprefix(_STANDALONE).split(",")
        with ThreadPoolExecutor(len(addresses)) as pool:  # one that is silent takes no time from the others
            said = list(pool.map(_trouble_of, addresses))
    else:
        return
    if all(said):
        raise SparkUnavailable(
            f"no Spark master answers at {master} ({'; '.join(said)}); start it, or give another with "
            "--master (local[*] needs none)"
        )


def _trouble_of_kubernetes(url: str) -> str:
    """Returns the reason why nobody answers at the API server's address; empty when something listens
    there."""
    parts = urlsplit(url if "://" in url else f"https://{url}")
    try:
        port = parts.port or (80 if parts.scheme == "http" else 443)
        socket.create_connection((str(parts.hostname), port), timeout=MASTER_KNOCK_S).close()
    except (OSError, ValueError) as error:
        return f"{parts.netloc}: {_why(error)}"
    return ""


def _trouble_of(address: str) -> str:
    """Returns the reason why no standalone master answers at ``HOST:PORT``; empty when one does. It is
    asked for a file that it does not have, in a frame of Spark's network-common (MessageEncoder,
    StreamRequest): whoever serves Spark's RPC says that there is none, before any authentication and
    whatever its version."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + MASTER_KNOCK_S
    message = struct.pack(">BI", _STREAM_REQUEST, len(_NO_FILE)) + _NO_FILE
    connected = False
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=MASTER_KNOCK_S) as knocked:
            connected = True
            knocked.sendall(struct.pack(">Q", 8 + len(message)) + message)
            answer = _received(knocked, deadline)
    except OSError as error:
        if connected and isinstance(error, TimeoutError):
            return f"{address}: takes connections and says nothing for {MASTER_KNOCK_S:g} s"
        return f"{address}: {_why(error)}"
    if answer.startswith(b"HTTP/"):
        return f"{address}: speaks HTTP; that is the port of its web pages, its own is 7077 by default"
    if answer[_TYPE_AT : _TYPE_AT + 1] == bytes([_STREAM_FAILURE]) or answer.startswith(_TLS_ALERT):
        return ""
    return f"{address}: something else than Spark answers"


def _received(knocked: socket.socket, deadline: float) -> bytes:
    """A whole frame, or what there is of it; a master that is left with half an answer writes down an error.
    Raises OSError."""
    answer = b""
    while len(answer) <= _TYPE_AT or len(answer) < min(_LONGEST, struct.unpack(">Q", answer[:_TYPE_AT])[0]):
        knocked.settimeout(max(0.1, deadline - time.monotonic()))
        piece = knocked.recv(_LONGEST)
        if not piece:
            break
        answer += piece
    return answer


def _why(wrong: Exception) -> str:
    return getattr(wrong, "strerror", None) or str(wrong)
