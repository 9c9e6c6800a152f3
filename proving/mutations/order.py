"""Mutations of order: of sends against real time and within a process, and of what a consumer is given
(wrackline.checkers.anomalies.order)."""

from __future__ import annotations

from dataclasses import replace

from wrackline.history.model import ACKED_WITHOUT_OFFSET, Record
from wrackline.proving.mutations.edit import Edit, Sent
from wrackline.proving.mutations.edit_groups import committing, members
from wrackline.proving.mutations.mutation import mutation


def _swap_neighbours(edit: Edit, *, same_process: bool, reported: bool = True) -> bool:
    """Two records side by side, the second sent after the first was acked, change places wherever they are
    told. Not ``reported``: their senders are told no offset any more."""
    for partition, first, second in edit.neighbours():
        a, b = edit.sent[first.value], edit.sent[second.value]
        if (
            a.acked_at == first.offset
            and b.acked_at == second.offset
            and a.completed is not None
            and a.completed < b.invoked
            and (a.process == b.process) == same_process
            and (a.partition, b.partition) == (partition, partition)
            and first.leader_epoch == second.leader_epoch
            and _only_later(edit, partition, first.offset, b)
            and _ends_fit_both(edit, partition, second.offset, a)
            and _own_neighbours(edit, a, b)
        ):
            edit.swap(partition, first, second)
            for one in () if reported else (a, b):
                edit.tell(one, ACKED_WITHOUT_OFFSET)
            return True
    return False


def _only_later(edit: Edit, partition: int, offset: int, second: Sent) -> bool:
    """Tells whether no consumer was given either of the two before the second was sent, and none was given
    one of them alone."""
    polls = {
        edit.polled(partition, at)[0] if edit.polled(partition, at) else None for at in (offset, offset + 1)
    }
    both = edit.polled(partition, offset) == edit.polled(partition, offset + 1)
    return both and all(at is None or at > second.invoked for at in polls)


def _ends_fit_both(edit: Edit, partition: int, offset: int, first: Sent) -> bool:
    """Every end offset asked for after the first was acked reaches past both."""
    least = edit.least_end(partition, first.completed or first.invoked)
    return least is None or least > offset


def _own_neighbours(edit: Edit, a: Sent, b: Sent) -> bool:
    """Tells whether no other record of the two operations lies in the same partition: their order would
    change as well."""
    mates = [
        one
        for one in edit.sent.values()
        if one.invoked in (a.invoked, b.invoked) and one.partition == a.partition
    ]
    return len(mates) == 2


@mutation("append-order", "an acked record and one that another process sent later change places")
def swap_with_a_later_send(edit: Edit) -> bool:
    return _swap_neighbours(edit, same_process=False)


@mutation("session-order", "two records that one process sent one after the other change places")
def swap_within_a_process(edit: Edit) -> bool:
    return _swap_neighbours(edit, same_process=True)


@mutation(
    "append-order", "two acked records, the second sent later, change places; nobody was told their offsets"
)
def swap_with_a_later_send_untold(edit: Edit) -> bool:
    return _swap_neighbours(edit, same_process=False, reported=False)


@mutation("session-order", "two records of one process change places; it was told no offset of either")
def swap_within_a_process_untold(edit: Edit) -> bool:
    return _swap_neighbours(edit, same_process=True, reported=False)


@mutation("batch-order", "two records of one send of unknown outcome change places")
def swap_within_a_send_in_doubt(edit: Edit) -> bool:
    for partition, first, second in edit.neighbours():
        a, b = edit.sent[first.value], edit.sent[second.value]
        seen_alike = edit.polled(partition, first.offset) == edit.polled(partition, second.offset)
        if _of_one_send(a, b, first, second) and a.in_doubt and b.in_doubt and seen_alike:
            edit.swap(partition, first, second)
            return True
    return False


def _of_one_send(a: Sent, b: Sent, first: Record, second: Record) -> bool:
    return a.invoked == b.invoked and first.leader_epoch == second.leader_epoch


@mutation("batch-order", "two records of one send change places")
def swap_within_a_send(edit: Edit) -> bool:
    for partition, first, second in edit.neighbours():
        a, b = edit.sent[first.value], edit.sent[second.value]
        in_place = (a.acked_at, b.acked_at) == (first.offset, second.offset)
        if in_place and _of_one_send(a, b, first, second):
            edit.swap(partition, first, second)
            return True
    return False


@mutation("poll-skip", "a poll leaves out a record in its middle")
def leave_out_of_a_poll(edit: Edit) -> bool:
    # A group that commits past it would have skipped it, too.
    bound = set().union(*(members(edit, group) for group in committing(edit)))
    for at, event in edit.of("poll"):
        if event.process in bound:
            continue
        for before, one, after in zip(event.records, event.records[1:], event.records[2:], strict=False):
            if before.partition == one.partition == after.partition:
                edit.records(at, lambda r: None if r == one else r)  # noqa: B023
                return True
    return False


@mutation("poll-rewind", "a poll gives its last record twice")
def give_again(edit: Edit) -> bool:
    for at, event in edit.of("poll"):
        if event.records:
            edit.change(at, records=(*event.records, event.records[-1]))
            return True
    return False


@mutation("poll-rewind", "a consumer is given the beginning of its last poll again by the next")
def go_back(edit: Edit) -> bool:
    last: dict[int, tuple[int, Record]] = {}
    for at, event in enumerate(edit.events):
        if event.f in ("assign", "rebalance"):
            last.pop(event.process, None)
        elif event.f == "poll" and event.type == "ok" and event.records:
            known = last.get(event.process)
            head = event.records[0]
            if known is not None and known[1].partition == head.partition:
                again = replace(event, records=(known[1], *event.records))
                edit.change(at, records=again.records)
                return True
            tails = [r for r in event.records if r.partition == event.records[-1].partition]
            last[event.process] = (at, tails[-1])
    return False


@mutation("wrong-offset", "the ack of a log's last record names the offset after it")
def name_the_next_offset(edit: Edit) -> bool:
    for partition in range(edit.partitions):
        for record in edit.log(partition)[-1:]:
            one = edit.sent[record.value]
            if one.acked_at != record.offset or one.completed is None:
                continue
            # An end offset asked for later would have to count what the ack named.
            if edit.least_end(partition, one.completed) is None:
                edit.tell(one, record.offset + 1)
                return True
    return False
