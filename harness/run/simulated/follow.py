"""Faults that follow the cluster's state, in virtual time: the lanes of a run on hosts, in an event loop
whose waits let the world's time pass."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from wrackline.history.model import CONTROL, FOLLOW, Event, Type
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.follow.lane import follow
from wrackline.nemesis.follow.looks import Deeds
from wrackline.nemesis.follow.losses import Losses
from wrackline.nemesis.schedule import Plan
from wrackline.nemesis.spec import FollowSpec
from wrackline.nemesis.targets.roles import TargetError
from wrackline.nemesis.targets.states import TAKE_BYTES, UNCLEAN, Occurrence
from wrackline.simulator.run.recorded import RecordedRun
from wrackline.systems.base import ClusterState


class Nemesis(Protocol):
    """Who knows the cluster, and does things to it."""

    def state(self) -> ClusterState: ...

    def nodes_on(self, hosts: Collection[str]) -> frozenset[int]: ...

    def names_in_force(self) -> Collection[str]: ...

    def hosts_of(
        self, fault: FaultSpec, about: Occurrence, pick: int, spared: Collection[int]
    ) -> tuple[str, ...]:
        """Returns who has its role now; nodes that are ``spared`` have none. Raises TargetError."""

    def inject(
        self, id_: str, fault: FaultSpec, about: Occurrence, pick: int, hosts: tuple[str, ...]
    ) -> Callable[[], None] | None:
        """Does it to these hosts, and returns what ends it; None where nothing was done."""


@dataclass(frozen=True, slots=True)
class _Live:
    undo: Callable[[], None]

    async def end(self) -> None:
        self.undo()


class _Time(selectors.DefaultSelector):
    """Waits of the loop are time of the world, until the run is over or interrupted; then they take none,
    and whoever waits is told to end."""

    def __init__(self, run: RecordedRun, ends_ms: float) -> None:
        super().__init__()
        self._run, self._ends_ms = run, ends_ms
        self._skipped_s = 0.0
        self.stopped = False

    def now_s(self) -> float:
        return self._run.world.now_ms / 1000 + self._skipped_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "somebody waits for what nobody brings about"
        if timeout > 0:
            world = self._run.world
            until_ms = world.now_ms + timeout * 1000
            if not self.stopped:
                self._run.go(lambda: False, min(until_ms, self._ends_ms))
                self.stopped = world.now_ms < until_ms
            if self.stopped:
                self._skipped_s += timeout
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: _Time) -> None:
        super().__init__(clock)
        self._of_world = clock

    def time(self) -> float:
        return self._of_world.now_s()


class _Stage:
    """What the lanes need of the nemesis (nemesis.follow.lane)."""

    def __init__(self, spec: FollowSpec, run: RecordedRun, nemesis: Nemesis, clock: _Time) -> None:
        self._spec, self._run, self._nemesis, self._clock = spec, run, nemesis, clock
        self._losses = Losses(clock.now_s)
        self.unclean: set[int] = set()

    async def describe(self) -> ClusterState | None:
        state = self._nemesis.state()
        self._losses.see(state)
        return state

    def deeds(self) -> Deeds:
        return Deeds(self._nemesis.names_in_force(), frozenset(self.unclean))

    def can(self, fault: FaultSpec, about: Occurrence, pick: int, state: ClusterState) -> bool:
        return bool(self._hosts(fault, about, pick, state))

    async def begin(self, fault_id: str, fault: FaultSpec, about: Occurrence, pick: int) -> _Live | None:
        name, state = fault.fault, self._nemesis.state()
        hosts = self._hosts(fault, about, pick, state)
        if self._clock.stopped or not hosts:
            return None
        hit = self._nemesis.nodes_on(hosts)
        if name.startswith(TAKE_BYTES):
            self._losses.begin(state, hit)
        undo = self._nemesis.inject(fault_id, fault, about, pick, hosts)
        if undo is None:
            return None
        if name in UNCLEAN:
            self.unclean |= hit
        return _Live(undo)

    def _hosts(self, fault: FaultSpec, about: Occurrence, pick: int, state: ClusterState) -> tuple[str, ...]:
        """Returns whom it hits; empty where nobody can be hit now."""
        if fault.fault == "messages" and fault.fault in self._nemesis.names_in_force():
            return ()
        lossy = fault.fault.startswith(TAKE_BYTES)
        spared = self._losses.spared(state, self._spec.lossy) if lossy else ()
        try:
            hosts = self._nemesis.hosts_of(fault, about, pick, spared)
        except TargetError:
            return ()
        fits = not lossy or self._losses.fit(state, self._nemesis.nodes_on(hosts), self._spec.lossy)
        return hosts if fits else ()

    async def pause(self, seconds: float) -> bool:
        await asyncio.sleep(max(seconds, 0.0))
        return self._clock.stopped

    def note(self, extra: Mapping[str, Any]) -> None:
        event = Event(CONTROL, Type.INFO, FOLLOW, extra=dict(extra))
        self._run.history.record(self._run.world.now_ms, event)


def follow_state(plan: Plan, run: RecordedRun, topics: tuple[str, ...], nemesis: Nemesis) -> None:
    """Lets the time of the main phase pass, with the faults that the cluster's state draws."""
    spec = plan.follow
    assert spec is not None
    run.go(lambda: False, run.world.now_ms + spec.start_s * 1000)
    clock = _Time(run, run.ends_ms)
    stage, loop = _Stage(spec, run, nemesis, clock), _Loop(clock)
    try:
        ends_at = run.ends_ms / 1000 - spec.tail_s
        loop.run_until_complete(follow(spec, plan.seed, stage, topics, ends_at, clock.now_s))
    finally:
        loop.close()
