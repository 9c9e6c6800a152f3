"""Mutations of transactions (wrackline.checkers.cycles)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from wrackline.checkers.proving.columns import TOPIC
from wrackline.checkers.proving.edit import Edit
from wrackline.checkers.proving.edit_groups import Transaction, end_of_clients, transactions
from wrackline.checkers.proving.mutation import mutation
from wrackline.checkers.proving.readers import CONSUMERS
from wrackline.history.model import UNKNOWN, Event, Record, Type, value_of


@mutation(
    "write-cycle",
    "the records of two transactions change places in one of their partitions",
    transactions=True,
)
def swap_in_one_partition(edit: Edit) -> bool:
    committed = transactions(edit)
    of = {one.value: txn for txn in committed.values() for one in txn.sent}
    for partition in range(edit.partitions):
        for first, second in pairwise(edit.log(partition)):
            a, b = of.get(first.value), of.get(second.value)
            if a is not None and b is not None and a is not b and _fit(edit, partition, a, b, first, second):
                edit.swap(partition, first, second)
                return True
    return False


def _fit(edit: Edit, partition: int, a: Transaction, b: Transaction, first: Record, second: Record) -> bool:
    """They overlap, are in the same order elsewhere, have nothing else here, and nobody was shown one without
    the other."""
    alone = a.places(partition) == [first.offset] and b.places(partition) == [second.offset]
    elsewhere = any(
        min(a.places(p), default=0) < max(b.places(p), default=-1)
        for p in range(edit.partitions)
        if p != partition and a.places(p)
    )
    if not (alone and elsewhere and a.overlaps(b) and first.leader_epoch == second.leader_epoch):
        return False
    polls = edit.polled(partition, first.offset)
    if polls != edit.polled(partition, second.offset):
        return False
    seen = any("txn" in (edit.events[at].extra or {}) or at < b.invoked for at in polls)
    least = edit.least_end(partition, min(a.completed, b.completed))
    shown = max(edit.proofs(partition, b.invoked), edit.acked(partition, b.invoked))
    return not seen and (least is None or least > second.offset) and shown <= first.offset


class _Fresh:
    """A transaction of a new process, at the end of the history."""

    def __init__(self, edit: Edit, number: int) -> None:
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


def _append(edit: Edit, *events: Event) -> None:
    """These come last, and all that they sent is in the logs."""
    landed = [r for event in events if event.f == "send" and event.type is Type.OK for r in event.records]
    for record in sorted(landed, key=lambda r: (r.partition, r.offset)):
        edit.add_tail(record.partition, record.value)
    edit.insert(end_of_clients(edit), *events)


def _two_logs(edit: Edit) -> bool:
    return edit.partitions > 1 and all(edit.log(partition) for partition in (0, 1))


@mutation(
    "write-cycle",
    "a transaction is before another in one partition, and after one in the other that began later",
    transactions=True,
)
def follow_what_came_later(edit: Edit) -> bool:
    if not _two_logs(edit):
        return False
    long, before, after = (_Fresh(edit, number) for number in range(3))
    long.sends(edit, (0, 0), (1, 1))
    before.sends(edit, (0, 1))
    after.sends(edit, (1, 0))
    middle = [*before.begins(), *before.commits(), *after.begins(), *after.commits()]
    _append(edit, *long.begins(), *middle, *long.commits())
    return True


@mutation("read-cycle", "two transactions are given what the other one sent", transactions=True)
def give_each_other(edit: Edit) -> bool:
    if not _two_logs(edit):
        return False
    one, other = _Fresh(edit, 0), _Fresh(edit, 1)
    [mine], [yours] = one.sends(edit, (0, 0)), other.sends(edit, (1, 0))
    begun = [*one.begins(polls=True), *other.begins(polls=True)]
    _append(edit, *begun, *one.commits(yours), *other.commits(mine))
    return True


@mutation("precommitted-read", "a transaction is given what it sends itself", transactions=True)
def give_its_own(edit: Edit) -> bool:
    one = _Fresh(edit, 0)
    [mine] = one.sends(edit, (0, 0))
    _append(edit, *one.begins(polls=True), *one.commits(mine))
    return True


@mutation(
    "read-cycle",
    "a transaction is given what one sent whose records follow its own, a poll too early",
    transactions=True,
)
def give_too_early(edit: Edit) -> bool:
    committed = transactions(edit)
    of = {one.value: txn for txn in committed.values() for one in txn.sent}
    by_poll = {txn.poll: txn for txn in committed.values() if txn.poll is not None}
    last: dict[int, int] = {}
    for at, event in edit.of("poll"):
        before = last.get(event.process)
        last[event.process] = at
        if before is None or before not in by_poll:
            continue
        reader = by_poll[before]
        for partition in range(edit.partitions):
            record = next((r for r in event.records if r.partition == partition), None)
            sender = None if record is None else of.get(record.value)
            if record is None or sender is None or sender is reader:
                continue
            if _follows(edit, reader, sender) and _may_be_shown(edit, record, before, reader.completed):
                edit.records(at, lambda r: None if r == record else r)  # noqa: B023
                extra = dict(edit.events[before].extra or {})
                extra["positions"] = {**extra["positions"], str(partition): record.offset + 1}
                edit.change(before, records=(*edit.events[before].records, record), extra=extra)
                return True
    return False


def _follows(edit: Edit, reader: Transaction, sender: Transaction) -> bool:
    """The sender's records come after the reader's in a partition, and they overlap."""
    order = any(
        min(reader.places(p)) < max(sender.places(p))
        for p in range(edit.partitions)
        if reader.places(p) and sender.places(p)
    )
    return order and reader.overlaps(sender)


def _may_be_shown(edit: Edit, record: Record, poll: int, completed: int) -> bool:
    """It had been sent by then, all before it too, and every end offset asked for later reaches past it."""
    least = edit.least_end(record.partition, poll)
    before = (r for r in edit.log(record.partition) if r.offset <= record.offset)
    return (least is None or least > record.offset) and all(
        edit.sent[r.value].invoked < min(poll, completed) for r in before
    )
