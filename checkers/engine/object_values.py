"""Registers and queues, first half: operations on one value beside each other (docs/linearizability.md).

Operations travel to where all of their value are, in any number of parts. There the exact checks' own
functions say what is wrong with a value by itself, and make of each value one row: a register's *zone*, a
queue's *life*. These go on to where they start in time (wrackline.checkers.engine.object_times), with one
short row per stretch of time for the driver.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from wrackline.checkers.engine.candidates import ACKED, REFUSED, bucket_of
from wrackline.checkers.engine.context import Context, owner_of_run
from wrackline.checkers.engine.facts import (
    CALL,
    COLUMNS,
    SLOTS,
    VALUES,
    Kind,
    Rows,
    Writer,
    grouped,
    together,
)
from wrackline.checkers.exact import queue as exact_queue
from wrackline.checkers.exact import register as exact_register
from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints, bools
from wrackline.history.model import MARKER

REGISTER, QUEUE = "register", "queue"
GETS = {REGISTER: "read", QUEUE: "dequeue"}
ENTRY, ASK = 1, 2
"""Roles of a life: where its enqueue began it speaks of those before it, where it returned it is asked
about."""
RULES: tuple[tuple[str, exact_register.Rule | exact_queue.Rule], ...] = (
    *((REGISTER, rule) for rule in exact_register.Rule),
    *((QUEUE, rule) for rule in exact_queue.Rule),
)
"""What a packet's number of a rule means."""
_COMPACT_ROWS = 2_000_000


# --- from operations to calls


def put_puts(
    writer: Writer,
    context: Context,
    run: int,
    log: Ints,
    value: Ints,
    outcome: Ints,
    process: Ints,
    times: Sequence[Ints],
) -> None:
    """Records sent (``times``: invocation and completion, index and time of each), without those that reads
    send."""
    rows = np.flatnonzero((log != NONE) & ((value < 0) | (value & 15 != MARKER)))
    inv, inv_ns, ret, ret_ns = (column[rows] for column in times)
    happened = outcome[rows] == ACKED
    columns = [log[rows], value[rows], (outcome[rows] == REFUSED).astype(np.int64), inv]
    columns += [np.where(happened, ret, NONE), inv_ns, np.where(happened, ret_ns, NONE), process[rows]]
    _by_value(writer, context, run, Kind.PUT, columns)


def put_gets(
    writer: Writer, context: Context, run: int, ok: Bools, log: Ints, value: Ints, call: Sequence[Ints]
) -> None:
    """Gets that did not fail; ``value``: NOTHING where there was none. ``call``: columns CALL, as if all had
    returned."""
    queue = context.objects[run] == QUEUE
    empty = ok & (value == NOTHING) & queue
    some = ok & ~empty
    _by_value(writer, context, run, Kind.GET, [column[some] for column in (log, value, *call)])
    if not queue:
        return  # a read that nobody knows the answer of says nothing
    writer.spread(Kind.UNSURE, log[~ok], np.zeros(int((~ok).sum()), dtype=np.int64), [call[0][~ok]])
    # An answer that stretches over several stretches of time is asked about in each.
    first, last = call[0][empty] // context.span, call[1][empty] // context.span
    pieces = last - first + 1
    row = np.repeat(np.flatnonzero(empty), pieces)
    chunk = np.repeat(first, pieces) + np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    columns = [np.repeat(pieces, pieces), *(column[row] for column in call)]
    writer.spread(Kind.EMPTY, log[row], chunk, columns)


def _by_value(writer: Writer, context: Context, run: int, kind: Kind, columns: Sequence[Ints]) -> None:
    size = len(columns[0])
    part = 1 + bucket_of(np.full(size, run), columns[1], context.parts[run])
    writer.spread(kind, np.full(size, owner_of_run(run)), part, columns)


# --- what is wrong


@dataclass(frozen=True, slots=True)
class Breach:
    """One culprit, or what one stretch of time knows of it. ``calls``: rows of its operations, by slot; -1
    for none."""

    rule: exact_register.Rule | exact_queue.Rule
    value: int
    other: int | None
    contradicted: int
    calls: Sequence[int]
    key: int
    """What several stretches of time tell of one (log, rule, key) is one finding."""
    order: int = 0
    """... whose words are those of the least ``order``."""
    pieces: int = 1
    """... if so many stretches tell it."""


