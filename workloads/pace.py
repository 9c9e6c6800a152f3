"""An open stream of operations at an asked rate, taken by client threads as they become idle.

The stream of each kind of operation (``f``) is a fixed sequence drawn from the seed: slot 17 of ``send`` has
the same due time and the same choices in every run with that seed, whichever thread takes it. A system that
stalls makes every client busy; slots that fell due meanwhile are handed out afterwards only as far back as
``catch_up_s``: the stream never bursts without bound (slots left out are counted).

A kind whose operations each go to one partition has a *lane* per partition. A partition without a leader
keeps its clients waiting for seconds; if it could keep all of them, the healthy partitions would get no load
either, and the test would be weakest under a fault. Every lane therefore has a share of the clients that no
other lane can take.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

ROOM_S = 0.01
"""A client that has other operations under way asks so often whether a lane has room again."""


class Spacing(StrEnum):
    FIXED = "fixed"
    POISSON = "poisson"


@dataclass(frozen=True, slots=True)
class Slot:
    """One operation to do: its number in the stream of its kind, when it was due (seconds from the stream's
    start; 0 for ever when the rate is not bounded), 64 random bits for whatever it must choose, and its lane:
    the partition it goes to, 0 for a kind without lanes."""

    f: str
    number: int
    due_s: float
    bits: int
    lane: int = 0

    def choice(self, n: int, salt: int = 0) -> int:
        """A choice among ``n``, the same whenever this slot is drawn again. Different salts, different
        choices."""
        return choice_of(self.bits, n, salt)


def choice_of(bits: int, n: int, salt: int = 0) -> int:
    mixed = (bits ^ (salt * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93 & 0xFFFFFFFFFFFFFFFF
    return (mixed >> 32) % n


@dataclass(frozen=True, slots=True)
class Lanes:
    """The share of each partition in the clients of one kind of operation."""

    count: int
    """Partitions."""
    clients: int
    """How many operations of this kind can be under way at a time."""

    @property
    def reserved(self) -> int:
        """Clients that are always left to each lane; 1 where there are fewer clients than lanes, which is
        then a limit and no promise."""
        return max(1, self.clients // self.count)


class _Stream:
    """The slots of one kind, in order. Under its own lock: kinds do not wait for each other."""

    def __init__(self, f: str, rate: float, spacing: Spacing, seed: int, lanes: Lanes | None) -> None:
        self.f = f
        self.rate = rate
        self.spacing = spacing
        self.random = random.Random(f"{seed}/{f}")
        self.lanes = lanes
        self.changed = threading.Condition()
        self.sleepers = 0
        """Threads that wait for ``changed``."""
        count = lanes.count if lanes else 1
        self.waiting: list[deque[Slot]] = [deque() for _ in range(count)]
        """By lane: slots that are due and not handed out."""
        self.busy = [0] * count
        """By lane: operations under way."""
        self.left_out = [0] * count
        self._reserved = lanes.reserved if lanes else 0
        self._idle = lanes.clients if lanes else 0
        """Clients without an operation; the sum of ``busy`` and this does not change."""
        self._kept = self._reserved * count
        """Of the reserved clients of all lanes, how many have no operation."""
        self.number = 0
        self.due_s = 0.0
        self.upcoming = self._draw()

    def _draw(self) -> Slot:
        bits = self.random.getrandbits(64)
        lane = choice_of(bits, self.lanes.count) if self.lanes is not None else 0
        slot = Slot(self.f, self.number, self.due_s, bits, lane)
        self.number += 1
        if self.rate > 0:
            fixed = self.spacing is Spacing.FIXED
            self.due_s += 1 / self.rate if fixed else self.random.expovariate(self.rate)
        return slot

    def fall_due(self, now_s: float, oldest_s: float) -> None:
        """Take in what is due by now, and leave out what was due before ``oldest_s``."""
        for lane, waiting in enumerate(self.waiting):
            while waiting and waiting[0].due_s < oldest_s:
                waiting.popleft()
                self.left_out[lane] += 1
        while self.upcoming.due_s <= now_s:
            if self.upcoming.due_s < oldest_s:
                self.left_out[self.upcoming.lane] += 1
            else:
                self.waiting[self.upcoming.lane].append(self.upcoming)
            self.upcoming = self._draw()

    def take_due(self) -> Slot | None:
        """The slot that has waited longest among the lanes with room; None when there is none."""
        first: Slot | None = None
        for lane, waiting in enumerate(self.waiting):
            if waiting and (first is None or waiting[0].number < first.number) and self._has_room(lane):
                first = waiting[0]
        if first is None:
            return None
        self.waiting[first.lane].popleft()
        self._begin(first.lane)
        return first

    def take_any(self) -> Slot | None:
        """The next slot whose lane has room, when nothing is ever due: slots of full lanes are passed
        over."""
        if not any(self._has_room(lane) for lane in range(len(self.busy))):
            return None
        while True:
            slot, self.upcoming = self.upcoming, self._draw()
            if self._has_room(slot.lane):
                self._begin(slot.lane)
                return slot

    def _has_room(self, lane: int) -> bool:
        """Tells whether one more operation in this lane leaves every other lane its reserved clients."""
        return self.lanes is None or self.busy[lane] < self._reserved or self._idle > self._kept

    def _begin(self, lane: int) -> None:
        self._kept -= self.busy[lane] < self._reserved
        self._idle -= 1
        self.busy[lane] += 1

    def end(self, lane: int) -> None:
        """An operation in this lane is over; another may be wanted by whoever sleeps."""
        self.busy[lane] -= 1
        self._idle += 1
        self._kept += self.busy[lane] < self._reserved
        if self.sleepers and self.lanes is not None:
            self.changed.notify()

    def sleep(self, at_most_s: float | None) -> None:
        self.sleepers += 1
        try:
            self.changed.wait(at_most_s)
        finally:
            self.sleepers -= 1


class Due(NamedTuple):
    """An operation that a client that does not wait was handed."""

    slots: list[Slot]
    next_s: float
    """In so many seconds another falls due. Without a rate: when to ask again, since there may be room."""


class Generator:
    """Hands slots to idle clients. Thread-safe."""

    def __init__(
        self,
        rate: float,
        mix: Mapping[str, float],
        seed: int,
        *,
        lanes: Mapping[str, Lanes] | None = None,
        spacing: Spacing = Spacing.FIXED,
        catch_up_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``rate``: operations per second of all kinds together, 0 = as fast as clients take them; ``mix``:
        the weight of each kind; ``lanes``: of the kinds whose operations each go to one partition. Raises
        ValueError on a negative rate or weights that give no kind a share."""
        total = sum(mix.values())
        if rate < 0 or total <= 0 or min(mix.values()) < 0:
            raise ValueError(f"rate {rate} with mix {dict(mix)} gives no stream of operations")
        self._streams = {
            f: _Stream(f, rate * weight / total, spacing, seed, (lanes or {}).get(f))
            for f, weight in mix.items()
            if weight
        }
        self._unbounded = rate == 0
        self._catch_up_s = catch_up_s
        self._clock = clock
        self._started: float | None = None
        self._stopped: set[str] = set()

    def start(self) -> None:
        """The streams' time begins."""
        self._started = self._clock()
        self._wake(self._streams)

    def stop(self, *kinds: str) -> None:
        """Stops slots of these kinds (of every kind when none is named); waiting clients get None."""
        ended = set(kinds) or set(self._streams)
        self._stopped |= ended
        self._wake(ended & set(self._streams))

    @property
    def ended(self) -> bool:
        """Tells whether every kind was stopped."""
        return self._stopped >= set(self._streams)

    def _wake(self, kinds: Iterable[str]) -> None:
        for f in kinds:
            with self._streams[f].changed:
                self._streams[f].changed.notify_all()

    @property
    def left_out(self) -> dict[str, list[int]]:
        """Returns by kind and lane the slots that were not handed out because the clients were busy for too
        long."""
        return {f: list(stream.left_out) for f, stream in self._streams.items()}

    def take(self, f: str) -> Slot | None:
        """The next operation of this kind, when it is due and its lane has room; None when the stream has
        been stopped (or the mix gives this kind no share). Whoever takes a slot calls ``done`` with it."""
        stream = self._streams.get(f)
        if stream is None:
            return None
        with stream.changed:
            while f not in self._stopped:
                if self._started is None:
                    stream.sleep(None)
                    continue
                wait_s = self._fall_due(stream, self._started)
                slot = stream.take_any() if self._unbounded else stream.take_due()
                if slot is not None:
                    return slot
                stream.sleep(wait_s)
        return None

    def take_due(self, f: str, most: int) -> Due | None:
        """Takes up to so many operations of this kind whose lanes have room, as far as they are due now; for
        clients that have other operations under way and cannot wait here. None when the stream has been
        stopped."""
        stream = self._streams[f]
        with stream.changed:
            if f in self._stopped or self._started is None:
                return None
            wait_s = self._fall_due(stream, self._started)
            slots: list[Slot] = []
            while len(slots) < most:
                slot = stream.take_any() if self._unbounded else stream.take_due()
                if slot is None:
                    break
                slots.append(slot)
            return Due(slots, ROOM_S if wait_s is None else wait_s)

    def _fall_due(self, stream: _Stream, started: float) -> float | None:
        """Seconds until another slot falls due; None without a rate."""
        if self._unbounded:
            return None
        now = self._clock() - started
        stream.fall_due(now, now - self._catch_up_s)
        return stream.upcoming.due_s - now

    def done(self, *slots: Slot) -> None:
        """Frees the lanes of these operations, all of one kind, which are over."""
        if slots:
            stream = self._streams[slots[0].f]
            with stream.changed:
                for slot in slots:
                    stream.end(slot.lane)
