"""Facts: what one event says of an offset, a value, a log or a run. Each kind is a table of its own.

Indexes (``index``, ``*_index``) are those of events of the history; a smaller one was earlier. Times
(``*_ns``) are nanoseconds from the start of the run. NONE stands for what is not known. Facts of one place of
a log travel together (wrackline.checkers.engine.fact_codec), so that few of them name their log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import cast

import numpy as np

from wrackline.checkers.engine import object_facts
from wrackline.checkers.engine.candidates import Candidate, Entry, Proof, SentBelow
from wrackline.checkers.inputs.table import NONE, Bools, C, Ints, T, Table, concatenated, plain


@dataclass(frozen=True, slots=True)
class Timed(Table[Ints]):
    """Operations: when they were invoked, and when they completed (NONE where they did not)."""

    invoke_index: Ints
    invoke_ns: Ints
    complete_index: Ints
    complete_ns: Ints


# --- of one range of offsets


@dataclass(frozen=True, slots=True)
class Read(Table[Ints]):
    """Records that somebody was given."""

    offset: Ints
    value: Ints
    index: Ints
    """The event that gave it."""
    ns: Ints


@dataclass(frozen=True, slots=True)
class Final(Read):
    """Records of the final read."""


@dataclass(frozen=True, slots=True)
class Poll(Read):
    """Records that consumers were given."""


@dataclass(frozen=True, slots=True)
class Held(Table[Ints]):
    """Records in the log of a replica."""

    offset: Ints
    value: Ints
    index: Ints
    """The event that showed it."""
    epoch: Ints
    """The leader epoch that it was written in."""
    bit: Ints
    """The replica's bit among those that must have what was committed; 0 for another one."""
    committed: Ints
    """1: it is below the replica's high watermark."""


@dataclass(frozen=True, slots=True)
class Ack(Timed):
    """Sends that were acknowledged with an offset."""

    offset: Ints
    value: Ints
    process: Ints


@dataclass(frozen=True, slots=True)
class EndOffset(Timed):
    """End offsets that clients were told."""

    offset: Ints
    process: Ints


@dataclass(frozen=True, slots=True)
class End(EndOffset):
    """``offset`` is the one below the end: the record there existed when the operation returned."""


@dataclass(frozen=True, slots=True)
class EndAsked(EndOffset):
    """``offset`` is the end: nothing there existed when the operation was invoked."""


@dataclass(frozen=True, slots=True)
class Jump(Table[Ints]):
    """Consumers that stood at ``offset`` and were given ``next_offset`` next, which is above it."""

    offset: Ints
    next_offset: Ints
    process: Ints
    invoke_index: Ints
    """The event that brought the consumer to ``offset``."""
    complete_index: Ints
    complete_ns: Ints
    """The event that gave it ``next_offset``."""


@dataclass(frozen=True, slots=True)
class Session(Table[Ints]):
    """Acknowledged records that lie below one that their process had sent before."""

    offset: Ints
    value: Ints
    earlier: Entry[Ints]
    """That one; ``index`` is that of its ack."""


@dataclass(frozen=True, slots=True)
class Floor(Table[Ints]):
    """The offset right below the start of a log."""

    offset: Ints


FIRST, LAST = -1, 1 << 30
"""``rank`` of a record that is the first or the last of its process, where nobody knows any more what it was
in its send."""


@dataclass(frozen=True, slots=True)
class Placed(Timed):
    """Records that were acknowledged with an offset, and whose process sent one without an offset right
    before or after them (wrackline.checkers.engine.logs.unacknowledged)."""

    log: Ints
    offset: Ints
    value: Ints
    process: Ints
    rank: Ints
    """The number of the record in its send, from 0; FIRST or LAST where nobody knows it any more."""


# --- of a log as a whole


