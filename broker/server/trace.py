"""The trace: one JSON line per state change (protocol.md 3.4), enough to check the invariants of a real run.

Lines are buffered for at most 50 ms: after a power cut the trace may lack that much, as the log itself may.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from broker.core.types import TopicPartition

_LOG = logging.getLogger("broker.trace")
_FLUSH_AFTER_S = 0.05
_FLUSH_AT_LINES = 512


class TraceWriter:
    """Adds time (wall clock and monotonic, ns), node, incarnation and a sequence number to every line."""

    def __init__(self, path: Path, node_id: int, incarnation: UUID) -> None:
        """Raises OSError when the file cannot be opened."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = path.open("a", encoding="utf-8")
        self._tail = f'"node":{node_id},"incarnation":"{incarnation}","seq":'
        self._seq = 0
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._encode = json.JSONEncoder(separators=(",", ":"), default=_plain).encode

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        self._seq += 1
        body = self._encode({key: _text_of_tp(value) for key, value in fields.items()})
        rest = "," + body[1:] if len(body) > 2 else "}"
        self._lines.append(
            f'{{"time_ns":{time.time_ns()},"mono_ns":{time.monotonic_ns()},{self._tail}{self._seq},'
            f'"kind":"{kind}"{rest}\n'
        )
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
            self._file.write("".join(lines))
            self._file.flush()
        except OSError as failure:
            # A broker whose disk is full must go on saying so to its clients; the trace only watches.
            _LOG.error("trace: %d lines lost: %s", len(lines), failure)

    def close(self) -> None:
        self.flush()
        try:
            self._file.close()
        except OSError as failure:
            # What flush could not write is tried once more; the exit code must still say what ended the broker.
            _LOG.error("trace: its last lines are lost: %s", failure)


def _text_of_tp(value: object) -> object:
    return str(value) if isinstance(value, TopicPartition) else value


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)
