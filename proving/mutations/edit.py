"""A history to be changed: its events, who sent what and became of it, and what each log holds in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from wrackline.history.model import (
    ACKED_WITHOUT_OFFSET,
    FAILED,
    REPLICA,
    UNKNOWN,
    Event,
    Record,
    Type,
    value_of,
)
from wrackline.proving.model.columns import TOPIC
from wrackline.proving.model.made import Made

NOBODY = 1_999_999
"""A process that sends nothing: its values are phantoms."""
FRESH = 950_000
"""Processes from here on are used by nobody."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One record sent. Indexes are positions in ``Edit.events``."""

    value: int
    partition: int
    process: int
    invoked: int
    completed: int | None
    reported: int
    """Offset or code; UNKNOWN where the completion is missing."""
    alone: bool
    """The only record of its operation."""

    @property
    def acked_at(self) -> int | None:
        return self.reported if self.reported >= 0 else None

    @property
    def in_doubt(self) -> bool:
        return self.reported == UNKNOWN


def paired(events: Sequence[Event], *kinds: str) -> dict[int, int | None]:
    """The operations of some kinds: position of an invocation -> that of its completion, None where there is
    none."""
    open_: dict[int, int] = {}
    result: dict[int, int | None] = {}
    for at, event in enumerate(events):
        if event.f in kinds and event.type is Type.INVOKE:
            open_[event.process], result[at] = at, None
        elif event.f in kinds:
            result[open_[event.process]] = at
    return result


