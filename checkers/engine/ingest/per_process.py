"""Steps of a process through each partition: the records that a consumer is given, and those that a
producer sends, compared one with the next.

Within a part of the history that is read at once every step is held against the one before it in its process
and log. Where a process stood at the edges of the part is sent on, to be put together by whoever sees all
parts (wrackline.checkers.engine.tasks).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from wrackline.checkers.engine.candidates import Candidate, Entry, Step
from wrackline.checkers.engine.context import Context
from wrackline.checkers.engine.fact_codec import AS_A_WHOLE, Writer
from wrackline.checkers.engine.facts import Edge, Jump, Placed, Position, Session, Timed, grouped
from wrackline.checkers.engine.routing import put_found
from wrackline.checkers.inputs.table import NEVER, NONE, Bools, Ints, Table, bools, concatenated, constant


class Walk(IntEnum):
    """The kind of a process's steps through a log."""

    POLLED = 0
    """Records that a consumer was given."""
    SENT = 1
    """Records that a producer sent, and that were acknowledged with an offset."""


@dataclass(frozen=True, slots=True)
class Pair(Table[Ints]):
    """Steps that have one before them in their process and log."""

    earlier: Position
    later: Position


def is_elsewhere(expected: Ints, offset: Ints) -> Bools:
    """A read that went on elsewhere than the one before ended."""
    return bools((expected != NONE) & (offset != NONE) & (offset != expected))


def is_backwards(earlier: Ints, offset: Ints) -> Bools:
    """A record that lies below the one that its process sent before."""
    return bools(earlier > offset)


class Sequence:
    """The position of each process in each log, kept from batch to batch."""

    def __init__(self, what: Walk) -> None:
        self.what = what
        self._stood = Position.unknown(0)
        self._first: list[Position] = []

    def steps(self, rows: Position, wanted: Callable[[Ints, Ints], Bools]) -> Pair:
        """Returns the pairs that are ``wanted`` among the rows that have one before them, here or in an
        earlier batch: a test of ``next`` of the one before and of ``offset`` of the row itself."""
        both = concatenated(Position, [self._stood, rows])
        order, starts, ends = grouped(both.process, both.log)
        whole = both.take(order)
        known = order < len(self._stood)
        # What has nothing before it in this part of the history may have something in an earlier one.
        self._first.append(whole.take(starts & ~known))
        self._stood = whole.take(ends)
        at = np.flatnonzero(~starts)
        at = at[wanted(whole.next[at - 1], whole.offset[at])]
        return Pair(whole.take(at - 1), whole.take(at))

    def stood(self, rank: int) -> Placed:
        """The last record of each process and log so far."""
        return _placed(self._stood, rank)

    def begun(self, rank: int) -> Placed:
        """The first ones."""
        return _placed(concatenated(Position, self._first), rank)

    def edges(self, writer: Writer) -> None:
        """Sends on where each process began and stopped."""
        for last, parts in ((0, self._first), (1, [self._stood])):
            for rows in parts:
                edge = Edge(constant(self.what, len(rows)), constant(last, len(rows)), rows)
                writer.spread(rows.log, AS_A_WHOLE, edge)


def _placed(rows: Position, rank: int) -> Placed:
    return replace(
        rows.carry(Placed),
        rank=constant(rank, len(rows)),
        invoke_index=rows.order,
        complete_index=rows.index,
        complete_ns=rows.ns,
    )


def put_steps(writer: Writer, steps: Pair, context: Context) -> None:
    """Reads that went on elsewhere than the one before ended: jumps go to the range that they began in,
    rewinds are findings."""
    jumps = steps.take(steps.later.offset > steps.earlier.next)
    writer.spread(
        jumps.later.log,
        jumps.earlier.next // context.width,
        Jump(
            offset=jumps.earlier.next,
            next_offset=jumps.later.offset,
            process=jumps.later.process,
            invoke_index=jumps.earlier.index,
            complete_index=jumps.later.index,
            complete_ns=jumps.later.ns,
        ),
    )
    back = steps.take(steps.later.offset < steps.earlier.next)
    rows = replace(
        Candidate[Ints].unknown(len(back)),
        log=back.later.log,
        offset=back.earlier.next,
        other_offset=back.later.offset,
        process=back.later.process,
        invoke_index=back.earlier.index,
        complete_index=back.later.index,
        complete_ns=back.later.ns,
    )
    put_found(writer, context, Step.REWIND, "rewound", rows)


def put_sessions(writer: Writer, steps: Pair, context: Context) -> None:
    """Records that lie below one that their process had sent before go to their range."""
    earlier, later = steps.earlier, steps.later
    rows = Session(later.offset, later.value, Entry(earlier.next, earlier.value, earlier.index))
    writer.spread(later.log, later.offset // context.width, rows)


def put_batch_order(writer: Writer, steps: Pair, context: Context) -> None:
    """Records of one send that lie below one before them in the send: these are findings."""
    earlier, later = steps.earlier, steps.later
    rows = replace(
        Candidate[Ints].unknown(len(steps)),
        log=later.log,
        offset=later.offset,
        value=later.value,
        process=later.process,
        earlier=Entry(earlier.next, earlier.value, constant(NONE, len(steps))),
        invoke_index=later.order,
        complete_index=later.index,
        complete_ns=later.ns,
    )
    put_found(writer, context, Step.BATCH, "batch reordered", rows)


@dataclass(frozen=True, slots=True)
class ShownEnd(Timed):
    """The ends that operations were told a log has."""

    log: Ints
    end: Ints
    process: Ints


class Ends:
    """Ends of logs that clients were shown, against the end of the final read."""

    def __init__(self, run: int, context: Context) -> None:
        whole = [log for log in sorted(context.logs_of.get(run, ())) if context.logs[log].complete]
        about = [context.logs[log] for log in whole]
        self._log = np.array([*whole, NONE], dtype=np.int64)
        self._end = np.array([*(one.end for one in about), NEVER], dtype=np.int64)
        self._asked = np.array([*(one.asked for one in about), NONE], dtype=np.int64)

    def put(self, writer: Writer, context: Context, shown: ShownEnd) -> None:
        """Passes on the ends that were shown beyond the final read's end before the final read asked for
        that: a later answer says nothing of it."""
        at = np.searchsorted(self._log[:-1], shown.log)
        at = np.where(self._log[at] == shown.log, at, len(self._log) - 1)
        outside = (shown.end > self._end[at]) & (shown.complete_index < self._asked[at])
        if not outside.any():
            return
        rows, end = shown.take(outside), self._end[at][outside]
        result = replace(
            rows.carry(Candidate[Ints]),
            offset=end,
            other_offset=rows.end,
            log_end=end,
            complete=constant(1, len(rows)),
        )
        put_found(writer, context, Step.SHOWN, "past end", result)
