"""Registers and queues, second half: one stretch of the time of one object, with all zones or lives that
start in it.

Whether values contradict each other is one pass in order of time with a running maximum (a register's zones,
a queue's empty answers) or minimum (what was overtaken). All that a stretch must know of the others is a zone
or a life each: the one that reaches furthest out of the time before, the one that comes out first of those
after. One short row per stretch (wrackline.checkers.engine.object_values) tells the driver, who tells it to
all (``beyond_of``); then each stretch is decided by itself, by the exact checks' own functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from wrackline.checkers.engine.context import Beyond, Context, run_of
from wrackline.checkers.engine.facts import CALL, COLUMNS, SLOTS, Kind, Packet, Rows, Writer, together, unpack
from wrackline.checkers.engine.object_values import ASK, ENTRY, REGISTER, Breach, put_breaches
from wrackline.checkers.exact import queue as exact_queue
from wrackline.checkers.exact import register as exact_register
from wrackline.checkers.exact.operations import BEFORE, NEVER, NOTHING
from wrackline.checkers.inputs.arrays import NONE, Ints, bools

SUMMARIES = (Kind.REACH, Kind.SOONEST, Kind.LEFT, Kind.UNSURE)
"""What the driver is told."""
DECIDED = (Kind.ZONE, Kind.LIFE, Kind.EMPTY)
"""What is decided here."""
_ALONE = Beyond(Rows({}, 0), Rows({}, 0), Rows({}, 0), np.zeros(0, dtype=np.int64))


def beyond_of(packets: Iterable[Packet]) -> dict[int, Beyond]:
    """For each log what its stretches of time must know of each other, out of SUMMARIES."""
    told: dict[int, dict[Kind, list[Rows]]] = {}
    for owner, _, kind, n, data in packets:
        told.setdefault(owner, {}).setdefault(kind, []).append(unpack(data, n, COLUMNS[kind]))
    return {log: _beyond(kinds) for log, kinds in told.items()}


def _beyond(kinds: Mapping[Kind, Sequence[Rows]]) -> Beyond:
    reach, soonest, left, unsure = (together(kinds.get(kind, ()), COLUMNS[kind]) for kind in SUMMARIES)
    reach = reach.take(np.argsort(reach.chunk, kind="stable"))
    # A zone lasts until its last read began, a life until its dequeue did.
    reach = _running(reach, np.where(reach.got_inv == NONE, reach.last_inv, reach.got_inv))
    soonest = soonest.take(np.argsort(-soonest.chunk, kind="stable"))
    soonest = _running(soonest, -soonest.got_ret)
    left = left.take(np.lexsort((left.put_ret, left.chunk)))
    left.columns["count"] = np.cumsum(left.columns["count"])
    return Beyond(reach, soonest.take(np.arange(len(soonest))[::-1]), left, np.sort(unsure.inv))


def _running(rows: Rows, key: Ints) -> Rows:
    """Instead of each row the one with the largest key so far; ``chunk`` stays."""
    if not len(rows):
        return rows
    most = np.maximum.accumulate(key)
    found = rows.take(np.maximum.accumulate(np.where(key == most, np.arange(len(key)), 0)))
    found.columns["chunk"] = rows.chunk
    return found


class Moments:
    """Takes up what starts in one stretch of one object's time; ``put`` when all is there."""

    def __init__(self, log: int, number: int, context: Context) -> None:
        self.log, self.number = log, number
        self.workload = context.objects[int(run_of(np.array([log]))[0])]
        self.begin, self.end = number * context.span, (number + 1) * context.span
        self.beyond = context.beyond.get(log, _ALONE)
        self._facts: dict[Kind, list[Rows]] = {}

    def take(self, kind: Kind, rows: Rows) -> None:
        self._facts.setdefault(kind, []).append(rows)

    def put(self, writer: Writer) -> None:
        table, found = self._register() if self.workload == REGISTER else self._queue()
        put_breaches(writer, self.workload, self.log, table, found)

    def _with(self, kind: Kind, beyond: Rows) -> Rows:
        return together([*self._facts.get(kind, ()), beyond], COLUMNS[kind])

    def _before(self, rows: Rows) -> Rows:
        """What is known of the time before this stretch: one row, or none."""
        at = int(np.searchsorted(rows.chunk, self.number)) if len(rows) else 0
        return rows.take(np.arange(max(0, at - 1), at))

    def _after(self, rows: Rows) -> Rows:
        at = int(np.searchsorted(rows.chunk, self.number, side="right")) if len(rows) else 0
        return rows.take(np.arange(at, min(at + 1, len(rows))))

    # --- registers

    def _register(self) -> tuple[Rows, list[Breach]]:
        zones = self._with(Kind.ZONE, self._before(self.beyond.reach))
        f = np.where(zones.value == NOTHING, BEFORE, zones.first_ret)
        s = zones.last_inv
        found = []
        for one, other, count in zip(*(some.tolist() for some in exact_register.overlaps(f, s)), strict=True):
            rule = exact_register.Rule.TWO_AT_ONCE if f[other] < s[other] else exact_register.Rule.INSIDE
            slots = [row + operation * len(zones) for row in (one, other) for operation in range(3)]
            values = int(zones.value[one]), int(zones.value[other])
            found.append(
                Breach(rule, *values, count, slots, key=values[0], order=int(min(f[other], s[other])))
            )
        return _operations(zones, "write", "first", "last"), found

    # --- queues

    def _queue(self) -> tuple[Rows, list[Breach]]:
        lives = self._with(Kind.LIFE, Rows({}, 0))
        own = len(lives)
        # Of other stretches: who comes out first of those that went in later, and who was in longest of those
        # before.
        later, longest, left = (
            self._after(self.beyond.soonest),
            self._before(self.beyond.reach),
            self._before(self.beyond.left),
        )
        lives = together([lives, later, longest, left], COLUMNS[Kind.LIFE])
        lives.columns["role"][own:] = 0
        lives.columns["di"] = np.where(lives.got_inv == NONE, NEVER, lives.got_inv)
        self._give_to_unsure(lives, own, left)
        entries = np.flatnonzero(bools(lives.role & ENTRY != 0))
        entries = np.append(entries, own + np.arange(len(later)))
        asks = np.flatnonzero(bools(lives.role & ASK != 0))
        inside = np.append(asks, np.arange(own + len(later), len(lives)))
        answers = together(self._facts.get(Kind.EMPTY, ()), COLUMNS[Kind.EMPTY])
        found = [*self._overtaken(lives, asks, entries), *self._not_empty(lives, inside, answers)]
        return together([_operations(lives, "put", "got"), answers], CALL), found

    def _give_to_unsure(self, lives: Rows, own: int, left: Rows) -> None:
        """Dequeues of unknown outcome took the values that nobody got, in their order."""
        before = int(left.columns["count"][0]) if len(left) else 0
        nobodys = np.flatnonzero((lives.got_inv == NONE)[:own])
        lives.columns["di"][nobodys] = exact_queue.taken_by_unsure(
            lives.put_ret[nobodys], self.beyond.unsure, before
        )
        if 0 < before <= len(self.beyond.unsure):
            lives.columns["di"][-1] = self.beyond.unsure[before - 1]

    def _overtaken(self, lives: Rows, asks: Ints, entries: Ints) -> list[Breach]:
        late, by = exact_queue.overtaken(
            lives.put_ret[asks], lives.di[asks], lives.put_inv[entries], lives.got_ret[entries]
        )
        late, by = asks[late], entries[by]
        size, lost = len(lives), lives.got_inv[late] == NONE
        found = [
            Breach(
                exact_queue.Rule.LOST,
                *(int(lives.value[a]), int(lives.value[b]), 1),
                [a, -1, b, size + b],
                key=int(lives.value[a]),
            )
            for a, b in zip(late[lost].tolist(), by[lost].tolist(), strict=True)
        ]
        some = exact_queue.first_overtaken(late[~lost], by[~lost], lives.put_inv[late[~lost]])
        return found + [
            Breach(
                exact_queue.Rule.OVERTAKEN,
                *(int(lives.value[b]), int(lives.value[a]), count),
                [a, size + a, b, size + b],
                key=int(lives.value[b]),
                order=int(lives.put_inv[a]),
            )
            for b, a, count in zip(*(one.tolist() for one in some), strict=True)
        ]

    def _not_empty(self, lives: Rows, inside: Ints, answers: Rows) -> list[Breach]:
        """Of an answer that stretches over several stretches of time the piece in this one."""
        inv = np.maximum(answers.inv, self.begin)
        ret = np.minimum(answers.ret, self.end)
        size, found = len(lives), []
        for row, cover in exact_queue.covered(lives.put_ret[inside], lives.di[inside], inv, ret):
            values = inside[cover].tolist()
            slots = [2 * size + row]
            for value in values[: (SLOTS - 1) // 2]:
                slots += [value, size + value if lives.got_inv[value] != NONE else -1]
            found.append(
                Breach(
                    exact_queue.Rule.NOT_EMPTY,
                    *(NOTHING, int(lives.value[values[0]]), len(values)),
                    slots,
                    key=int(answers.inv[row]),
                    order=self.number,
                    pieces=int(answers.pieces[row]),
                )
            )
        return found


def _operations(rows: Rows, *names: str) -> Rows:
    """Operations named in columns, one kind after another."""
    return together(
        [Rows({part: rows.columns[f"{name}_{part}"] for part in CALL}, len(rows)) for name in names], CALL
    )


__all__ = ["DECIDED", "SUMMARIES", "Moments", "beyond_of"]
