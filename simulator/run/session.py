"""One seeded run with faults, clients and oracles.

A run: boot, create the topic, let clients work while the fault plan is carried out (the main phase), heal,
wait until the cluster is whole (or say that it never was), read everything back, judge. Any oracle ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from wrackline.broker.model.events import RequestReceived, ResponseReceived, SendFailed, TimerFired
from wrackline.broker.model.messages.admin import ElectionType, ElectLeadersRequest
from wrackline.broker.model.types import NO_LEADER, RecoveryStrategy, TopicPartition
from wrackline.history.model import CONTROL, REPLICA, Event, Record, Type
from wrackline.simulator.clients.batches import decode
from wrackline.simulator.clients.client import Client, Surroundings
from wrackline.simulator.clients.consumer import Consumer, EndAsker
from wrackline.simulator.clients.drainer import Drainer
from wrackline.simulator.clients.edge_reader import EdgeReader
from wrackline.simulator.clients.history import History
from wrackline.simulator.clients.producer import Producer, ProducerOptions
from wrackline.simulator.clients.session_consumer import SessionConsumer
from wrackline.simulator.drills.drill import drill
from wrackline.simulator.drills.ground import Drill
from wrackline.simulator.drills.guest import GUESTS
from wrackline.simulator.faults.actions import actions
from wrackline.simulator.faults.driver import FaultDriver
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.faults.upgrade import upgrade_of
from wrackline.simulator.invariants.checker import AnyChecker, checker_of
from wrackline.simulator.invariants.client_view import ClientView, Violation
from wrackline.simulator.invariants.decisions import Decisions
from wrackline.simulator.invariants.office import Office
from wrackline.simulator.invariants.pace import Exchanges, Idle
from wrackline.simulator.invariants.quorum.copies import Copies
from wrackline.simulator.invariants.quorum.quorum import Quorum
from wrackline.simulator.invariants.reads import Reads
from wrackline.simulator.invariants.service import Omissions, Service
from wrackline.simulator.invariants.upkeep import Timers, Upkeep
from wrackline.simulator.invariants.watchers import (
    Deaf,
    EndOffsets,
    Flaps,
    LeaderWatcher,
    Scope,
    Stalls,
    Watcher,
)
from wrackline.simulator.output.nemesis_rows import ClusterRows, NemesisRows
from wrackline.simulator.output.timeline import Digest, Timeline
from wrackline.simulator.output.traces import Traces
from wrackline.simulator.run.result import Result
from wrackline.simulator.world.errors import CodecError, SimulationError
from wrackline.simulator.world.network import NetworkOptions
from wrackline.simulator.world.world import StepRecord, World, WorldOptions

HEAL_MS = 60_000.0
"""Virtual time the cluster has to become whole once the faults have stopped."""
_RETENTION = {"log_retention_check_interval_ms": 300}
_LIMITS = ({"retention.bytes": "1500"}, {"retention.bytes": "6000"}, {"retention.ms": "700"})
"""Of topics whose newest records alone are kept."""
_OPERATOR_MS = 4_000.0
"""Between two looks of an operator at partitions that have no leader."""
_ARRIVALS = frozenset({RequestReceived, ResponseReceived, SendFailed, TimerFired})
"""Events of a controller that count also where nothing follows from them at once."""


class Run:
    """One run, in parts, for those who want to look in between. ``run(setup)`` does it all. ``failed``: the
    one drill that is done."""

    def __init__(self, setup: Setup, failed: Drill | None = None) -> None:
        self.setup = setup
        self.failed = failed
        network = NetworkOptions() if setup.tcp else NetworkOptions(drop=0.005, reorder=0.05, duplicate=0.02)
        self.world = World(
            setup.seed,
            WorldOptions(
                brokers=setup.brokers,
                controllers=setup.controllers,
                profile=setup.profile,
                upgrade_to=setup.upgrade_to,
                defects=setup.defects,
                broker={**(_RETENTION if "retention" in setup.load else {}), **dict(setup.broker)},
                controller={
                    "min_insync_replicas": setup.min_isr,
                    "unclean_leader_election": setup.unclean,
                    **dict(setup.controller),
                },
                network=network,
                max_skew=setup.max_skew,
                wall_clock="times" in setup.load,
                codec=setup.codec,
                boot=False,
            ),
        )
        self.history = History()
        self.surroundings = Surroundings(
            setup.topic, setup.partitions, tuple(self.world.brokers), setup.seed, self.history
        )
        self.clients: list[Client] = []
        self.driver = FaultDriver(
            self.world,
            setup.topic,
            setup.seed,
            setup.fault_options(),
            actions(),
            combined=setup.combined,
            rows=NemesisRows(self.world, self.history),
        )
        self.upgrade = upgrade_of(self.driver, setup.seed, setup.min_isr - 1)
        self._watched = tuple(TopicPartition(setup.topic, number) for number in range(setup.partitions))
        self.final: dict[int, list[Record]] | None = None
        self._starts: dict[int, int] = {}
        self.found: list[Violation] = []
        self._checker: AnyChecker | None = None
        self._watchers: list[Watcher] = []
        self._noticed = False
        """An invariant or a watcher has found something."""
        strong = setup.producers + setup.consumers + setup.askers
        self.client_view = ClientView(
            acks=setup.acks,
            idempotent=setup.idempotent,
            loss_allowed=setup.acks != -1 or setup.unclean,
            plain=frozenset(range(strong + 1, strong + 1 + setup.weak)),
            log_start=lambda partition: self.world.retained.get(TopicPartition(setup.topic, partition), 0),
        )
        self._rows = 0

    # --- the parts -----------------------------------------------------------------------------------------

    def boot(self) -> None:
        setup, world = self.setup, self.world
        if setup.invariants:
            self._add_invariants()
        for server in world.servers():
            world.start(server.id)
        world.create_topic(
            setup.topic,
            setup.partitions,
            configs=self.topic_configs(),
            replication_factor=setup.replication_factor,
        )
        self.say("phase", {"phase": "main"})
        world.watchers.append(ClusterRows(self.history, self._watched))
        for client in self.make_clients():
            self.clients.append(client)
            world.add_client(client)

    def topic_configs(self) -> dict[str, str]:
        setup, configs = self.setup, {}
        if setup.unclean and self.world.zookeeper is not None:
            configs["unclean.leader.election.enable"] = "true"
        if "retention" in setup.load:
            configs |= Random(f"{setup.seed}/retention").choice(_LIMITS)
        return configs

    def _add_invariants(self) -> None:
        self._checker = checker = checker_of(self.world)
        self._watch()
        brokers, controllers = self.world.brokers, self.world.controllers
        of = {scope: tuple(each for each in self._watchers if each.scope is scope) for scope in Scope}
        of_all, of_servers, of_brokers = of[Scope.EVERY], of[Scope.SERVERS], of[Scope.BROKERS]
        of_service, of_reads = of[Scope.SERVICE], of[Scope.READS]
        of_controllers, of_voters = of[Scope.CONTROLLERS], of[Scope.VOTERS]
        of_leaders = tuple(each for each in of[Scope.LEADERS] if isinstance(each, LeaderWatcher))

        def look(some: Sequence[Watcher], world: World, step: StepRecord) -> None:
            for watcher in some:
                watcher(world, step)
                if watcher.found:
                    self._noticed = True

        def observe(world: World, step: StepRecord) -> None:
            """One call a step for all of them."""
            checker(world, step)
            if checker.violations:
                self._noticed = True
            if step.effects:
                look(of_servers, world, step)
            if step.node in brokers:
                if step.effects and (led := of_leaders[0].led(world, step)):
                    for leaders in of_leaders:
                        leaders.look(world, step, led)
                        if leaders.found:
                            self._noticed = True
                if step.effects:
                    look(of_brokers, world, step)
                if step.effects or type(step.event) is ResponseReceived:
                    look(of_service, world, step)
                if step.effects or type(step.event) is RequestReceived:
                    look(of_reads, world, step)
            elif step.node in controllers:
                if step.effects or type(step.event) in _ARRIVALS:
                    look(of_controllers, world, step)
                look(of_voters, world, step)
            for each in of_all:
                if world.now_ms >= each.next_ms:
                    look((each,), world, step)

        self.world.watchers.append(observe)

    def _watch(self) -> None:
        setup, watched = self.setup, self._watched
        self._watchers = [Stalls(watched, setup.profile, setup.upgrade_to)]
        if self.world.zookeeper is None:  # in profile zk08 the committed offset is all that is asked for
            self._watchers += [Flaps(watched), Office(watched), Decisions(watched)]
            self._watchers += [Quorum(watched), Copies(watched)]
            self._watchers += [Upkeep(watched), Timers(watched)]
        if setup.tcp and self.world.zookeeper is None:  # else what is lost comes again only after a time-out
            self._watchers += [Deaf(watched), Exchanges(watched), Idle(watched)]
            self._watchers += [Service(watched), Omissions(watched), Reads(watched)]
        if setup.keeps_promise():
            self._watchers.append(EndOffsets(watched))

    def make_clients(self) -> Iterator[Client]:
        setup = self.setup
        run = self.surroundings
        load = frozenset(setup.load)
        options = ProducerOptions(setup.acks, setup.idempotent, setup.produce_every_ms, load=load)
        weak = ProducerOptions(1, False, setup.produce_every_ms, weak=True, load=load)
        consumer = SessionConsumer if "sessions" in load else Consumer
        makers: list[Callable[[int], Client]] = [
            *[lambda number: Producer(number, run, options)] * setup.producers,
            *[lambda number: consumer(number, run)] * setup.consumers,
            *[lambda number: EndAsker(number, run, setup.ask_every_ms)] * setup.askers,
            *[lambda number: Producer(number, run, weak)] * setup.weak,
            *[lambda number: EdgeReader(number, run)] * ("edges" in load),
        ]
        for number, make in enumerate(makers, 1):
            if setup.keep_clients is None or number in setup.keep_clients:
                yield make(number)

    def main(self) -> None:
        """Clients and faults, to the end of the main phase or to the first violation."""
        setup, world = self.setup, self.world
        self.driver.schedule(setup.plan())
        if setup.upgrade_to:
            self.upgrade.begin(setup.seconds * 1000)
        end_ms = world.now_ms + setup.seconds * 1000
        most = setup.steps
        self.go(_never if most is None else lambda: world.steps >= most, end_ms)

    def heal(self) -> None:
        """Faults end, and clients stop; a cluster that does not become whole is a violation of liveness."""
        self.end_faults()
        self.settle()

    def end_faults(self) -> None:
        """Everybody is started."""
        self.say("phase", {"phase": "heal"})
        self.upgrade.stop()
        self.driver.stop()
        self.world.retains = False  # what drills and the final read rest on stays

    def settle(self) -> None:
        world = self.world
        for client in self.clients:
            client.stop()
        end_ms = world.now_ms + HEAL_MS
        if dict(self.setup.controller).get("unclean_recovery_strategy") is RecoveryStrategy.MANUAL:
            world.at(world.now_ms + _OPERATOR_MS, self._elect)
        self.go(self.is_whole, end_ms)
        self.driver.supervises = False
        if not self.found and not self.is_whole() and self.setup.liveness:
            self.find(
                Violation("liveness", f"not whole {HEAL_MS / 1000:.0f} s after the faults: {self._why()}")
            )

    def drill(self) -> None:
        """What is promised within a time is asked for where nothing hinders it."""
        if not self.setup.drills or self.world.zookeeper is not None or not self.setup.tcp:
            return
        self.go(lambda: self.driver.is_answered, self.world.now_ms + HEAL_MS)
        self.say("phase", {"phase": "drill"})
        for tp, offset in drill(self, self.setup.partitions).items():
            self.driver.deleted[tp] = max(offset, self.driver.deleted.get(tp, 0))

    def _elect(self) -> None:
        """Elects a leader as an operator does whose cluster has no recovery of its own (KIP-966). A drill's
        topic is the drill's."""
        world = self.world
        partitions = world.image.partitions()
        without = tuple(
            part.tp for part in partitions if part.leader == NO_LEADER and part.tp.topic != GUESTS
        )
        if without and world.all_unfenced() and self.final is None:
            world.ask(min(world.brokers), ElectLeadersRequest(ElectionType.UNCLEAN, without, 5_000), 5_000)
        world.at(world.now_ms + _OPERATOR_MS, self._elect)

    def drain(self) -> None:
        world, setup = self.world, self.setup
        self.say("phase", {"phase": "drain"})
        drainer = Drainer(900, self.surroundings)
        world.add_client(drainer)
        end_ms = world.now_ms + HEAL_MS
        self.go(lambda: drainer.done, end_ms)
        if drainer.done:
            self.final = drainer.found
            self._starts = {partition: start for partition, (start, _) in drainer.ends.items()}
        elif not self.found and setup.liveness:
            self.find(Violation("liveness", f"the final read did not end within {HEAL_MS / 1000:.0f} s"))
        self._replicas()

    def judge(self) -> None:
        self._look()
        if not self.found and self._checker is not None and self.setup.liveness:
            world = self.world
            self.go(lambda: all(map(world.adds_up, self._watched)), world.now_ms + HEAL_MS)
            self._checker.at_rest()
            self._take_noticed()
        if not self.found and self.final is not None:
            deleted = {
                tp.partition: max(self.driver.deleted.get(tp, 0), self.world.retained.get(tp, 0))
                for tp in self._watched
            }
            self.found += self.client_view.final(self.final, self._starts, deleted)

    # --- helpers -------------------------------------------------------------------------------------------

    def go(self, enough: Callable[[], bool], end_ms: float) -> None:
        world, events = self.world, self.history.events
        step = world.step
        while not self.found and world.now_ms < end_ms and not enough():
            if step() is None:
                return
            if len(events) != self._rows:
                self._look()
            if self._noticed:
                self._take_noticed()

    def _take_noticed(self) -> None:
        if self._checker is not None:
            self.found += [
                Violation(found.oracle, found.text, found.at_ms, found.step)
                for found in self._checker.violations
            ]
        for watcher in self._watchers:
            self.found += watcher.found

    def _look(self) -> None:
        """Looks at the new rows of the history."""
        self._rows = len(self.history.events)
        for violation in self.client_view.look(self.history.events):
            self.find(violation)

    def find(self, violation: Violation) -> None:
        self.found.append(replace(violation, at_ms=self.world.now_ms, step=self.world.steps))

    def is_whole(self) -> bool:
        """Everybody is up and unfenced, every ISR is full, every replica has everything, nothing is under
        way: what an idempotent producer has acknowledged after the final read asked for the end is not in
        it."""
        world = self.world
        if any(client.writing for client in self.clients):
            return False
        if not all(server.up for server in world.servers()) or not world.all_unfenced():
            return False
        for partition in world.image.partitions():
            moves = world.moves(partition.tp)
            if moves or partition.leader < 0 or set(partition.isr) != set(partition.replicas):
                return False
            ends = set()
            for node in partition.replicas:
                core = world.brokers[node].core
                replica = None if core is None else core.replica(partition.tp)
                if replica is None or replica.leader_epoch != partition.leader_epoch:
                    return False
                ends.add(replica.log.leo)
                ends.add(replica.high_watermark)
            if len(ends) != 1:
                return False
        return True

    def _why(self) -> str:
        world = self.world
        down = [server.id for server in world.servers() if not server.up]
        fenced = sorted(broker.id for broker in world.image.brokers.values() if broker.fenced)
        parts = [
            f"{part.tp} leader {part.leader} isr {list(part.isr)} elr {list(part.elr)}"
            for part in world.image.partitions()
        ]
        writing = [client.number for client in self.clients if client.writing]
        return f"down {down}, fenced {fenced}, clients that write {writing}, {'; '.join(parts)}"

    def say(self, f: str, extra: dict[str, Any]) -> None:
        """Records a row of the run's own course."""
        self.history.record(self.world.now_ms, Event(CONTROL, Type.INFO, f, self.setup.topic, extra=extra))

    def _replicas(self) -> None:
        """Every replica's own log, as rows of the history."""
        for tp in self._watched:
            image = self.world.image.partition(tp)
            for node in () if image is None else image.replicas:
                log = self.world.brokers[node].disk.logs.get(tp)
                if log is None:
                    continue
                rows = tuple(record for stored in log.batches for record in decode(stored.data, tp.partition))
                core = self.world.brokers[node].core
                replica = None if core is None else core.replica(tp)
                extra = {
                    "in_isr": image is not None and node in image.isr,
                    "complete": True,
                    "hw": -1 if replica is None else replica.high_watermark,
                }
                event = Event(
                    REPLICA,
                    Type.OK,
                    "replica",
                    tp.topic,
                    tp.partition,
                    log.start,
                    high_watermark=log.leo,
                    records=rows,
                    node=f"n{node}",
                    extra=extra,
                )
                self.history.record(self.world.now_ms, event)


