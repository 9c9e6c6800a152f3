"""Mutations of what a transaction shows to readers (wrackline.checkers.anomalies.transactions)."""

from __future__ import annotations

from dataclasses import replace

from wrackline.history.model import Event, Record, Type
from wrackline.proving.model.columns import TOPIC
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.edit_groups import end_of_clients, operation
from wrackline.proving.mutations.edit_transactions import Fresh, append, land, two_logs
from wrackline.proving.mutations.mutation import mutation


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
    asked = Event(reader, Type.INVOKE, "poll", topic=TOPIC, time_ns=one.now)
    given = Event(reader, Type.OK, "poll", topic=TOPIC, records=(mine,), time_ns=one.now)
    append(edit, *one.begins(), asked, given, one.ends(Type.OK, "commit", 1_000))
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
    asked = Event(reader, Type.INVOKE, "poll", topic=TOPIC, time_ns=one.now)
    given = Event(reader, Type.OK, "poll", topic=TOPIC, records=(theirs,), time_ns=one.now)
    placed = operation(reader, "assign", put, one.now)
    edit.insert(
        end_of_clients(edit),
        *(*one.begins(), *other.begins(), other.ends(Type.OK, "commit"), *placed, asked, given, done),
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
    one = Fresh(edit)
    [mine] = one.sends(edit, (0, 0))
    land(edit, mine)
    append(edit, *one.begins(), one.ends(Type.FAIL, "abort"))
    return True


@mutation(
    "aborted-read",
    "a transaction is visible of which nothing but its abort was asked for, which failed",
    transactions=True,
)
def show_what_could_not_be_aborted(edit: Edit) -> bool:
    one = Fresh(edit)
    [mine] = one.sends(edit, (0, 0))
    land(edit, mine)
    append(edit, *one.begins(), one.ends(Type.INFO, "abort"))
    return True


@mutation(
    "torn-transaction",
    "a transaction of unknown end is in one of its two partitions",
    transactions=True,
)
def show_half(edit: Edit) -> bool:
    if not two_logs(edit):
        return False
    one = Fresh(edit)
    here, _ = one.sends(edit, (0, 0), (1, 0))
    land(edit, here)
    append(edit, *one.begins(), one.ends(Type.INFO, "commit"))
    return True


@mutation(
    "torn-transaction",
    "half of a transaction that was committed is gone",
    also={"lost-write": "each of its records was acknowledged with it"},
    transactions=True,
)
def lose_half(edit: Edit) -> bool:
    if not two_logs(edit):
        return False
    one = Fresh(edit)
    here, _ = one.sends(edit, (0, 0), (1, 0))
    land(edit, here)
    edit.insert(end_of_clients(edit), *one.begins(), one.ends(Type.OK, "commit"))
    return True


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
    told = operation(asker, "committed", who, one.now)
    append(edit, *one.begins(), commit[0], done, commit[1], *told)
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
