"""Mutations of what records are and where they lie (wrackline.checkers.anomalies.integrity)."""

from __future__ import annotations

from wrackline.history.model import CORRUPT, FAILED, FOREIGN, Record, Type
from wrackline.proving.model.columns import TOPIC
from wrackline.proving.mutations.edit import Edit, phantom
from wrackline.proving.mutations.mutation import mutation


@mutation("inconsistent-offset", "a poll gives another value (of a send in doubt) at an offset", final=False)
def poll_another_value(edit: Edit) -> bool:
    for one in edit.unseen():
        for at, event in edit.of("poll", one.partition):
            for record in event.records:
                there = edit.sent[record.value]
                reported = there.acked_at is not None or len(edit.polled(one.partition, record.offset)) > 1
                if record.partition == one.partition and reported and one.invoked < there.invoked:
                    edit.records(at, lambda r: r._replace(value=one.value) if r == record else r)  # noqa: B023
                    return True
    return False


@mutation(
    "replica-divergence",
    "one replica holds, below its high watermark, a value in doubt in place of another",
    also={"lost-on-replica": "that replica lacks what consumers are given"},
)
def diverge_in_value(edit: Edit) -> bool:
    for one in edit.unseen():
        for record in edit.log(one.partition):
            if edit.sent[record.value].in_doubt:
                edit.place(one.partition, record.offset, one.value, node="n1")
                return True
    return False


@mutation("replica-divergence", "one replica holds the last record under a later leader epoch")
def diverge_in_epoch(edit: Edit) -> bool:
    for partition in range(edit.partitions):
        log = edit.log(partition)
        for at, event in list(edit.of("replica", partition)):
            if event.node == "n1" and event.records and event.records[-1].offset == len(log) - 1:
                last = event.records[-1]
                edit.records(
                    at,
                    lambda r: r._replace(leader_epoch=last.leader_epoch + 1) if r == last else r,  # noqa: B023
                )
                return True
    return False


@mutation("duplicate-log", "a replica lies in two log directories of its node")
def put_into_two_log_dirs(edit: Edit) -> bool:
    for at, event in list(edit.of("replica")):
        log_dirs = ["/data/broker", "/data2/broker"]
        edit.change(at, extra={**(event.extra or {}), "log_dirs": log_dirs})
        return True
    return False


@mutation("duplicate", "the first record of a partition is there again at its end")
def append_again(edit: Edit) -> bool:
    for partition in range(edit.partitions):
        log = edit.log(partition)
        if log:
            edit.add_tail(partition, log[0].value)
            return True
    return False


@mutation("aborted-read", "a send in doubt whose record is in the log is said to have certainly failed")
def refuse_what_is_there(edit: Edit) -> bool:
    for _, _, one in edit.stored():
        if one.in_doubt and one.alone and one.completed is not None:
            edit.tell(one, FAILED)
            edit.change(one.completed, type=Type.FAIL, error="MSG_SIZE_TOO_LARGE")
            return True
    return False


@mutation("phantom", "a log ends with a value that nobody sent")
def append_unsent(edit: Edit) -> bool:
    return _append(edit, phantom(1))


@mutation("phantom", "a log ends with a record of another run")
def append_foreign(edit: Edit) -> bool:
    return _append(edit, FOREIGN)


def _append(edit: Edit, value: int) -> bool:
    partition = next((p for p in range(edit.partitions) if edit.log(p)), None)
    if partition is None:
        return False
    edit.add_tail(partition, value)
    return True


@mutation("misrouted", "a log ends with a value that was sent to another partition, in doubt")
def append_elsewhere(edit: Edit) -> bool:
    for one in edit.unseen():
        for partition in range(edit.partitions):
            if partition != one.partition and edit.log(partition):
                edit.add_tail(partition, one.value)
                return True
    return False


@mutation("misrouted", "a topic whose name begins as the other's holds a value that was sent there, in doubt")
def append_to_another_topic(edit: Edit) -> bool:
    for one in edit.unseen():
        edit.add_topic(f"{TOPIC}-{one.partition}", one.value)
        return True
    return False


@mutation("corrupt", "a poll gives a record with a wrong checksum")
def spoil_a_payload(edit: Edit) -> bool:
    for at, event in edit.of("poll"):
        if event.records:
            bad = event.records[0]
            detail = {"partition": bad.partition, "offset": bad.offset, "detail": "checksum 1, content 2"}
            edit.records(at, lambda r: r._replace(value=CORRUPT) if r == bad else r)  # noqa: B023
            edit.change(at, extra={**(event.extra or {}), "corrupt": [detail]})
            return True
    return False


@mutation("epoch-order", "the last record of the final read has a smaller leader epoch than the one before")
def lower_an_epoch(edit: Edit) -> bool:
    for partition in range(edit.partitions):
        for at, event in list(edit.of("drain", partition)):
            if len(event.records) > 1 and event.records[-2].leader_epoch > 0:
                last: Record = event.records[-1]
                edit.records(
                    at,
                    lambda r: r._replace(leader_epoch=event.records[-2].leader_epoch - 1) if r == last else r,  # noqa: B023
                )
                return True
    return False