class Edit:
    """Positions are those of the correct history until something is inserted: look first, insert last."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self.events: list[Event] = list(made.events)
        self.partitions = made.knobs.partitions
        self.sent: dict[int, Sent] = dict(self._sent())
        self._fresh = FRESH

    def _sent(self) -> Iterator[tuple[int, Sent]]:
        for invoked, completed in paired(self.events, "send").items():
            event = self.events[invoked]
            after = event if completed is None else self.events[completed]
            for record in after.records:
                alone = len(event.records) == 1
                one = (record.partition, event.process, invoked, completed, record.offset, alone)
                yield record.value, Sent(record.value, *one)

    # --- looking -------------------------------------------------------------------------------------------

    def of(self, f: str, partition: int | None = None) -> Iterator[tuple[int, Event]]:
        """Answers of a kind; ``partition``: of polls that gave something of it."""
        for at, event in enumerate(self.events):
            if event.f == f and event.type is Type.OK:
                mine = f != "poll" or any(r.partition == partition for r in event.records)
                if partition is None or (mine if f == "poll" else event.partition == partition):
                    yield at, event

    def log(self, partition: int) -> list[Record]:
        """The final read; where there is none, what the replica that leads holds."""
        for f in ("drain", "replica"):
            result = {
                r.offset: r
                for _, e in self.of(f, partition)
                for r in e.records
                if f == "drain" or e.node == "n1"
            }
            if result:
                return [result[offset] for offset in sorted(result)]
        return []

    def stored(self) -> Iterator[tuple[int, Record, Sent]]:
        """Each record of each log in order: partition, record, and its send."""
        for partition in range(self.partitions):
            for record in self.log(partition):
                yield partition, record, self.sent[record.value]

    def neighbours(self) -> Iterator[tuple[int, Record, Record]]:
        """Two records side by side of a log, with its partition."""
        for partition in range(self.partitions):
            for first, second in pairwise(self.log(partition)):
                yield partition, first, second

    def end(self, partition: int) -> int:
        """Returns the length of the log in the end."""
        return max(
            (e.high_watermark or 0 for _, e in self.of("drain", partition)), default=len(self.log(partition))
        )

    def polled(self, partition: int, offset: int) -> list[int]:
        """Polls that gave this offset."""
        return [
            at
            for at, event in self.of("poll", partition)
            if any((r.partition, r.offset) == (partition, offset) for r in event.records)
        ]

    def counted(self, partition: int, offset: int) -> bool:
        """Tells whether an end offset was told that lies past this one."""
        return any((e.high_watermark or 0) > offset for _, e in self.of("end", partition))

    def proofs(self, partition: int, before: int) -> int:
        """Returns the length that the log was shown to have (by ends and polls that had completed) before
        this event."""
        ends = [e.high_watermark or 0 for at, e in self.of("end", partition) if at < before]
        polls = [
            r.offset + 1
            for at, e in self.of("poll", partition)
            if at < before
            for r in e.records
            if r.partition == partition
        ]
        return max([0, *ends, *polls])

    def acked(self, partition: int, before: int) -> int:
        """Returns the length that the log was shown to have by acks that had completed before this event.
        Where one without an offset lies, the final read says."""
        places = {record.value: record.offset for record in self.log(partition)}
        ends = [
            (places.get(one.value, -1) if one.reported == ACKED_WITHOUT_OFFSET else one.reported) + 1
            for one in self.sent.values()
            if one.partition == partition and one.completed is not None and one.completed < before
        ]
        return max([0, *ends])

    def asked(self, at: int) -> int:
        """The invocation that this completion answers."""
        process = self.events[at].process
        return max(
            n for n in range(at) if self.events[n].process == process and self.events[n].type is Type.INVOKE
        )

    def least_end(self, partition: int, after: int) -> int | None:
        """The smallest end offset told by a request invoked after this position."""
        reported = [e.high_watermark or 0 for at, e in self.of("end", partition) if self.asked(at) > after]
        return min(reported, default=None)

    def unseen(self, partition: int | None = None) -> Iterator[Sent]:
        """Sends in doubt whose value nobody, not even a replica, has."""
        seen = {r.value for event in self.events if event.f != "send" for r in event.records}
        for one in self.sent.values():
            if one.in_doubt and one.value not in seen and partition in (None, one.partition):
                yield one

    # --- changing ------------------------------------------------------------------------------------------

    def change(self, at: int, **columns: object) -> None:
        self.events[at] = replace(self.events[at], **columns)  # type: ignore[arg-type]

    def records(self, at: int, change: Callable[[Record], Record | None]) -> None:
        """Each record of an event replaced, or dropped."""
        kept = (change(record) for record in self.events[at].records)
        self.change(at, records=tuple(record for record in kept if record is not None))

    def place(
        self,
        partition: int,
        offset: int,
        value: int | None,
        *,
        replicas: bool = True,
        node: str | None = None,
    ) -> None:
        """Sets what the final read and every replica (or one of them alone, ``node``) hold at an offset;
        None: nothing."""

        def put(record: Record) -> Record | None:
            if record.offset != offset:
                return record
            return None if value is None else record._replace(value=value)

        for f in ("drain", "replica") if replicas else ("drain",):
            for at, event in list(self.of(f, partition)):
                if node is None or (f == "replica" and event.node == node):
                    self.records(at, put)

    def cut_tail(self, partition: int) -> None:
        """The final read and every replica end one record earlier."""
        end = len(self.log(partition)) - 1
        self.place(partition, end, None)
        self._ends(partition, end)

    def add_tail(self, partition: int, value: int) -> None:
        """The final read and every replica have one record more, under the epoch of the last."""
        log, end = self.log(partition), self.end(partition)
        more = log[-1]._replace(offset=end, value=value)
        for f in ("drain", "replica"):
            for at, event in list(self.of(f, partition)):
                if event.records and event.high_watermark == end:
                    # Replicas tell the leader epoch, the final read perhaps does not.
                    fits = more._replace(leader_epoch=event.records[-1].leader_epoch)
                    self.change(at, records=(*event.records, fits))
        self._ends(partition, end + 1)

    def add_topic(self, topic: str, value: int) -> None:
        """There is another topic, and its final read gives one record."""
        now, process = self.events[-1].time_ns, self.process()
        begun = Event(process, Type.INVOKE, "drain", topic=topic, partition=0, time_ns=now)
        extra = {"positions": {"0": 1}, "asked": True, "complete": True}
        ended = replace(begun, type=Type.OK, offset=0, high_watermark=1, extra=extra)
        self.insert(len(self.events), begun, replace(ended, records=(Record(0, 0, value, 0),)))

    def _ends(self, partition: int, end: int) -> None:
        before = max(
            [e.high_watermark or 0 for _, e in (*self.of("drain", partition), *self.of("replica", partition))]
        )
        for f in ("drain", "replica"):
            for at, event in list(self.of(f, partition)):
                if f == "drain" or event.high_watermark == before or (event.high_watermark or 0) > end:
                    self.change(at, high_watermark=end)
                    if f == "replica":
                        extra = {**(event.extra or {})}
                        extra["hw"] = end if extra["hw"] == before or extra["hw"] > end else extra["hw"]
                        self.change(at, extra=extra)

    def swap(self, partition: int, first: Record, second: Record) -> None:
        """Two records of a partition change places, for whoever read them and whoever sent them."""
        offsets = {first.value: second.offset, second.value: first.offset}
        values = {first.offset: second.value, second.offset: first.value}

        def swapped(record: Record) -> Record:
            if record.partition == partition and record.offset in values:
                return record._replace(value=values[record.offset])
            return record

        for at, event in enumerate(self.events):
            if event.f in ("poll", "drain", "replica"):
                self.records(at, swapped)
        for value, offset in offsets.items():
            if self.sent[value].acked_at is not None:
                self.tell(self.sent[value], offset)

    def rename(self, value: int, other: int) -> None:
        """A record has this other value, for whoever sent and read it."""
        for at, event in enumerate(self.events):
            if any(record.value == value for record in event.records):
                self.records(at, lambda r: r._replace(value=other) if r.value == value else r)

    def tell(self, one: Sent, reported: int) -> None:
        """Sets the result that a send's completion reports for one record."""
        assert one.completed is not None
        self.records(one.completed, lambda r: r._replace(offset=reported) if r.value == one.value else r)

    def insert(self, at: int, *events: Event) -> None:
        self.events[at:at] = list(events)

    def process(self) -> int:
        self._fresh += 1
        return self._fresh

    def numbered(self) -> list[Event]:
        """Returns the events in order, with times that never decrease."""
        done, now = [], 0
        for index, event in enumerate(self.events):
            now = max(now, event.time_ns)
            done.append(replace(event, index=index, time_ns=now))
        return done


def phantom(number: int) -> int:
    return value_of(NOBODY, number)


def end_events(process: int, partition: int, reported: int, time_ns: int) -> tuple[Event, Event]:
    """A request for the end offset, with nothing between its two events."""
    asked = Event(process, Type.INVOKE, "end", topic=TOPIC, partition=partition, time_ns=time_ns)
    return asked, replace(asked, type=Type.OK, high_watermark=reported)


__all__ = ["FAILED", "REPLICA", "Edit", "Sent", "end_events", "phantom"]
