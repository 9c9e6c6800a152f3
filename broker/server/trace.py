"""The trace: one JSON line per state change (docs/broker.md "Trace"), enough to check the invariants of a
real run.

Lines are buffered for at most 50 ms: after a power cut the trace may lack that much, as the log itself may.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import orjson

from wrackline.broker.model.types import TopicPartition

_LOG = logging.getLogger("broker.trace")
_FLUSH_AFTER_S = 0.05
_FLUSH_AT_LINES = 512
_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_NON_STR_KEYS


class TraceWriter:
    """Adds time (wall clock and monotonic, ns), node, incarnation and a sequence number to every line."""

    def __init__(self, path: Path, node_id: int, incarnation: UUID) -> None:
        """Raises OSError when the file cannot be opened."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("ab")
        self._tail = f'"node":{node_id},"incarnation":"{incarnation}","seq":'
        self._seq = 0
        self._lines: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        self._seq += 1
        clocks = f'"time_ns":{time.time_ns()},"mono_ns":{time.monotonic_ns()}'
        head = f'{{{clocks},{self._tail}{self._seq},"kind":"{kind}"'
        body = orjson.dumps(fields, default=_plain, option=_OPTIONS)
        self._lines.append(head.encode() + (b"," + body[1:] if len(body) > 3 else b"}\n"))
        if len(self._lines) >= _FLUSH_AT_LINES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_AFTER_S, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        try:
            self._file.write(b"".join(lines))
            self._file.flush()
        except OSError as failure:
            # A broker whose disk is full must go on saying so to its clients; the trace only watches.
            _LOG.error("trace: %d lines lost: %s", len(lines), failure)

    def close(self) -> None:
        self.flush()
        try:
            self._file.close()
        except OSError as failure:
            # What flush could not write is tried once more; the exit code must still say what ended the
            # broker.
            _LOG.error("trace: its last lines are lost: %s", failure)


def _plain(value: object) -> object:
    match value:
        case TopicPartition():
            return str(value)
        case tuple():
            return list(value)
        case set() | frozenset():
            return sorted(value)
        case _:
            return str(value)
