"""The trace: one JSON line per state change (docs/broker.md "Trace"), enough to check the invariants of a
real run (``wrackline.simulator.trace_check``).

The lines of one event are a step: they have one time, when the node took the event up, and are in the file
before any message that the event makes leaves the node. So whoever has such a message from a node finds in
its trace what the node did before, even when the node was killed meanwhile. The rest of the lines is written
at the end of the event.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import orjson

from wrackline.broker.model.traced_values import OPTIONS, plain

_LOG = logging.getLogger("broker.trace")


class TraceWriter:
    """Adds time (wall clock and monotonic, ns), node, incarnation and a sequence number to every line."""

    def __init__(self, path: Path | None, node_id: int, incarnation: UUID) -> None:
        """Opens the trace; None: nobody wants to know, and nothing is written. Raises OSError when the file
        cannot be opened."""
        self._file: IO[bytes] | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        self._tail = f'"node":{node_id},"incarnation":"{incarnation}","seq":'
        self._seq = 0
        self._step = 0
        self._time_ns = (0, 0)
        self._lines: list[bytes] = []
        self._lost = 0

    def begin(self) -> None:
        """The node takes an event up: the lines that follow are of one step."""
        if self._file is None:
            return
        self._step += 1
        self._time_ns = time.time_ns(), time.monotonic_ns()

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        """One line of the step."""
        if self._file is None:
            return
        self._seq += 1
        wall_ns, mono_ns = self._time_ns
        head = (
            f'{{"time_ns":{wall_ns},"mono_ns":{mono_ns},"step":{self._step},{self._tail}{self._seq},'
            f'"kind":"{kind}"'
        )
        body = orjson.dumps(fields, default=plain, option=OPTIONS)
        self._lines.append(head.encode() + (b"," + body[1:] if len(body) > 3 else b"}\n"))

    def flush(self) -> None:
        """Writes what is buffered to the file (not to the disk: nothing is synced)."""
        if self._file is None or not self._lines:
            return
        lines, self._lines = self._lines, []
        try:
            self._file.write(b"".join(lines))
        except OSError as failure:
            # A broker whose disk is full must go on saying so to its clients; the trace only watches. Told
            # once: the log may be on the same disk.
            if not self._lost:
                _LOG.error("trace: lines are lost from now on: %s", failure)
            self._lost += len(lines)

    def close(self) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()
