"""A model of a correct replicated log under load. No broker, no protocol: only what a correct one may show.

Every client acts in a loop: invoke, wait, complete, think. A send's records land on their partition's log at
one moment each; that order is the log. A failover stalls the high watermark, cuts or keeps what is above it,
refuses sends for a while and opens again in a new leader epoch. What was landed and committed is *visible*
from then on, to everybody and for ever; an answer tells nothing that is not visible by then. A send without
an answer may have landed, may not have, and may land long after. The records of a transaction land together,
and abort together; what aborts stays in the log and is shown to nobody. All of it is computed in numpy, array
by array: no event loop, hundreds of thousands of operations a second.

Times are nanoseconds from the start of the run. Arrays end in what their rows are: ``_op`` operations of one
role, ``_rec`` records sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, UNKNOWN
from wrackline.proving.model.drawing import (
    BEGIN_NS,
    MARKER,
    Bools,
    Draw,
    Ints,
    PartitionLog,
    Sends,
    loop_of,
)
from wrackline.proving.model.group_server import Group, groups
from wrackline.proving.model.knobs import Knobs
from wrackline.proving.model.readers import (
    Ends,
    Reads,
    TransactionReads,
    ends,
    reads,
    transaction_reads,
)
from wrackline.proving.model.share_server import ShareRun, share_group

ACKED = 0
"""``told_rec`` before the offsets are known."""
_MOST_PROCESSES = 1 << 21
_PATIENCE = 10
"""A client without an answer gives up after some ten latencies."""


@dataclass(frozen=True, slots=True)
class Failovers:
    """The failovers of one partition, in order: sends stall from ``stall``, the leader changes at
    ``change``, sends are taken again from ``reopen``; ``cut`` tells whether what was not committed goes."""

    stall: Ints
    change: Ints
    reopen: Ints
    cut: Bools


@dataclass(frozen=True, slots=True)
class Outcome:
    knobs: Knobs
    sends: Sends
    ends: Ends
    reads: Reads
    transactions: TransactionReads
    groups: tuple[Group, ...]
    share: ShareRun
    logs: tuple[PartitionLog, ...]
    failovers: tuple[Failovers, ...]
    end_ns: int
    """All clients are done."""


def serve(seed: int, knobs: Knobs) -> Outcome:
    """One run. Raises ValueError when so many operations have an unknown outcome that processes run out of
    numbers."""
    draw = Draw(seed, knobs)
    plan = _planned_sends(draw, knobs)
    ends_at = loop_of(draw, knobs.askers, knobs.operations // 10)
    reads_at = loop_of(draw, knobs.consumers, knobs.operations * 3 // 10)
    groups_at = [loop_of(draw, knobs.members, knobs.operations * 2 // 5) for _ in range(knobs.groups)]
    completions = [plan.complete, *(times[1] for times in (ends_at, reads_at, *groups_at))]
    end_ns = max(int(times.max(initial=BEGIN_NS)) for times in completions)
    failovers = tuple(_failovers(draw, knobs, end_ns) for _ in range(knobs.partitions))
    sends, logs = _landed(draw, knobs, plan, failovers, end_ns)
    if knobs.application:  # it sends two rows for each record, when that can be read or later
        end_ns = max(end_ns, *(int(log.visible.max(initial=0)) + 3 * len(log.value) for log in logs))
    share = share_group(seed, knobs, logs, end_ns)
    return Outcome(
        knobs,
        sends,
        ends(draw, knobs, ends_at, logs),
        reads(draw, knobs, reads_at, logs),
        transaction_reads(draw, knobs, sends, plan.arrive[plan.first], logs),
        groups(draw, knobs, groups_at, logs),
        share,
        logs,
        failovers,
        share.end_ns,
    )


# --- sends --------------------------------------------------------------------------------------------------


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
    reported: Ints
    txn: Bools
    """Is the operation a transaction?"""
    hidden: Bools
    """Of each record: it lands, but its transaction aborts."""


def _planned_sends(draw: Draw, knobs: Knobs) -> _Plan:
    random, n = draw.random, knobs.producers * max(1, knobs.operations * 6 // 10 // knobs.producers)
    count = random.integers(1, knobs.records_at_once + 1, n)
    op = np.repeat(np.arange(n), count)
    txn = np.arange(n) // (n // knobs.producers) >= knobs.producers - knobs.transactional
    first = np.cumsum(count) - count
    within = np.arange(len(op)) - first[op]
    partition = random.integers(0, knobs.partitions, n)[op]
    anywhere = (txn | draw.happens(knobs.spread, n))[op]
    partition = np.where(anywhere, random.integers(0, knobs.partitions, len(op)), partition)

    # From some record on, what happens to the rest of the send: nothing, refused, answer lost, request lost.
    shares = np.cumsum([knobs.refused, knobs.answer_lost, knobs.request_lost])
    fate = np.searchsorted(shares, random.random(n), side="right")[op]
    fate[(txn & draw.happens(knobs.aborted, n))[op]] = 0
    rest = txn[op] | (within >= (random.random(n) * count).astype(np.int64)[op])
    refused, unanswered, unsent = (rest & (fate == number) for number in range(3))
    unknown = unanswered | unsent
    reported = np.where(refused, FAILED, np.where(unknown, UNKNOWN, ACKED))
    reported = np.where(
        (reported == ACKED) & draw.happens(knobs.ack_without_offset, n)[op], ACKED_WITHOUT_OFFSET, reported
    )

    apart = draw.happens(knobs.apart, len(op)) & ~(txn[op] & knobs.isolated)
    gap = np.where(apart, draw.delay(draw.latency / 3, len(op)), 0)
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
    hidden = (refused | unsent) & (txn & draw.happens(0.7, n))[op]
    return _Plan(
        invoke,
        invoke + duration,
        never,
        op,
        first,
        count,
        partition,
        invoke[op] + travel,
        hidden | ~(refused | unsent),
        reported,
        txn,
        hidden,
    )


def _failovers(draw: Draw, knobs: Knobs, end_ns: int) -> Failovers:
    """Draws failovers at random times; each is over before the next begins."""
    number = int(draw.random.integers(0, knobs.failovers + 1))
    stall = np.sort(draw.random.integers(BEGIN_NS, end_ns + 1, number))
    room = np.maximum(0, np.diff(stall, append=end_ns + 1) - 2)
    change = stall + np.minimum(draw.delay(draw.latency * 4, number), room // 2)
    reopen = change + np.minimum(draw.delay(draw.latency * 4, number), room // 2)
    return Failovers(stall, change, reopen, draw.happens(knobs.tail_lost, number))


def _through(
    failovers: tuple[Failovers, ...], partition: Ints, arrive: Ints
) -> tuple[Ints, Ints, Bools, Bools]:
    """Returns for records that arrive at these times (leader epoch, when it becomes visible, is it cut, is
    it refused)."""
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
    draw: Draw, knobs: Knobs, plan: _Plan, failovers: tuple[Failovers, ...], end_ns: int
) -> tuple[Sends, tuple[PartitionLog, ...]]:
    """The logs, and what the answers tell of them."""
    complete = plan.complete[plan.op]
    epoch, visible, cut, refused = _through(failovers, plan.partition, plan.arrive)
    lands = plan.lands & ~cut & ~refused & (plan.arrive <= end_ns) & (visible <= end_ns)
    acked = np.isin(plan.reported, (ACKED, ACKED_WITHOUT_OFFSET))
    reported = np.where(acked & refused, FAILED, plan.reported)
    reported = np.where(acked & ~refused & (cut | (visible >= complete)), UNKNOWN, reported)
    shown = _together(plan, lands, reported)

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

    # The marker that ends a transaction in a partition takes an offset, right after the last of its records.
    last = _last_of_transactions(plan, rows)
    marker = np.arange(len(rows) + len(last)) >= len(rows)
    rows, copy = np.append(rows, rows[last]), np.append(copy, copy[last])
    arrive, epoch, visible = (np.append(one, one[last]) for one in (arrive, epoch, visible))
    partition = plan.partition[rows]
    order = np.lexsort((marker, copy, rows, arrive, partition))
    rows, copy, marker = rows[order], copy[order], marker[order]
    partition = partition[order]
    epoch, visible = epoch[order], visible[order]
    bounds = np.searchsorted(partition, np.arange(knobs.partitions + 1))
    offset = np.arange(len(rows)) - bounds[partition]

    # The answer to a send that was retried tells of either copy, if it was there by then.
    of_copy = copy & (visible < complete[rows]) & draw.happens(0.5, len(rows))
    place = np.full(len(plan.op), UNKNOWN, dtype=np.int64)
    place[rows[~copy & ~marker]] = offset[~copy & ~marker]
    place[rows[of_copy]] = offset[of_copy]
    reported = np.where(reported == ACKED, place, reported)

    sends = _sends(knobs, plan, reported, shown & lands)
    value = np.where(marker, MARKER, sends.value_rec[rows])
    given = shown[rows] & ~marker
    key = np.where(marker, -1, sends.key_rec[rows])
    logs = tuple(
        PartitionLog(value[low:high], epoch[low:high], visible[low:high], given[low:high], key[low:high])
        for low, high in pairwise(bounds)
    )
    return sends, logs


def _together(plan: _Plan, lands: Bools, reported: Ints) -> Bools:
    """The records of a transaction have one outcome (``reported`` is changed): what of them landed is shown
    to readers only if all did. Gives for each record whether it is."""
    n, shown = len(plan.invoke), ~plan.hidden
    mine = plan.txn[plan.op]
    some = [np.bincount(plan.op, weights=reported == code, minlength=n) > 0 for code in (FAILED, UNKNOWN)]
    for code, ops in zip((FAILED, UNKNOWN), some, strict=True):
        reported[mine & ops[plan.op]] = code
    fails = np.bincount(plan.op, weights=~lands | (reported == FAILED), minlength=n) > 0
    return shown & ~(mine & fails[plan.op])


def _last_of_transactions(plan: _Plan, rows: Ints) -> Ints:
    """Places in ``rows`` (ascending) of each transaction's last record in each partition."""
    mine = np.flatnonzero(plan.txn[plan.op[rows]])
    op, partition = plan.op[rows[mine]], plan.partition[rows[mine]]
    order = np.lexsort((mine, partition, op))
    ends = np.append((np.diff(op[order]) != 0) | (np.diff(partition[order]) != 0), True)[: len(order)]
    result: Ints = mine[order[ends]]
    return result


