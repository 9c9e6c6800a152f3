"""A model of a correct replicated log under load. No broker, no protocol: only what a correct one may show.

Every client acts in a loop: invoke, wait, complete, think. A send's records land on their partition's log at one
moment each; that order is the log. A failover stalls the high watermark, cuts or keeps what is above it, refuses sends
for a while and opens again in a new leader epoch. What was landed and committed is *visible* from then on, to everybody
and for ever; an answer tells nothing that is not visible by then. A send without an answer may have landed, may not
have, and may land long after. All of it is computed in numpy, array by array: no event loop, hundreds of thousands of
operations a second.

Times are nanoseconds from the start of the run. Arrays end in what their rows are: ``_op`` operations of one role,
``_rec`` records sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from checkers.proving.knobs import Knobs
from harness.history.model import ACKED_WITHOUT_OFFSET, FAILED, UNKNOWN

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

BEGIN_NS = 2_000_000
"""When the clients begin."""
ACKED = 0
"""``told_rec`` before the offsets are known."""
_MOST_PROCESSES = 1 << 21
_PATIENCE = 10
"""A client without an answer gives up after some ten latencies."""


@dataclass(frozen=True, slots=True)
class Failovers:
    """Of one partition, in order: sends stall from ``stall``, the leader changes at ``change``, sends are taken
    again from ``reopen``; ``cut`` tells whether what was not committed goes."""

    stall: Ints
    change: Ints
    reopen: Ints
    cut: Bools


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """One partition in the end, by offset."""

    value: Ints
    epoch: Ints
    visible: Ints
    """From when the record was below the high watermark; never decreases."""

    def reach(self, at: Ints) -> Ints:
        """The high watermark at these times."""
        return np.searchsorted(self.visible, at, side="right").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Sends:
    process_op: Ints
    invoke_op: Ints
    complete_op: Ints
    """Also where none is on record."""
    first_op: Ints
    """Row of the first record; ``count_op`` follow."""
    count_op: Ints
    recorded_op: Bools
    partition_rec: Ints
    value_rec: Ints
    told_rec: Ints
    """Offset, or UNKNOWN, FAILED, ACKED_WITHOUT_OFFSET."""


@dataclass(frozen=True, slots=True)
class Ends:
    process_op: Ints
    invoke_op: Ints
    complete_op: Ints
    partition_op: Ints
    told_op: Ints
    failed_op: Bools


@dataclass(frozen=True, slots=True)
class Reads:
    """Polls and assignments of the consumers."""

    process_op: Ints
    invoke_op: Ints
    complete_op: Ints
    assigns_op: Bools
    failed_op: Bools
    holds_op: Bools
    """(operation, partition): is the partition the consumer's?"""
    begin_op: Ints
    """(operation, partition): where it stood."""
    end_op: Ints
    """(operation, partition): where it stands afterwards; a poll gives what is between."""


@dataclass(frozen=True, slots=True)
class Outcome:
    knobs: Knobs
    sends: Sends
    ends: Ends
    reads: Reads
    logs: tuple[PartitionLog, ...]
    failovers: tuple[Failovers, ...]
    end_ns: int
    """All clients are done."""


class _Draw:
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


