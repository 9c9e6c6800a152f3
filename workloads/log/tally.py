"""Running counts of a workload, for the progress line and for waiting until it is warm."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from wrackline.history.model import ACKED_WITHOUT_OFFSET, Event, Type


@dataclass(frozen=True, slots=True)
class Counts:
    operations: int
    """Completed, of any outcome."""
    ok: dict[str, int]
    """By kind."""
    fail: int
    info: int
    acked_records: int
    read_records: int


class Tally:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._types: Counter[Type] = Counter()
        self._ok: Counter[str] = Counter()
        self._acked = 0
        self._read = 0

    def count(self, event: Event) -> None:
        if event.type is Type.INVOKE:
            return
        with self._lock:
            self._types[event.type] += 1
            if event.type is Type.OK:
                self._ok[event.f] += 1
            if event.f == "send":
                self._acked += sum(r.offset >= 0 or r.offset == ACKED_WITHOUT_OFFSET for r in event.records)
            else:
                self._read += len(event.records)

    def counts(self) -> Counts:
        with self._lock:
            return Counts(
                operations=sum(self._types.values()),
                ok=dict(self._ok),
                fail=self._types[Type.FAIL],
                info=self._types[Type.INFO],
                acked_records=self._acked,
                read_records=self._read,
            )
