"""Facts and edits of the groups and the transactions in a history that is to be changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wrackline.history.labels import CONSUMERS
from wrackline.history.model import FAILED, UNKNOWN, Event, Record, Type, value_of
from wrackline.proving.model.columns import TOPIC
from wrackline.proving.mutations.edit import Edit, Sent, paired

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
        """Returns the transaction's completion; ``asked``: for what, so long after the clients' other
        operations."""
        codes = {Type.FAIL: FAILED, Type.INFO: UNKNOWN}
        records = tuple(r._replace(offset=codes.get(kind, r.offset)) for r in self.records)
        done = self.event(kind, "send", records)
        said = {**self.extra, "asked": asked, "end_ns": self.now + after_ns}
        return replace(done, extra=said, error=_ERRORS.get(kind), time_ns=self.now + after_ns)


def append(edit: Edit, *events: Event) -> None:
    """Appends the events as the last ones, with all that they sent and that was acknowledged in the logs."""
    landed = [r for event in events if event.f == "send" and event.type is Type.OK for r in event.records]
    land(edit, *landed)
    edit.insert(end_of_clients(edit), *events)


def land(edit: Edit, *records: Record) -> None:
    """Adds the records to the ends of the logs."""
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        edit.add_tail(record.partition, record.value)


def two_logs(edit: Edit) -> bool:
    return edit.partitions > 1 and all(edit.log(partition) for partition in (0, 1))


@dataclass(frozen=True, slots=True)
class Told:
    """A commit, or an answer to what is committed. Indexes are positions in ``Edit.events``."""

    invoked: int
    completed: int | None
    process: int
    type: Type
    """INFO where the completion is missing."""
    offsets: Mapping[int, int]
    extra: Mapping[str, Any]

    @property
    def group(self) -> str:
        return str(self.extra["group"])

    @property
    def until(self) -> int:
        """Position of the completion. Raises TypeError where there is none."""
        if self.completed is None:
            raise TypeError("it never completed")
        return self.completed


def operations(edit: Edit, f: str) -> list[Told]:
    """``commit`` or ``committed``, in the order of their invocations."""
    result = []
    for invoked, completed in paired(edit.events, f).items():
        last = edit.events[invoked if completed is None else completed]
        extra = last.extra or {}
        offsets = {int(p): offset for p, offset in extra.get("offsets", {}).items()}
        kind = Type.INFO if completed is None else last.type
        result.append(Told(invoked, completed, last.process, kind, offsets, extra))
    return result


def acked(edit: Edit) -> list[Told]:
    return [one for one in operations(edit, "commit") if one.type is Type.OK]


def highest(commits: list[Told], group: str, partition: int, before: int) -> Told | None:
    """The largest commit that had succeeded before a position."""
    some = [one for one in commits if one.group == group and partition in one.offsets and one.until < before]
    return max(some, key=lambda one: (one.offsets[partition], one.until), default=None)


def answers(edit: Edit) -> Iterator[tuple[Told, int, Told]]:
    """Each answer of what is committed with a partition that it names, and the largest commit there that had
    succeeded before it was asked for."""
    commits = acked(edit)
    for one in operations(edit, "committed"):
        for partition in one.offsets if one.type is Type.OK else ():
            before = highest(commits, one.group, partition, one.invoked)
            if before is not None:
                yield one, partition, before


def last_commits(edit: Edit) -> Iterator[tuple[str, int, Told]]:
    """Each group and partition with its largest commit, where that was made in a generation."""
    for group in sorted(committing(edit)):
        for partition in range(edit.partitions):
            last = highest(acked(edit), group, partition, end_of_clients(edit))
            if last is not None and "generation" in last.extra:
                yield group, partition, last


def joined(
    edit: Edit, at: int, group: str, partitions: Sequence[int], *, member: str = "newcomer", **positions: Any
) -> Event:
    """A new member is told of a new generation and its partitions, at the time of this event."""
    extra = {
        "group": group,
        "member": member,
        "generation": newest(edit, group) + 1,
        "partitions": list(partitions),
        **positions,
    }
    now = edit.events[at].time_ns
    return Event(edit.process(), Type.OK, "rebalance", topic=TOPIC, extra=extra, time_ns=now)


def rebalances(edit: Edit) -> Iterator[tuple[int, Event, Mapping[str, Any]]]:
    """Position, event, and what it says."""
    for at, event in enumerate(edit.events):
        if event.f == "rebalance":
            yield at, event, event.extra or {}


def committing(edit: Edit) -> set[str]:
    """The groups that commit: consumers with groups of their own do not, and are put anywhere."""
    return {one.group for one in operations(edit, "commit")}


def members(edit: Edit, group: str) -> set[int]:
    """Processes that tell of the group."""
    return {
        event.process
        for event in edit.events
        if event.f in ("rebalance", "commit", "subscribe") and (event.extra or {}).get("group") == group
    }


def given(edit: Edit, group: str, partition: int) -> dict[int, list[int]]:
    """Offset -> polls in which members of the group were given it."""
    processes, result = members(edit, group), dict[int, list[int]]()
    for at, event in edit.of("poll", partition):
        if event.process in processes:
            for record in event.records:
                if record.partition == partition:
                    result.setdefault(record.offset, []).append(at)
    return result


def newest(edit: Edit, group: str) -> int:
    """The last generation that a member was told of."""
    return max(int(said["generation"]) for _, _, said in rebalances(edit) if said["group"] == group)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One that committed."""

    number: int
    sent: tuple[Sent, ...]
    invoked: int
    completed: int
    poll: int | None
    """Position of its poll's completion."""

    def overlaps(self, other: Transaction) -> bool:
        return self.invoked < other.completed and other.invoked < self.completed

    def places(self, partition: int) -> list[int]:
        """Offsets that were told."""
        return [one.reported for one in self.sent if one.partition == partition and one.reported >= 0]


def transactions(edit: Edit) -> dict[int, Transaction]:
    """Number -> transaction, of those that committed."""
    ends: dict[int, dict[str, int]] = {}
    for at, event in enumerate(edit.events):
        number = (event.extra or {}).get("txn")
        if number is not None and event.f in ("send", "poll"):
            kind = f"{event.f} {event.type}"
            ends.setdefault(number, {})[kind] = at
    sent: dict[int, list[Sent]] = {}
    for one in edit.sent.values():
        sent.setdefault(one.invoked, []).append(one)
    result = {}
    for number, places in ends.items():
        if "send ok" in places:
            begun, poll = places["send invoke"], places.get("poll ok")
            completed = max(places["send ok"], poll or 0)
            result[number] = Transaction(number, tuple(sent[begun]), begun, completed, poll)
    return result


def end_of_clients(edit: Edit) -> int:
    """Returns the position at which something that clients did last is inserted."""
    return next(
        at
        for at, event in enumerate(edit.events)
        if event.f == "phase" and (event.extra or {})["phase"] == "heal"
    )


def operation(process: int, f: str, extra: Mapping[str, Any], now: int) -> tuple[Event, Event]:
    """Returns an operation with nothing between its two events."""
    asked = Event(process, Type.INVOKE, f, topic=TOPIC, extra=extra, time_ns=now)
    return asked, Event(process, Type.OK, f, topic=TOPIC, extra=extra, time_ns=now)
