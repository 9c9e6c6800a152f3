"""Suspects: the few rows that some check wants to see, with all that is known of them, in one schema.

A *place* is an (offset, value) that anybody was told of, beside the send it came from. ``step`` says what a
row is; rows at one offset are in the order of their steps.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from wrackline.checkers.engine.context import Context, run_of
from wrackline.checkers.engine.facts import AGAIN, BELOW, VALUES, Kind, Rows, Writer
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints, bools

END_TOLD, IN_FINAL, TOLD, IN_REPLICAS, UNREAD, END_ASKED, JUMP, FLOOR, NOWHERE = (
    0,
    10,
    11,
    12,
    13,
    20,
    30,
    40,
    50,
)
"""``end`` told offset + 1, so the record at ``offset`` existed when it returned; a place that is in the final
read; another place clients were told of; one in replicas only; one that an ack told of, past all that was
read, where the final read is derived from polls: it is there as far as anybody knows; ``end`` told
``offset``, so nothing at or past it had been appended when it was invoked; a consumer stood at ``offset`` and
was next given ``told``; just below the log's start; a send without a place (offset null)."""
REWIND, BATCH, EPOCH, HOLE, GAP, SHOWN = 60, 61, 62, 63, 64, 65
"""A consumer stood at ``offset`` and was next given ``told``, which is before it; a record of a send that is
stored before one sent before it in the same operation; a leader epoch that begins before a smaller one ends;
the final read has nothing right above ``offset``, though the log goes on to ``told``; ``unseen`` offsets
between ``offset`` and the next thing known above it were never seen to hold anything; somebody was shown that
the log goes on to ``told``, though the final read ends at ``offset``."""
ACKED, REFUSED, UNSURE = 0, 1, 2
"""What ``outcome`` of a record sent can be."""
OUTCOMES = ("acked", "failed", "unknown")

PROOFS = ("by_ack", "by_settled_ack", "by_poll", "by_final", "by_end", "above")
"""The earliest event that showed this offset or a larger one: an ack, an ack of a record that is in the final
read, a poll, the final read, an end offset; ``above``: any of them, of rows above this one."""
OF_A_PROOF = ("", "_ns", "_offset", "_value")
COLUMNS = (
    *(
        "log",
        "step",
        "marks",
        "index",
        "offset",
        "value",
        "acked",
        "process",
        "outcome",
        "sent_offset",
        "sent_log",
    ),
    *("invoke_index", "invoke_ns", "complete_index", "complete_ns"),
    *("poll_index", "poll_ns", "final_index", "replica_index", "held", "hw_index", "epoch_low", "epoch_high"),
    *("told", "told_offset", "told_value", "told_index", "final_offset", "final_value", "final_at"),
    *("hw_offset", "hw_value", "hw_at", "hw_epoch", "known_offset", "unseen"),
    *("earlier_offset", "earlier_value", "earlier_index"),
    *(proof + part for proof in PROOFS for part in OF_A_PROOF),
    *("in_final", "was_polled", "first", "stands", "home", "original_offset", "original_index"),
    *("kept_offset", "kept_index", "astray", "rank"),
    *BELOW,
    *("complete", "log_end", "owed", "idempotent"),
)
SCHEMA = ", ".join(f"{name} bigint" for name in ("run", *COLUMNS))
ARROW = pa.schema([(name, pa.int64()) for name in ("run", *COLUMNS)])
_MIX = np.uint64(0x9E3779B97F4A7C15)


def bucket_of(run: Ints, value: Ints, buckets: int) -> Ints:
    """Which part of what is found by value a value belongs to."""
    mixed = (value.astype(np.uint64) + run.astype(np.uint64)) * _MIX
    found: Ints = ((mixed >> np.uint64(33)) % np.uint64(buckets)).astype(np.int64)
    return found


def put(writer: Writer, context: Context, rows: Rows, *, again: bool = False) -> None:
    """Suspects on their way to where everything of their value is looked at."""
    if not len(rows):
        return
    whole = rows.completed(COLUMNS)
    nobodys = whole.value < 0
    key = np.where(nobodys, np.where(whole.offset == NONE, 0, whole.offset), whole.value)
    bucket = bucket_of(run_of(whole.log), key, context.buckets)
    columns = [whole.columns[name] for name in COLUMNS]
    writer.spread(Kind.SUSPECT, np.full(len(rows), AGAIN if again else VALUES), bucket, columns)


def put_suspects(writer: Writer, context: Context, step: int, mark: str, **columns: Ints) -> None:
    """Rows that are findings already, whatever else is known."""
    size = len(columns["log"])
    if size:
        marks = np.full(size, context.marks.bit(mark))
        rows = {"step": np.full(size, step), "marks": marks, **columns}
        put(writer, context, Rows(rows, size))


def lt(one: Ints, other: Ints) -> Bools:
    """one < other, where both are known."""
    found: Bools = (one != NONE) & (other != NONE) & (one < other)
    return bools(found)


def least(*columns: Ints) -> Ints:
    """The smallest that is known; NONE where none is."""
    top = np.iinfo(np.int64).max
    found = np.full(len(columns[0]), top)
    for column in columns:
        found = np.minimum(found, np.where(column == NONE, top, column))
    return np.where(found == top, NONE, found)


def is_place(rows: Rows) -> Bools:
    """Clients were told of this place."""
    found: Bools = (rows.step == IN_FINAL) | (rows.step == TOLD) | (rows.step == UNREAD)
    return bools(found)


def is_kept(rows: Rows) -> Bools:
    """As far as is known, this place is in the log at the end."""
    return bools((rows.step == IN_FINAL) | (rows.step == UNREAD))


def is_held(rows: Rows) -> Bools:
    """Clients or replicas have this place."""
    return bools(is_place(rows) | (rows.step == IN_REPLICAS))


def is_stray(rows: Rows) -> Bools:
    """A place that no ack named: whose send it came from must be found by value."""
    return bools(is_held(rows) & (rows.acked != 1))


def is_astray(rows: Rows) -> Bools:
    """An ack or a poll named this place, and the whole final read has the value elsewhere in this log, and
    not here."""
    told = (rows.step == TOLD) & (rows.complete == 1) & (rows.value >= 0)
    return bools(told & (rows.home == 1) & (rows.kept_offset != NONE))


def table_of(rows: Rows) -> pa.RecordBatch:
    """As Spark reads them: NONE becomes null."""
    columns = [run_of(rows.log), *(rows.columns[name] for name in COLUMNS)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, pa.int64(), mask=column == NONE) for column in columns], schema=ARROW
    )
