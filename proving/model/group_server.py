"""The model's consumer groups: members that are given partitions in generations, read, commit, and ask what
is committed.

A group's generations follow each other at moments of the coordinator's. From such a moment on commits of the
generation before are refused, and each partition begins where it was committed. A member learns of a
generation in the first poll after it; one that is not in it, or has not polled since, goes on in its older
one: it reads, and is *fenced* when it commits. A commit without an answer took effect, or did not, or does so
later, as long as its generation lasts.

Generations are computed one after the other, everything of one generation at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wrackline.proving.model.drawing import (
    BEGIN_NS,
    Bools,
    Draw,
    Ints,
    PartitionLog,
    Polls,
    Times,
)
from wrackline.proving.model.knobs import Knobs

POLL, COMMIT, COMMITTED, NOTHING = 0, 1, 2, 3
"""What a member does; NOTHING: it is gone."""
OK, REFUSED, LOST, NEVER = 0, 1, 2, 3
"""Outcomes. NEVER: not even a completion is on record."""
NONE = -1
"""No generation; no offset."""
_FOR_EVER = 1 << 62
_OPERATIONS_OF_A_GENERATION = 400
"""In long histories, about: members that left come back with the next."""


@dataclass(frozen=True, slots=True)
class Group(Polls):
    """Operations of one group's members, member by member, each in order of time."""

    name: str
    member_op: Ints
    asked_op: Ints
    """When the coordinator, or the broker, had it: between the two."""
    kind_op: Ints
    outcome_op: Ints
    generation_op: Ints
    """As the member knows it."""
    joins_op: Bools
    """A poll in which it is told of its generation."""
    offset_op: Ints
    """(operation, partition): committed, or told to be; NONE: not in this commit, or told that there is
    none."""


@dataclass(slots=True)
class _Plan:
    """The operations of members and their times, planned before anything is read."""

    thread: Ints
    times: Times
    kind: Ints
    failed: Bools
    lost: Bools
    turn: Ints
    """Number of the generation the member knows (in the order of ``begins``); NONE before the first."""
    joins: Bools
    holds: Bools
    begins: Ints
    """When each generation begins."""


def groups(draw: Draw, knobs: Knobs, times: list[Times], logs: tuple[PartitionLog, ...]) -> tuple[Group, ...]:
    first = knobs.producers + knobs.consumers + knobs.askers
    return tuple(
        _group(draw, knobs, f"group-{number}", first + number * knobs.members, one, logs)
        for number, one in enumerate(times)
    )