@dataclass(frozen=True, slots=True)
class Epoch(Table[Ints]):
    """The offsets at which leader epochs begin and end in the final read or in the log of a replica."""

    node: Ints
    """The number of the replica; -1 for the final read."""
    epoch: Ints
    first: Ints
    last: Ints
    """The smallest and the largest offset seen in it."""
    index: Ints
    last_index: Ints
    """The first and the last event that showed it."""


@dataclass(frozen=True, slots=True)
class Position(Table[Ints]):
    """Steps of a process through a log: records that it was given, or sent."""

    process: Ints
    log: Ints
    order: Ints
    """Index by which steps of a process are in order: of a read its event, of a record its send's
    invocation."""
    offset: Ints
    """NONE where a consumer came to a partition."""
    next: Ints
    """What must not be above the ``offset`` of the next step; NONE where nothing is known."""
    value: Ints
    index: Ints
    ns: Ints
    """The event that showed it."""


@dataclass(frozen=True, slots=True)
class Edge(Table[Ints]):
    """The position of a process in a log at the edges of a part of the history that was read at once."""

    what: Ints
    """A ``wrackline.checkers.engine.ingest.per_process.Walk``."""
    last: Ints
    """1: at the end of the part; 0: at its beginning."""
    at: Position


@dataclass(frozen=True, slots=True)
class Gap(Table[Ints]):
    """Times without an acknowledgement in a log."""

    fault: Ints
    """The number of a fault that touches it, or a constant of wrackline.checkers.engine.ingest.counts."""
    before: Ints
    at: Ints
    """The times (ns) of the acknowledgements at both ends."""


# --- of a run, or of a value


@dataclass(frozen=True, slots=True)
class Count(Table[Ints]):
    """Operations that are the same in all that verdicts say of them
    (wrackline.checkers.engine.ingest.counts)."""

    key: Ints
    n: Ints
    slowest: Ints
    """The longest latency (ns)."""


@dataclass(frozen=True, slots=True)
class Send(Timed):
    """Records sent."""

    log: Ints
    value: Ints
    process: Ints
    outcome: Ints
    """A ``wrackline.checkers.engine.candidates.SendOutcome``."""
    sent_offset: Ints
    """Where the ack says that it is; NONE where nobody was told."""
    rank: Ints
    """The number of the record in its send, from 0."""


@dataclass(frozen=True, slots=True)
class Unplaced(Send):
    """Records sent whose sender was told no offset."""


@dataclass(frozen=True, slots=True)
class Sent(Send):
    """All records sent, where all are looked at by value."""


@dataclass(frozen=True, slots=True)
class InFinal(Timed):
    """Records in the final read whose order is held against that of their sends
    (wrackline.checkers.engine.logs.unacknowledged)."""

    log: Ints
    offset: Ints
    value: Ints
    process: Ints
    outcome: Ints
    rank: Ints
    final_index: Ints
    placed: Ints
    """1: an ack named its offset; 0: its sender was told none."""
    late: Ints
    """1: the place where all of its range is known finds that it came too late."""
    below: SentBelow[Ints]


@dataclass(frozen=True, slots=True)
class Summary(Table[C]):
    """The summary of one range of offsets for the driver. ``Summary[Ints]`` travels, ``Summary[int]`` is
    one row."""

    log: C
    part: C
    """The number of the range."""
    by_ack: Proof[C]
    by_settled_ack: Proof[C]
    by_poll: Proof[C]
    by_final: Proof[C]
    by_end: Proof[C]
    """Its earliest proofs."""
    last_claim: C
    """The latest invocation that claims a place in it."""
    low_final: Entry[C]
    high_final: C
    """The lowest and the highest record of the final read."""
    low_place: C
    """The lowest place that clients were told of."""
    low_point: C
    low_is_place: C
    high_point: C
    """The lowest and the highest offset that was told to be taken, by a place or by an end."""
    floor: C
    """The offset below the log's start, where that is in this range."""
    jump_need: C
    """How far up one must look to decide about jumps that begin here."""
    gaps: C
    """How many gaps it has."""
    below: SentBelow[C]
    """Of its acknowledged records in the final read that which was sent last."""


