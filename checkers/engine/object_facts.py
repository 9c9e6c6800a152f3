"""The facts of registers and queues, kind by kind (wrackline.checkers.engine.objects.values,
wrackline.checkers.engine.objects.times)."""

from __future__ import annotations

from dataclasses import dataclass

from wrackline.checkers.inputs.table import C, Ints, Table


@dataclass(frozen=True, slots=True)
class Call(Table[C]):
    """An operation on an object; all NONE where there is none."""

    inv: C
    """Index of its invocation."""
    ret: C
    """Index of its completion; NONE where it did not return, or nobody knows whether it happened."""
    inv_ns: C
    ret_ns: C
    """The times of both, from the start of the run."""
    process: C


@dataclass(frozen=True, slots=True)
class Put(Table[Ints]):
    """Writes of a register, or enqueues of a queue."""

    log: Ints
    value: Ints
    failed: Ints
    """1: it certainly did not happen."""
    call: Call[Ints]


@dataclass(frozen=True, slots=True)
class Get(Table[Ints]):
    """Reads of a register, or dequeues of a queue, that may have happened."""

    log: Ints
    value: Ints
    """What came out; NOTHING for a register's initial value."""
    call: Call[Ints]


@dataclass(frozen=True, slots=True)
class UnsureGet(Table[Ints]):
    """Dequeues of unknown outcome: any of them may have taken a value."""

    inv: Ints


@dataclass(frozen=True, slots=True)
class Empty(Table[Ints]):
    """Dequeues that found the queue empty, in each interval of time that they touch."""

    pieces: Ints
    """How many intervals the operation touches."""
    call: Call[Ints]


@dataclass(frozen=True, slots=True)
class Zone(Table[Ints]):
    """A value of a register that was held: its write (none for the initial value), the operation on it that
    returned first and that which was invoked last (wrackline.checkers.exact.register)."""

    value: Ints
    write: Call[Ints]
    first: Call[Ints]
    last: Call[Ints]


@dataclass(frozen=True, slots=True)
class Life(Table[Ints]):
    """A value of a queue: how it went in, and how it came out (NONE where it did not)."""

    value: Ints
    role: Ints
    """Bits of wrackline.checkers.engine.objects.values.Role."""
    put: Call[Ints]
    got: Call[Ints]


@dataclass(frozen=True, slots=True)
class ZoneSummary(Table[Ints]):
    """The zone that lasts longest among those that start in an interval of time."""

    part: Ints
    zone: Zone


@dataclass(frozen=True, slots=True)
class LifeSummary(Table[Ints]):
    """The life that was in longest among those that went in in an interval of time."""

    part: Ints
    life: Life


@dataclass(frozen=True, slots=True)
class EarliestDequeue(Table[Ints]):
    """The life that came out first among those that start in an interval of time."""

    part: Ints
    life: Life


@dataclass(frozen=True, slots=True)
class Unconsumed(Table[Ints]):
    """The last of the values that went in in an interval of time, and that nobody got."""

    part: Ints
    count: Ints
    """How many there are."""
    life: Life


@dataclass(frozen=True, slots=True)
class Contradiction(Table[C]):
    """One culprit, or what one interval of time knows of it, with its operations."""

    log: C
    rule: C
    """Place of the rule in wrackline.checkers.engine.objects.values.RULES."""
    value: C
    other: C
    """A value that it contradicts; NONE where it is wrong by itself."""
    contradicted: C
    """How many values it contradicts."""
    key: C
    """What several intervals of time say of one (log, rule, key) is one finding."""
    order: C
    """... as that with the least ``order`` says it."""
    pieces: C
    """... if so many intervals say it."""
    c0: Call[C]
    c1: Call[C]
    c2: Call[C]
    c3: Call[C]
    c4: Call[C]
    c5: Call[C]
    c6: Call[C]
    c7: Call[C]

    @property
    def calls(self) -> tuple[Call[C], ...]:
        """The operations, by slot."""
        return self.c0, self.c1, self.c2, self.c3, self.c4, self.c5, self.c6, self.c7


SLOTS = 8
"""Operations of a contradiction."""
