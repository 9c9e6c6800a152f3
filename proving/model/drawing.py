"""The parts that the model servers share: random numbers in units of the model, clients that act in a
loop, logs as they end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wrackline.history.model import FAILED, UNKNOWN
from wrackline.proving.model.knobs import Knobs

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Times = tuple[Ints, Ints, Ints]
"""Of operations: (invoked, completed, at the server)."""

BEGIN_NS = 2_000_000
"""When the clients begin."""
MARKER = -9
"""In place of a value: the end of a transaction."""


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """One partition in the end, by offset."""

    value: Ints
    epoch: Ints
    visible: Ints
    """From when the record was below the high watermark; never decreases."""
    shown: Bools
    """Is given to readers: no marker, and no record of a transaction that aborted."""
    key: Ints
    """-1: none."""

    def superseded(self) -> Bools:
        """A later record has the same key: compaction may take it away."""
        keyed = np.flatnonzero(self.key >= 0)
        order = keyed[np.lexsort((keyed, self.key[keyed]))]
        result: Bools = np.zeros(len(self.key), dtype=bool)
        result[order[:-1]] = self.key[order[:-1]] == self.key[order[1:]]
        return result

    def reach(self, at: Ints) -> Ints:
        """The high watermark at these times."""
        return np.searchsorted(self.visible, at, side="right").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations of clients. Arrays end in what their rows are: ``_op`` operations, ``_rec`` records sent."""

    process_op: Ints
    invoke_op: Ints
    complete_op: Ints
    """Also where none is on record."""


@dataclass(frozen=True, slots=True)
class Polls(Operations):
    """Operations of consumers."""

    holds_op: Bools
    """(operation, partition): is the partition the consumer's, as far as it knows?"""
    begin_op: Ints
    """(operation, partition): where it stood."""
    end_op: Ints
    """(operation, partition): where it stands afterwards; a poll gives what is between."""


@dataclass(frozen=True, slots=True)
class Sends(Operations):
    first_op: Ints
    """Row of the first record; ``count_op`` follow."""
    count_op: Ints
    recorded_op: Bools
    partition_rec: Ints
    value_rec: Ints
    told_rec: Ints
    """Offset, or UNKNOWN, FAILED, ACKED_WITHOUT_OFFSET."""
    txn_op: Ints
    """Number of the transaction; -1: none."""
    end_op: Ints
    """When a transaction's end was asked for: before any record of it landed."""
    commits_op: Bools
    """... and that was a commit; else nothing of it is shown."""
    key_rec: Ints
    """Number of the record's key; -1: it has none."""

    def kinds(self) -> dict[str, Bools]:
        """Type of a completion -> which operations have it, if any is on record."""
        n = len(self.invoke_op)
        op = np.repeat(np.arange(n), self.count_op)
        unknown = np.bincount(op, weights=self.told_rec == UNKNOWN, minlength=n) > 0
        failed = np.bincount(op, weights=self.told_rec == FAILED, minlength=n)
        fails: Bools = failed == self.count_op
        succeeds: Bools = ~unknown & (failed == 0)
        return {"ok": succeeds, "fail": fails, "info": ~succeeds & ~fails}


class Draw:
    """Random numbers in the units of the model."""

    def __init__(self, seed: int, knobs: Knobs) -> None:
        self.random = np.random.default_rng([seed, 0x109])
        self.latency = knobs.latency_ms * 1e6
        self.think = knobs.think_ms * 1e6

    def delay(self, mean: float, size: int | tuple[int, ...]) -> Ints:
        return self.random.exponential(mean, size).astype(np.int64) + 1

    def happens(self, share: float, size: int | tuple[int, ...]) -> Bools:
        return self.random.random(size) < share

    def loop(self, threads: int, duration: Ints) -> Ints:
        """When each thread invokes, if its operations (row after row, thread by thread) take so long."""
        rows = duration.reshape(threads, -1)
        step = rows + self.delay(self.think, rows.shape)
        begin = BEGIN_NS + self.delay(self.think, (threads, 1))
        return (begin + np.cumsum(step, axis=1) - step).reshape(-1)


def loop_of(draw: Draw, threads: int, operations: int) -> Times:
    """(invoked, completed, at the server) of threads that ask one thing after the other."""
    each = 0 if threads == 0 else max(1, operations // threads)
    there, back = (draw.delay(draw.latency, threads * each) for _ in range(2))
    if threads * each == 0:
        return there, there, there
    invoke = draw.loop(threads, there + back)
    return invoke, invoke + there + back, invoke + there
