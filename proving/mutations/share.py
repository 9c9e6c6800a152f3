"""Mutations of what a share group is given and acknowledges (wrackline.checkers.anomalies.share)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from wrackline.history.model import Event, Record, Type
from wrackline.proving.model.columns import TOPIC
from wrackline.proving.model.share_server import GROUP, LIMIT, LOCK_NS, Place, named
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.edit_groups import end_of_clients
from wrackline.proving.mutations.mutation import mutation

SHARE = {"share_members": 3, "failovers": 0}
"""Of histories with a share group, and one leader of each partition: another one may forget counts."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A record as a member was given it, and what became of it. ``at`` and ``answered`` are positions in
    ``Edit.events``: of the poll's completion, and of that of the acknowledgement (None: there is none that
    succeeded)."""

    at: int
    place: Place
    count: int
    answered: int | None
    answer: str
    times: int
    """How often the group was given it in all."""


def _deliveries(edit: Edit) -> list[Delivery]:
    """Every delivery in order, without those of renewed records."""
    open_: dict[tuple[int, Place], int] = {}
    deliveries: list[tuple[int, Place, int]] = []
    answers: dict[int, tuple[int | None, str]] = {}
    for at, event in enumerate(edit.events):
        extra = event.extra or {}
        if event.f == "acquire" and event.type is Type.OK:
            again = {(p, offset) for p, offset in extra["renewed"]}
            for record, delivered in zip(event.records, extra["counts"], strict=True):
                place = record.partition, record.offset
                if place not in again:
                    open_[event.process, place] = len(deliveries)
                    deliveries.append((at, place, delivered))
        elif event.f == "acknowledge" and event.type is Type.OK:
            for kind, place in _answers(event):
                answers[open_[extra["member"], place]] = at, kind
    times = Counter(place for _, place, _ in deliveries)
    return [
        Delivery(at, place, delivered, answered, kind, times[place])
        for number, (at, place, delivered) in enumerate(deliveries)
        for answered, kind in [answers.get(number, (None, ""))]
    ]


def _answers(event: Event) -> Iterator[tuple[str, Place]]:
    for kind, partitions in (event.extra or {})["acks"].items():
        for partition, offsets in partitions.items():
            yield from ((kind, (int(partition), offset)) for offset in offsets)


def _once(edit: Edit) -> Iterator[Delivery]:
    """Records that were given once, without a renewal, and accepted."""
    for one in _deliveries(edit):
        if one.times == 1 and one.answer == "accept" and _is_plain(edit, one):
            yield one


def _twice(edit: Edit) -> Iterator[tuple[Delivery, Delivery]]:
    """Both deliveries of records that were given twice."""
    first: dict[Place, Delivery] = {}
    for one in _deliveries(edit):
        if one.times == 2 and first.setdefault(one.place, one) is not one:
            yield first[one.place], one


def _is_plain(edit: Edit, one: Delivery) -> bool:
    """Tells whether its delivery and its acknowledgement are the only events that name the record."""
    named = 0
    for event in edit.events:
        if event.f == "acquire":
            named += any((r.partition, r.offset) == one.place for r in event.records)
        elif event.f == "acknowledge":
            named += any(place == one.place for _, place in _answers(event))
    return named == 3  # one poll, and both events of the acknowledgement


def _record(edit: Edit, one: Delivery) -> Record:
    return next(r for r in edit.events[one.at].records if (r.partition, r.offset) == one.place)


def _count(edit: Edit, one: Delivery, delivered: int) -> None:
    """The delivery has another count."""
    event = edit.events[one.at]
    counts = list((event.extra or {})["counts"])
    counts[event.records.index(_record(edit, one))] = delivered
    edit.change(one.at, extra={**(event.extra or {}), "counts": counts})


def _forget(edit: Edit, one: Delivery) -> None:
    """Nobody was given the record, and nobody answered for it."""
    event = edit.events[one.at]
    place = event.records.index(_record(edit, one))
    counts = [n for at, n in enumerate((event.extra or {})["counts"]) if at != place]
    records = tuple(r for at, r in enumerate(event.records) if at != place)
    edit.change(one.at, records=records, extra={**(event.extra or {}), "counts": counts})
    _answer(edit, one, "")


def _answer(edit: Edit, one: Delivery, kind: str) -> None:
    """Its acknowledgement, in both events, is of another kind; "": there is none of this record."""
    assert one.answered is not None
    process = edit.events[one.answered].process
    invoked = max(
        at
        for at, event in enumerate(edit.events[: one.answered])
        if event.process == process and event.type is Type.INVOKE
    )
    for at in (invoked, one.answered):
        extra = edit.events[at].extra or {}
        acks = {place: kind if place == one.place else was for was, place in _answers(edit.events[at])}
        kept = {place: answer for place, answer in acks.items() if answer}
        edit.change(at, extra={**extra, "acks": named(kept)})


def _poll(process: int, begin_ns: int, now: int, *records: tuple[Record, int]) -> tuple[Event, Event]:
    """A poll of a member; ``records``: each with its count."""
    extra = {"group": GROUP, "counts": [n for _, n in records], "since_ns": begin_ns, "renewed": []}
    taken = tuple(record for record, _ in records)
    return (
        Event(process, Type.INVOKE, "acquire", topic=TOPIC, time_ns=begin_ns),
        Event(process, Type.OK, "acquire", topic=TOPIC, records=taken, extra=extra, time_ns=now),
    )


def _accept(member: int, process: int, record: Record, now: int) -> tuple[Event, Event]:
    acks = {"accept": {str(record.partition): [record.offset]}}
    extra = {"group": GROUP, "member": member, "mode": "sync", "acks": acks}
    invoked = Event(process, Type.INVOKE, "acknowledge", topic=TOPIC, extra=extra, time_ns=now)
    return invoked, replace(invoked, type=Type.OK, extra={**extra, "errors": {}})


@mutation("final-redelivery", "a record that was accepted is given again", knobs=SHARE)
def give_an_accepted_record(edit: Edit) -> bool:
    for one in _once(edit):
        at = end_of_clients(edit)
        now = edit.events[at].time_ns
        edit.insert(at, *_poll(edit.process(), now, now, (_record(edit, one), one.count + 1)))
        return True
    return False


@mutation("double-final", "two members accept a record at once, each within a lock of its own", knobs=SHARE)
def accept_twice(edit: Edit) -> bool:
    for one in _once(edit):
        assert one.answered is not None
        since = (edit.events[one.at].extra or {})["since_ns"]
        now, record, member = edit.events[one.answered].time_ns, _record(edit, one), edit.process()
        if now - since < LOCK_NS:
            answer = _accept(member, edit.process(), record, now)
            edit.insert(one.answered, *_poll(member, since, now, (record, one.count + 1)), *answer)
            return True
    return False


@mutation("delivery-count", "a record is given once more often than the limit", knobs=SHARE)
def give_past_the_limit(edit: Edit) -> bool:
    for one in _once(edit):
        _count(edit, one, LIMIT + 1)
        return True
    return False


@mutation("delivery-count", "a delivery that was released is not counted", knobs=SHARE)
def forget_a_delivery(edit: Edit) -> bool:
    for one, later in _twice(edit):
        if one.answer != "release" or one.answered is None:
            continue
        if (edit.events[later.at].extra or {})["since_ns"] > edit.events[one.answered].time_ns:
            _count(edit, later, one.count)
            return True
    return False


@mutation("delivery-regression", "a delivery count is less than one before", knobs=SHARE)
def count_less(edit: Edit) -> bool:
    for one, later in _twice(edit):
        if not one.answer and later.count < LIMIT - 1:
            _count(edit, one, later.count + 1)
            return True
    return False


@mutation("lock-overlap", "a record is given to two members at a time", knobs=SHARE)
def give_a_held_record(edit: Edit) -> bool:
    for one in _once(edit):
        now = edit.events[one.at].time_ns + 1
        if now < (edit.events[one.at].extra or {})["since_ns"] + LOCK_NS // 2:
            edit.insert(one.at + 1, *_poll(edit.process(), now, now, (_record(edit, one), one.count + 1)))
            return True
    return False


@mutation("lost-renewal", "a member renews the lock of a record, and is not given it again", knobs=SHARE)
def lose_a_renewal(edit: Edit) -> bool:
    gone = {event.process for event in edit.events if event.f == "crash"}
    for one in _once(edit):
        member, at = edit.events[one.at].process, end_of_clients(edit)
        if member in gone:
            continue
        now, record, other = edit.events[at].time_ns, _record(edit, one), edit.process()
        _answer(edit, one, "renew")
        later = now + 2 * LOCK_NS
        edit.insert(
            at,
            *_poll(member, now, now),
            *_poll(member, later, later),
            *_poll(other, later + 1, later + 1, (record, one.count + 1)),
            *_accept(other, edit.process(), record, later + 2),
        )
        return True
    return False


@mutation("share-skip", "a record is given to nobody, and the group is past it", knobs=SHARE)
def leave_out_a_record(edit: Edit) -> bool:
    for one in _once(edit):
        _forget(edit, one)
        return True
    return False


@mutation("share-lag", "the last record of a log is given to nobody, and members poll for it", knobs=SHARE)
def stop_before_the_end(edit: Edit) -> bool:
    for one in _once(edit):
        partition, offset = one.place
        if offset != edit.end(partition) - 1:
            continue
        _forget(edit, one)
        for at, event in edit.of("lag"):
            extra = event.extra or {}
            starts = {**extra["starts"], str(partition): offset}
            edit.change(at, extra={**extra, "starts": starts, "lags": {**extra["lags"], str(partition): 1}})
        return True
    return False


@mutation("archived-unrefused", "a record's last delivery is released", knobs=SHARE)
def use_up_deliveries(edit: Edit) -> bool:
    for one in _once(edit):
        _count(edit, one, LIMIT)
        _answer(edit, one, "release")
        return True
    return False