def put_breaches(writer: Writer, workload: str, log: int, table: Rows, found: Sequence[Breach]) -> None:
    """``table``: operations (columns CALL)."""
    if not found:
        return
    at = np.full((len(found), SLOTS), -1)
    for row, one in enumerate(found):
        at[row, : len(one.calls)] = one.calls
    told = [
        [
            *(log, RULES.index((workload, one.rule)), one.value, NONE if one.other is None else one.other),
            *(one.contradicted, one.key, one.order, one.pieces),
        ]
        for one in found
    ]
    columns = [*np.array(told, dtype=np.int64).T]
    for slot in range(SLOTS):
        columns += calls_at(table, at[:, slot])
    names = COLUMNS[Kind.BREACH]
    writer.rows(log, 0, Kind.BREACH, Rows(dict(zip(names, columns, strict=True)), len(found)))
    writer.put(VALUES, 0, Kind.META, 1, orjson.dumps({"breaches": {workload: len(found)}}))


def calls_at(table: Rows, at: Ints) -> list[Ints]:
    """Columns CALL of these rows; NONE where there is none (-1)."""
    return [np.append(table.columns[name], NONE)[at] for name in CALL]


# --- all of a value


class Values:
    """Takes up the calls of some of the values of a run's objects; ``put`` when all are there. Puts should
    come first: then gets of one value may be any number."""

    def __init__(self, run: int, context: Context) -> None:
        self.run, self.context = run, context
        self.workload = context.objects[run]
        self._rows: list[Rows] = []
        self._gets = 0

    def take(self, kind: Kind, rows: Rows) -> None:
        size = len(rows)
        rows.columns["puts"] = np.full(size, int(kind is Kind.PUT))
        if kind is Kind.GET:
            rows.columns["failed"] = np.zeros(size, dtype=np.int64)
            self._gets += size
        self._rows.append(rows)
        if self._gets > _COMPACT_ROWS:
            kept = [rows.take(essential(self.workload, table_of(rows))) for _, rows in self._logs()]
            self._rows, self._gets = kept, sum(int((rows.puts == 0).sum()) for rows in kept)

    def _logs(self) -> Iterator[tuple[int, Rows]]:
        """The calls of each object, without values that were put twice: what remains of a correct history is
        correct."""
        rows = together(self._rows, ("puts", "failed", "log", "value", *CALL))
        order, starts, _ = grouped(rows.log)
        bounds = [*np.flatnonzero(starts).tolist(), len(order)]
        for lo, hi in itertools.pairwise(bounds):
            mine = rows.take(order[lo:hi])
            written = np.sort(mine.value[(mine.puts == 1) & (mine.failed == 0)])
            again = np.unique(written[1:][written[1:] == written[:-1]])
            if len(again):
                mine = mine.take(bools(~np.isin(mine.value, again)))
            yield int(rows.log[order[lo]]), mine

    def put(self, writer: Writer) -> int:
        """Nothing of it is to be looked at by value once more."""
        for log, rows in self._logs():
            put = put_zones if self.workload == REGISTER else put_lives
            put(writer, self.context.span, log, rows)
        return 0


def table_of(rows: Rows) -> Columns:
    ret = np.where(rows.ret == NONE, NEVER, rows.ret)
    return Columns(rows.puts == 1, rows.value, rows.inv, ret, rows.failed == 1)


def essential(workload: str, table: Columns) -> Ints:
    """The operations without which something else would be found, whatever gets still come: all puts, and of
    each value the gets that say most."""
    if workload == REGISTER:
        told, clusters = exact_register.clusters_of(table)
        rows = [clusters.first, clusters.last]
    else:
        wrong, lives = exact_queue.lives_of(table)
        told, rows = wrong, [lives.got]  # type: ignore[assignment]
    named = np.array([row for one in told for row in one.rows], dtype=np.int64)
    kept: Ints = np.unique(np.concatenate([np.flatnonzero(table.puts), *rows, named]))
    return kept[kept >= 0]