def serve(seed: int, knobs: Knobs) -> Outcome:
    """One run. Raises ValueError when so many operations have an unknown outcome that processes run out of
    numbers."""
    draw = _Draw(seed, knobs)
    plan = _planned_sends(draw, knobs)
    ends_at = _loop_of(draw, knobs.askers, knobs.operations // 10)
    reads_at = _loop_of(draw, knobs.consumers, knobs.operations * 3 // 10)
    end_ns = int(max(int(times.max(initial=BEGIN_NS)) for times in (plan.complete, ends_at[1], reads_at[1])))
    failovers = tuple(_failovers(draw, knobs, end_ns) for _ in range(knobs.partitions))
    sends, logs = _landed(draw, knobs, plan, failovers, end_ns)
    return Outcome(
        knobs,
        sends,
        _ends(draw, knobs, ends_at, logs),
        _reads(draw, knobs, reads_at, logs),
        logs,
        failovers,
        end_ns,
    )


# --- sends ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Plan:
    """Sends as they would go without failovers."""

    invoke: Ints
    complete: Ints
    never: Bools
    op: Ints
    """Of each record."""
    first: Ints
    count: Ints
    partition: Ints
    arrive: Ints
    lands: Bools
    told: Ints


def _planned_sends(draw: _Draw, knobs: Knobs) -> _Plan:
    random, n = draw.random, knobs.producers * max(1, knobs.operations * 6 // 10 // knobs.producers)
    count = random.integers(1, knobs.records_at_once + 1, n)
    op = np.repeat(np.arange(n), count)
    first = np.cumsum(count) - count
    within = np.arange(len(op)) - first[op]
    partition = random.integers(0, knobs.partitions, n)[op]
    anywhere = draw.happens(knobs.spread, n)[op]
    partition = np.where(anywhere, random.integers(0, knobs.partitions, len(op)), partition)

    # From some record on, what happens to the rest of the send: nothing, refused, answer lost, request lost.
    shares = np.cumsum([knobs.refused, knobs.answer_lost, knobs.request_lost])
    fate = np.searchsorted(shares, random.random(n), side="right")[op]
    rest = within >= (random.random(n) * count).astype(np.int64)[op]
    refused, unanswered, unsent = (rest & (fate == number) for number in range(3))
    unknown = unanswered | unsent
    told = np.where(refused, FAILED, np.where(unknown, UNKNOWN, ACKED))
    told = np.where((told == ACKED) & draw.happens(knobs.offset_untold, n)[op], ACKED_WITHOUT_OFFSET, told)

    gap = np.where(draw.happens(knobs.apart, len(op)), draw.delay(draw.latency / 3, len(op)), 0)
    gap[first] = draw.delay(draw.latency, n)
    sums = np.cumsum(gap)
    travel = sums - (sums - gap)[first][op]
    gives_up = np.zeros(n, dtype=np.int64)
    lost = np.flatnonzero(np.isin(np.arange(n), op[unknown]))
    gives_up[lost] = (draw.latency * _PATIENCE * (1 + random.random(len(lost)))).astype(np.int64)
    duration = np.maximum(travel[first + count - 1], gives_up) + draw.delay(draw.latency, n)
    late = unanswered & draw.happens(knobs.late, n)[op]
    travel = travel + np.where(late, draw.delay(draw.latency * 6 * _PATIENCE, n)[op], 0)
    never = np.zeros(n, dtype=bool)
    never[lost] = draw.happens(knobs.never_completes, len(lost))
    invoke = draw.loop(knobs.producers, duration)
    return _Plan(
        invoke,
        invoke + duration,
        never,
        op,
        first,
        count,
        partition,
        invoke[op] + travel,
        ~refused & ~unsent,
        told,
    )


def _failovers(draw: _Draw, knobs: Knobs, end_ns: int) -> Failovers:
    """At random times; each is over before the next begins."""
    number = int(draw.random.integers(0, knobs.failovers + 1))
    stall = np.sort(draw.random.integers(BEGIN_NS, end_ns + 1, number))
    room = np.maximum(0, np.diff(stall, append=end_ns + 1) - 2)
    change = stall + np.minimum(draw.delay(draw.latency * 4, number), room // 2)
    reopen = change + np.minimum(draw.delay(draw.latency * 4, number), room // 2)
    return Failovers(stall, change, reopen, draw.happens(knobs.tail_lost, number))


def _through(
    failovers: tuple[Failovers, ...], partition: Ints, arrive: Ints
) -> tuple[Ints, Ints, Bools, Bools]:
    """What arrives at these times: its leader epoch, when it becomes visible, is it cut, is it refused."""
    epoch, visible = np.zeros_like(arrive), arrive.copy()
    cut, refused = np.zeros(len(arrive), dtype=bool), np.zeros(len(arrive), dtype=bool)
    for number, one in enumerate(failovers):
        rows = np.flatnonzero(partition == number)
        at = arrive[rows]
        epoch[rows] = np.searchsorted(one.change, at, side="right")
        last = np.searchsorted(one.stall, at, side="right") - 1
        if not len(one.stall):
            continue
        stalled = (last >= 0) & (at < one.change[last])
        refused[rows] = (last >= 0) & ~stalled & (at < one.reopen[last])
        cut[rows] = stalled & one.cut[last]
        visible[rows] = np.where(stalled, one.reopen[last], at)
    return epoch, visible, cut, refused


def _landed(
    draw: _Draw, knobs: Knobs, plan: _Plan, failovers: tuple[Failovers, ...], end_ns: int
) -> tuple[Sends, tuple[PartitionLog, ...]]:
    """The logs, and what the answers tell of them."""
    complete = plan.complete[plan.op]
    epoch, visible, cut, refused = _through(failovers, plan.partition, plan.arrive)
    lands = plan.lands & ~cut & ~refused & (plan.arrive <= end_ns) & (visible <= end_ns)
    acked = np.isin(plan.told, (ACKED, ACKED_WITHOUT_OFFSET))
    told = np.where(acked & refused, FAILED, plan.told)
    told = np.where(acked & ~refused & (cut | (visible >= complete)), UNKNOWN, told)

    rows = np.flatnonzero(lands)
    arrive: Ints = plan.arrive[rows]
    copy: Bools = np.zeros(len(rows), dtype=bool)
    epoch, visible = epoch[rows], visible[rows]
    if not knobs.idempotence:
        again = np.flatnonzero(draw.happens(knobs.retried, len(rows)))
        second = arrive[again] + draw.delay(draw.latency * 2, len(again))
        e, v, c, r = _through(failovers, plan.partition[rows[again]], second)
        keep = ~c & ~r & (second <= end_ns) & (v <= end_ns)
        rows = np.concatenate([rows, rows[again[keep]]])
        arrive, copy = np.concatenate([arrive, second[keep]]), np.arange(len(rows)) >= len(copy)
        epoch, visible = np.concatenate([epoch, e[keep]]), np.concatenate([visible, v[keep]])

    partition = plan.partition[rows]
    order = np.lexsort((copy, rows, arrive, partition))
    rows, copy = rows[order], copy[order]
    partition = partition[order]
    epoch, visible = epoch[order], visible[order]
    bounds = np.searchsorted(partition, np.arange(knobs.partitions + 1))
    offset = np.arange(len(rows)) - bounds[partition]

    # The answer to a send that was retried tells of either copy, if it was there by then.
    of_copy = copy & (visible < complete[rows]) & draw.happens(0.5, len(rows))
    place = np.full(len(plan.op), UNKNOWN, dtype=np.int64)
    place[rows[~copy]] = offset[~copy]
    place[rows[of_copy]] = offset[of_copy]
    told = np.where(told == ACKED, place, told)

    sends = _sends(knobs, plan, told)
    value = sends.value_rec[rows]
    logs = tuple(
        PartitionLog(value[low:high], epoch[low:high], visible[low:high]) for low, high in pairwise(bounds)
    )
    return sends, logs


def _sends(knobs: Knobs, plan: _Plan, told: Ints) -> Sends:
    """A process whose operation ended in doubt is never used again: its thread goes on under another number."""
    n = len(plan.invoke)
    doubtful = np.bincount(plan.op, weights=told == UNKNOWN, minlength=n) > 0
    failed = np.bincount(plan.op, weights=told == FAILED, minlength=n).astype(np.int64)
    doubtful |= plan.never | ((failed > 0) & (failed < plan.count))
    rows = doubtful.reshape(knobs.producers, -1)
    before: Ints = np.cumsum(rows, axis=1) - rows
    threads = knobs.producers + knobs.consumers + knobs.askers
    process = (np.arange(knobs.producers)[:, None] + threads * before).reshape(-1)
    if len(process) and process.max() >= _MOST_PROCESSES:
        raise ValueError(f"{process.max()} processes: fewer operations, or fewer of unknown outcome")
    thread = np.arange(n) // (n // knobs.producers)
    counter = np.arange(len(plan.op)) - plan.first[(thread * (n // knobs.producers))[plan.op]]
    return Sends(
        process,
        plan.invoke,
        plan.complete,
        plan.first,
        plan.count,
        ~plan.never,
        plan.partition,
        (process[plan.op] << 32) | (counter << 4),
        told,
    )


# --- ends and polls ------------------------------------------------------------------------------------------


def _loop_of(draw: _Draw, threads: int, operations: int) -> tuple[Ints, Ints, Ints]:
    """(invoked, completed, at the server) of threads that ask one thing after the other."""
    each = 0 if threads == 0 else max(1, operations // threads)
    there, back = (draw.delay(draw.latency, threads * each) for _ in range(2))
    if threads * each == 0:
        return there, there, there
    invoke = draw.loop(threads, there + back)
    return invoke, invoke + there + back, invoke + there


def _ends(draw: _Draw, knobs: Knobs, times: tuple[Ints, Ints, Ints], logs: tuple[PartitionLog, ...]) -> Ends:
    invoke, complete, asked = times
    n = len(invoke)
    partition = draw.random.integers(0, knobs.partitions, n)
    told = np.zeros(n, dtype=np.int64)
    for number, log in enumerate(logs):
        rows = partition == number
        told[rows] = log.reach(asked[rows])
    process = (
        knobs.producers + knobs.consumers + np.repeat(np.arange(knobs.askers), n // max(1, knobs.askers))
    )
    return Ends(process, invoke, complete, partition, told, draw.happens(knobs.failed_read, n))


def _reads(
    draw: _Draw, knobs: Knobs, times: tuple[Ints, Ints, Ints], logs: tuple[PartitionLog, ...]
) -> Reads:
    """A consumer stands somewhere in each of its partitions and reads on, up to what it had fetched; that may have
    been before the poll was invoked. An assignment puts it anywhere."""
    invoke, complete, asked = times
    n, each = len(invoke), len(invoke) // max(1, knobs.consumers)
    assigns = draw.happens(knobs.rebalance, n)
    assigns[:: max(1, each)] = True
    failed = ~assigns & draw.happens(knobs.failed_read, n)
    seg = np.cumsum(assigns)
    shape = (int(seg[-1]) + 1 if n else 1, knobs.partitions)
    holds = draw.happens(0.8, shape)
    holds[np.arange(shape[0]), draw.random.integers(0, knobs.partitions, shape[0])] = True
    fetched = np.maximum(0, asked - draw.delay(draw.latency * 2, n))
    begin, end = np.zeros((n, knobs.partitions), np.int64), np.zeros((n, knobs.partitions), np.int64)
    for number, log in enumerate(logs):
        reach = log.reach(fetched)
        back = draw.random.geometric(1 / 40, n) - 1
        wanted = np.where(assigns, np.maximum(0, reach - back), np.where(failed, 0, reach))
        # The position never falls within an assignment: a running maximum that begins anew with each.
        big = len(log.value) + 1
        end[:, number] = np.maximum.accumulate(seg * big + wanted) - seg * big
        begin[1:, number] = end[:-1, number]
        begin[assigns, number] = end[assigns, number]
    process = knobs.producers + np.repeat(np.arange(knobs.consumers), each)
    return Reads(process, invoke, complete, assigns, failed, holds[seg] if n else holds[:0], begin, end)
