"""Running counts of a workload, for the progress line and for waiting until it is warm."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from wrackline.history.model import ABORTED_AS_MEANT, ACKED_WITHOUT_OFFSET, Event, Type


@dataclass(frozen=True, slots=True)
class Counts:
    operations: int
    """Completed, of any outcome."""
    ok: dict[str, int]
    """By kind."""
    fail: int
    aborted: int
    """Among ``fail``: they belong to transactions that were aborted as they were meant to be."""
    info: int
    acked_records: int
    read_records: int

    @property
    def done(self) -> int:
        """Operations that had the outcome they were meant to have."""
        return sum(self.ok.values()) + self.aborted


class Tally:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fail = 0
        self._aborted = 0
        self._info = 0
        self._ok: Counter[str] = Counter()
        self._acked = 0
        self._read = 0

    def count(self, event: Event) -> None:
        if event.type is Type.INVOKE:
            return
        with self._lock:
            if event.type is Type.OK:
                self._ok[event.f] += 1
            elif event.type is Type.FAIL:
                self._fail += 1
                self._aborted += event.error == ABORTED_AS_MEANT
            else:
                self._info += 1
            if event.f == "send":
                for record in event.records:
                    self._acked += record.offset >= 0 or record.offset == ACKED_WITHOUT_OFFSET
            else:
                self._read += len(event.records)

    def counts(self) -> Counts:
        with self._lock:
            return Counts(
                operations=sum(self._ok.values()) + self._fail + self._info,
                ok=dict(self._ok),
                fail=self._fail,
                aborted=self._aborted,
                info=self._info,
                acked_records=self._acked,
                read_records=self._read,
            )
