"""Looks at the cluster's metadata, again and again, and what has become true between two of them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from wrackline.nemesis.targets.states import Occurrence, View, occurrences
from wrackline.systems.base import ClusterState, Place

LOOK_S = 0.08
"""Between two looks."""
FRESH_S = 1.5
"""What became true longer ago than this has not just become true."""


@dataclass(frozen=True, slots=True)
class Deeds:
    """What the nemesis itself has done, as far as it bears on states."""

    in_force: Collection[str] = ()
    unclean: Collection[int] = ()


@dataclass
class Looks:
    """Whoever waits for a look is woken by the next one that the cluster answers."""

    describe: Callable[[], Awaitable[ClusterState | None]]
    deeds: Callable[[], Deeds]
    names: Collection[str]
    """The states that are looked for."""
    topics: Collection[str] = ()
    """Only partitions of these; empty: of all."""
    new: Callable[[Occurrence], object] = lambda _: None
    """Called with whatever has become true."""
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    state: ClusterState | None = None
    """The last look."""
    there: list[Occurrence] = field(default_factory=list)
    """All that was true at the last look."""
    fresh: deque[tuple[int, float, Occurrence]] = field(default_factory=lambda: deque(maxlen=200))
    """What has become true of late: (number of the look, when, what)."""
    number: int = 0
    _factors: dict[Place, int] = field(default_factory=dict)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Looks until it is cancelled."""
        while True:
            self.take(await self.describe())
            await asyncio.sleep(LOOK_S)

    def take(self, state: ClusterState | None) -> None:
        """A cluster that does not answer is looked at again; what was true before is compared then."""
        if state is None:
            return
        for partition in state.partitions:
            self._factors.setdefault(partition.place, len(partition.replicas))
        before, self.state = self.state or state, state
        deeds = self.deeds()
        view = View(state, before, self._factors, deeds.in_force, deeds.unclean)
        last = set(self.there)
        self.there = [
            one
            for one in occurrences(view, self.names)
            if one.place is None or not self.topics or one.place[0] in self.topics
        ]
        self.number += 1
        for one in self.there:
            if one not in last:
                self.fresh.append((self.number, self.clock(), one))
                self.new(one)
        self._woken.set()
        self._woken = asyncio.Event()

    def since(self, number: int) -> list[Occurrence]:
        """Returns what has become true after that look, and not long ago; the newest first."""
        young = self.clock() - FRESH_S
        return [one for look, at, one in reversed(self.fresh) if look > number and at > young]

    async def next(self, timeout_s: float) -> bool:
        """Waits for the next look; False when it does not come in time."""
        try:
            await asyncio.wait_for(self._woken.wait(), max(timeout_s, 0.001))
        except TimeoutError:
            return False
        return True
