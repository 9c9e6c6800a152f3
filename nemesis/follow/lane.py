"""Follows the cluster's state: episode after episode until the time is over.

An episode brings a state about, waits for it with a deadline, and injects at the very look that shows it;
further faults may follow by what the one before does. What is drawn, and what comes of it, is recorded."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.follow.draw import Draw, Episode, name_of, title
from wrackline.nemesis.follow.looks import Deeds, Looks
from wrackline.nemesis.spec import FollowSpec
from wrackline.nemesis.targets.states import STATES, Occurrence
from wrackline.nemesis.targets.words import BYSTANDERS, SUBJECT
from wrackline.systems.base import ClusterState

FIRST_LOOK_S = 5.0
"""So long the cluster may take to answer for the first time."""
OPENS_AT_LEAST_S = 0.5


class Live(Protocol):
    """A fault that is in force until it is ended."""

    async def end(self) -> None: ...


class Stage(Protocol):
    """What the lane needs of the nemesis."""

    unclean: set[int]
    """Nodes that were killed or lost their power, and have not registered since."""

    async def describe(self) -> ClusterState | None:
        """Returns the metadata; None where nobody answers."""

    def deeds(self) -> Deeds: ...

    def can(self, fault: FaultSpec, about: Occurrence, pick: int, state: ClusterState) -> bool:
        """Tells whether the fault would hit somebody, and takes no more bytes than it may."""

    async def begin(self, fault_id: str, fault: FaultSpec, about: Occurrence, pick: int) -> Live | None:
        """Returns the fault once it is in force; None where nobody can be hit now, or it failed."""

    async def pause(self, seconds: float) -> bool:
        """Sleeps; True when the run is being stopped."""

    def note(self, extra: Mapping[str, Any]) -> None:
        """Writes a row of the history."""


async def follow(
    spec: FollowSpec,
    seed: int,
    stage: Stage,
    topics: Sequence[str],
    ends_at: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Follows the state in as many lanes as are asked for, until ``ends_at`` of the clock."""
    draw, ids = Draw(spec, seed), itertools.count(1)

    def new(one: Occurrence) -> None:
        draw.coverage.states[one.state] += 1
        if one.state == "unclean-start":
            stage.unclean.difference_update(one.nodes)
        if draw.coverage.states[one.state] == 1:
            stage.note({"phase": "seen", "state": one.state, "nodes": list(one.nodes)})

    looks = Looks(stage.describe, stage.deeds, spec.states, topics, new, clock)
    looking = asyncio.ensure_future(looks.run())
    try:
        await looks.next(FIRST_LOOK_S)
        lanes = [Lane(spec, draw, looks, stage, ids, ends_at) for _ in range(spec.lanes)]
        await asyncio.gather(*(lane.run() for lane in lanes))
        if looking.done():
            looking.result()  # raises what went wrong
    finally:
        looking.cancel()
        stage.note({"phase": "coverage", **draw.to_dict()})


Hit = tuple[Occurrence, FaultSpec]
"""What a fault is aimed by, and the fault."""


