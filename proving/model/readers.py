"""The model's clients that read the log by themselves: end offsets, and polls of consumers that assign
partitions or are members of a group of their own, and polls within transactions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wrackline.history.model import FAILED, UNKNOWN
from wrackline.proving.model.drawing import (
    Bools,
    Draw,
    Ints,
    Operations,
    PartitionLog,
    Polls,
    Sends,
    Times,
)
from wrackline.proving.model.knobs import Knobs


@dataclass(frozen=True, slots=True)
class Ends(Operations):
    partition_op: Ints
    told_op: Ints
    failed_op: Bools


@dataclass(frozen=True, slots=True)
class Reads(Polls):
    """Polls and assignments of the consumers."""

    assigns_op: Bools
    failed_op: Bools


@dataclass(frozen=True, slots=True)
class TransactionReads:
    """Polls in transactions; their processes, times and outcomes are those of the sends of the same row."""

    op: Ints
    """Rows of ``Sends``."""
    joins_op: Bools
    """The consumer's first, so that it assigned its partitions just before."""
    holds_op: Bools
    begin_op: Ints
    end_op: Ints
    """As of ``Reads``."""


def ends(draw: Draw, knobs: Knobs, times: Times, logs: tuple[PartitionLog, ...]) -> Ends:
    invoke, complete, arrival = times
    n = len(invoke)
    partition = draw.random.integers(0, knobs.partitions, n)
    reported = np.zeros(n, dtype=np.int64)
    for number, log in enumerate(logs):
        rows = partition == number
        reported[rows] = log.reach(arrival[rows])
    process = (
        knobs.producers + knobs.consumers + np.repeat(np.arange(knobs.askers), n // max(1, knobs.askers))
    )
    return Ends(process, invoke, complete, partition, reported, draw.happens(knobs.failed_read, n))


def reads(draw: Draw, knobs: Knobs, times: Times, logs: tuple[PartitionLog, ...]) -> Reads:
    """A consumer stands somewhere in each of its partitions and reads on, up to what it had fetched; that may
    have been before the poll was invoked. An assignment puts it anywhere."""
    invoke, complete, arrival = times
    n, each = len(invoke), len(invoke) // max(1, knobs.consumers)
    assigns = draw.happens(knobs.rebalance, n)
    assigns[:: max(1, each)] = True
    failed = ~assigns & draw.happens(knobs.failed_read, n)
    seg = np.cumsum(assigns)
    shape = (int(seg[-1]) + 1 if n else 1, knobs.partitions)
    holds = draw.happens(0.8, shape)
    holds[np.arange(shape[0]), draw.random.integers(0, knobs.partitions, shape[0])] = True
    fetched = np.maximum(0, arrival - draw.delay(draw.latency * 2, n))
    begin, end = np.zeros((n, knobs.partitions), np.int64), np.zeros((n, knobs.partitions), np.int64)
    for number, log in enumerate(logs):
        reach = log.reach(fetched)
        back = draw.random.geometric(1 / 40, n) - 1
        expected = np.where(assigns, np.maximum(0, reach - back), np.where(failed, 0, reach))
        # The position never falls within an assignment: a running maximum that begins anew with each.
        big = len(log.value) + 1
        end[:, number] = np.maximum.accumulate(seg * big + expected) - seg * big
        begin[1:, number] = end[:-1, number]
        begin[assigns, number] = end[assigns, number]
    process = knobs.producers + np.repeat(np.arange(knobs.consumers), each)
    return Reads(process, invoke, complete, holds[seg] if n else holds[:0], begin, end, assigns, failed)


def transaction_reads(
    draw: Draw, knobs: Knobs, sends: Sends, arrive: Ints, logs: tuple[PartitionLog, ...]
) -> TransactionReads:
    """The consumer of each transactional process reads on from poll to poll, where the transaction commits;
    else it goes back to where it stood. What it gives had been visible when the transaction's records arrived
    (``arrive``): so transactions take effect one after the other."""
    op = np.flatnonzero((sends.txn_op >= 0) & draw.happens(0.8, len(sends.txn_op)))
    n = len(op)
    process = sends.process_op[op]
    joins = np.diff(process, prepend=-1) != 0
    seg = np.cumsum(joins)
    holds = draw.happens(0.8, (int(seg[-1]) + 1 if n else 1, knobs.partitions))[seg]
    good = (sends.told_rec[sends.first_op[op]] != FAILED) & (sends.told_rec[sends.first_op[op]] != UNKNOWN)
    good &= sends.recorded_op[op]
    latest = np.minimum(arrive[op], sends.complete_op[op] - 1)
    fetched = np.maximum(0, latest - draw.delay(draw.latency, n))
    begin, end = np.zeros((n, knobs.partitions), np.int64), np.zeros((n, knobs.partitions), np.int64)
    before = np.maximum(0, sends.invoke_op[op] - 2)
    for number, log in enumerate(logs):
        start = np.maximum(0, log.reach(before) - draw.random.geometric(1 / 20, n) + 1)
        start = start[np.maximum.accumulate(np.where(joins, np.arange(n), 0))] if n else start
        expected = np.maximum(np.where(good, log.reach(fetched), 0), start)
        big = len(log.value) + 1
        end[:, number] = np.maximum.accumulate(seg * big + expected) - seg * big
        begin[1:, number] = end[:-1, number]
        begin[joins, number] = start[joins]
    return TransactionReads(op, joins, holds, begin, end)
