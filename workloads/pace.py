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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


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
        mixed = (self.bits ^ (salt * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93 & 0xFFFFFFFFFFFFFFFF
        return (mixed >> 32) % n


@dataclass(frozen=True, slots=True)
class Lanes:
    """How the clients of one kind of operation are shared out among partitions."""

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
    """The slots of one kind, in order. Under the generator's lock."""

    def __init__(self, f: str, rate: float, spacing: Spacing, seed: int, lanes: Lanes | None) -> None:
        self.f = f
        self.rate = rate
        self.spacing = spacing
        self.random = random.Random(f"{seed}/{f}")
        self.lanes = lanes
        count = lanes.count if lanes else 1
        self.waiting: list[deque[Slot]] = [deque() for _ in range(count)]
        """By lane: slots that are due and not handed out."""
        self.busy = [0] * count
        """By lane: operations under way."""
        self.left_out = [0] * count
        self.number = 0
        self.due_s = 0.0
        self.upcoming = self._draw()

    def _draw(self) -> Slot:
        slot = Slot(self.f, self.number, self.due_s, self.random.getrandbits(64))
        if self.lanes is not None:
            slot = replace(slot, lane=slot.choice(self.lanes.count))
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
        heads = [waiting[0] for lane, waiting in enumerate(self.waiting) if waiting and self._has_room(lane)]
        if not heads:
            return None
        slot = min(heads, key=lambda head: head.number)
        self.waiting[slot.lane].popleft()
        self.busy[slot.lane] += 1
        return slot

    def take_any(self) -> Slot | None:
        """The next slot whose lane has room, when nothing is ever due: slots of full lanes are passed
        over."""
        if not any(self._has_room(lane) for lane in range(len(self.busy))):
            return None
        while True:
            slot, self.upcoming = self.upcoming, self._draw()
            if self._has_room(slot.lane):
                self.busy[slot.lane] += 1
                return slot

    def _has_room(self, lane: int) -> bool:
        """Whether one more operation in this lane leaves every other lane its reserved clients."""
        if self.lanes is None:
            return True
        reserved = self.lanes.reserved
        if self.busy[lane] < reserved:
            return True
        idle = self.lanes.clients - sum(self.busy)
        kept = sum(max(0, reserved - busy) for other, busy in enumerate(self.busy) if other != lane)
        return idle > kept


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
        self._changed = threading.Condition()

    def start(self) -> None:
        """The streams' time begins."""
        with self._changed:
            self._started = self._clock()
            self._changed.notify_all()

    def stop(self, *kinds: str) -> None:
        """No more slots of these kinds (of every kind when none is named); waiting clients get None."""
        with self._changed:
            self._stopped |= set(kinds) or set(self._streams)
            self._changed.notify_all()

    @property
    def left_out(self) -> dict[str, list[int]]:
        """By kind and lane: slots that were not handed out because the clients were busy for too long."""
        with self._changed:
            return {f: list(stream.left_out) for f, stream in self._streams.items()}

    def take(self, f: str) -> Slot | None:
        """The next operation of this kind, when it is due and its lane has room; None when the stream has
        been stopped (or the mix gives this kind no share). Whoever takes a slot says ``done`` with it."""
        stream = self._streams.get(f)
        with self._changed:
            while stream is not None and f not in self._stopped:
                if self._started is None:
                    self._changed.wait()
                    continue
                if self._unbounded:
                    slot, wait_s = stream.take_any(), None
                else:
                    now = self._clock() - self._started
                    stream.fall_due(now, now - self._catch_up_s)
                    slot, wait_s = stream.take_due(), stream.upcoming.due_s - now
                if slot is not None:
                    return slot
                self._changed.wait(wait_s)
        return None

    def done(self, slot: Slot) -> None:
        """The operation is over: its lane has room for another."""
        stream = self._streams[slot.f]
        with self._changed:
            stream.busy[slot.lane] -= 1
            if stream.lanes is not None and (self._unbounded or any(stream.waiting)):
                self._changed.notify_all()
