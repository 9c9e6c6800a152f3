"""Mutations that lose records (wrackline.checkers.anomalies.loss)."""

from __future__ import annotations

from collections.abc import Callable

from wrackline.history.model import ACKED_WITHOUT_OFFSET, TOMBSTONE, UNKNOWN, Record, Type
from wrackline.proving.mutations.edit import Edit, Sent, end_events
from wrackline.proving.mutations.edit_groups import end_of_clients
from wrackline.proving.mutations.mutation import mutation

COMPACTED = {"keys": 12, "records_at_once": 1}
"""Of histories of a compacted topic."""


@mutation("lost-write", "the last record of a partition, acked and never polled, is nowhere in the end")
def lose_acked_tail(edit: Edit) -> bool:
    for partition in range(edit.partitions):
        log = edit.log(partition)
        if len(log) < 2 or edit.polled(partition, len(log) - 1) or edit.counted(partition, len(log) - 1):
            continue
        if edit.sent[log[-1].value].acked_at == len(log) - 1:
            edit.cut_tail(partition)
            return True
    return False


@mutation("lost-write", "a send in doubt that nobody ever saw had been acknowledged, without an offset")
def ack_what_is_nowhere(edit: Edit) -> bool:
    for one in edit.unseen():
        if one.completed is not None and one.alone:
            edit.tell(one, ACKED_WITHOUT_OFFSET)
            edit.change(one.completed, type=Type.OK, error=None)
            return True
    return False


@mutation(
    "lost-write", "the last record of a key, acked and never polled, is nowhere in the end", knobs=COMPACTED
)
def lose_the_last_of_a_key(edit: Edit) -> bool:
    keys = {r.value: event.key for event in edit.events if event.f == "send" for r in event.records}
    for partition in range(edit.partitions):
        last = {keys[record.value]: record for record in edit.log(partition)}
        for record in last.values():
            reported = edit.sent[record.value].acked_at == record.offset
            if reported and not edit.polled(partition, record.offset):
                edit.place(partition, record.offset, None)
                return True
    return False


@mutation(
    "lost-tombstone",
    "the last of a key was a tombstone, which is gone, and an older one is not",
    knobs=COMPACTED,
)
def lose_a_tombstone(edit: Edit) -> bool:
    keys = {r.value: event.key for event in edit.events if event.f == "send" for r in event.records}
    for partition in range(edit.partitions):
        of_keys: dict[str | None, list[Record]] = {}
        for record in edit.log(partition):
            of_keys.setdefault(keys[record.value], []).append(record)
        for _, *later in of_keys.values():
            if later and edit.sent[later[-1].value].acked_at == later[-1].offset:
                for record in later:
                    edit.place(partition, record.offset, None)
                edit.rename(later[-1].value, later[-1].value | TOMBSTONE)
                return True
    return False


@mutation(
    "lost-write",
    "another record, of a send in doubt, is at the offset of an acked one",
    also={"inconsistent-offset": "ack and final read name two values for one offset"},
)
def overwrite_acked(edit: Edit) -> bool:
    for one in edit.unseen():
        for record in edit.log(one.partition):
            before = edit.sent[record.value]
            # The send in doubt must have been under way before anything proves that its offset was taken.
            fits = before.acked_at == record.offset and one.invoked < before.invoked
            if fits and not edit.polled(one.partition, record.offset):
                edit.place(one.partition, record.offset, one.value)
                return True
    return False


@mutation(
    "vanished-read",
    "the last record of a partition, polled but in doubt for its sender, is nowhere in the end",
)
def lose_polled_tail(edit: Edit) -> bool:
    return any(
        edit.polled(partition, len(edit.log(partition)) - 1)
        and not edit.counted(partition, len(edit.log(partition)) - 1)
        and _lose_doubted_tail(edit, partition)
        for partition in range(edit.partitions)
    )


def _lose_doubted_tail(edit: Edit, partition: int) -> bool:
    """The last record goes, and its sender never knew whether it was there."""
    log = edit.log(partition)
    if len(log) < 2:
        return False
    one = edit.sent[log[-1].value]
    last = all(e.process != one.process for e in edit.events[(one.completed or one.invoked) + 1 :])
    if not one.in_doubt:
        if not (last and one.alone and one.completed is not None):
            return False
        edit.tell(one, UNKNOWN)
        edit.change(one.completed, type=Type.INFO, error="_TIMED_OUT")
    edit.cut_tail(partition)
    return True


@mutation("lost-committed", "a record in doubt that an end offset had counted is nowhere in the end")
def lose_counted_tail(edit: Edit) -> bool:
    for partition in range(edit.partitions):
        end = edit.end(partition)
        if not edit.polled(partition, end - 1) and _lose_doubted_tail(edit, partition):
            at = end_of_clients(edit)
            edit.insert(at, *end_events(edit.process(), partition, end, edit.events[at].time_ns))
            return True
    return False


@mutation(
    "lost-committed",
    "the last end offset that anybody is told counts one record more than there is in the end",
)
def count_one_more(edit: Edit) -> bool:
    at = end_of_clients(edit)
    edit.insert(at, *end_events(edit.process(), 0, edit.end(0) + 1, edit.events[at].time_ns))
    return True


@mutation(
    "lost-on-replica", "one replica in the ISR lacks a record of unknown outcome that the final read has"
)
def drop_a_doubtful_one(edit: Edit) -> bool:
    return _drop(edit, lambda one: one.in_doubt)


def _drop(edit: Edit, wanted: Callable[[Sent], bool]) -> bool:
    """One replica lacks the first record whose send is wanted."""
    for partition, record, one in edit.stored():
        if wanted(one):
            edit.place(partition, record.offset, None, node="n1")
            return True
    return False


@mutation("lost-on-replica", "one replica in the ISR lacks an acked record")
def drop_from_a_replica(edit: Edit) -> bool:
    return _drop(edit, lambda one: one.acked_at is not None)
