"""Mutations of transactions (wrackline.checkers.anomalies.cycles)."""

from __future__ import annotations

from itertools import pairwise

from wrackline.history.model import Record
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.edit_groups import Transaction, transactions
from wrackline.proving.mutations.edit_transactions import Fresh, append, two_logs
from wrackline.proving.mutations.mutation import mutation


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


@mutation(
    "write-cycle",
    "a transaction is before another in one partition, and after one in the other that began later",
    transactions=True,
)
def follow_what_came_later(edit: Edit) -> bool:
    if not two_logs(edit):
        return False
    long, before, after = (Fresh(edit, number) for number in range(3))
    long.sends(edit, (0, 0), (1, 1))
    before.sends(edit, (0, 1))
    after.sends(edit, (1, 0))
    middle = [*before.begins(), *before.commits(), *after.begins(), *after.commits()]
    append(edit, *long.begins(), *middle, *long.commits())
    return True


@mutation("read-cycle", "two transactions are given what the other one sent", transactions=True)
def give_each_other(edit: Edit) -> bool:
    if not two_logs(edit):
        return False
    one, other = Fresh(edit, 0), Fresh(edit, 1)
    [mine], [yours] = one.sends(edit, (0, 0)), other.sends(edit, (1, 0))
    begun = [*one.begins(polls=True), *other.begins(polls=True)]
    append(edit, *begun, *one.commits(yours), *other.commits(mine))
    return True


@mutation(
    "write-read-cycle",
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
