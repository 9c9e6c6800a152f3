"""Running counts of a workload, for the progress line and for waiting until it is warm."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from wrackline.history.model import ACKED_WITHOUT_OFFSET, ON_PURPOSE, UNASKED, Event, Record, Type
from wrackline.history.offsets import Offsets


@dataclass(frozen=True, slots=True)
class Counts:
    operations: int
    """Completed, of any outcome."""
    ok: dict[str, int]
    """By kind."""
    fail: int
    info: int
    done: int
    """Among those that a rate asks for: they had the outcome they were meant to have."""
    acked_records: int
    read_records: int


Kind = tuple[str, str | None, int | None]
"""(kind, topic, partition) of operations; the last two where they are of one."""


@dataclass(slots=True)
class Tries:
    """The operations of one kind, in one partition where they have one."""

    begun: int = 0
    ended: int = 0
    ok: int = 0
    """Those that had the outcome they were meant to have."""
    error: str = ""
    """Of the last one that had none."""


class Tally:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fail = 0
        self._info = 0
        self._done = 0
        self._ok: Counter[str] = Counter()
        self._acked = 0
        self._read = 0
        self._by_followers: Counter[tuple[str, int]] = Counter()
        self._ends: dict[tuple[str | None, int], int] = {}
        self._told: dict[tuple[str | None, int], Offsets] = {}
        self._tries: dict[Kind, Tries] = {}
        self._open: dict[int, Kind] = {}
        """Process -> the operation that it has under way."""

    def count(self, event: Event) -> None:
        with self._lock:
            self._try(event)
            if event.type is Type.INVOKE:
                return
            if event.type is Type.OK:
                self._ok[event.f] += 1
            elif event.type is Type.FAIL:
                self._fail += 1
            else:
                self._info += 1
            if event.f not in UNASKED and (event.f == "send" or "txn" not in (event.extra or {})):
                self._done += event.type is Type.OK or event.error in ON_PURPOSE
            if event.f == "send":
                for record in event.records:
                    self._acked += record.offset >= 0 or record.offset == ACKED_WITHOUT_OFFSET
            else:
                self._read += len(event.records)
            for record in event.records:
                if record.offset >= 0:
                    place = (event.topic, record.partition)
                    self._told.setdefault(place, Offsets()).add(record.offset)
                    self._ends[place] = max(self._ends.get(place, 0), record.offset + 1)

    def followed(self, topic: str, records: Iterable[Record], followers: Mapping[int, int]) -> None:
        """Counts the records that followers gave. ``followers``: partition -> the follower."""
        with self._lock:
            for record in records:
                if record.partition in followers:
                    self._by_followers[topic, record.partition] += 1

    def by_followers(self) -> dict[str, int]:
        """Returns how many records of each partition followers gave."""
        with self._lock:
            return {f"{topic}-{partition}": count for (topic, partition), count in self._by_followers.items()}

    def end(self, topic: str, partition: int) -> int:
        """The offset behind the last at which clients were told of a record."""
        with self._lock:
            return self._ends.get((topic, partition), 0)

    def _try(self, event: Event) -> None:
        if event.type is Type.INVOKE:
            kind = self._open[event.process] = (event.f, event.topic, event.partition)
            self._tries.setdefault(kind, Tries()).begun += 1
        elif (begun := self._open.pop(event.process, None)) is not None:  # else it is no operation
            tries = self._tries[begun]
            tries.ended += 1
            if event.type is Type.OK or event.error in ON_PURPOSE:
                tries.ok += 1
            else:
                tries.error = event.error or tries.error

    def told(self, topic: str, partition: int) -> Offsets:
        """The offsets at which clients were told of a record, by an ack or by reading it."""
        with self._lock:
            return self._told.get((topic, partition), Offsets()) | Offsets()

    def tries(self) -> Mapping[Kind, Tries]:
        """The operations so far, by kind and partition."""
        with self._lock:
            return {kind: replace(tries) for kind, tries in self._tries.items()}

    def counts(self) -> Counts:
        with self._lock:
            return Counts(
                operations=sum(self._ok.values()) + self._fail + self._info,
                ok=dict(self._ok),
                fail=self._fail,
                info=self._info,
                done=self._done,
                acked_records=self._acked,
                read_records=self._read,
            )