def _group(
    draw: Draw, knobs: Knobs, name: str, process: int, times: Times, logs: tuple[PartitionLog, ...]
) -> Group:
    plan = _planned(draw, knobs, times)
    invoke, complete, arrival = times
    n = len(invoke)
    shape = (n, knobs.partitions)
    begin, end, offset = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, NONE)
    outcome = np.where(plan.failed, REFUSED, OK)
    sent = plan.lost & draw.happens(0.5, n)
    delay = draw.delay(draw.latency + draw.think, n) * 2 ** draw.random.integers(2, 6, n)
    arrive = np.where(sent & draw.happens(0.7, n), complete + delay, arrival)
    subset = draw.happens(0.7, shape) & plan.holds
    subset[~subset.any(axis=1)] = plan.holds[~subset.any(axis=1)]
    lag = (draw.random.geometric(0.4, shape) - 1) * (draw.random.random(shape) < 0.5)
    stands = np.full(knobs.partitions, NONE)
    landed: list[tuple[Ints, Ints]] = []
    until = np.append(plan.begins[1:], _FOR_EVER)
    for turn in range(len(plan.begins)):
        rows = np.flatnonzero(plan.turn == turn)
        if not len(rows):
            continue
        start = np.maximum(stands, 0)
        begin[rows], end[rows] = _read_on(draw, knobs, plan, rows, start, logs)
        commits = rows[plan.kind[rows] == COMMIT]
        expected = np.where(subset[commits], np.maximum(begin[commits] - lag[commits], start), start)
        offset[commits] = np.where(subset[commits], _rising(plan.thread[commits], expected), NONE)
        in_time = arrive[commits] < until[turn]
        lands = commits[in_time & (sent[commits] | ~plan.lost[commits])]
        outcome[commits] = np.where(plan.lost[commits], LOST, np.where(in_time, OK, REFUSED))
        lands = lands[np.argsort(arrive[lands], kind="stable")]
        landed.append((arrive[lands], offset[lands]))
        for partition in range(knobs.partitions):
            reported = offset[lands, partition]
            reported = reported[reported != NONE]
            stands[partition] = reported[-1] if len(reported) else stands[partition]
    _ask(plan, arrival, landed, offset)
    unknown = outcome == LOST
    outcome[unknown & draw.happens(knobs.never_completes, n)] = NEVER
    numbers = np.cumsum(1 + draw.random.integers(0, 2, len(plan.begins)))
    before = np.cumsum(unknown) - unknown
    before -= before[plan.thread * (n // knobs.members)] if n else 0
    return Group(
        process + plan.thread + knobs.threads * before,
        invoke,
        complete,
        plan.holds,
        begin,
        end,
        name,
        plan.thread,
        arrival,
        plan.kind,
        outcome,
        np.where(plan.turn == NONE, NONE, numbers[plan.turn]),
        plan.joins,
        offset,
    )


def _planned(draw: Draw, knobs: Knobs, times: Times) -> _Plan:
    random, arrival, members = draw.random, times[2], knobs.members
    n, each = len(arrival), len(arrival) // members
    thread, latest = np.arange(n) // each, int(arrival.max(initial=BEGIN_NS))
    number = int(random.integers(1, knobs.generations + 1)) + n // _OPERATIONS_OF_A_GENERATION
    begins = np.sort(random.integers(BEGIN_NS, latest + 1, number))
    begins[0] = 0
    in_it = draw.happens(knobs.joins, (len(begins), members))
    in_it[np.arange(len(begins)), random.integers(0, members, len(begins))] = True
    owner = (random.random((len(begins), knobs.partitions, members)) * in_it[:, None, :]).argmax(axis=2)

    chance = random.random(n)
    kind = np.where(chance < knobs.commits, COMMIT, np.where(chance < 1.5 * knobs.commits, COMMITTED, POLL))
    kind[::each] = POLL
    failed = draw.happens(knobs.failed_read, n) & (kind != COMMIT)
    # The last generation, of those that a member is in, that had begun when its poll arrived.
    numbers = np.arange(len(begins))[:, None]
    known = np.maximum.accumulate(np.where(in_it, numbers, NONE), axis=0)
    now = known[np.searchsorted(begins, arrival, side="right") - 1, thread]
    seen = np.where((kind == POLL) & ~failed, now, NONE) + 1
    turn = _rising(thread, seen[:, None])[:, 0] - 1
    starts = np.arange(n) % each == 0
    joins = turn > np.where(starts, NONE, np.append(NONE, turn[:-1])[:n])
    holds = (owner[turn] == thread[:, None]) & (turn != NONE)[:, None]
    kind[(kind == COMMIT) & ~holds.any(axis=1)] = COMMITTED

    lost = (kind == COMMIT) & draw.happens(knobs.commit_unanswered, n)
    # Where nobody can tell which member goes on under another number, it leaves, and joins again as another
    # one.
    leaves = lost & (draw.happens(0.3, n) | (not knobs.generations_told))
    gone = np.cumsum(leaves) - leaves
    at_join = np.maximum.accumulate(np.where(joins | starts, np.arange(n), 0))
    kind[gone > gone[at_join]] = NOTHING
    lost &= kind == COMMIT
    return _Plan(thread, times, kind, failed, lost, turn, joins, holds, begins)


def _rising(thread: Ints, wanted: Ints) -> Ints:
    """Running maxima of each column, anew in each thread; rows are thread by thread, numbers 0 or more."""
    if not len(wanted):
        return wanted
    step = (thread * (int(wanted.max()) + 1))[:, None]
    result: Ints = np.maximum.accumulate(wanted + step, axis=0) - step
    return result


def _read_on(
    draw: Draw, knobs: Knobs, plan: _Plan, rows: Ints, start: Ints, logs: tuple[PartitionLog, ...]
) -> tuple[Ints, Ints]:
    """Returns the positions of members before and after these operations of one generation: a poll goes on
    to what was visible when it was fetched, by a bounded number of records."""
    thread = plan.thread[rows]
    reads = (plan.kind[rows] == POLL) & ~plan.failed[rows]
    fetched = np.maximum(0, plan.times[2][rows] - draw.delay(draw.latency, len(rows)))
    reach = np.stack([log.reach(fetched) for log in logs], axis=1)
    mine = plan.holds[rows] & reads[:, None]
    reach = _rising(thread, np.where(mine, np.maximum(reach, start), start))
    # After c polls: min(start + c * most, and for each poll b until then: its reach + (c - b) * most).
    first = np.diff(thread, prepend=-1) != 0
    polls = np.cumsum(reads)
    polls -= (polls - reads)[np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))]
    most = polls[:, None] * knobs.polled_at_most
    slack = reach - most
    step = (thread * (int(slack.max()) - int(slack.min()) + 1))[:, None]
    end = np.minimum(np.minimum.accumulate(slack - step, axis=0) + step, start) + most
    begin = np.append(start[None, :], end[:-1], axis=0)
    begin[first] = start
    return begin, end


def _ask(plan: _Plan, arrival: Ints, landed: list[tuple[Ints, Ints]], offset: Ints) -> None:
    """Sets the committed offset in answers to requests for it: that of the last commit that took effect
    until then."""
    rows = np.flatnonzero(plan.kind == COMMITTED)
    if not len(rows) or not landed:
        return
    times, offsets = np.concatenate([one[0] for one in landed]), np.concatenate([one[1] for one in landed])
    order = np.argsort(times, kind="stable")
    for partition in range(offset.shape[1]):
        mine = order[offsets[order, partition] != NONE]
        reported = np.append(NONE, offsets[mine, partition])
        offset[rows, partition] = reported[np.searchsorted(times[mine], arrival[rows], side="right")]