def run(
    setup: Setup,
    *,
    timeline: int | None = None,
    full: bool = False,
    digest: bool = False,
    traced: bool = False,
    failed: Drill | None = None,
) -> Result:
    """Do one run. ``timeline``: keep the last so many lines (0: all of them), every step with ``full``.
    ``traced``: keep what the nodes would have written of it. ``failed``: the one drill that is done, because
    it has failed beside others."""
    session = Run(setup, failed)
    world = session.world
    traces = Traces(world) if traced else None
    lines = Timeline(timeline or None, full=full) if timeline is not None else None
    hashed = Digest() if digest else None
    world.observers += [observer for observer in (lines, hashed, traces) if observer is not None]
    try:
        for part in (session.boot, session.main, session.heal, session.drill, session.drain):
            if not session.found:
                part()
        session.judge()
    except CodecError as error:
        session.find(Violation("codec", str(error)))
    except SimulationError as error:
        session.find(Violation("simulation", str(error)))
    except Exception as bug:  # noqa: BLE001 - the one supervisor: whatever a core raises is a finding, as a crash is
        session.find(Violation("crash", f"{type(bug).__name__}: {bug} ({_place(bug)})"))
    result = session.found
    if failed is None and result and result[0].oracle == "drill":
        return run(setup, timeline=timeline, full=full, digest=digest, traced=traced, failed=session.failed)
    return Result(
        setup,
        result[0] if result else None,
        result,
        world.steps,
        world.now_ms / 1000,
        sum(
            len(event.records)
            for event in session.history.events
            if event.f == "send" and event.type is Type.OK
        ),
        session.driver.lossy_total,
        session.driver.done,
        session.history.events,
        "" if lines is None else lines.text(),
        "" if hashed is None else hashed.hexdigest(),
        session._why(),
        traces,
    )


def _never() -> bool:
    return False


def _place(bug: Exception) -> str:
    """file:line where it was raised."""
    at = bug.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None:
        return "?"
    name = at.tb_frame.f_code.co_filename.replace("\\", "/").rsplit("/", 2)
    return f"{'/'.join(name[-2:])}:{at.tb_lineno}"
