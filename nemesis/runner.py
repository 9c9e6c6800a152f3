"""Runs a plan beside the workload: its own thread, asyncio inside, every fault a context
(wrackline.nemesis.inject)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from wrackline.fleets.base import Fleet
from wrackline.history.model import CONTROL, FOLLOW, Event, Type
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import Fault
from wrackline.nemesis.follow.lane import follow
from wrackline.nemesis.follow.looks import Deeds
from wrackline.nemesis.follow.losses import Losses
from wrackline.nemesis.guided import disks
from wrackline.nemesis.guided.catalogue import SCHEDULES
from wrackline.nemesis.guided.conditions import POLL_S, until_it_holds, until_it_is_more
from wrackline.nemesis.guided.elections import elect_uncleanly
from wrackline.nemesis.guided.queries import ask_end
from wrackline.nemesis.guided.steps import (
    Aim,
    AskEnd,
    Await,
    AwaitBroker,
    AwaitCheckpoint,
    AwaitGrowth,
    ElectUncleanly,
    Flush,
    GuidedError,
    GuidedStep,
    Heal,
    Inject,
    KeepDisk,
    Sleep,
)
from wrackline.nemesis.heal import Healer, NemesisError
from wrackline.nemesis.inject import Injection, injected, look_again, missed
from wrackline.nemesis.schedule import Plan, PlannedFault
from wrackline.nemesis.spec import FollowSpec, GuidedSpec
from wrackline.nemesis.stage import Canaries, Hold, Recording, Stage
from wrackline.nemesis.targets.memory import Leaders
from wrackline.nemesis.targets.roles import Situation, TargetError, resolve
from wrackline.nemesis.targets.states import TAKE_BYTES, UNCLEAN, Occurrence
from wrackline.nemesis.targets.words import (
    SPARES,
    coordinator_of,
    group_of,
    internal_topic_of,
    needs_ensemble,
    needs_memory,
    needs_metadata,
)
from wrackline.systems.base import ClusterState, Coordinated, DeployError, Internal, OnZooKeeper, System

RESOLVE_TIMEOUT_S = 5.0
LOOK_S = 0.5
"""How often somebody looks who leads, where a target is the leader before."""

log = logging.getLogger(__name__)


class Nemesis:
    """``start()``, then ``wait()`` or not, then always ``stop_and_heal()``."""

    def __init__(
        self,
        plan: Plan,
        fleet: Fleet,
        system: System,
        recorder: Recording,
        *,
        topics: Sequence[str] = (),
        canaries: Canaries | None = None,
        coordinated: Mapping[str, Sequence[str]] | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> None:
        """``topics``: of the run, in order; what roles without a topic and guided schedules aim at.
        ``coordinated``: ``group``, ``transaction`` or ``share`` -> those of the run, by name. ``groups``:
        name in the specification -> group.
        ``canaries``: started on every host; without them no power cut is proved."""
        self._plan = plan
        self._fleet = fleet
        self._system = system
        self._recorder = recorder
        self._topics = tuple(topics)
        self._coordinated, self._groups = dict(coordinated or {}), dict(groups or {})
        self._internal: set[str] = set()
        """Internal topics that the cluster describes beside the run's."""
        self._leaders = Leaders()
        self._last: tuple[str, ...] = ()
        self._names = {fault.id: fault.spec.fault for fault in plan.faults}
        """Id of each fault that has a time, or that a state has drawn -> its name."""
        self._losses = Losses()
        self.unclean: set[int] = set()
        """Nodes that were killed or lost their power, and have not registered since."""
        self._asked: list[asyncio.Future[None]] = []
        """Questions of a guided schedule that are under way."""
        self._stage = Stage(fleet, system, recorder, topics, canaries)
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_asked = threading.Event()
        self._finished = threading.Event()
        self._thread: threading.Thread | None = None
        self._crash: BaseException | None = None

    def start(self) -> None:
        """Times of the plan count from here."""
        self._thread = threading.Thread(target=self._run, name="nemesis", daemon=True)
        self._thread.start()

    def hold_of(self, host: str) -> Hold:
        return self._stage.hold_of(host)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the plan is through; False when it was not in time."""
        return self._finished.wait(timeout_s)

    def stop_and_heal(self, *, timeout_s: float = 120.0) -> list[str]:
        """End every fault now, then make sure: no chain of ours on any host, every host powered, every node
        running. Returns what had to be repaired beyond the faults' own undo (empty when all is well).

        Idempotent. Raises NemesisError when something is left that cannot be repaired.
        """
        self._stop_asked.set()
        if self._loop is not None and self._stop is not None and not self._finished.is_set():
            with contextlib.suppress(RuntimeError):  # the loop has just ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                raise NemesisError(f"the faults under way were not undone within {timeout_s:g} s")
        repairs = Healer(self._fleet, self._system).heal()
        if self._crash is not None:
            raise NemesisError(f"the nemesis broke: {self._crash!r}") from self._crash
        return repairs

    # --- the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as crash:  # the supervisor of this thread: stop_and_heal reports it
            log.exception("the nemesis broke")
            self._crash = crash
        finally:
            self._stage.close()
            self._finished.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        if self._stop_asked.is_set():
            return
        self._begin = time.monotonic()
        self._describe_internal(fault.spec.target for fault in self._plan.faults)
        looking = None
        if any(needs_memory(fault.spec.target) for fault in self._plan.faults):
            looking = asyncio.ensure_future(self._remember_leaders())
        try:
            await asyncio.gather(*self._work())
        finally:
            await look_again(self._stage)
            if looking is not None:
                looking.cancel()

    def _work(self) -> list[Coroutine[Any, Any, None]]:
        """When all of it is done the plan is through."""
        work = [self._timed(fault) for fault in self._plan.faults]
        if self._plan.guided is not None:
            work.append(self._guided(self._plan.guided))
        if self._plan.follow is not None:
            work.append(self._follow(self._plan.follow))
        return work

    async def _until(self, at_s: float) -> bool:
        """Sleep until that time of the plan; True when the run is being stopped instead."""
        return await self._pause(self._begin + at_s - time.monotonic())

    async def _pause(self, seconds: float) -> bool:
        assert self._stop is not None
        if seconds <= 0:
            return self._stop.is_set()
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _timed(self, planned: PlannedFault) -> None:
        if await self._until(planned.at_s):
            return
        async with self._in_force(planned) as failure:
            if not failure:
                await self._pause(planned.duration_s)

    @contextlib.asynccontextmanager
    async def _in_force(self, planned: PlannedFault) -> AsyncIterator[str | None]:
        """The fault, aimed at whoever has its role now; what is yielded says why it is not in force."""
        fault = planned.spec.build()
        try:
            hosts = await self._aim(planned, fault)
        except TargetError as nobody:
            self._record_miss(planned.id, fault.name, planned.spec.target, str(nobody))
            yield str(nobody)
            return
        context = injected(self._stage, fault, fault_id=planned.id, hosts=hosts, role=planned.spec.target)
        async with context as injection:
            yield injection.failure

    async def _aim(self, planned: PlannedFault, fault: Fault) -> tuple[str, ...]:
        """Returns the targets that the fault hits now. A role may be vacant for a moment (an election): asks
        again until the deadline."""
        role = planned.spec.target
        self._describe_internal([role])
        deadline = time.monotonic() + RESOLVE_TIMEOUT_S
        while True:
            now = Situation(
                self._system.nodes,
                await self.describe() if needs_metadata(role) else None,
                held=self._stage.held if fault.holds_node else {},
                topics=self._topics,
                spares=self._stage.spares,
                idle=self._stage.idle,
                last=self._last,
                former=self._leaders.former,
                coordinators=await self._coordinators(role),
                ensemble=await self._ensemble() if needs_ensemble(role) else {},
            )
            try:
                hosts = resolve(role, now, planned.pick)
                self._last = hosts
                if role in SPARES:
                    self._stage.spares.remove(*hosts)
                return hosts
            except TargetError:
                if time.monotonic() > deadline or await self._pause(POLL_S):
                    raise

    def _describe_internal(self, roles: Iterable[str]) -> None:
        """Lets the cluster describe the internal topics whose partitions these roles name."""
        named = {topic for role in roles if (topic := internal_topic_of(role)) is not None}
        if not named <= self._internal and isinstance(self._system, Internal):
            self._internal |= named
            self._system.describe_internal(sorted(self._internal))

    async def describe(self) -> ClusterState | None:
        try:
            state = await self._stage.in_thread(lambda: self._system.describe(timeout_s=2.0))
        except DeployError as nobody:
            log.info("nobody describes the cluster: %s", nobody)
            return None
        self._leaders.see(state)
        self._losses.see(state)
        return state

    async def _coordinators(self, role: str) -> Mapping[str, Sequence[int]]:
        """Returns the coordinators of all groups or transactions of the run, where one is asked for."""
        what = coordinator_of(role)
        if what is None or not isinstance(self._system, Coordinated):
            return {}
        ask, result = self._system.coordinator, set()
        group = group_of(role)
        names = self._coordinated.get(what, ()) if group is None else [self._groups[group]]
        for name in names:
            try:
                result.add(await self._stage.in_thread(lambda name=name: ask(what, name, timeout_s=2.0)))
            except DeployError as nobody:
                log.info("nobody says who coordinates %s %s: %s", what, name, nobody)
        return {what: sorted(result)}

    async def _ensemble(self) -> Mapping[int, str]:
        system = self._system
        if not isinstance(system, OnZooKeeper):
            return {}
        try:
            return await self._stage.in_thread(lambda: system.ensemble(timeout_s=2.0))
        except DeployError as nobody:
            log.info("no ZooKeeper server says what it is: %s", nobody)
            return {}

    async def _remember_leaders(self) -> None:
        """Records leaders while the plan goes on; ended by the caller."""
        while True:
            await self.describe()
            await asyncio.sleep(LOOK_S)

    def _record_miss(self, fault_id: str, fault: str, role: str, why: str) -> None:
        """A fault that never happened is a fault that was not proved."""
        log.warning("%s %s (%s): %s", fault_id, fault, role, why)
        for row in missed(fault_id, role, why):
            self._stage.record(fault, row)

    # --- what follows the state ---------------------------------------------------------------------------

    async def _follow(self, spec: FollowSpec) -> None:
        if await self._until(spec.start_s):
            return
        ends_at = self._begin + self._plan.duration_s - spec.tail_s
        await follow(spec, self._plan.seed, self, self._topics, ends_at)

    def deeds(self) -> Deeds:
        live = self._stage.restorer.live
        return Deeds([name for id_, name in self._names.items() if id_ in live], frozenset(self.unclean))

    async def begin(self, fault_id: str, fault: FaultSpec, about: Occurrence, pick: int) -> _Live | None:
        """Injects a fault that follows a state (nemesis.follow.lane): None where nobody can be hit now, or it
        failed, which is recorded as not proved."""
        state = await self.describe()
        hosts = self._hosts_of(fault, about, pick, state)
        if not hosts:
            return None
        built, name, nodes = fault.build(), fault.fault, self._nodes_on(hosts)
        if name.startswith(TAKE_BYTES) and state is not None:
            self._losses.begin(state, nodes)
        self._names[fault_id], self._last = name, hosts
        if name in UNCLEAN:
            self.unclean |= nodes
        role = f"{fault.target}, {about.state}" if about.state else f"{fault.target}, to begin with"
        context = injected(self._stage, built, fault_id=fault_id, hosts=hosts, role=role)
        live = await _Live.begin(context)
        if live.injection.failure:
            await live.end()
            return None
        return live

    def can(self, fault: FaultSpec, about: Occurrence, pick: int, state: ClusterState) -> bool:
        """Tells whether the fault would hit somebody, and takes no more bytes than it may."""
        return bool(self._hosts_of(fault, about, pick, state))

    def _hosts_of(
        self, fault: FaultSpec, about: Occurrence, pick: int, state: ClusterState | None
    ) -> tuple[str, ...]:
        """Returns whom it hits; empty where nobody can be hit now."""
        name, follow = fault.fault, self._plan.follow
        if name == "messages" and name in self.deeds().in_force:
            return ()  # a host has one such fault at a time
        held = set(self._stage.held) if fault.build().holds_node or name == "messages" else set[str]()
        lossy = follow.lossy if follow is not None and name.startswith(TAKE_BYTES) else None
        if lossy is not None and state is not None:
            spared = self._losses.spared(state, lossy)
            held |= {node.host.name for node in self._system.nodes if node.node_id in spared}
        now = Situation(
            self._system.nodes,
            state,
            held=held,
            topics=self._topics,
            idle=self._stage.idle,
            place=about.place,
            subject=about.nodes,
        )
        try:
            hosts = resolve(fault.target, now, pick)
        except TargetError as nobody:
            log.debug("%s %s after %s: %s", name, fault.target, about.state, nobody)
            return ()
        fits = lossy is None or self._losses.fit(state, self._nodes_on(hosts), lossy)
        return hosts if fits else ()

    def _nodes_on(self, hosts: Collection[str]) -> set[int]:
        return {node.node_id for node in self._system.nodes if node.host.name in hosts}

    async def pause(self, seconds: float) -> bool:
        """Sleeps; True when the run is being stopped instead."""
        return await self._pause(seconds)

    def note(self, extra: Mapping[str, Any]) -> None:
        """Writes a row about what is followed."""
        self._recorder.record(Event(process=CONTROL, type=Type.INFO, f=FOLLOW, extra=dict(extra)))

    # --- guided schedules ---------------------------------------------------------------------------------

    async def _guided(self, spec: GuidedSpec) -> None:
        if await self._until(spec.at_s):
            return
        live: dict[str, _Live] = {}
        try:
            steps = await self._guided_steps(spec)
            self._record_steps(spec, steps)
            for number, step in enumerate(steps):
                if not await self._guided_step(step, live, spec.deadline_s):
                    continue
                if any(isinstance(left, Heal) for left in steps[number:]):
                    raise GuidedError(
                        f"the run ended in step {number + 1} of {len(steps)}: let it last longer"
                    )
                break
            await asyncio.gather(*self._asked)
        except GuidedError as lost:
            self._record_miss("g0", spec.name, f"{spec.topic or '*'}-{spec.partition}", str(lost))
        finally:
            await asyncio.gather(*(one.end() for one in live.values()))

    def _record_steps(self, spec: GuidedSpec, steps: Sequence[GuidedStep]) -> None:
        """Records its faults, so that it is known afterwards whether all of them happened."""
        faults = {step.id: step.fault.name for step in steps if isinstance(step, Inject)}
        extra = {"schedule": spec.name, "faults": faults}
        self._recorder.record(Event(process=CONTROL, type=Type.INFO, f="planned", extra=extra))

    async def _guided_steps(self, spec: GuidedSpec) -> Sequence[GuidedStep]:
        topic = spec.topic or (self._topics[0] if self._topics else None)
        if topic is None:
            raise GuidedError(f"{spec.name}: the run has no topic to aim at")
        deadline = time.monotonic() + spec.deadline_s
        while True:
            state = await self.describe()
            nodes = {node.node_id: node for node in self._system.nodes}
            try:
                if state is None:
                    raise GuidedError(f"{spec.name}: no broker answers")
                return SCHEDULES[spec.name](Aim(state, nodes, topic, spec.partition))
            except GuidedError:  # not yet healthy, perhaps
                if time.monotonic() > deadline or await self._pause(POLL_S):
                    raise

    async def _guided_step(self, step: GuidedStep, live: dict[str, _Live], deadline_s: float) -> bool:
        """True when the run is being stopped."""
        match step:
            case Inject(id=fault_id, fault=fault, hosts=hosts, role=role):
                context = injected(self._stage, fault, fault_id=fault_id, hosts=hosts, role=role)
                live[fault_id] = one = await _Live.begin(context)
                if one.injection.failure:
                    raise GuidedError(f"{fault_id} {fault.name} of {hosts} failed: {one.injection.failure}")
            case Heal(ids=ids):
                await asyncio.gather(*(live.pop(fault_id).end() for fault_id in ids))
            case Sleep(seconds=seconds):
                return await self._pause(seconds)
            case Await() | AwaitGrowth() | AwaitCheckpoint() if step.patience_s is not None:
                with contextlib.suppress(GuidedError):
                    return await self._wait(step, step.patience_s)
            case Await() | AwaitBroker() | AwaitGrowth() | AwaitCheckpoint():
                return await self._wait(step, deadline_s)
            case AskEnd():
                ask = self._stage.in_thread(ask_end, self._fleet, self._system, step, self._recorder.record)
                self._asked.append(asyncio.ensure_future(ask))
            case Flush(hosts=hosts):
                await asyncio.gather(
                    *(self._stage.in_thread(disks.sync, self._fleet, self._system, host) for host in hosts)
                )
            case KeepDisk(hosts=hosts):
                await asyncio.gather(
                    *(self._stage.in_thread(disks.keep_copy, self._fleet, self._system, one) for one in hosts)
                )
            case ElectUncleanly():
                await self._stage.in_thread(elect_uncleanly, self._system, step)
        return self._stop_asked.is_set()

    async def _wait(self, step: Await | AwaitBroker | AwaitGrowth | AwaitCheckpoint, for_s: float) -> bool:
        if isinstance(step, AwaitGrowth | AwaitCheckpoint):
            return await until_it_is_more(step, partial(self._measure, step), self._pause, for_s)
        return await until_it_holds(step, self.describe, self._pause, for_s)

    async def _measure(self, step: AwaitGrowth | AwaitCheckpoint) -> int:
        look = disks.log_size if isinstance(step, AwaitGrowth) else disks.checkpoint
        where = step.host, step.topic, step.partition
        return await self._stage.in_thread(look, self._fleet, self._system, *where)


class _Live:
    """An injection that outlives the step that began it: its context is entered and left by one task."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.injection: Injection

    @classmethod
    async def begin(cls, context: AbstractAsyncContextManager[Injection]) -> _Live:
        live = cls()
        begun = asyncio.Event()

        async def hold() -> None:
            try:
                async with context as live.injection:
                    begun.set()
                    await live._over.wait()
            finally:
                begun.set()

        live._task = asyncio.ensure_future(hold())
        await begun.wait()
        if live._task.done():
            await live._task  # raises what went wrong
        return live

    async def end(self) -> None:
        self._over.set()
        if self._task is not None:
            await self._task
