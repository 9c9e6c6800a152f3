"""The logs as the polls of a Jepsen history show them, in the place of a final read, which Jepsen does not
make.

A value that anybody was given at an offset is there, whatever else was given there: several values at one
offset are an ``inconsistent-offset``, and no value that was polled is ever lost. Nothing is known of offsets
past the highest one of a poll that succeeded (Jepsen judges loss up to there, too): what was acknowledged
past it, or without an offset, and never given to anybody is Jepsen's *unseen*. Such a final read says
``derived`` and how much is ``unseen``.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from wrackline.history.model import ACKED_WITHOUT_OFFSET, UNKNOWN, Event, Record, Type

CHUNK = 10_000
DERIVED = "polls"


@dataclass
class Observed:
    """The records that polls gave, collected one by one."""

    first: dict[int, dict[int, int]] = field(default_factory=dict)
    """Partition -> offset -> the value that was given there first."""
    others: set[tuple[int, int, int]] = field(default_factory=set)
    """(partition, offset, value) of other values."""
    until: dict[int, int] = field(default_factory=dict)
    """Partition -> the offset behind the highest one of a poll that succeeded."""
    without_offset: set[int] = field(default_factory=set)
    """Values that were given without an offset. (A value is of one partition: ``Reader.value``.)"""

    def take(self, records: Iterable[Record], *, succeeded: bool) -> None:
        for partition, offset, value, *_ in records:
            there = self.first.setdefault(partition, {}).setdefault(offset, value)
            if there != value:
                self.others.add((partition, offset, value))
            if succeeded:
                self.until[partition] = max(offset + 1, self.until.get(partition, 0))

    def settled(self, events: Iterable[Event], seen: Set[int]) -> list[Event]:
        """The events, where offsets that a send of unknown outcome names are left only if a value of it
        was given to somebody: then that transaction took effect, and all of it. Else nobody knows."""
        return [
            _without_offsets(event)
            if event.f == "send"
            and event.type is Type.INFO
            and not any(record.value in seen for record in event.records)
            else event
            for event in events
        ]

    def place(self, events: Iterable[Event]) -> None:
        """Puts what was given without an offset where its acknowledgement put it."""
        if self.without_offset:
            acked = (event for event in events if event.f == "send" and event.type is not Type.INVOKE)
            self.take(
                (
                    record
                    for event in acked
                    for record in event.records
                    if record.offset >= 0 and record.value in self.without_offset
                ),
                succeeded=False,
            )

    def unseen(self, events: Iterable[Event], seen: Set[int]) -> Counter[int]:
        """Partition -> records that were acknowledged past what was polled, or without an offset, and given
        to nobody."""
        return Counter(
            record.partition
            for event in events
            if event.f == "send" and event.type is Type.OK
            for record in event.records
            if record.value not in seen
            and (
                record.offset == ACKED_WITHOUT_OFFSET or record.offset >= self.until.get(record.partition, 0)
            )
        )

    def values(self) -> set[int]:
        """All that anybody was given."""
        seen = {value for there in self.first.values() for value in there.values()}
        return seen | {value for _, _, value in self.others} | self.without_offset

    def final_read(self, process: int, partition: int, topic: str, unseen: int) -> Iterator[Event]:
        """Yields the final read as operations of ``process``."""
        there = list(self.first.get(partition, {}).items())
        there += [(offset, value) for other, offset, value in self.others if other == partition]
        records = [Record(partition, offset, value) for offset, value in sorted(there)]
        end = self.until.get(partition, 0)
        common: dict[str, Any] = {"topic": topic, "partition": partition, "offset": 0, "high_watermark": end}
        for start in range(0, max(len(records), 1), CHUNK):
            chunk = tuple(records[start : start + CHUNK])
            extra = {
                "positions": {str(partition): chunk[-1].offset + 1 if chunk else 0},
                "complete": start + CHUNK >= len(records),
                "derived": DERIVED,
                "unseen": unseen,
            }
            yield Event(process, Type.INVOKE, "drain", extra={"derived": DERIVED}, **common)
            yield Event(process, Type.OK, "drain", records=chunk, extra=extra, **common)


def _without_offsets(event: Event) -> Event:
    unknown = tuple(record._replace(offset=UNKNOWN) for record in event.records)
    return dataclasses.replace(event, records=unknown)
