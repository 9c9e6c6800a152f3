"""What follows on what: the records a consumer is given, and those a producer sends, in each partition.

Within a split every row is held against the one before it in its process and log. Where a process stood at
the edges of a split is sent on, to be put together by whoever sees all splits
(wrackline.checkers.engine.tasks).
"""

from __future__ import annotations

import numpy as np

from wrackline.checkers.engine.candidates import BATCH, REWIND, SHOWN, put_suspects
from wrackline.checkers.engine.context import Context
from wrackline.checkers.engine.facts import Kind, Rows, Writer, grouped, together
from wrackline.checkers.inputs.arrays import NEVER, NONE

POLLED, SENT = 0, 1
"""What an edge is of."""
_STEP = ("process", "log", "order", "offset", "next", "value", "index", "ns")


class Sequence:
    """Where each process stood in each log, from batch to batch."""

    def __init__(self, what: int) -> None:
        self.what = what
        self._stood = Rows({name: np.zeros(0, dtype=np.int64) for name in _STEP}, 0)
        self._first: list[Rows] = []

    def steps(self, rows: Rows) -> Rows:
        """The rows that have one before them in their process and log, with what that said
        (``earlier_*``)."""
        both = Rows({n: np.concatenate([self._stood.columns[n], rows.columns[n]]) for n in _STEP})
        order, starts, ends = grouped(both.process, both.log)
        whole = both.take(order)
        carried = order < len(self._stood)
        # What has nothing before it in this split may have something in an earlier one.
        self._first.append(whole.take(starts & ~carried))
        self._stood = whole.take(ends)
        at = np.flatnonzero(~starts)
        found = whole.take(at)
        for name in ("order", "next", "value", "index"):
            found.columns[f"earlier_{name}"] = whole.columns[name][at - 1]
        return found

    def stood(self, rank: int) -> Rows:
        """The last record of each process and log so far, as mates
        (wrackline.checkers.engine.unacknowledged)."""
        return _mates(self._stood, rank)

    def begun(self, rank: int) -> Rows:
        """The first ones."""
        return _mates(together(self._first, _STEP), rank)

    def edges(self, writer: Writer) -> None:
        for last, parts in ((0, self._first), (1, [self._stood])):
            for rows in parts:
                columns = [np.full(len(rows), self.what), np.full(len(rows), last), rows.process, rows.order]
                columns += [rows.offset, rows.next, rows.value, rows.index, rows.ns]
                writer.spread(Kind.EDGE, rows.log, np.full(len(rows), -1), columns)


def _mates(rows: Rows, rank: int) -> Rows:
    nothing = np.full(len(rows), NONE)
    columns = {name: rows.columns[name] for name in ("process", "log", "offset", "value")}
    columns |= {"invoke_index": rows.order, "complete_index": rows.index, "complete_ns": rows.ns}
    return Rows({**columns, "invoke_ns": nothing, "rank": np.full(len(rows), rank)}, len(rows))


def put_steps(writer: Writer, steps: Rows, context: Context) -> None:
    """Reads that went on elsewhere than the one before ended: jumps go to where they began, rewinds are
    findings."""
    jumps = steps.take(steps.offset > steps.earlier_next)
    writer.spread(
        Kind.JUMP,
        jumps.log,
        jumps.earlier_next // context.width,
        [jumps.earlier_next, jumps.offset, jumps.process, jumps.earlier_index, jumps.index, jumps.ns],
    )
    back = steps.take(steps.offset < steps.earlier_next)
    put_suspects(
        writer,
        context,
        REWIND,
        "rewound",
        log=back.log,
        offset=back.earlier_next,
        told=back.offset,
        process=back.process,
        invoke_index=back.earlier_index,
        complete_index=back.index,
        complete_ns=back.ns,
    )


def put_sessions(writer: Writer, steps: Rows, context: Context) -> None:
    writer.spread(
        Kind.SESSION,
        steps.log,
        steps.offset // context.width,
        [steps.offset, steps.value, steps.earlier_next, steps.earlier_value, steps.earlier_index],
    )


def put_batch_order(writer: Writer, steps: Rows, context: Context) -> None:
    put_suspects(
        writer,
        context,
        BATCH,
        "shuffled",
        log=steps.log,
        offset=steps.offset,
        value=steps.value,
        process=steps.process,
        earlier_offset=steps.earlier_next,
        earlier_value=steps.earlier_value,
        invoke_index=steps.order,
        complete_index=steps.index,
        complete_ns=steps.ns,
    )


class Ends:
    """Ends of logs that clients were shown, against the end of the final read."""

    def __init__(self, run: int, context: Context) -> None:
        whole = [log for log in sorted(context.logs_of.get(run, ())) if context.logs[log].complete]
        about = [context.logs[log] for log in whole]
        self._log = np.array([*whole, NONE], dtype=np.int64)
        self._end = np.array([*(one.end for one in about), NEVER], dtype=np.int64)
        self._asked = np.array([*(one.asked for one in about), NONE], dtype=np.int64)

    def put(self, writer: Writer, context: Context, shown: Rows) -> None:
        """``shown``: log, told, process and times. What was shown once the final read had asked for the end
        says nothing of it."""
        at = np.searchsorted(self._log[:-1], shown.log)
        at = np.where(self._log[at] == shown.log, at, len(self._log) - 1)
        beyond = (shown.told > self._end[at]) & (shown.complete_index < self._asked[at])
        if not beyond.any():
            return
        rows, end = shown.take(beyond), self._end[at][beyond]
        put_suspects(
            writer,
            context,
            SHOWN,
            "beyond",
            offset=end,
            log_end=end,
            complete=np.ones(len(rows), dtype=np.int64),
            **rows.columns,
        )
