"""What follows on what: the records a consumer is given, and those a producer sends, in each partition.

Within a split every row is held against the one before it in its process and log. Where a process stood at the edges
of a split is sent on, to be put together by whoever sees all splits (checkers.stages).
"""

from __future__ import annotations

import numpy as np

from checkers.context import Context
from checkers.packets import Kind, Rows, Writer, grouped
from checkers.suspects import BATCH, REWIND, put_suspects

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
        """The rows that have one before them in their process and log, with what that said (``earlier_*``)."""
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

    def edges(self, writer: Writer) -> None:
        for last, parts in ((0, self._first), (1, [self._stood])):
            for rows in parts:
                columns = [np.full(len(rows), self.what), np.full(len(rows), last), rows.process, rows.order]
                columns += [rows.offset, rows.next, rows.value, rows.index, rows.ns]
                writer.spread(Kind.EDGE, rows.log, np.full(len(rows), -1), columns)


def put_steps(writer: Writer, steps: Rows, context: Context) -> None:
    """Reads that went on elsewhere than the one before ended: jumps go to where they began, rewinds are findings."""
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
