"""A client of QMP, QEMU's own protocol on a Unix socket: a connection for each command."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wrackline.fleets.base import FleetError

TIMEOUT_S = 10.0


def connect(path: Path, timeout_s: float) -> socket.socket:
    """A Unix socket wherever it lies: its address may have 107 characters, a folder more. Raises OSError."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    made = socket.socket(socket.AF_UNIX)
    try:
        made.settimeout(timeout_s)
        made.connect(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        made.close()
        raise
    finally:
        os.close(folder)
    return made


def ask(
    path: Path, command: str, arguments: Mapping[str, object] | None = None, *, timeout_s: float = TIMEOUT_S
) -> Any:
    """Carry out one command; what it returns. Raises FleetError."""
    request: dict[str, object] = {"execute": command, "arguments": dict(arguments or {})}
    try:
        with connect(path, timeout_s) as connection, connection.makefile("rwb") as stream:
            json.loads(stream.readline())  # the greeting
            _answer(stream, {"execute": "qmp_capabilities"})
            return _answer(stream, request)
    except (OSError, ValueError) as error:
        raise FleetError(f"QMP {command} at {path}: {error}; is the host on?") from error


def _answer(stream: Any, request: dict[str, object]) -> Any:
    stream.write(json.dumps(request).encode() + b"\n")
    stream.flush()
    while True:
        line = stream.readline()
        if not line:
            raise ValueError("QEMU hung up")
        said = json.loads(line)
        if "error" in said:
            raise FleetError(f"QMP {request['execute']}: {said['error'].get('desc', said['error'])}")
        if "return" in said:
            return said["return"]
        # Anything else is an event.
