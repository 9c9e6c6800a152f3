"""An open stream of operations at an asked rate, taken by client threads as they become idle.

The stream of each kind of operation (``f``) is a fixed sequence drawn from the seed: slot 17 of ``send`` has the
same due time and the same choices in every run with that seed, whichever thread takes it. A system that stalls
makes every client busy; slots that fell due meanwhile are handed out afterwards only as far back as
``catch_up_s``: the stream never bursts without bound (dropped slots are counted).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Spacing(StrEnum):
    FIXED = "fixed"
    POISSON = "poisson"


@dataclass(frozen=True, slots=True)
class Slot:
    """One operation to do: its number in the stream of its kind, when it was due (seconds from the stream's
    start; 0 for ever when the rate is not bounded), and 64 random bits for whatever it must choose."""

    f: str
    number: int
    due_s: float
    bits: int

    def choice(self, n: int, salt: int = 0) -> int:
        """A choice among ``n``, the same whenever this slot is drawn again. Different salts, different choices."""
        mixed = (self.bits ^ (salt * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93 & 0xFFFFFFFFFFFFFFFF
        return (mixed >> 32) % n


class _Stream:
    """The slots of one kind, in order. Under the generator's lock."""

    def __init__(self, f: str, rate: float, spacing: Spacing, seed: int) -> None:
        self.f = f
        self.rate = rate
        self.spacing = spacing
        self.random = random.Random(f"{seed}/{f}")
        self.number = 0
        self.due_s = 0.0
        self.dropped = 0
        self.upcoming = self._draw()

    def _draw(self) -> Slot:
        slot = Slot(self.f, self.number, self.due_s, self.random.getrandbits(64))
        self.number += 1
        if self.rate > 0:
            fixed = self.spacing is Spacing.FIXED
            self.due_s += 1 / self.rate if fixed else self.random.expovariate(self.rate)
        return slot

    def take(self) -> Slot:
        slot, self.upcoming = self.upcoming, self._draw()
        return slot

    def drop_before(self, due_s: float) -> None:
        while self.rate > 0 and self.upcoming.due_s < due_s:
            self.take()
            self.dropped += 1


class Generator:
    """Hands slots to idle clients. Thread-safe."""

    def __init__(
        self,
        rate: float,
        mix: Mapping[str, float],
        seed: int,
        *,
        spacing: Spacing = Spacing.FIXED,
        catch_up_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``rate``: operations per second of all kinds together, 0 = as fast as clients take them; ``mix``: the
        weight of each kind. Raises ValueError on a negative rate or weights that give no kind a share."""
        total = sum(mix.values())
        if rate < 0 or total <= 0 or min(mix.values()) < 0:
            raise ValueError(f"rate {rate} with mix {dict(mix)} gives no stream of operations")
        self._streams = {
            f: _Stream(f, rate * weight / total, spacing, seed) for f, weight in mix.items() if weight
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
    def dropped(self) -> int:
        """Slots that were not handed out because every client was busy for too long."""
        with self._changed:
            return sum(stream.dropped for stream in self._streams.values())

    def take(self, f: str) -> Slot | None:
        """The next operation of this kind, when it is due; None when the stream has been stopped (or the mix
        gives this kind no share)."""
        stream = self._streams.get(f)
        with self._changed:
            while stream is not None and f not in self._stopped:
                if self._started is None:
                    self._changed.wait()
                    continue
                if self._unbounded:
                    return stream.take()
                now = self._clock() - self._started
                stream.drop_before(now - self._catch_up_s)
                if stream.upcoming.due_s <= now:
                    return stream.take()
                self._changed.wait(stream.upcoming.due_s - now)
        return None
