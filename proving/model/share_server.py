"""The model's share group (KIP-932): members acquire records under locks and answer for each of them.

A record is available, acquired until its lock ends, or done with: accepted, rejected, or out of deliveries.
Members act in a loop: poll, answer, think. Some answers are a renewal, a release or none at all, some come
after the lock has ended and are refused, of some nobody knows what became of them, and members crash. When
the clients of the log are done, the members go on until the group has nothing left. It is simulated request
by request in plain Python, since the group gives out each record for itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

import numpy as np

from wrackline.proving.model.drawing import BEGIN_NS, PartitionLog
from wrackline.proving.model.knobs import Knobs

GROUP = "share"
LIMIT = 5
"""Deliveries of a record."""
LOCK_NS = 60_000_000
SESSION_NS = 40_000_000
MEMBERS, ANSWERS, LAG = 800_000, 850_000, 899_999
"""Members are processes from the first number on, what they acknowledge is of processes from the second one
on."""
_CRASH, _LATE, _POLL_FAILS, _ANSWER_LOST = 0.02, 0.04, 0.03, 0.05
_ANSWERS = ("accept", "reject", "release", "renew", "")
_WEIGHTS = (80, 6, 6, 5, 3)
"""Of answers; the last is none."""

Place = tuple[int, int]
"""(partition, offset)."""


@dataclass(frozen=True, slots=True)
class ShareEvent:
    """One event of a member, of its acknowledgements, or of who asks how far the group is."""

    ns: int
    process: int
    kind: str
    f: str
    places: tuple[Place, ...] = ()
    extra: dict[str, object] | None = None
    error: str | None = None


@dataclass(slots=True)
class _Record:
    count: int = 0
    owner: int = -1
    """-1: nobody has it."""
    until: int = 0
    """The lock ends."""
    done: bool = False


@dataclass(frozen=True, slots=True)
class _Request:
    """A request on its way: it is with the group's leader at ``ns``."""

    ns: int
    acks: dict[Place, str] | None = None
    """None: it acquires."""


_Granted = list[tuple[Place, int]]
"""Records with their delivery counts; of acknowledgements those that succeeded, with 0."""


class _Group:
    """The group's state at the leaders of the partitions."""

    def __init__(self, logs: Sequence[PartitionLog], most: int) -> None:
        self._logs, self._most = logs, most
        self._records = [[_Record(done=not visible) for visible in log.shown.tolist()] for log in logs]
        self.end_ns = max((int(log.visible.max(initial=0)) for log in logs), default=0)

    def answer(self, owner: int, request: _Request) -> _Granted:
        return self._acquire(owner, request.ns) if request.acks is None else self._answer(owner, request)

    def _acquire(self, owner: int, ns: int) -> _Granted:
        granted: _Granted = []
        for partition, (log, records) in enumerate(zip(self._logs, self._records, strict=True)):
            reach = int(np.searchsorted(log.visible, ns, side="right"))
            for offset, record in enumerate(records[:reach]):
                if not record.done and record.owner >= 0 and record.until <= ns:
                    self._free(record)
                if record.done or record.owner >= 0 or len(granted) >= self._most:
                    continue
                record.owner, record.until, record.count = owner, ns + LOCK_NS, record.count + 1
                granted.append(((partition, offset), record.count))
        return granted

    def _answer(self, owner: int, request: _Request) -> _Granted:
        good: _Granted = []
        for (partition, offset), kind in (request.acks or {}).items():
            record = self._records[partition][offset]
            if record.done or record.owner != owner or record.until <= request.ns:
                continue
            if kind == "renew":
                record.until = request.ns + LOCK_NS
            elif kind == "release":
                self._free(record)
            else:
                record.done = True
            good.append(((partition, offset), 0))
        return good

    @staticmethod
    def _free(record: _Record) -> None:
        record.owner, record.done = -1, record.count >= LIMIT

    def has_more(self) -> bool:
        return any(not record.done for records in self._records for record in records)

    def ends(self) -> dict[str, int]:
        return {str(partition): len(records) for partition, records in enumerate(self._records)}


@dataclass(slots=True)
class ShareRun:
    """All events of one share group, and when the last of them was."""

    events: list[ShareEvent] = field(default_factory=list)
    end_ns: int = 0


def share_group(seed: int, knobs: Knobs, logs: Sequence[PartitionLog], end_ns: int) -> ShareRun:
    """The run of a share group on these logs, whose clients are done at ``end_ns``."""
    run = ShareRun(end_ns=end_ns)
    if not knobs.share_members:
        return run
    group, numbers = _Group(logs, most=8), count()
    until = max(end_ns, group.end_ns) + 1
    lives = [
        _Life(Random(f"{seed}/share/{number}"), knobs, group, run, numbers, until).members()
        for number in range(knobs.share_members)
    ]
    waiting = [(next(life), number) for number, life in enumerate(lives)]
    heap = [(of_member[1].ns, number, of_member) for of_member, number in waiting]
    heapq.heapify(heap)
    while heap:
        _, number, (owner, request) = heapq.heappop(heap)
        try:
            following = lives[number].send(group.answer(owner, request))
        except StopIteration:
            continue
        heapq.heappush(heap, (following[1].ns, number, following))
    _ask_lag(run, group)
    return run


