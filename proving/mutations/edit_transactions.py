"""Transactions that are put at the end of a history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wrackline.history.labels import CONSUMERS
from wrackline.history.model import FAILED, UNKNOWN, Event, Record, Type, value_of
from wrackline.proving.model.columns import TOPIC
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.edit_groups import end_of_clients

_ERRORS = {Type.FAIL: "aborted", Type.INFO: "_TIMED_OUT"}


class Fresh:
    """A transaction of a new process, at the end of the history."""

    def __init__(self, edit: Edit, number: int = 0) -> None:
        self.process, self.extra = edit.process(), {"txn": 10_000_000 + number}
        self.now = edit.events[end_of_clients(edit)].time_ns
        self.records: list[Record] = []

    def sends(self, edit: Edit, *places: tuple[int, int]) -> tuple[Record, ...]:
        """``places``: (partition, how many offsets after its end now)."""
        ends = {partition: edit.end(partition) for partition, _ in places}
        self.records = [
            Record(partition, ends[partition] + more, value_of(self.process, at))
            for at, (partition, more) in enumerate(places)
        ]
        return tuple(self.records)

    def event(self, kind: Type, f: str, records: tuple[Record, ...] = ()) -> Event:
        process = self.process + (CONSUMERS if f == "poll" else 0)
        return Event(process, kind, f, topic=TOPIC, records=records, extra=self.extra, time_ns=self.now)

    def begins(self, *, polls: bool = False) -> Iterator[Event]:
        yield self.event(
            Type.INVOKE, "send", tuple(record._replace(offset=UNKNOWN) for record in self.records)
        )
        if polls:
            yield self.event(Type.INVOKE, "poll")

    def commits(self, *given: Record) -> Iterator[Event]:
        yield self.event(Type.OK, "send", tuple(self.records))
        if given:
            yield self.event(Type.OK, "poll", given)

    def ends(self, kind: Type, asked: str, after_ns: int = 0) -> Event:
        """Its completion; ``asked``: for what, so long after the clients' other operations."""
        codes = {Type.FAIL: FAILED, Type.INFO: UNKNOWN}
        records = tuple(r._replace(offset=codes.get(kind, r.offset)) for r in self.records)
        done = self.event(kind, "send", records)
        said = {**self.extra, "asked": asked, "end_ns": self.now + after_ns}
        return replace(done, extra=said, error=_ERRORS.get(kind), time_ns=self.now + after_ns)


def append(edit: Edit, *events: Event) -> None:
    """These come last, and all that they sent and that was acknowledged is in the logs."""
    landed = [r for event in events if event.f == "send" and event.type is Type.OK for r in event.records]
    land(edit, *landed)
    edit.insert(end_of_clients(edit), *events)


def land(edit: Edit, *records: Record) -> None:
    """These are in the logs."""
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        edit.add_tail(record.partition, record.value)


def two_logs(edit: Edit) -> bool:
    return edit.partitions > 1 and all(edit.log(partition) for partition in (0, 1))