def put_zones(writer: Writer, span: int, log: int, rows: Rows) -> None:
    found, clusters = exact_register.clusters_of(table_of(rows))
    put_breaches(writer, REGISTER, log, rows, [_of_one_value(one, rows) for one in found])
    operations = (clusters.write, clusters.first, clusters.last)
    columns = [clusters.value, *(column for at in operations for column in calls_at(rows, at))]
    start = np.minimum(clusters.f, clusters.s)
    chunk = np.maximum(start, 0) // span
    writer.spread(Kind.ZONE, np.full(len(chunk), log), chunk, columns)
    zones = Rows(dict(zip(COLUMNS[Kind.ZONE], columns, strict=True)), len(chunk))
    forward = np.flatnonzero(clusters.f < clusters.s)
    _put_summary(writer, Kind.REACH, log, zones, chunk, forward[np.argsort(clusters.s[forward])])


def _of_one_value(one: exact_register.Breach | exact_queue.Breach, rows: Rows) -> Breach:
    """A register's slots: write, first and last of a zone, and those of another; a queue's: put and got, put
    and got."""
    puts = [row for row in one.rows if rows.puts[row]]
    gets = [row for row in one.rows if not rows.puts[row]]
    put = puts[0] if puts else -1
    if isinstance(one, exact_register.Breach):
        slots = [-1, gets[0], gets[0], put, put, put]
    else:
        slots = [put, gets[0], -1, gets[1] if len(gets) > 1 else -1]
    return Breach(one.rule, one.value, None, 0, slots, one.value)


def put_lives(writer: Writer, span: int, log: int, rows: Rows) -> None:
    found, lives = exact_queue.lives_of(table_of(rows))
    put_breaches(writer, QUEUE, log, rows, [_of_one_value(one, rows) for one in found])
    came = lives.got >= 0
    told = [rows.value[lives.put], *calls_at(rows, lives.put), *calls_at(rows, lives.got)]
    # Who never came out came out before nobody; whose enqueue never returned was in after nobody's.
    entry = np.where(came, lives.ei // span, NONE)
    ask = np.where(lives.er != NEVER, lives.er // span, NONE)
    for role, chunk, mine in (
        (ENTRY | ASK, ask, came & (entry == ask)),
        (ENTRY, entry, came & (entry != ask)),
        (ASK, ask, (ask != NONE) & (entry != ask)),
    ):
        some = np.flatnonzero(mine)
        columns = [told[0][some], np.full(len(some), role), *(column[some] for column in told[1:])]
        writer.spread(Kind.LIFE, np.full(len(some), log), chunk[some], columns)
    all_of_them = [told[0], np.full(len(came), ENTRY | ASK), *told[1:]]
    whole = Rows(dict(zip(COLUMNS[Kind.LIFE], all_of_them, strict=True)), len(came))
    first_out = np.flatnonzero(came)
    _put_summary(writer, Kind.SOONEST, log, whole, entry, first_out[np.argsort(-lives.dr[first_out])])
    inside = np.flatnonzero(came & (lives.er < lives.di))
    _put_summary(writer, Kind.REACH, log, whole, ask, inside[np.argsort(lives.di[inside])])
    left = np.flatnonzero(~came)
    _, at, counts = np.unique(ask[left], return_inverse=True, return_counts=True)
    whole.columns["count"] = np.zeros(len(whole), dtype=np.int64)
    whole.columns["count"][left] = counts[at]
    _put_summary(writer, Kind.LEFT, log, whole, ask, left[np.argsort(lives.er[left])])


def _put_summary(writer: Writer, kind: Kind, log: int, rows: Rows, chunk: Ints, ordered: Ints) -> None:
    """Of each stretch of time the last of the rows named."""
    some = ordered[::-1]
    chunks, at = np.unique(chunk[some], return_index=True)
    one = rows.take(some[at])
    one.columns["chunk"] = chunks
    writer.rows(log, -1, kind, one.completed(COLUMNS[kind]))


__all__ = ["ASK", "ENTRY", "QUEUE", "REGISTER", "RULES", "Breach", "Values", "put_gets", "put_puts"]
