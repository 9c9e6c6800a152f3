"""Registers and queues, first half: all operations on one value together (docs/linearizability.md).

Operations travel to where all of their value are, in any number of parts. There the exact checks' own
functions say what is wrong with a value by itself, and make of each value one row: a register's *zone*, a
queue's *life*. These go on to where they start in time (wrackline.checkers.engine.objects.times), with one
short row per interval of time for the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntFlag, StrEnum

import numpy as np

from wrackline.checkers.engine.candidates import SendOutcome
from wrackline.checkers.engine.context import Context, owner_of_run
from wrackline.checkers.engine.fact_codec import AS_A_WHOLE, VALUES, Writer
from wrackline.checkers.engine.facts import Send, each_group, table_at
from wrackline.checkers.engine.object_facts import (
    SLOTS,
    Call,
    Contradiction,
    EarliestDequeue,
    Empty,
    Get,
    Life,
    LifeSummary,
    Put,
    Unconsumed,
    UnsureGet,
    Zone,
    ZoneSummary,
)
from wrackline.checkers.engine.routing import bucket_of
from wrackline.checkers.exact import operations as exact_operations
from wrackline.checkers.exact import queue as exact_queue
from wrackline.checkers.exact import register as exact_register
from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns
from wrackline.checkers.inputs.table import NONE, Bools, Ints, Table, assigned, bools, concatenated, constant
from wrackline.history.model import MARKER

REGISTER, QUEUE = "register", "queue"
GETS = {REGISTER: "read", QUEUE: "dequeue"}


class Role(IntFlag):
    """The role of a life in an interval of time."""

    ENTRY = 1
    """Its enqueue began here: it may have overtaken others."""
    ASKED = 2
    """Its enqueue returned here: whether it was overtaken is asked here."""


RULES: tuple[tuple[str, exact_register.Rule | exact_queue.Rule], ...] = (
    *((REGISTER, rule) for rule in exact_register.Rule),
    *((QUEUE, rule) for rule in exact_queue.Rule),
)
"""``rule`` of a contradiction is a place in it."""
_COMPACT_ROWS = 2_000_000


# --- from operations to calls


def put_puts(writer: Writer, context: Context, run: int, sends: Send) -> None:
    """Records sent, without those that reads send."""
    mine = sends.take((sends.log != NONE) & ((sends.value < 0) | (sends.value & 15 != MARKER)))
    happened = mine.outcome == SendOutcome.ACKED
    puts = Put(
        log=mine.log,
        value=mine.value,
        failed=(mine.outcome == SendOutcome.REFUSED).astype(np.int64),
        call=Call(
            inv=mine.invoke_index,
            ret=np.where(happened, mine.complete_index, NONE),
            inv_ns=mine.invoke_ns,
            ret_ns=np.where(happened, mine.complete_ns, NONE),
            process=mine.process,
        ),
    )
    _by_value(writer, context, run, puts)


def put_gets(
    writer: Writer, context: Context, run: int, ok: Bools, log: Ints, value: Ints, call: Call[Ints]
) -> None:
    """Gets that did not fail; ``value``: NOTHING where there was none. ``call``: as if all had returned."""
    queue = context.objects[run] == QUEUE
    empty = ok & (value == NOTHING) & queue
    _by_value(writer, context, run, Get(log, value, call).take(ok & ~empty))
    if not queue:
        return  # a read that nobody knows the answer of says nothing
    writer.spread(log[~ok], 0, UnsureGet(call.inv[~ok]))
    # An answer that touches several intervals of time is asked about in each.
    first, last = call.inv[empty] // context.span, call.ret[empty] // context.span
    pieces = last - first + 1
    row = np.repeat(np.flatnonzero(empty), pieces)
    part = np.repeat(first, pieces) + np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    writer.spread(log[row], part, Empty(np.repeat(pieces, pieces), call.take(row)))


def _by_value(writer: Writer, context: Context, run: int, rows: Put | Get) -> None:
    part = 1 + bucket_of(constant(run, len(rows)), rows.value, context.parts[run])
    writer.spread(owner_of_run(run), part, rows)


# --- what is wrong


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """One culprit, or what one interval of time knows of it. ``calls``: rows of its operations, by slot; -1
    for none."""

    rule: StrEnum
    value: int
    other: int | None
    contradicted: int
    calls: Sequence[int]
    key: int
    order: int = 0
    pieces: int = 1
    """See ``Contradiction``."""


def put_contradictions(
    writer: Writer, workload: str, log: int, calls: Call[Ints], found: Sequence[BrokenRule]
) -> None:
    """``calls``: the operations that the culprits name by their rows."""
    if not found:
        return
    at = np.full((len(found), SLOTS), -1)
    for row, one in enumerate(found):
        at[row, : len(one.calls)] = one.calls

    def each(values: Iterator[int]) -> Ints:
        return np.fromiter(values, dtype=np.int64, count=len(found))

    rows = Contradiction(
        constant(log, len(found)),
        each(RULES.index((workload, one.rule)) for one in found),
        each(one.value for one in found),
        each(NONE if one.other is None else one.other for one in found),
        each(one.contradicted for one in found),
        each(one.key for one in found),
        each(one.order for one in found),
        each(one.pieces for one in found),
        *(table_at(calls, at[:, slot]) for slot in range(SLOTS)),
    )
    writer.rows(log, 0, rows)
    writer.note(VALUES, 0, {"contradictions": {workload: len(found)}})


# --- all of a value


@dataclass(frozen=True, slots=True)
class Operation(Table[Ints]):
    """Puts and gets of one value together."""

    is_put: Ints
    put: Put
    """Of a get too: it is one that did not fail."""


class Values:
    """Takes up the calls of some of the values of a run's objects; ``put`` when all are there. Puts should
    come first: then gets of one value may be any number."""

    def __init__(self, run: int, context: Context) -> None:
        self.run, self.context = run, context
        self.workload = context.objects[run]
        self._rows: list[Operation] = []
        self._gets = 0

    def take(self, rows: Table[Ints]) -> None:
        """Raises TypeError for what is no put or get."""
        if isinstance(rows, Put):
            self._rows.append(Operation(constant(1, len(rows)), rows))
        elif isinstance(rows, Get):
            size = len(rows)
            put = Put(rows.log, rows.value, failed=constant(0, size), call=rows.call)
            self._rows.append(Operation(constant(0, size), put))
            self._gets += size
        else:
            raise TypeError(f"{type(rows).__name__} is no operation on an object")
        if self._gets > _COMPACT_ROWS:
            kept = [rows.take(essential(self.workload, table_of(rows))) for _, rows in self._logs()]
            self._rows, self._gets = kept, sum(int((rows.is_put == 0).sum()) for rows in kept)

    def _logs(self) -> Iterator[tuple[int, Operation]]:
        """The calls of each object, without values that were put twice: what remains of a correct history is
        correct."""
        rows = concatenated(Operation, self._rows)
        for of_log in each_group(rows.put.log):
            mine = rows.take(of_log)
            written = np.sort(mine.put.value[(mine.is_put == 1) & (mine.put.failed == 0)])
            again = np.unique(written[1:][written[1:] == written[:-1]])
            if len(again):
                mine = mine.take(bools(~np.isin(mine.put.value, again)))
            yield int(rows.put.log[of_log[0]]), mine

    def put(self, writer: Writer) -> int:
        """Writes the zones or lives of each object, and returns 0: no value of them is to be looked at
        once more."""
        for log, rows in self._logs():
            put = put_zones if self.workload == REGISTER else put_lives
            put(writer, self.context.span, log, rows)
        return 0


def table_of(rows: Operation) -> Columns:
    """Returns the operations as the exact checks read them."""
    call = rows.put.call
    ret = np.where(call.ret == NONE, NEVER, call.ret)
    return Columns(rows.is_put == 1, rows.put.value, call.inv, ret, rows.put.failed == 1)


def essential(workload: str, table: Columns) -> Ints:
    """The operations without which something else would be found, whatever gets still come: all puts, and of
    each value the gets that say most."""
    if workload == REGISTER:
        error, clusters = exact_register.clusters_of(table)
        rows = [clusters.first, clusters.last]
    else:
        error, lives = exact_queue.lives_of(table)
        rows = [lives.got]
    named = np.array([row for one in error for row in one.rows], dtype=np.int64)
    kept: Ints = np.unique(np.concatenate([np.flatnonzero(table.puts), *rows, named]))
    return kept[kept >= 0]


def put_zones(writer: Writer, span: int, log: int, rows: Operation) -> None:
    result, clusters = exact_register.clusters_of(table_of(rows))
    calls = rows.put.call
    put_contradictions(writer, REGISTER, log, calls, [_of_one_value(REGISTER, one, rows) for one in result])
    zones = Zone(
        clusters.value,
        write=table_at(calls, clusters.write),
        first=table_at(calls, clusters.first),
        last=table_at(calls, clusters.last),
    )
    part = np.maximum(np.minimum(clusters.f, clusters.s), 0) // span
    writer.spread(log, part, zones)
    forward = np.flatnonzero(clusters.f < clusters.s)
    _put_last(writer, log, ZoneSummary(part, zones).take(forward[np.argsort(clusters.s[forward])]))


def _of_one_value(workload: str, one: exact_operations.Contradiction, rows: Operation) -> BrokenRule:
    """A register's slots: write, first and last of a zone, and those of another; a queue's: put and got, put
    and got."""
    puts = [row for row in one.rows if rows.is_put[row]]
    gets = [row for row in one.rows if not rows.is_put[row]]
    put = puts[0] if puts else -1
    if workload == REGISTER:
        slots = [-1, gets[0], gets[0], put, put, put]
    else:
        slots = [put, gets[0], -1, gets[1] if len(gets) > 1 else -1]
    return BrokenRule(one.rule, one.value, None, 0, slots, one.value)


def put_lives(writer: Writer, span: int, log: int, rows: Operation) -> None:
    result, lives = exact_queue.lives_of(table_of(rows))
    calls = rows.put.call
    put_contradictions(writer, QUEUE, log, calls, [_of_one_value(QUEUE, one, rows) for one in result])
    came, size = lives.got >= 0, len(lives.got)
    whole = Life(
        value=rows.put.value[lives.put],
        role=constant(Role.ENTRY | Role.ASKED, size),
        put=table_at(calls, lives.put),
        got=table_at(calls, lives.got),
    )
    # Who never came out came out before nobody; whose enqueue never returned was in after nobody's.
    entry = np.where(came, lives.ei // span, NONE)
    asked = np.where(lives.er != NEVER, lives.er // span, NONE)
    for role, part, mine in (
        (Role.ENTRY | Role.ASKED, asked, came & (entry == asked)),
        (Role.ENTRY, entry, came & (entry != asked)),
        (Role.ASKED, asked, (asked != NONE) & (entry != asked)),
    ):
        some = np.flatnonzero(mine)
        writer.spread(log, part[some], replace(whole.take(some), role=constant(role, len(some))))
    first_out = np.flatnonzero(came)
    _put_last(writer, log, EarliestDequeue(entry, whole).take(first_out[np.argsort(-lives.dr[first_out])]))
    inside = np.flatnonzero(came & (lives.er < lives.di))
    _put_last(writer, log, LifeSummary(asked, whole).take(inside[np.argsort(lives.di[inside])]))
    left = np.flatnonzero(~came)
    _, at, counts = np.unique(asked[left], return_inverse=True, return_counts=True)
    count = assigned(constant(0, size), left, counts[at])
    _put_last(writer, log, Unconsumed(asked, count, whole).take(left[np.argsort(lives.er[left])]))


def _put_last(
    writer: Writer, log: int, rows: ZoneSummary | LifeSummary | EarliestDequeue | Unconsumed
) -> None:
    """Writes the last of these rows of each interval of time, for the driver."""
    last_first = rows.part[::-1]
    _, at = np.unique(last_first, return_index=True)
    writer.rows(log, AS_A_WHOLE, rows.take(len(rows) - 1 - at))
