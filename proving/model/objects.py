"""Correct histories of the workloads ``register`` and ``queue``, of any size: each partition an object, every
operation an interval in which it takes effect at one moment.

What lands in a partition (writes or enqueues, and the markers of gets) has the order of those moments for its
offsets. A read returns the last write before its own, a dequeue the record at the head; so nothing is wrong
with the history, whatever else happens: outcomes that nobody knows, records that land long after their sender
gave up, refusals, gets that fail or never come back. ``object_events`` writes it down as the recorder would
have.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, MARKER, UNKNOWN
from wrackline.proving.model.drawing import Bools, Ints, Operations

NOBODY = -1
_MS = 1_000_000
_FATES = ACKED, NOT_REPORTED, REFUSED, ANSWER_LOST, REQUEST_LOST = range(5)
GOT, GET_FAILED, GET_LOST = range(3)


@dataclass(frozen=True, slots=True)
class ObjectKnobs:
    """Shares are probabilities; times are means of exponential delays, in milliseconds."""

    workload: str = "register"
    """``register`` or ``queue``."""
    operations: int = 300
    """Of clients, about; the markers of gets not counted."""
    partitions: int = 2
    producers: int = 4
    consumers: int = 4
    latency_ms: float = 5.0
    """One way."""
    think_ms: float = 3.0
    """Between a completion and the next invocation of a process."""
    refused: float = 0.02
    """Puts refused for certain."""
    answer_lost: float = 0.03
    """Puts that land and whose answer does not come."""
    request_lost: float = 0.02
    """Puts that do not land, and nobody can tell."""
    ack_without_offset: float = 0.02
    """Puts acknowledged without an offset."""
    late: float = 0.3
    """Of the puts without an answer that land: long after the client gave up."""
    never_completes: float = 0.3
    """Of the operations of unknown outcome: not even a completion is on record."""
    failed_get: float = 0.03
    """Gets that fail, having taken nothing."""
    lost_get: float = 0.01
    """Gets that never come back; from a queue each may have taken a record."""
    by_end: bool = False
    """Reads of a register ask for the end offset and send no marker."""
    final: bool = True
    """There is a complete final read, and every replica's own log."""

    @property
    def may_show(self) -> frozenset[str]:
        """The anomalies that may be found in a correct history: writes that were not proven are counted,
        whatever the run."""
        return frozenset({"unproven-write"})

    def __post_init__(self) -> None:
        if self.workload not in ("register", "queue"):
            raise ValueError(f"{self.workload!r} is no workload of objects: register or queue")
        if min(self.partitions, self.producers, self.consumers, self.operations) < 1:
            raise ValueError("a run has one operation, one partition, one putter and one getter at least")