# --- all kinds


class Kind(IntEnum):
    """The kinds of rows and notes that travel together, each with its table, where its meaning is said. Facts
    of one place are sorted by them."""

    table: type[Table[Ints]] | None

    def __new__(cls, table: type[Table[Ints]] | None = None) -> Kind:
        number = len(cls.__members__)
        kind = int.__new__(cls, number)
        kind._value_, kind.table = number, table
        return kind

    NOTE = (None,)
    """Counts and problems as JSON."""
    FINAL = (Final,)
    POLL = (Poll,)
    HELD = (Held,)
    ACK = (Ack,)
    END = (End,)
    END_ASKED = (EndAsked,)
    JUMP = (Jump,)
    SESSION = (Session,)
    FLOOR = (Floor,)
    EPOCH = (Epoch,)
    EDGE = (Edge,)
    GAP = (Gap,)
    COUNT = (Count,)
    UNPLACED = (Unplaced,)
    SENT = (Sent,)
    CANDIDATE = (Candidate,)
    SUMMARY = (Summary,)
    PUT = (object_facts.Put,)
    GET = (object_facts.Get,)
    UNSURE_GET = (object_facts.UnsureGet,)
    EMPTY = (object_facts.Empty,)
    ZONE = (object_facts.Zone,)
    LIFE = (object_facts.Life,)
    ZONE_SUMMARY = (object_facts.ZoneSummary,)
    LIFE_SUMMARY = (object_facts.LifeSummary,)
    EARLIEST_DEQUEUE = (object_facts.EarliestDequeue,)
    UNCONSUMED = (object_facts.Unconsumed,)
    CONTRADICTION = (object_facts.Contradiction,)
    PLACED = (Placed,)
    IN_FINAL = (InFinal,)
    EVENTS = (None,)
    """Events as Arrow's bytes; ``size`` is the index of the first."""


KIND_OF: Mapping[type[Table[Ints]], Kind] = {kind.table: kind for kind in Kind if kind.table is not None}


class Facts:
    """Tables of several kinds, as they come."""

    def __init__(self, rows: Iterable[Table[Ints]] = ()) -> None:
        self._parts: dict[type[Table[Ints]], list[Table[Ints]]] = {}
        for some in rows:
            self.take(some)

    def take(self, rows: Table[Ints]) -> None:
        self._parts.setdefault(type(rows), []).append(rows)

    def of(self, kind: type[T]) -> T:
        """All of one kind, in the order in which they came."""
        result = concatenated(kind, cast("list[T]", self._parts.get(plain(kind), [])))
        self._parts[plain(kind)] = [result]
        return result

    def replace(self, rows: Table[Ints]) -> None:
        """Replaces all facts of the kind of these rows."""
        self._parts[type(rows)] = [rows]


def grouped(*keys: Ints) -> tuple[Ints, Bools, Bools]:
    """(order, starts, ends): a stable order by the keys, and where in it each group begins and ends."""
    order = np.lexsort(keys[::-1])
    changes = np.zeros(max(0, len(order) - 1), dtype=bool)
    for key in keys:
        changes |= np.diff(key[order]) != 0
    edge = np.ones(min(1, len(order)), dtype=bool)
    return order, np.concatenate([edge, changes]), np.concatenate([changes, edge])


def each_group(*keys: Ints) -> Iterator[Ints]:
    """Yields group by group the rows that agree in all keys, in their order."""
    order, starts, _ = grouped(*keys)
    yield from np.split(order, np.flatnonzero(starts)[1:]) if len(order) else ()


def table_at(table: T, rows: Ints) -> T:
    """The table at these rows; NONE in all columns where a row is negative."""
    return type(table).of_columns([np.append(column, NONE)[rows] for column in table.columns()])
