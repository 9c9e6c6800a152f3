"""Mutations of what a transaction shows to readers (wrackline.checkers.anomalies.transactions)."""

from __future__ import annotations

from dataclasses import replace

from wrackline.history.model import Event, Record, Type
from wrackline.proving.model.columns import TOPIC
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.edit_groups import (
    Fresh,
    Transaction,
    append,
    end_of_clients,
    land,
    operation,
    transactions,
    two_logs,
)
from wrackline.proving.mutations.mutation import mutation


@mutation(
    "write-cycle",
    "the records of two transactions change places in one of their partitions",
    transactions=True,
)
def swap_in_one_partition(edit: Edit) -> bool:
    committed = transactions(edit)
    of = {one.value: txn for txn in committed.values() for one in txn.sent}
    for partition, first, second in edit.neighbours():
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
    """Tells whether the record had been sent by then, all before it too, and every end offset asked for
    later reaches past it."""
    least = edit.least_end(record.partition, poll)
    before = (r for r in edit.log(record.partition) if r.offset <= record.offset)
    return (least is None or least > record.offset) and all(
        edit.sent[r.value].invoked < min(poll, completed) for r in before
    )


@mutation("precommitted-read", "a transaction is given what it sends itself", transactions=True)
def give_its_own(edit: Edit) -> bool:
    one = Fresh(edit)
    [mine] = one.sends(edit, (0, 0))
    append(edit, *one.begins(polls=True), *one.commits(mine))
    return True


@mutation(
    "precommitted-read",
    "a consumer is given a record of a transaction whose commit is asked for only then",
    transactions=True,
)
def give_before_the_commit(edit: Edit) -> bool:
    one, reader = Fresh(edit), edit.process()
    [mine] = one.sends(edit, (0, 0))
    poll = Event(reader, Type.INVOKE, "poll", topic=TOPIC, time_ns=one.now)
    answer = Event(reader, Type.OK, "poll", topic=TOPIC, records=(mine,), time_ns=one.now)
    append(edit, *one.begins(), poll, answer, one.ends(Type.OK, "commit", 1_000))
    return True


@mutation(
    "unstable-read",
    "a consumer is given what lies behind a record of a transaction whose commit is asked for only then",
    transactions=True,
)
def give_behind_an_open_transaction(edit: Edit) -> bool:
    one, other, reader = Fresh(edit), Fresh(edit, 1), edit.process()
    one.sends(edit, (0, 0))
    [theirs] = other.sends(edit, (0, 1))
    done = one.ends(Type.OK, "commit", 1_000)
    land(edit, *done.records, theirs)
    put = {"positions": {"0": theirs.offset}}
    poll = Event(reader, Type.INVOKE, "poll", topic=TOPIC, time_ns=one.now)
    answer = Event(reader, Type.OK, "poll", topic=TOPIC, records=(theirs,), time_ns=one.now)
    placed = operation(reader, "assign", put, one.now)
    edit.insert(
        end_of_clients(edit),
        *(*one.begins(), *other.begins(), other.ends(Type.OK, "commit"), *placed, poll, answer, done),
    )
    return True


@mutation(
    "zombie-transaction",
    "a transaction is committed after the next one of its transactional id has begun",
    transactions=True,
)
def commit_of_a_fenced_producer(edit: Edit) -> bool:
    one, other = Fresh(edit), Fresh(edit, 1)
    one.sends(edit, (0, 0))
    other.sends(edit, (0, 1))
    done = one.ends(Type.OK, "commit", 1_000), other.ends(Type.OK, "commit", 1_000)
    begun = [
        replace(event, extra={**one.extra, "txn": (event.extra or {})["txn"], "transactional_id": "zombie"})
        for event in (*one.begins(), *other.begins())
    ]
    append(edit, *begun, *done)
    return True


@mutation("aborted-read", "a record of a transaction that was aborted is in the logs", transactions=True)
def show_an_aborted_transaction(edit: Edit) -> bool:
    return _show(edit, Type.FAIL)


def _show(edit: Edit, abort: Type) -> bool:
    """A record of a transaction is in the logs, whose abort came out like this."""
    one = Fresh(edit)
    [mine] = one.sends(edit, (0, 0))
    land(edit, mine)
    append(edit, *one.begins(), one.ends(abort, "abort"))
    return True


@mutation(
    "aborted-read",
    "a transaction is visible of which nothing but its abort was asked for, which failed",
    transactions=True,
)
def show_what_could_not_be_aborted(edit: Edit) -> bool:
    return _show(edit, Type.INFO)


@mutation(
    "torn-transaction",
    "a transaction of unknown end is in one of its two partitions",
    transactions=True,
)
def show_half(edit: Edit) -> bool:
    return _show_half(edit, Type.INFO)


def _show_half(edit: Edit, end: Type) -> bool:
    """One of two records of a transaction is in its log."""
    if not two_logs(edit):
        return False
    one = Fresh(edit)
    here, _ = one.sends(edit, (0, 0), (1, 0))
    land(edit, here)
    edit.insert(end_of_clients(edit), *one.begins(), one.ends(end, "commit"))
    return True


@mutation(
    "torn-transaction",
    "half of a transaction that was committed is gone",
    also={"lost-write": "each of its records was acknowledged with it"},
    transactions=True,
)
def lose_half(edit: Edit) -> bool:
    return _show_half(edit, Type.OK)


@mutation(
    "torn-transaction",
    "a group has the offsets of a transaction of unknown end, and the log none of its records",
    transactions=True,
)
def keep_the_offsets_alone(edit: Edit) -> bool:
    if not edit.log(0):
        return False
    one, reader, asker = Fresh(edit), edit.process(), edit.process()
    one.sends(edit, (0, 0))
    done = one.ends(Type.INFO, "commit")
    who = {"group": "of-a-transaction", "offsets": {"0": 1}}
    said = {**who, "txn": one.extra["txn"]}
    commit = [
        Event(reader, Type.INVOKE, "commit", topic=TOPIC, extra=said, time_ns=one.now),
        Event(reader, Type.INFO, "commit", topic=TOPIC, extra={**said, "asked": "commit"}, time_ns=one.now),
    ]
    reported = operation(asker, "committed", who, one.now)
    append(edit, *one.begins(), commit[0], done, commit[1], *reported)
    return True


@mutation(
    "unprocessed-input",
    "a transaction is given the first record and aborts, and its group commits past that",
    transactions=True,
)
def commit_past_an_abort(edit: Edit) -> bool:
    log = edit.log(0)
    if not log:
        return False
    one, who = Fresh(edit), {"group": "of-a-transaction"}
    one.sends(edit, (0, 0))
    begun = list(one.begins(polls=True))
    reader, asker = begun[1].process, edit.process()
    put = {**who, "positions": {"0": log[0].offset}}
    undone, past = {**one.extra, "aborted": "fail"}, {"0": log[0].offset + 1}
    first = (Record(0, log[0].offset, log[0].value),)
    edit.insert(
        end_of_clients(edit),
        *operation(reader, "assign", put, one.now),
        *begun,
        Event(reader, Type.OK, "poll", topic=TOPIC, records=first, extra=undone, time_ns=one.now),
        one.ends(Type.FAIL, "abort"),
        *operation(asker, "commit", {**who, "offsets": past}, one.now),
    )
    return True