def drawn_objects(seed: int, operations: int = 120) -> ObjectKnobs:
    """The knobs of a random correct history; the same seed gives the same."""
    random = np.random.default_rng([seed, 0x0B1])

    def share(most: float) -> float:
        """Often nothing, else anything up to the most."""
        return 0.0 if random.random() < 0.25 else float(random.random() * most)

    workload = ("register", "queue")[seed % 2]
    return ObjectKnobs(
        workload,
        operations=int(random.integers(max(1, operations // 2), operations + operations // 2 + 1)),
        partitions=int(random.integers(1, 5)),
        producers=int(random.integers(1, 8)),
        consumers=int(random.integers(1, 8)),
        latency_ms=float(random.choice([0.01, 1.0, 5.0, 50.0])),
        think_ms=float(random.choice([0.01, 5.0, 20.0])),
        refused=share(0.1),
        answer_lost=share(0.15),
        request_lost=share(0.15),
        ack_without_offset=share(0.1),
        late=share(1.0),
        never_completes=share(1.0),
        failed_get=share(0.2),
        lost_get=share(0.1),
        by_end=workload == "register" and bool(random.random() < 0.3),
        final=bool(random.random() < 0.7),
    )


@dataclass(frozen=True, slots=True)
class Puts(Operations):
    """Writes or enqueues, and markers: one record each. Times are nanoseconds."""

    value: Ints
    partition: Ints
    effect: Ints
    """When it lands; meaningless where it does not."""
    lands: Bools
    reported: Ints
    """The outcome as the client knows it; ``ACKED`` ones get their offset from ``Objects``."""
    completes: Bools
    """Its completion is on record."""


@dataclass(frozen=True, slots=True)
class Gets(Operations):
    partition: Ints
    effect: Ints
    fate: Ints
    """GOT, GET_FAILED or GET_LOST."""
    offset: Ints
    """Of the record that was read or taken; NOBODY where there was none."""
    end: Ints
    """The offset it read up to: its marker's, or the end it was told."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The history of the objects. ``log``: rows of ``puts`` in the order of (partition, offset);
    ``starts``: where each partition's begin."""

    knobs: ObjectKnobs
    puts: Puts
    offset: Ints
    """Of each put; NOBODY where it did not land."""
    log: Ints
    starts: Ints
    gets: Gets
    end_ns: int


def serve_objects(seed: int, knobs: ObjectKnobs) -> Objects:
    """The same seed and knobs give the same."""
    random = np.random.default_rng([seed, 0x0B2])
    threads = knobs.producers + knobs.consumers
    each = -(-knobs.operations // threads)
    puts = _puts(random, knobs, each)
    gets, marks = _gets(random, knobs, each)
    taken = None
    if knobs.workload == "queue":
        taken, empty = _taken(knobs, puts, gets)
        marks = _some(marks, empty | (gets.fate == GET_FAILED))
    elif knobs.by_end:
        marks = _some(marks, np.zeros(len(marks.value), dtype=bool))
    both = Puts(
        *(np.concatenate([getattr(puts, one.name), getattr(marks, one.name)]) for one in fields(Puts))
    )
    lands = np.flatnonzero(both.lands)
    log = lands[np.lexsort((both.effect[lands], both.partition[lands]))]
    starts = np.searchsorted(both.partition[log], np.arange(knobs.partitions + 1))
    offset = np.full(len(both.value), NOBODY)
    offset[log] = np.arange(len(log)) - starts[both.partition[log]]
    end = _ends(both, log, starts, gets)
    got = _last_writes(both, log, starts, gets, end) if taken is None else np.append(offset, NOBODY)[taken]
    gets = replace(gets, offset=got, end=end)
    last = max(
        int(both.complete_op.max()), int(gets.complete_op.max()), int(both.effect[lands].max(initial=0))
    )
    return Objects(knobs, both, offset, log, starts, gets, last + 1)


def _times(
    random: np.random.Generator, knobs: ObjectKnobs, threads: int, each: int, steps: int
) -> list[Ints]:
    """Moments of each operation: its invocation, ``steps`` moments one after another; by thread, then in
    order."""
    pauses = 1 + (random.exponential(knobs.think_ms * _MS, (threads, each))).astype(np.int64)
    delays = [
        1 + random.exponential(knobs.latency_ms * _MS, (threads, each)).astype(np.int64) for _ in range(steps)
    ]
    ends = np.cumsum(pauses + np.sum(delays, axis=0), axis=1)
    moments = [ends]
    for delay in reversed(delays):
        moments.insert(0, moments[0] - delay)
    return [_START + one.ravel() for one in moments]


_START = 10 * _MS
"""Runner's rows come before."""


def _process(slots: Ints, retires: Bools, each: int, stride: int) -> Ints:
    """A process is not used again after an outcome that is not known: the next one of its slot goes on."""
    gone: Ints = np.cumsum(retires.reshape(-1, each), axis=1).ravel() - retires
    result: Ints = slots + gone * stride
    return result


def _stride(knobs: ObjectKnobs) -> int:
    return knobs.producers + 2 * knobs.consumers


def _puts(random: np.random.Generator, knobs: ObjectKnobs, each: int) -> Puts:
    size = knobs.producers * each
    inv, effect, ret = _times(random, knobs, knobs.producers, each, 2)
    odds = [knobs.ack_without_offset, knobs.refused, knobs.answer_lost, knobs.request_lost]
    fate = random.choice(_FATES, size, p=[1 - sum(odds), *odds])
    unsure = (fate == ANSWER_LOST) | (fate == REQUEST_LOST)
    late = (fate == ANSWER_LOST) & (random.random(size) < knobs.late)
    much_later = ret + (random.exponential(20 * knobs.latency_ms * _MS, size)).astype(np.int64)
    slots = np.repeat(np.arange(knobs.producers), each)
    process = _process(slots, unsure, each, _stride(knobs))
    number = np.tile(np.arange(each), knobs.producers)
    codes = np.array([ACKED, ACKED_WITHOUT_OFFSET, FAILED, UNKNOWN, UNKNOWN])
    return Puts(
        process_op=process,
        invoke_op=inv,
        complete_op=ret,
        value=process << 32 | number << 4,
        partition=random.integers(0, knobs.partitions, size),
        effect=np.where(late, much_later, effect),
        lands=(fate != REFUSED) & (fate != REQUEST_LOST),
        reported=codes[fate],
        completes=~unsure | (random.random(size) >= knobs.never_completes),
    )


def _gets(random: np.random.Generator, knobs: ObjectKnobs, each: int) -> tuple[Gets, Puts]:
    """Gets, and the marker that each would send: it lands at the moment at which its get takes effect."""
    size = knobs.consumers * each
    inv, mark_inv, effect, mark_ret, ret = _times(random, knobs, knobs.consumers, each, 4)
    partition = random.integers(0, knobs.partitions, size)
    fate = random.choice(3, size, p=[1 - knobs.failed_get - knobs.lost_get, knobs.failed_get, knobs.lost_get])
    slots = knobs.producers + np.repeat(np.arange(knobs.consumers), each)
    number = np.tile(np.arange(each), knobs.consumers)
    # A get that failed: because its marker did, or for another reason.
    broken = (fate == GET_FAILED) & (random.random(size) < 0.7)
    in_doubt = broken & (random.random(size) < 0.6) | (fate == GET_LOST)
    lands = ~broken | (in_doubt & (random.random(size) < 0.5))
    process = _process(slots + knobs.consumers, in_doubt, each, _stride(knobs))
    marks = Puts(
        process_op=process,
        invoke_op=mark_inv,
        complete_op=mark_ret,
        value=process << 32 | number << 4 | MARKER,
        partition=partition,
        effect=effect,
        lands=lands,
        reported=np.where(in_doubt, UNKNOWN, np.where(broken, FAILED, ACKED)),
        completes=fate != GET_LOST,
    )
    nothing = np.full(size, NOBODY)
    owner = _process(slots, fate == GET_LOST, each, _stride(knobs))
    return Gets(owner, inv, ret, partition, effect, fate, nothing, nothing), marks


def _some(puts: Puts, rows: Bools) -> Puts:
    return Puts(*(getattr(puts, one.name)[rows] for one in fields(Puts)))


def _taken(knobs: ObjectKnobs, puts: Puts, gets: Gets) -> tuple[Ints, Bools]:
    """(the put whose record each dequeue takes, NOBODY where none; which are told that the queue is empty).

    After the i-th dequeue so many records are out: one more than after the one before, but no more than are
    in. That is a minimum over all dequeues so far. Of those that never come back each second one got as far
    as taking."""
    takes = (gets.fate == GOT) | ((gets.fate == GET_LOST) & (gets.process_op % 2 == 0))
    taken = np.full(len(gets.invoke_op), NOBODY)
    for partition in range(knobs.partitions):
        mine = np.flatnonzero(puts.lands & (puts.partition == partition))
        mine = mine[np.argsort(puts.effect[mine], kind="stable")]
        asks = np.flatnonzero(takes & (gets.partition == partition))
        asks = asks[np.argsort(gets.effect[asks], kind="stable")]
        number = np.arange(1, len(asks) + 1)
        there = np.searchsorted(puts.effect[mine], gets.effect[asks])
        out = np.minimum(number, np.minimum.accumulate(there - number) + number)
        took = np.diff(out, prepend=0) > 0
        taken[asks[took]] = mine[out[took] - 1]
    return taken, (gets.fate == GOT) & (taken == NOBODY)


def _ends(puts: Puts, log: Ints, starts: Ints, gets: Gets) -> Ints:
    """Returns the number of records in the partition of each get before the moment at which it takes
    effect."""
    end = np.zeros(len(gets.invoke_op), dtype=np.int64)
    for partition in range(len(starts) - 1):
        mine = np.flatnonzero(gets.partition == partition)
        there = puts.effect[log[starts[partition] : starts[partition + 1]]]
        end[mine] = np.searchsorted(there, gets.effect[mine])
    return end


def _last_writes(puts: Puts, log: Ints, starts: Ints, gets: Gets, end: Ints) -> Ints:
    """The offset of the last record before each get's end that is no marker."""
    writes = (puts.value[log] & 15) != MARKER
    last = np.maximum.accumulate(np.where(writes, np.arange(len(log)), NOBODY))
    at = starts[gets.partition] + end - 1
    row = np.append(last, NOBODY)[at]
    result: Ints = np.where((end > 0) & (row >= starts[gets.partition]), row - starts[gets.partition], NOBODY)
    return result