def _sends(knobs: Knobs, plan: _Plan, reported: Ints, shown: Bools) -> Sends:
    """A process whose operation ended in doubt is never used again: its thread goes on under another
    number. Of a transaction that nobody is shown perhaps only the abort was asked for."""
    n = len(plan.invoke)
    doubtful = np.bincount(plan.op, weights=reported == UNKNOWN, minlength=n) > 0
    failed = np.bincount(plan.op, weights=reported == FAILED, minlength=n).astype(np.int64)
    doubtful |= plan.never | ((failed > 0) & (failed < plan.count))
    rows = doubtful.reshape(knobs.producers, -1)
    before: Ints = np.cumsum(rows, axis=1) - rows
    process = (np.arange(knobs.producers)[:, None] + knobs.threads * before).reshape(-1)
    if len(process) and process.max() >= _MOST_PROCESSES:
        raise ValueError(f"{process.max()} processes: fewer operations, or fewer of unknown outcome")
    thread = np.arange(n) // (n // knobs.producers)
    counter = np.arange(len(plan.op)) - plan.first[(thread * (n // knobs.producers))[plan.op]]
    visible = np.bincount(plan.op, weights=shown, minlength=n) > 0
    asked_to = (failed == 0) & (visible | ~doubtful | (np.arange(n) % 2 == 0))
    first = np.minimum.reduceat(plan.arrive, plan.first)
    value = (process[plan.op] << 32) | (counter << 4)
    return Sends(
        process,
        plan.invoke,
        plan.complete,
        plan.first,
        plan.count,
        ~plan.never,
        plan.partition,
        value,
        reported,
        np.where(plan.txn, np.cumsum(plan.txn) - 1, -1),
        np.clip(first - 1, plan.invoke, plan.complete),
        asked_to,
        (value >> 4) * 7 % knobs.keys if knobs.keys else np.full(len(value), -1),
    )
