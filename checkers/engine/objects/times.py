"""Registers and queues, second half: one interval of the time of one object, with all zones or lives that
start in it.

Whether values contradict each other is one pass in order of time with a running maximum (a register's zones,
a queue's empty answers) or minimum (what was overtaken). All that an interval must know of the others is a
zone or a life each: the one that reaches furthest out of the time before, the one that comes out first of
those after. One short row per interval (wrackline.checkers.engine.objects.values) goes to the driver, who
gives it to all (``outside_of``); then each interval is decided by itself, by the exact checks' own functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from wrackline.checkers.engine.context import Context, OutsideInterval, run_of
from wrackline.checkers.engine.fact_codec import Packed, Writer
from wrackline.checkers.engine.facts import Facts, Kind
from wrackline.checkers.engine.object_facts import (
    SLOTS,
    Call,
    EarliestDequeue,
    Empty,
    Life,
    LifeSummary,
    Unconsumed,
    UnsureGet,
    Zone,
    ZoneSummary,
)
from wrackline.checkers.engine.objects.values import REGISTER, BrokenRule, Role, put_contradictions
from wrackline.checkers.exact import queue as exact_queue
from wrackline.checkers.exact import register as exact_register
from wrackline.checkers.exact.operations import BEFORE, NEVER, NOTHING
from wrackline.checkers.inputs.table import NONE, Ints, Table, bools, concatenated, constant

SUMMARIES = (Kind.ZONE_SUMMARY, Kind.LIFE_SUMMARY, Kind.EARLIEST_DEQUEUE, Kind.UNCONSUMED, Kind.UNSURE_GET)
"""What goes to the driver."""
DECIDED = (Kind.ZONE, Kind.LIFE, Kind.EMPTY)
"""What is decided here."""
_ALONE = OutsideInterval(
    ZoneSummary.unknown(0),
    LifeSummary.unknown(0),
    EarliestDequeue.unknown(0),
    Unconsumed.unknown(0),
    np.zeros(0, dtype=np.int64),
)


def outside_of(summaries: Iterable[Packed]) -> dict[int, OutsideInterval]:
    """Returns for each log what its intervals of time must know of each other, out of SUMMARIES."""
    result: dict[int, Facts] = {}
    for packed in summaries:
        result.setdefault(packed.owner, Facts()).take(packed.rows())
    return {log: _outside(facts) for log, facts in result.items()}


def _outside(facts: Facts) -> OutsideInterval:
    zones, lives, earliest, left = (
        facts.of(ZoneSummary),
        facts.of(LifeSummary),
        facts.of(EarliestDequeue),
        facts.of(Unconsumed),
    )
    zones = zones.take(np.argsort(zones.part, kind="stable"))
    lives = lives.take(np.argsort(lives.part, kind="stable"))
    earliest = earliest.take(np.argsort(-earliest.part, kind="stable"))
    left = left.take(np.lexsort((left.life.put.ret, left.part)))
    # A zone lasts until its last read began, a life until its dequeue did.
    zones = replace(zones, zone=zones.zone.take(_running(zones.zone.last.inv)))
    lives = replace(lives, life=lives.life.take(_running(lives.life.got.inv)))
    earliest = replace(earliest, life=earliest.life.take(_running(-earliest.life.got.ret)))
    return OutsideInterval(
        zones,
        lives,
        earliest.take(np.arange(len(earliest))[::-1]),
        replace(left, count=np.cumsum(left.count)),
        np.sort(facts.of(UnsureGet).inv),
    )


def _running(key: Ints) -> Ints:
    """To each row the one with the largest key so far."""
    most = np.maximum.accumulate(key)
    result: Ints = np.maximum.accumulate(np.where(key == most, np.arange(len(key)), 0))
    return result


class Interval:
    """Takes up what starts in one interval of one object's time; ``put`` when all is there."""

    def __init__(self, log: int, number: int, context: Context) -> None:
        self.log, self.number = log, number
        self.workload = context.objects[int(run_of(np.array([log]))[0])]
        self.begin, self.end = number * context.span, (number + 1) * context.span
        self.outside = context.outside.get(log, _ALONE)
        self._facts = Facts()

    def take(self, rows: Table[Ints]) -> None:
        self._facts.take(rows)

    def put(self, writer: Writer) -> None:
        calls, result = self._register() if self.workload == REGISTER else self._queue()
        put_contradictions(writer, self.workload, self.log, calls, result)

    def _before(self, part: Ints) -> Ints:
        """The row of what is known of the time before this interval: one, or none."""
        at = int(np.searchsorted(part, self.number))
        return np.arange(max(0, at - 1), at)

    def _after(self, part: Ints) -> Ints:
        at = int(np.searchsorted(part, self.number, side="right"))
        return np.arange(at, min(at + 1, len(part)))

    # --- registers

    def _register(self) -> tuple[Call[Ints], list[BrokenRule]]:
        reach = self.outside.zones
        earlier = reach.zone.take(self._before(reach.part))
        zones = concatenated(Zone, [self._facts.of(Zone), earlier])
        f = np.where(zones.value == NOTHING, BEFORE, zones.first.ret)
        s = zones.last.inv
        result = []
        for rule, one, other, count in exact_register.overlaps(f, s):
            slots = [row + operation * len(zones) for row in (one, other) for operation in range(3)]
            values = int(zones.value[one]), int(zones.value[other])
            result.append(
                BrokenRule(rule, *values, count, slots, key=values[0], order=int(min(f[other], s[other])))
            )
        return concatenated(Call[Ints], [zones.write, zones.first, zones.last]), result

    # --- queues

    def _queue(self) -> tuple[Call[Ints], list[BrokenRule]]:
        mine, outside = self._facts.of(Life), self.outside
        own = len(mine)
        # Of other intervals: who comes out first of those that went in later, and who was in longest of those
        # before.
        later = outside.earliest.life.take(self._after(outside.earliest.part))
        longest = outside.lives.life.take(self._before(outside.lives.part))
        left = outside.left.take(self._before(outside.left.part))
        others = concatenated(Life, [later, longest, left.life])
        others = replace(others, role=constant(0, len(others)))
        life = concatenated(Life, [mine, others])
        puts = np.arange(len(life))
        gets = np.where(life.got.inv == NONE, -1, len(life) + puts)
        out = self._taken_out(life, own, left)
        lives = exact_queue.Lives(puts, gets, life.put.inv, life.put.ret, out, life.got.ret)
        entries = np.flatnonzero(bools(life.role & Role.ENTRY != 0))
        entries = np.append(entries, own + np.arange(len(later)))
        asked = np.flatnonzero(bools(life.role & Role.ASKED != 0))
        inside = np.append(asked, np.arange(own + len(later), len(life)))
        answers = self._facts.of(Empty)
        result = self._overtaken(life.value, lives, asked, entries)
        result += self._not_empty(life.value, lives, inside, answers)
        return concatenated(Call[Ints], [life.put, life.got, answers.call]), result

    def _taken_out(self, life: Life, own: int, left: Unconsumed) -> Ints:
        """When values came out at the earliest: dequeues of unknown outcome took those that nobody got, in
        their order."""
        before = int(left.count[0]) if len(left) else 0
        out = np.where(life.got.inv == NONE, NEVER, life.got.inv)
        nobodys = np.flatnonzero((life.got.inv == NONE)[:own])
        out[nobodys] = exact_queue.taken_by_unsure(life.put.ret[nobodys], self.outside.unsure, before)
        if 0 < before <= len(self.outside.unsure):
            out[-1] = self.outside.unsure[before - 1]
        return out

    def _overtaken(
        self, value: Ints, lives: exact_queue.Lives, asked: Ints, entries: Ints
    ) -> list[BrokenRule]:
        result = []
        for rule, one, other, count in exact_queue.disordered(lives, asked, entries):
            slots = [int(column[at]) for at in (one, other) for column in (lives.put, lives.got)]
            culprit, against = value[list(exact_queue.culprit_first(rule, one, other))].tolist()
            result.append(BrokenRule(rule, culprit, against, count, slots, culprit, int(lives.ei[one])))
        return result

    def _not_empty(
        self, value: Ints, lives: exact_queue.Lives, inside: Ints, answers: Empty
    ) -> list[BrokenRule]:
        """Checks the piece in this interval of an answer that touches several intervals of time."""
        inv = np.maximum(answers.call.inv, self.begin)
        ret = np.minimum(answers.call.ret, self.end)
        result = []
        for row, cover in exact_queue.covered(lives.er[inside], lives.di[inside], inv, ret):
            values = inside[cover].tolist()
            slots = [2 * len(value) + row]
            for at in values[: (SLOTS - 1) // 2]:
                slots += [int(lives.put[at]), int(lives.got[at])]
            result.append(
                BrokenRule(
                    exact_queue.Rule.NOT_EMPTY,
                    *(NOTHING, int(value[values[0]]), len(values)),
                    slots,
                    key=int(answers.call.inv[row]),
                    order=self.number,
                    pieces=int(answers.pieces[row]),
                )
            )
        return result


__all__ = ["DECIDED", "SUMMARIES", "Interval", "outside_of"]