def _ask_lag(run: ShareRun, group: _Group) -> None:
    """How far the group is, when no lock and no session can last any more."""
    ends = group.ends()
    extra: dict[str, object] = {"group": GROUP, "starts": ends, "lags": dict.fromkeys(ends, 0)}
    at = run.end_ns + 2 * LOCK_NS + SESSION_NS + 1
    run.events.append(ShareEvent(at, LAG, "invoke", "lag", extra={"group": GROUP}))
    run.events.append(ShareEvent(at + 1, LAG, "ok", "lag", extra=extra))
    run.end_ns = at + 1


class _Life:
    """The members that follow each other in one place: when one crashes, another one joins."""

    def __init__(
        self, random: Random, knobs: Knobs, group: _Group, run: ShareRun, numbers: Iterator[int], until: int
    ) -> None:
        self._random, self._group, self._run, self._numbers, self._until = random, group, run, numbers, until
        self._latency, self._think = knobs.latency_ms * 1e6, knobs.think_ms * 1e6
        self._now = BEGIN_NS
        self._answers = ANSWERS + next(numbers)
        """Of which process acknowledgements are: of another one when nobody knows what became of the last."""

    def members(self) -> Generator[tuple[int, _Request], _Granted, None]:
        crashed = True
        while crashed:
            number = next(self._numbers)
            crashed = yield from self._member(number)

    def _member(self, number: int) -> Generator[tuple[int, _Request], _Granted, bool]:
        """Returns whether it crashed."""
        process, renewed, empty = MEMBERS + number, dict[Place, int](), 0
        config = {"limit": LIMIT, "lock_ms": LOCK_NS // 10**6, "session_ms": SESSION_NS // 10**6}
        for kind in ("invoke", "ok"):
            self._add(process, kind, "subscribe", extra={"group": GROUP, "partitions": [], "share": config})
        while self._now < self._until or self._group.has_more() or empty < 2:
            begin = self._now
            self._add(process, "invoke", "acquire")
            granted = yield number, _Request(self._step())
            self._step()
            if self._now < self._until and self._chance(_POLL_FAILS) and all(c == 1 for _, c in granted):
                # What it had acquired waits for the end of its lock; renewals are given by the next poll.
                self._add(process, "fail", "acquire", error="_TIMED_OUT")
                continue
            again = [place for place in renewed if place not in dict(granted)]
            counts = {**{place: renewed[place] for place in again}, **dict(granted)}
            extra = {
                "group": GROUP,
                "counts": list(counts.values()),
                "since_ns": begin,
                "renewed": [list(place) for place in again],
            }
            self._add(process, "ok", "acquire", tuple(counts), extra=extra)
            empty = 0 if counts else empty + 1
            renewed = {}
            if self._now < self._until and self._chance(_CRASH):
                self._add(process, "ok", "crash", extra={"group": GROUP, "left": False})
                self._think_a_while()
                return True
            if counts:
                renewed = yield from self._acknowledge(number, counts, again)
            self._think_a_while()
        return False

    def _acknowledge(
        self, number: int, counts: dict[Place, int], again: Sequence[Place]
    ) -> Generator[tuple[int, _Request], _Granted, dict[Place, int]]:
        """Answers for records. Returns those whose lock it has renewed."""
        working = self._now < self._until
        acks: dict[Place, str] = {}
        for place, delivered in counts.items():
            draws = working and delivered < LIMIT - 1 and place not in again
            kind = self._random.choices(_ANSWERS, _WEIGHTS)[0] if draws else "accept"
            if kind:
                acks[place] = kind
        if not acks:
            return {}
        if working and self._chance(_LATE) and all(counts[place] < LIMIT - 1 for place in counts):
            self._now += int(1.5 * LOCK_NS)
        process, extra = self._answers, {"group": GROUP, "member": MEMBERS + number, "mode": "sync"}
        self._add(process, "invoke", "acknowledge", extra={**extra, "acks": named(acks)})
        good = {place for place, _ in (yield number, _Request(self._step(), acks))}
        self._step()
        if working and self._chance(_ANSWER_LOST) and all(counts[place] < LIMIT - 1 for place in acks):
            self._add(process, "info", "acknowledge", extra={**extra, "acks": {}}, error="_TIMED_OUT")
            self._answers = ANSWERS + next(self._numbers)
            return {}
        refused = {place: "refused" for place in acks if place not in good}
        errors = {"INVALID_RECORD_STATE": named(refused)["refused"]} if refused else {}
        succeeded = named({place: kind for place, kind in acks.items() if place in good})
        self._add(process, "ok", "acknowledge", extra={**extra, "acks": succeeded, "errors": errors})
        return {place: counts[place] for place in good if acks[place] == "renew"}

    def _add(self, process: int, kind: str, f: str, places: tuple[Place, ...] = (), **columns: Any) -> None:
        self._run.events.append(ShareEvent(self._now, process, kind, f, places, **columns))
        self._run.end_ns = max(self._run.end_ns, self._now)
        self._now += 1

    def _step(self) -> int:
        self._now += int(self._random.expovariate(1 / self._latency)) + 1
        return self._now

    def _think_a_while(self) -> None:
        self._now += int(self._random.expovariate(1 / self._think)) + 1

    def _chance(self, share: float) -> bool:
        return self._random.random() < share


def named(acks: Mapping[Place, str]) -> dict[str, dict[str, list[int]]]:
    """Kind -> partition -> offsets, as ``extra`` has them."""
    result: dict[str, dict[str, list[int]]] = {}
    for (partition, offset), kind in acks.items():
        result.setdefault(kind, {}).setdefault(str(partition), []).append(offset)
    return result
