"""Candidates: the few rows that some anomaly wants to see, with all that is known of each, in one table.

A *place* is an offset of a log and a value that somebody says is there, with the send that the value came
from. ``step`` says what a row is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from wrackline.checkers.inputs.table import NEVER, NONE, Bools, C, Ints, Table, bools


class Step(IntEnum):
    """The kind of a row. Places at one offset are in the order of these numbers."""

    IN_FINAL = 10
    """A place that the final read has."""
    GIVEN = 11
    """A place that the final read does not have: an ack named it, or a poll gave it to a consumer."""
    IN_REPLICAS = 12
    """A place that was only seen in the logs of replicas."""
    UNREAD = 13
    """A place that an ack named, at or above the end of a final read that was derived from polls: as far as
    anybody knows the record is there."""
    DELETED = 14
    """A place that an ack or a poll named, below the beginning of the log: it was deleted and not lost."""
    END_ASKED = 20
    """A client was told that the log ends at ``offset``: nothing at or above it had been appended when the
    operation was invoked."""
    END_TOLD = 21
    """The final read was told that the log ends at ``offset``."""
    JUMP = 30
    """A consumer stood at ``offset`` and was given ``other_offset`` next, which is above it."""
    NOWHERE = 50
    """A send that was told no offset, and whose value is in no place (``offset`` is NONE)."""
    REWIND = 60
    """A consumer stood at ``offset`` and was given ``other_offset`` next, which is below it."""
    BATCH = 61
    """A record that is stored below one that its process sent earlier (``earlier``)."""
    EPOCH = 62
    """A leader epoch (``epoch_high``) begins at ``offset``, before a smaller one (``epoch_low``) ends at
    ``other_offset``. ``process`` is the number of the replica, or -1 for the final read."""
    HOLE = 63
    """The final read has nothing right above ``offset``, though the log goes on at ``other_offset``."""
    GAP = 64
    """Nobody saw what is at the ``unseen`` offsets between ``offset`` and the next offset that is known to be
    taken."""
    SHOWN = 65
    """Somebody was shown that the log goes on to ``other_offset``, though the final read ends at
    ``offset``."""


class SendOutcome(IntEnum):
    """The outcome of a record's send."""

    ACKED = 0
    """It was acknowledged."""
    REFUSED = 1
    """It certainly failed: it must not be in the log."""
    UNSURE = 2
    """Nobody knows: it may be in the log, or come there later."""

    @property
    def word(self) -> str:
        """The outcome in the words of a verdict, where the client gave no error."""
        return ("acked", "failed", "unknown")[self]


@dataclass(frozen=True, slots=True)
class Proof(Table[C]):
    """The earliest event that showed that a log had grown to an offset or beyond; all NONE where no event
    did. Whoever invoked an operation after it can know of that offset."""

    index: C
    """Index of the event."""
    ns: C
    """Its time, from the start of the run."""
    offset: C
    """The largest offset that it showed."""
    value: C
    """The value there; NONE for an end offset, which shows none."""


@dataclass(frozen=True, slots=True)
class Entry(Table[C]):
    """Another record of the same log; all NONE where there is none."""

    offset: C
    value: C
    index: C
    """Index of the event that showed it."""


@dataclass(frozen=True, slots=True)
class SentBelow(Table[C]):
    """The record that was sent last among the acknowledged ones below a record of the final read; all NONE
    where there is none."""

    invoke_index: C
    invoke_ns: C
    complete_index: C
    complete_ns: C
    offset: C
    value: C


