"""Mutations of registers and queues: each breaks one rule of wrackline.checkers.exact.register or
wrackline.checkers.exact.queue once, by changing what gets returned. Logs do not know what gets returned:
nothing else may be found, and no second culprit.

Time is the position of an event. Where a mutation looks for a place, the conditions say why nothing else
follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from wrackline.checkers.exact.queue import Rule as QueueRule
from wrackline.checkers.exact.register import Rule as RegisterRule
from wrackline.history.model import FAILED, MARKER, Event, Record, Type
from wrackline.proving.model.object_events import MadeObjects
from wrackline.proving.model.objects import ObjectKnobs
from wrackline.proving.mutations.edit import paired, phantom

NEVER = 1 << 62
KNOBS = {
    "register": ObjectKnobs(
        "register", operations=160, latency_ms=1.0, think_ms=6.0, producers=2, consumers=3, lost_get=0.0
    ),
    "queue": ObjectKnobs(
        "queue", operations=160, latency_ms=1.0, think_ms=6.0, producers=4, consumers=4, lost_get=0.0
    ),
}
"""Of histories to be changed: as much in turn as at once. A dequeue of unknown outcome could excuse a lost
value."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation on an object. ``inv`` and ``ret`` are positions of events; NEVER: it did not return, or
    nobody knows."""

    puts: bool
    partition: int
    record: Record | None
    """What was sent, or returned."""
    inv: int
    ret: int
    kind: Type

    @property
    def value(self) -> int | None:
        return None if self.record is None else self.record.value


class ObjectEdit:
    def __init__(self, made: MadeObjects) -> None:
        self.events = list(made.events)
        self.partitions = made.knobs.partitions
        self._get = "read" if made.knobs.workload == "register" else "dequeue"
        self.ops = list(self._operations())

    def _operations(self) -> Iterator[Op]:
        """Yields the operations of clients, without markers, in the order of their invocations."""
        for invoked, completed in paired(self.events, "send", self._get).items():
            last = self.events[invoked if completed is None else completed]
            record = last.records[0] if last.records else None
            if last.f == "send" and record is not None and record.value & 15 == MARKER:
                continue
            kind = Type.INFO if completed is None else last.type
            ret = completed if completed is not None and kind is Type.OK else NEVER
            yield Op(last.f == "send", last.partition or 0, record, invoked, ret, kind)

    def of(self, partition: int) -> list[Op]:
        return sorted((op for op in self.ops if op.partition == partition), key=lambda op: op.inv)

    def landed(self, partition: int) -> list[Op]:
        """Puts in the order of the log, by the final read."""
        puts = {op.value: op for op in self.of(partition) if op.puts}
        held = [r for e in self.events if e.f == "drain" and e.partition == partition for r in e.records]
        return [puts[record.value] for record in sorted(held, key=lambda r: r.offset) if record.value in puts]

    def gets(self, partition: int, *kinds: Type) -> list[Op]:
        return [op for op in self.of(partition) if not op.puts and op.kind in (kinds or (Type.OK,))]

    def returns(self, get: Op, record: Record | None) -> None:
        """The get comes back with this (None: with nothing)."""
        at = get.ret
        if at == NEVER:
            at = next(
                n
                for n in range(get.inv + 1, len(self.events))
                if self.events[n].process == self.events[get.inv].process
            )
        reported = () if record is None else (Record(record.partition, max(record.offset, 0), record.value),)
        self.events[at] = replace(self.events[at], type=Type.OK, error=None, records=reported)

    def fails(self, get: Op) -> None:
        self.events[get.ret] = replace(self.events[get.ret], type=Type.FAIL, error="_TIMED_OUT", records=())


@dataclass(frozen=True, slots=True)
class ObjectMutation:
    name: str
    workload: str
    rule: RegisterRule | QueueRule
    what: str
    apply: Callable[[ObjectEdit], bool]
    """Changes the history; False where there is no place for it (and then nothing was changed)."""

    @property
    def anomaly(self) -> str:
        return f"{self.workload}-not-linearizable"


_MUTATIONS: list[ObjectMutation] = []


def mutation(
    rule: RegisterRule | QueueRule, what: str
) -> Callable[[Callable[[ObjectEdit], bool]], Callable[[ObjectEdit], bool]]:
    def register(apply: Callable[[ObjectEdit], bool]) -> Callable[[ObjectEdit], bool]:
        workload = "register" if isinstance(rule, RegisterRule) else "queue"
        name = f"{workload}-{apply.__name__.replace('_', '-')}"
        _MUTATIONS.append(ObjectMutation(name, workload, rule, what, apply))
        return apply

    return register


def object_mutations() -> tuple[ObjectMutation, ...]:
    return tuple(_MUTATIONS)


def mutate_objects(one: ObjectMutation, made: MadeObjects) -> list[Event] | None:
    """The history with the anomaly in it; None where it has no place for it."""
    edit = ObjectEdit(made)
    return edit.events if one.apply(edit) else None


# --- registers


@mutation(RegisterRule.GARBAGE, "a read returns a value that nobody wrote")
def read_a_phantom(edit: ObjectEdit) -> bool:
    return _instead(edit, lambda get: Record(get.partition, 0, phantom(1)))


@mutation(RegisterRule.ABORTED, "a read returns a value whose write had failed")
def read_what_failed(edit: ObjectEdit) -> bool:
    return _instead(edit, lambda get: _refused(edit, get.partition))


@mutation(RegisterRule.FUTURE, "a read returns a value that is written later")
def read_ahead(edit: ObjectEdit) -> bool:
    return _instead(
        edit, lambda get: next((op.record for op in edit.landed(get.partition) if op.inv > get.ret), None)
    )


def _instead(edit: ObjectEdit, wrong: Callable[[Op], Record | None]) -> bool:
    """A read returns something else: what it had returned is held for no longer than before, so nothing else
    is wrong."""
    for partition in range(edit.partitions):
        for get in edit.gets(partition):
            record = wrong(get)
            if get.record is not None and record is not None:
                edit.returns(get, record)
                return True
    return False


def _refused(edit: ObjectEdit, partition: int) -> Record | None:
    failed = (op.record for op in edit.of(partition) if op.puts and op.record and op.record.offset == FAILED)
    return next(failed, None)


@mutation(RegisterRule.INSIDE, "a read returns the value before the last one, which nobody else reads")
def read_the_one_before(edit: ObjectEdit) -> bool:
    return _stale(edit, read_by_others=False)


@mutation(RegisterRule.TWO_AT_ONCE, "a read returns the value before the last one, which others read too")
def read_the_one_before_again(edit: ObjectEdit) -> bool:
    return _stale(edit, read_by_others=True)


def _stale(edit: ObjectEdit, *, read_by_others: bool) -> bool:
    """One value is written after another, and a read that returned the second returns the first. Nothing else
    happens from the first write to this read besides other reads of the two values: so no third value is
    concerned, and the only culprit is the first."""
    for partition in range(edit.partitions):
        ops = edit.of(partition)
        read = {op.value for op in ops if not op.puts and op.kind is Type.OK}
        busy = [op for op in ops if op.kind is not Type.FAIL and (op.ret != NEVER or op.value in read)]
        for v, w in pairwise(edit.landed(partition)):
            if NEVER in (v.ret, w.ret) or v.ret > w.inv:
                continue
            readers = [op for op in busy if not op.puts and op.value == w.value]
            for get in readers:
                if get.inv < w.ret or (len(readers) > 1) != read_by_others:
                    continue
                others = (op for op in busy if op not in (v, w, get))
                apart = all(
                    op.ret < v.inv
                    or op.inv > get.ret
                    or (op.value == v.value and op.ret < w.inv)
                    or (op in readers and op.inv > w.ret)
                    for op in others
                )
                if apart:
                    edit.returns(get, v.record)
                    return True
    return False


@mutation(RegisterRule.INSIDE, "the first read after the first write finds nothing written")
def read_nothing(edit: ObjectEdit) -> bool:
    """Makes a read find nothing, where nothing else happens before its end, and nobody reads what was
    written first later."""
    for partition in range(edit.partitions):
        ops = [op for op in edit.of(partition) if op.kind is not Type.FAIL]
        landed = edit.landed(partition)
        first = landed[0] if landed else None
        get = next((op for op in ops if first and not op.puts and op.value == first.value), None)
        if first is None or get is None or first.ret > get.inv or NEVER in (first.ret, get.ret):
            continue
        early = [op for op in ops if op.inv < get.ret and (op.puts or op.value is not None)]
        if early == [first, get] and sum(op.value == first.value for op in ops) == 2:
            edit.returns(get, None)
            return True
    return False


# --- queues


@mutation(QueueRule.GARBAGE, "a dequeue that found the queue empty returns a value that nobody enqueued")
def dequeue_a_phantom(edit: ObjectEdit) -> bool:
    return _not_empty_after_all(edit, lambda get: Record(get.partition, 0, phantom(1)))


@mutation(QueueRule.ABORTED, "a dequeue that found the queue empty returns a value whose enqueue had failed")
def dequeue_what_failed(edit: ObjectEdit) -> bool:
    return _not_empty_after_all(edit, lambda get: _refused(edit, get.partition))


@mutation(QueueRule.TWICE, "a dequeue that found the queue empty returns what another had got")
def dequeue_again(edit: ObjectEdit) -> bool:
    def earlier(get: Op) -> Record | None:
        had = (op.record for op in edit.gets(get.partition) if op.inv < get.inv and op.record is not None)
        return next(had, None)

    return _not_empty_after_all(edit, earlier)


def _not_empty_after_all(edit: ObjectEdit, wrong: Callable[[Op], Record | None]) -> bool:
    """Nobody else gets anything else, and the queue is said to be empty once less."""
    for partition in range(edit.partitions):
        for get in edit.gets(partition):
            record = wrong(get)
            if get.record is None and record is not None:
                edit.returns(get, record)
                return True
    return False


@mutation(QueueRule.FUTURE, "a dequeue returns a value that is enqueued later; who had got it fails")
def dequeue_ahead(edit: ObjectEdit) -> bool:
    for partition in range(edit.partitions):
        puts = {op.value: op for op in edit.landed(partition)}
        gets = edit.gets(partition)
        for later in (get for get in gets if get.record is not None):
            for get in (get for get in gets if get.record is None):
                if get.ret < puts[later.value].inv:
                    edit.returns(get, later.record)
                    edit.fails(later)
                    return True
    return False


@mutation(QueueRule.OVERTAKEN, "two values that came out one after the other change places")
def swap_dequeues(edit: ObjectEdit) -> bool:
    """Both were in before the first dequeue began: so the queue was not empty before, and is as empty
    after."""
    for partition in range(edit.partitions):
        puts = {op.value: op for op in edit.landed(partition)}
        order = {op.value: n for n, op in enumerate(edit.landed(partition))}
        gets = sorted(
            (get for get in edit.gets(partition) if get.record is not None), key=lambda get: order[get.value]
        )
        for one, two in pairwise(gets):
            a, b = puts[one.value], puts[two.value]
            if a.ret < b.inv and b.ret < one.inv and one.ret < two.inv:
                edit.returns(one, two.record)
                edit.returns(two, one.record)
                return True
    return False


@mutation(QueueRule.LOST, "the dequeue that got a value fails; nobody else gets it")
def lose_a_value(edit: ObjectEdit) -> bool:
    """The queue is not said to be empty any more."""
    for partition in range(edit.partitions):
        puts = {op.value: op for op in edit.landed(partition)}
        gets = edit.gets(partition)
        for get in (get for get in gets if get.record is not None):
            a = puts[get.value]
            overtaken = any(one.record is not None and puts[one.value].inv > a.ret for one in gets)
            if (
                a.ret != NEVER
                and overtaken
                and not any(one.record is None and one.ret > a.ret for one in gets)
            ):
                edit.fails(get)
                return True
    return False


@mutation(QueueRule.NOT_EMPTY, "a dequeue that failed says that the queue is empty, though a value is in it")
def empty_after_all(edit: ObjectEdit) -> bool:
    return _empty(edit, lambda covered, get: any(er < get[0] and di > get[1] for er, di in covered))


@mutation(QueueRule.NOT_EMPTY, "... though one value is in it after another, and none all the time")
def empty_between(edit: ObjectEdit) -> bool:
    def in_turn(inside: list[tuple[int, int]], get: tuple[int, int]) -> bool:
        inv, ret = get
        if any(er < inv and di > ret for er, di in inside):
            return False
        reached = inv
        while furthest := max((di for er, di in inside if er < reached < di), default=0):
            reached = furthest
        return reached > ret

    return _empty(edit, in_turn)


def _empty(edit: ObjectEdit, sure: Callable[[list[tuple[int, int]], tuple[int, int]], bool]) -> bool:
    for partition in range(edit.partitions):
        began = {get.value: get.inv for get in edit.gets(partition) if get.record is not None}
        inside = [
            (op.ret, began.get(op.value, NEVER))
            for op in edit.landed(partition)
            if op.ret < began.get(op.value, NEVER)
        ]
        for get in edit.gets(partition, Type.FAIL):
            process = edit.events[get.inv].process
            ret = next(n for n in range(get.inv + 1, len(edit.events)) if edit.events[n].process == process)
            if sure(inside, (get.inv, ret)):
                edit.returns(get, None)
                return True
    return False


__all__ = ["KNOBS", "ObjectMutation", "mutate_objects", "object_mutations"]
