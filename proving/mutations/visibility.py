"""Mutations of what is shown when (wrackline.checkers.anomalies.visibility)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wrackline.history.model import Event, Record, Type
from wrackline.proving.mutations.edit import Edit, Sent, end_events
from wrackline.proving.mutations.edit_groups import operation
from wrackline.proving.mutations.mutation import mutation


def _shorten_an_end(edit: Edit, wanted: str) -> bool:
    """An end offset that contradicts only acks (``acks``), or only ends and polls (``shown``)."""
    for partition in range(edit.partitions):
        for at, _ in list(edit.of("end", partition)):
            begun = edit.asked(at)
            acked, shown = edit.acked(partition, begun), edit.proofs(partition, begun)
            if wanted == "acks" and acked > shown:
                edit.change(at, high_watermark=shown)
                return True
            if wanted == "shown" and shown > acked:
                edit.change(at, high_watermark=acked)
                return True
    return False


@mutation("stale-read", "an end offset leaves out what had been acked, though nobody had been shown it")
def forget_an_ack(edit: Edit) -> bool:
    return _shorten_an_end(edit, "acks")


@mutation(
    "watermark-regression", "an end offset leaves out what had been shown, though its ack was still to come"
)
def forget_what_was_shown(edit: Edit) -> bool:
    return _shorten_an_end(edit, "shown")


@mutation("future-read", "a consumer is given a record just before it is sent")
def read_before_it_is_sent(edit: Edit) -> bool:
    for partition, record, one in _before_any_end(edit):
        process, now = edit.process(), edit.events[one.invoked].time_ns
        start = {"positions": {str(partition): record.offset}}
        after = {"positions": {str(partition): record.offset + 1}}
        begun = Event(process, Type.INVOKE, "poll", topic="log", time_ns=now)
        done = replace(begun, type=Type.OK, records=(record,), extra=after)
        edit.insert(one.invoked, *operation(process, "assign", start, now), begun, done)
        return True
    return False


def _before_any_end(edit: Edit) -> Iterator[tuple[int, Record, Sent]]:
    """Records that no end offset asked for after their send was invoked leaves out."""
    for partition, record, one in edit.stored():
        least = edit.least_end(partition, one.invoked)
        if one.partition == partition and (least is None or least > record.offset):
            yield partition, record, one


@mutation("not-linearizable", "an end offset reaches past a record just before it is sent")
def show_the_end_too_early(edit: Edit) -> bool:
    for partition, record, one in _before_any_end(edit):
        now = edit.events[one.invoked].time_ns
        edit.insert(one.invoked, *end_events(edit.process(), partition, record.offset + 1, now))
        return True
    return False


@mutation("not-linearizable", "the final read has nothing at an offset in its middle")
def leave_a_hole(edit: Edit) -> bool:
    for partition in range(edit.partitions):
        for record in edit.log(partition)[:-1]:
            if edit.sent[record.value].in_doubt and not edit.polled(partition, record.offset):
                edit.place(partition, record.offset, None)
                return True
    return False


@mutation("not-linearizable", "an end offset counts more records than were ever sent", final=False)
def count_too_many(edit: Edit) -> bool:
    for partition in range(edit.partitions):
        ends = list(edit.of("end", partition))
        if ends:
            at, _ = ends[-1]
            edit.change(at, high_watermark=len(edit.sent) + 1)
            return True
    return False


@mutation("stale-end", "the final read is told an end below what it is given")
def lower_the_end_of_the_final_read(edit: Edit) -> bool:
    acked = {one.partition for one in edit.sent.values() if (one.acked_at or 0) > 0}
    for at, event in edit.of("drain"):
        if event.partition in acked and event.records:
            edit.change(at, high_watermark=event.records[-1].offset)
            return True
    return False