@dataclass(frozen=True, slots=True)
class Candidate(Table[C]):
    """Rows that have a mark, with all that is known of them.

    Indexes (``index``, ``*_index``) are those of events of the history; a smaller one was earlier. Times
    (``*_ns``) are nanoseconds from the start of the run. Columns that answer yes or no are 1 or 0. What a
    ``step`` does not use is NONE."""

    log: C
    """The number of the run, topic and partition (wrackline.checkers.engine.context.log_of)."""
    step: C
    """A ``Step``."""
    marks: C
    """A bit for each mark that the row has (wrackline.checkers.engine.marks)."""
    index: C
    """Of a place: the first event that gave it to a client, an ack, a poll or the final read."""
    offset: C
    value: C
    """Below 0: a record that is none of the run's."""

    # The send that the value came from.
    acked: C
    """1: an ack named this place. Other places find their sends by value."""
    process: C
    outcome: C
    """An ``SendOutcome``."""
    sent_offset: C
    """Where the ack says that the record is; NONE where it did not say so."""
    sent_log: C
    """The log that it was sent to."""
    rank: C
    """The number of the record in its send, from 0."""
    invoke_index: C
    invoke_ns: C
    complete_index: C
    complete_ns: C

    # Who saw the place: the first event of each kind.
    poll_index: C
    poll_ns: C
    final_index: C
    final_ns: C
    replica_index: C
    hw_index: C
    """The first event that showed the place in a replica's log, below that replica's high watermark."""
    held: C
    """A bit for each replica whose log has the place."""
    owed: C
    """A bit for each replica that must have it."""
    epoch_low: C
    epoch_high: C
    """Leader epochs under which replicas have the place below their high watermarks: the smallest and the
    largest."""

    # What else is there.
    other_offset: C
    """The second offset that this row is about, as its ``step`` says."""
    rival: Entry[C]
    """A record with another value that clients were given at the same offset."""
    stored: Entry[C]
    """What the final read has at this offset, or next above it where it has nothing there."""
    committed: Entry[C]
    """A record with another value that a replica has at the same offset below its high watermark."""
    committed_epoch: C
    """The largest leader epoch of that."""
    known_offset: C
    """Of a JUMP: the first record that it passed over."""
    unseen: C
    """Of a GAP: how many offsets nobody saw."""
    earlier: Entry[C]
    """The record that the same process sent before this one, and that is stored above it."""

    # The earliest proofs that the log had grown to this offset.
    by_ack: Proof[C]
    by_settled_ack: Proof[C]
    """Of acks of records that are in the final read."""
    by_poll: Proof[C]
    by_final: Proof[C]
    by_end: Proof[C]
    above: Proof[C]
    """Of a GAP: the earliest proof of any kind that the log had grown over it."""

    # What the other places of the value say (wrackline.checkers.engine.logs.by_value).
    in_final: C
    """1: the final read has the value somewhere."""
    was_polled: C
    """1: a consumer was given the value somewhere."""
    first: C
    """1 in one row of each value, which speaks for it."""
    stands: C
    """1: the final read has this place, or nothing says that it has it not."""
    home: C
    """1: the place is in the log that the value was sent to."""
    original_offset: C
    original_index: C
    """The lowest place of the value that stands in its own log."""
    kept_offset: C
    kept_index: C
    """The lowest place of the value that the final read has in its own log."""
    astray: C
    """1: an ack named a place of this value that the complete final read does not have."""
    below: SentBelow[C]

    # The log.
    complete: C
    """1: the final read reached the end of the log."""
    log_end: C
    """The end of the log when the final read was made; NONE without one."""
    idempotent: C
    """1: producers were idempotent."""


Rows = Candidate[Ints]
"""Candidates in numpy: what a mark's test is given."""


# --- columns in which NONE stands for nothing


def lt(one: Ints, other: Ints) -> Bools:
    """one < other, where both are known."""
    return bools((one != NONE) & (other != NONE) & (one < other))


def least(*columns: Ints) -> Ints:
    """The smallest that is known; NONE where none is."""
    result = np.full(len(columns[0]), NEVER)
    for column in columns:
        result = np.minimum(result, np.where(column == NONE, NEVER, column))
    return np.where(result == NEVER, NONE, result)


# --- what a row is


def is_kept(rows: Candidate[Ints]) -> Bools:
    """Tells whether a place is in the log at the end, as far as is known, or was until it was deleted."""
    return bools((rows.step == Step.IN_FINAL) | is_beyond_reading(rows))


def is_beyond_reading(rows: Candidate[Ints]) -> Bools:
    """The final read can tell nothing of this place, whatever it has."""
    return bools((rows.step == Step.UNREAD) | (rows.step == Step.DELETED))


def is_place(rows: Candidate[Ints]) -> Bools:
    """Clients were told of this place."""
    return bools(is_kept(rows) | (rows.step == Step.GIVEN))


def is_held(rows: Candidate[Ints]) -> Bools:
    """Clients or replicas have this place."""
    return bools(is_place(rows) | (rows.step == Step.IN_REPLICAS))


def is_stray(rows: Candidate[Ints]) -> Bools:
    """A place that no ack named: the send that it came from must be found by its value."""
    return bools(is_held(rows) & (rows.acked != 1))


def has_wrong_offset(rows: Candidate[Ints]) -> Bools:
    """An ack or a poll named this place, and the whole final read has the value elsewhere in this log, and
    not here."""
    given = (rows.step == Step.GIVEN) & (rows.complete == 1) & (rows.value >= 0)
    return bools(given & (rows.home == 1) & (rows.kept_offset != NONE))
