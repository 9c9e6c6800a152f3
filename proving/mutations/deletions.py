"""Mutations of what is deleted (wrackline.checkers.anomalies.deletions). Each deletes the first record of a
log, before the final read and after all else; what is wrong is the one thing that the mutation says."""

from __future__ import annotations

from dataclasses import replace

from wrackline.history.model import Event, Type
from wrackline.proving.model.columns import TOPIC
from wrackline.proving.mutations.edit import Edit, end_events
from wrackline.proving.mutations.edit_groups import operation
from wrackline.proving.mutations.mutation import mutation


def _delete(edit: Edit, *after: Event, low: int = 1, starts: int = 1) -> bool:
    """DeleteRecords up to offset 1 is answered with a low watermark, ``after`` follows, and the final read
    begins at ``starts``."""
    at = next((at for at, event in enumerate(edit.events) if event.f == "drain"), None)
    partition = _partition(edit)
    if at is None or partition is None:
        return False
    for drain, event in list(edit.of("drain", partition)):
        kept = tuple(record for record in event.records if record.offset >= starts)
        edit.change(drain, offset=starts, records=kept)
    invoked = Event(
        edit.process(), Type.INVOKE, "delete", topic=TOPIC, partition=partition, offset=1, time_ns=_now(edit)
    )
    done = replace(invoked, type=Type.OK, extra={"low_watermark": low})
    edit.insert(at, invoked, done, *after)
    return True


def _partition(edit: Edit) -> int | None:
    """A partition with records at offsets 0, 1 and 2."""
    return next((p for p in range(edit.partitions) if [r.offset for r in edit.log(p)][:3] == [0, 1, 2]), None)


def _now(edit: Edit) -> int:
    return next((event.time_ns for event in edit.events if event.f == "drain"), 0)


def _poll(edit: Edit, offset: int, **more: object) -> tuple[Event, ...]:
    """A consumer begins at offset 0 and is given the record at this one."""
    partition, process, now = _partition(edit), edit.process(), _now(edit)
    if partition is None:
        return ()
    [record] = (r for r in edit.log(partition) if r.offset == offset)
    took = operation(process, "assign", {"positions": {str(partition): 0}, **more}, now)
    invoked = Event(process, Type.INVOKE, "poll", topic=TOPIC, time_ns=now)
    after = {"positions": {str(partition): offset + 1}}
    return *took, invoked, replace(invoked, type=Type.OK, records=(record,), extra=after)


def _end(edit: Edit, start: int) -> tuple[Event, Event]:
    partition = _partition(edit) or 0
    invoked, answered = end_events(edit.process(), partition, edit.end(partition), _now(edit))
    return invoked, replace(answered, offset=start)


@mutation("incomplete-deletion", "DeleteRecords is answered with a low watermark below what it was asked for")
def answer_below_the_request(edit: Edit) -> bool:
    return _delete(edit, low=0)


@mutation("lost-deletion", "the final read begins at a record that DeleteRecords had deleted")
def bring_back_what_was_deleted(edit: Edit) -> bool:
    return _delete(edit, starts=0)


@mutation("excess-deletion", "one record more is gone from the beginning of the log than was to be deleted")
def delete_one_more(edit: Edit) -> bool:
    return _delete(edit, starts=2)


@mutation("deleted-read", "a consumer that begins anew is given a deleted record")
def give_what_was_deleted(edit: Edit) -> bool:
    return _delete(edit, *_poll(edit, 0))


@mutation("log-start-regression", "who asks where the log begins is told a start before what was deleted")
def answer_an_earlier_start(edit: Edit) -> bool:
    return _delete(edit, *_end(edit, 0))


@mutation("wrong-reset", "a consumer that is reset to the latest offset goes on at the log start")
def reset_to_the_log_start(edit: Edit) -> bool:
    return _delete(edit, *_end(edit, 1), *_poll(edit, 1, reset="latest"))