class Lane:
    """One of several that may go on beside each other; they share looks, draw and the numbers of faults."""

    def __init__(
        self, spec: FollowSpec, draw: Draw, looks: Looks, stage: Stage, ids: Iterable[int], ends_at: float
    ) -> None:
        """``ends_at``: on the clock of the looks."""
        self._spec, self._draw, self._looks, self._stage = spec, draw, looks, stage
        self._ids, self._ends_at = iter(ids), ends_at
        self._live: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        try:
            while self._rest_s() > self._spec.duration_s[0]:
                if await self._episode(self._draw.episode()) or await self._rest():
                    return
        finally:
            await self._end_all()

    def _rest_s(self) -> float:
        return self._ends_at - self._looks.clock()

    # --- an episode ---------------------------------------------------------------------------------------

    async def _episode(self, episode: Episode) -> bool:
        """True when the run is being stopped, or the time is over."""
        self._stage.note({"phase": "drawn", **episode.to_dict()})
        state, over = episode.state, asyncio.Event()
        begun_at = self._looks.number
        opened = not self._true(state) and self._open(episode, over)
        if opened and STATES[state].after:
            await self._until(lambda: bool(self._looks.since(begun_at)))
            await self._stage.pause(min(episode.opens_s, self._rest_s()))
            over.set()
        came = await self._until(lambda: bool(self._true(state, begun_at)))
        self._draw.came(state, came=came)
        if not came:
            self._miss(state, episode.fault, "it did not come")
        there = self._true(state, begun_at) or self._looks.since(begun_at) or self._looks.there
        first = [(one, episode.fault) for one in there] if came else []
        if await self._hit([*first, *self._draw.second(there)], episode.pick, episode.duration_s):
            if episode.ends == "openers":
                await self._stage.pause(min(episode.opens_s, self._rest_s()))
                over.set()
            for _ in range(episode.then):
                await self._again(episode)
            if episode.ends == "faults":
                await self._wait_for(self._live[bool(opened) :])
            elif episode.ends == "time":
                await self._stage.pause(min(episode.opens_s, self._rest_s()))
        over.set()
        await self._end_all(in_their_time=True)
        return self._rest_s() <= 0

    def _true(self, state: str, number: int | None = None) -> list[Occurrence]:
        """Returns where the state is true, or, since a look, has just become so."""
        looks = self._looks
        fresh = [] if number is None else [one for one in looks.since(number) if one.state == state]
        return list(dict.fromkeys((*fresh, *(one for one in looks.there if one.state == state))))

    def _miss(self, state: str, fault: FaultSpec, why: str) -> None:
        self._draw.coverage.missed[name_of(state, fault)] += 1
        self._stage.note({"phase": "missed", "state": state, "fault": title(fault), "why": why})

    def _open(self, episode: Episode, over: asyncio.Event) -> bool:
        """Begins what leads to the state, and does not wait for that; it stays until ``over``. False: nothing
        is known to."""
        led = self._led_place(episode.pick)
        if led is None or not episode.openers:
            return False
        openers, whole = episode.openers, [led]
        if episode.apart and openers[0].target == BYSTANDERS:
            # Each of them is hit as if it were the subject, by an opener of its own, and they end one by one.
            each = [one for one in openers if one.target == BYSTANDERS]
            openers = tuple(one.model_copy(update={"target": SUBJECT}) for one in each)
            whole = [replace(led, nodes=(node,)) for node in self._others(led)]

        async def hold() -> None:
            held = []
            for number, about in enumerate(whole):
                first = number % len(openers)
                order = [(about, one) for one in (*openers[first:], *openers[:first])]
                if (begun := await self._begin(order, episode.pick)) is not None:
                    held.append(self._hold(begun[0], over, self._rest_s(), number * episode.then_s))
            await asyncio.gather(*held)

        self._live.append(asyncio.ensure_future(hold()))
        return True

    async def _again(self, episode: Episode) -> None:
        """What the fault before brings about is hit once more, whatever it is."""
        begun_at = self._looks.number
        if await self._until(lambda: bool(self._looks.since(begun_at))):
            there = self._looks.since(begun_at)
            await self._hit(self._draw.second(there), episode.pick, episode.then_s)

    async def _hit(self, order: Iterable[Hit], pick: int, lasts_s: float) -> bool:
        """Injects the first of these that can be, at once, aimed by what is true; it ends by itself after its
        time."""
        begun = await self._begin(order, pick)
        if begun is None:
            return False
        live, (one, fault) = begun
        self._draw.coverage.pairs[name_of(one.state, fault)] += 1
        place = "" if one.place is None else f"{one.place[0]}-{one.place[1]}"
        self._stage.note(
            {
                "phase": "reached",
                "state": one.state,
                "fault": title(fault),
                "place": place,
                "nodes": list(one.nodes),
            }
        )
        self._live.append(asyncio.ensure_future(self._hold(live, asyncio.Event(), lasts_s)))
        return True

    async def _begin(self, order: Iterable[Hit], pick: int) -> tuple[Live, Hit] | None:
        """Begins the first of these faults that hits somebody, while there is time."""
        for about, fault in order:
            state = self._looks.state
            if self._rest_s() <= 0:
                return None
            if state is not None and self._stage.can(fault, about, pick, state):
                live = await self._stage.begin(f"s{next(self._ids)}", fault, about, pick)
                if live is not None:
                    return live, (about, fault)
        return None

    async def _hold(self, live: Live, over: asyncio.Event, longest_s: float, more_s: float = 0.0) -> None:
        """It ends so much after ``over``, and after the longest time anyway."""
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), max(OPENS_AT_LEAST_S, min(longest_s, self._rest_s())))
                await self._stage.pause(min(more_s, self._rest_s()))
        finally:
            await live.end()

    async def _end_all(self, *, in_their_time: bool = False) -> None:
        """``in_their_time``: each is waited for; else they end now."""
        tasks, self._live = self._live, []
        if in_their_time:
            await self._wait_for(tasks)
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result

    async def _wait_for(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        """Until they are done, or the run is being stopped."""
        while any(not task.done() for task in tasks):
            if await self._stage.pause(0.1):
                return

    # --- waits --------------------------------------------------------------------------------------------

    async def _until(self, holds: Callable[[], bool]) -> bool:
        """Waits for a look at which it holds; False: not within the patience, or the run's time."""
        clock = self._looks.clock
        deadline = clock() + min(self._spec.patience_s, self._rest_s())
        while (remaining := deadline - clock()) > 0:
            if holds():
                return True
            if await self._stage.pause(0):
                return False
            await self._looks.next(remaining)
        return holds()

    async def _rest(self) -> bool:
        """Lets the cluster become well, most times. True when the run is being stopped."""
        if self._draw.rests():
            await self._until(lambda: _well(self._looks.state))
        return await self._stage.pause(0)

    def _led_place(self, pick: int) -> Occurrence | None:
        """Returns a partition with its leader as the subject, for the fault that leads to a state."""
        state = self._looks.state
        topics = self._looks.topics
        led = [one for one in state.partitions if one.leader >= 0 and one.topic in topics] if state else []
        if not led:
            return None
        one = led[pick % len(led)]
        return Occurrence("", one.place, (one.leader,))

    def _others(self, led: Occurrence) -> list[int]:
        """Returns the other replicas of its partition."""
        state = self._looks.state
        one = state.partition(*led.place) if state is not None and led.place is not None else None
        return [node for node in one.replicas if node not in led.nodes] if one is not None else []


def _well(state: ClusterState | None) -> bool:
    return state is not None and all(one.full_isr and one.leader >= 0 for one in state.partitions)
