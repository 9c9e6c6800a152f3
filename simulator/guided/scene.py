"""Plays a scene in virtual time, among clients that write and read all the time.

A ``Player`` carries its steps out in whatever cluster; ``schedules`` makes guided schedules of them. What the
clients see in those is judged as in a random run (``wrackline.simulator.invariants.client_view``), and so is
what nobody may wait for (``wrackline.simulator.invariants.watchers``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from wrackline.broker.model.messages.admin import ElectionType
from wrackline.broker.model.types import NodeId
from wrackline.scenarios import language
from wrackline.scenarios.language import CONTROLLER, F1, F2, FOURTH, NOBODY, Cast, Fault, Hold, Kept, L, Scene
from wrackline.simulator.clients.client import Client, Surroundings
from wrackline.simulator.clients.consumer import Consumer, EndAsker
from wrackline.simulator.clients.drainer import Drainer
from wrackline.simulator.clients.history import History
from wrackline.simulator.clients.producer import Producer, ProducerOptions
from wrackline.simulator.guided.cluster import Cluster, Unmet
from wrackline.simulator.guided.schedule import Guided, guided
from wrackline.simulator.guided.setting import CONTROLLER as SOLE_CONTROLLER
from wrackline.simulator.guided.setting import Setting, T, carries_records
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.invariants.client_view import ClientView
from wrackline.simulator.invariants.watchers import Deaf, EndOffsets, Flaps, Stalls
from wrackline.simulator.world.disk import Disk
from wrackline.simulator.world.network import Message

PATIENCE_MS = 30_000
"""So long a state is waited for that must come."""
ACTIVE_MS = 1_500
"""The clients are at work before the first fault."""
SLOW_MS = 100.0
PRODUCERS, WEAK = 4, 7
"""How many clients write with a promise; the number of the one without."""

Undo = Callable[[], object]
Pair = tuple[NodeId, NodeId]


class Load:
    """Clients of the stage's partition."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        setting, world = stage.setting, stage.world
        self.history = History()
        self._surroundings = Surroundings(T.topic, 1, tuple(world.brokers), world.seed, self.history)
        promised = ProducerOptions(setting.acks, setting.idempotent, every_ms=100.0, batch=4)
        weak = ProducerOptions(1, every_ms=50.0, weak=True)
        self._clients: list[Client] = [
            *(Producer(number, self._surroundings, promised) for number in range(1, PRODUCERS + 1)),
            Consumer(WEAK - 2, self._surroundings, 0),
            EndAsker(WEAK - 1, self._surroundings),
            *([Producer(WEAK, self._surroundings, weak)] if setting.weak_client else []),
        ]
        for client in self._clients:
            world.add_client(client)
        self._view = ClientView(
            acks=-1,
            idempotent=setting.idempotent,
            loss_allowed=setting.losing,
            plain=frozenset({WEAK}),
        )

    def stop(self) -> None:
        """Returns when nothing of theirs is under way any more."""
        for client in self._clients:
            client.stop()
        stage = self._stage
        stage.must(
            lambda: not any(client.writing for client in self._clients), "what clients wrote answered", 60_000
        )

    def judge(self) -> None:
        stage = self._stage
        drainer = Drainer(900, self._surroundings)
        stage.world.add_client(drainer)
        if not stage.must(lambda: drainer.done, "the final read", 60_000):
            return
        violations = self._view.look(self.history.events)
        for violation in (*self._view.final(drainer.found, {}, {}), *violations):
            stage.find(violation.oracle, violation.text)


class Player:
    """Carries the steps of a scene out in a cluster. Its leader is L, its followers by their order F1, F2."""

    def __init__(self, cluster: Cluster, patience_ms: float = PATIENCE_MS) -> None:
        """``patience_ms``: so long a state is waited for that must come. Raises Unmet when there is no
        leader."""
        self._cluster = cluster
        self._patience_ms = patience_ms
        self._world = cluster.world
        image = cluster.image
        if image is None or image.leader not in image.replicas:
            raise Unmet(f"{cluster.places[0]} has no leader")
        self._replicas = tuple(image.replicas)
        self._min_isr = cluster.world.image.min_isr(image.tp)
        followers = [node for node in image.replicas if node != image.leader][:2]
        free = sorted(cluster.world.brokers.keys() - set(image.replicas))
        self.cast: Cast = {
            L: image.leader,
            F1: followers[0],
            F2: followers[-1],
            CONTROLLER: SOLE_CONTROLLER,
            NOBODY: -1,
            **({FOURTH: free[0]} if free else {}),
        }
        self._in_force: dict[str, Undo] = {}
        self._copies: dict[NodeId, Disk] = {}

    @property
    def in_force(self) -> tuple[str, ...]:
        """The faults that have begun and not ended, by their ids."""
        return tuple(self._in_force)

    def step(self, step: language.Step, *, last: bool = False) -> None:
        """Plays a step; the state that the ``last`` step waits for must come: on hosts a threshold says
        so."""
        cluster, cast = self._cluster, self.cast
        match step:
            case language.Do():
                nodes = [cast[role] for role in step.roles]
                cluster.say(f"{step.id}: {step.fault} {nodes}")
                self._in_force[step.id] = self._begin(step.fault, nodes)
                cluster.begun(step, nodes)
            case language.Undo(ids=ids):
                for one in ids or sorted(self._in_force):
                    self.end(one)
                if not ids:
                    self._until(language.FULL_ISR, last)
            case language.Wait():
                cluster.run(step.seconds * 1_000)
            case language.Until():
                self._until(step, last)
            case language.UntilBroker(role=role, alive=alive):
                node = cast[role]
                what = f"{node} {'alive' if alive else 'fenced'}"
                cluster.must(lambda: cluster.fenced(node) is not alive, what, self._patience_ms)
            case language.Flush(role=role):
                for log in self._world.brokers[cast[role]].disk.logs.values():
                    log.synced = log.leo
            case language.KeepDisk(role=role):
                self._copies[cast[role]] = self._world.brokers[cast[role]].disk.snapshot()
            case language.ElectUncleanly():
                cluster.elect(ElectionType.UNCLEAN)
            case language.WhereController(role=role, steps=steps):
                if len(cluster.machine(cast[role])) > 1:
                    for inner in steps:
                        self.step(inner)

    def end(self, id_: str) -> None:
        """Ends a fault. Raises what its undoing raises; then it is over all the same."""
        self._cluster.say(f"{id_} ends")
        try:
            self._in_force.pop(id_)()
        finally:
            self._cluster.ended(id_)

    def _until(self, step: language.Until, last: bool) -> None:
        cluster = self._cluster

        def holds() -> bool:
            images = [self._world.image.partition(tp) for tp in cluster.places]
            return all(image is not None and step.holds(image, self.cast) for image in images)

        what = step.text(self.cast)
        patience_ms = self._patience_ms if step.patience_s is None else step.patience_s * 1_000
        if step.patience_s is None or last:
            cluster.must(holds, what, patience_ms)
        else:
            cluster.within(holds, patience_ms)
        cluster.say(f"{what}: leader {cluster.elected}, ISR {sorted(cluster.isr)}, ELR {sorted(cluster.elr)}")

    # --- faults --------------------------------------------------------------------------------------------

    def _begin(self, fault: Fault | Hold, nodes: list[NodeId]) -> Undo:
        if isinstance(fault, Hold):
            return self._hold(fault, nodes[0])
        return self._all(
            [_FAULTS[fault](self, *nodes)]
            if fault in _OF_PAIRS
            else [_FAULTS[fault](self, node) for node in nodes]
        )

    def _all(self, undos: list[Undo]) -> Undo:
        def undo() -> None:
            for one in undos:
                one()

        return undo

    def _kill(self, node: NodeId) -> Undo:
        for part in self._cluster.machine(node):
            self._world.kill(part)
        return partial(self._start, node)

    def _start(self, node: NodeId) -> None:
        for part in self._cluster.machine(node):
            if not self._cluster.up(part):
                self._world.start(part)

    def _pause(self, node: NodeId) -> Undo:
        parts = self._cluster.machine(node)
        for part in parts:
            self._world.pause(part)
        return self._all([partial(self._resume, part) for part in parts])

    def _resume(self, node: NodeId) -> None:
        if self._world.server(node).paused:
            self._world.resume(node)

    def _restart(self, node: NodeId) -> Undo:
        self._cluster.stop(node)
        return partial(self._start, node)

    def _power(self, node: NodeId) -> Undo:
        self._cluster.lose_power(node)
        return partial(self._start, node)

    def _wipe(self, node: NodeId) -> Undo:
        self._cluster.lose_power(node)
        self._world.wipe(node)
        return partial(self._start, node)

    def _swap(self, node: NodeId) -> Undo:
        self._cluster.lose_power(node)
        self._world.restore(node, self._copies[node])
        return partial(self._start, node)

    def _cut(self, *pairs: Pair) -> Undo:
        """Drops what the first of a pair sends the second."""
        for a, b in pairs:
            self._world.cut(a, b, one_way=True)

        def mend() -> None:
            for a, b in pairs:
                self._world.mend(a, b, one_way=True)

        return mend

    def _cut_from_brokers(self, node: NodeId) -> Undo:
        return self._cut(*_both_ways(node, self._world.brokers))

    def _isolate(self, node: NodeId) -> Undo:
        inside, outside = self._cluster.machine(node), [*self._world.brokers, *self._world.controllers]
        others = [other for other in outside if other not in inside]
        return self._cut(*(pair for part in inside for pair in _both_ways(part, others)))

    def _each_other(self, one: NodeId, other: NodeId) -> Undo:
        return self._cut((one, other), (other, one))

    def _deaf(self, node: NodeId) -> Undo:
        return self._cut(*((other, node) for other in self._world.brokers if other != node))

    def _deaf_to_it(self, one: NodeId, other: NodeId) -> Undo:
        return self._cut((other, one))

    def _no_clients(self, node: NodeId) -> Undo:
        """Holds the clients' messages to and from the node, and drops them in the end: they would come too
        late, at a broker that has lost its office."""
        clients = set(self._cluster.clients)

        def matches(message: Message) -> bool:
            ends = {message.source, message.destination}
            return node in ends and bool(ends & clients)

        return partial(self._world.release, self._world.hold(matches, "clients"), drop=True)

    def _short_answers(self, one: NodeId, other: NodeId) -> Undo:
        return partial(
            self._world.release,
            self._cluster.hold("FetchResponse", source=other, to=one, when=carries_records),
            drop=True,
        )

    def _hold(self, hold: Hold, node: NodeId) -> Undo:
        asker = self.cast[hold.of]
        name = _KEPT[hold.kept]
        if name.startswith("Fetch") and node in self._world.controllers:
            name = f"Metadata{name}"
        source, to = (asker, node) if name.endswith("Request") else (node, asker)
        if hold.delay_s:
            return self._slow(source, to, hold.delay_s * 1_000)
        return partial(self._world.release, self._cluster.hold(name, source=source, to=to))

    def _slow(self, source: NodeId, to: NodeId, ms: float) -> Undo:
        self._world.lag[source, to] = ms
        return partial(self._world.lag.pop, (source, to))

    def _slow_in(self, node: NodeId) -> Undo:
        return self._all([self._slow(other, node, SLOW_MS) for other in self._world.brokers if other != node])

    def _failing_write(self, node: NodeId) -> Undo:
        disk = self._world.brokers[node].disk

        def once(tp: object) -> str:
            if tp not in self._cluster.places:
                return ""
            disk.refuses = None
            return "input/output error"

        disk.refuses = once

        def undo() -> None:
            disk.refuses = None
            self._start(node)

        return undo

    def _min_isr_1(self, _: NodeId) -> Undo:
        self._cluster.set_min_isr(1)
        return partial(self._cluster.set_min_isr, self._min_isr)

    def _reassign(self, node: NodeId) -> Undo:
        before = self._replicas
        self._cluster.reassign(*(self.cast[FOURTH] if one == node else one for one in before))
        return lambda: self._cluster.must(self._cluster.at_rest, "the reassignment done")

    def _transfer(self, node: NodeId) -> Undo:
        before = self._replicas
        first, *others = (one for one in before if one != node)
        self._cluster.reassign(first, node, *others)
        self._cluster.elect(ElectionType.PREFERRED)
        return partial(self._cluster.reassign, *before)


def _both_ways(node: NodeId, others: Iterable[NodeId]) -> list[Pair]:
    result = [other for other in others if other != node]
    return [pair for other in result for pair in ((node, other), (other, node))]


_OF_PAIRS = (Fault.EACH_OTHER, Fault.DEAF_TO_IT, Fault.SHORT_ANSWERS)
_FAULTS: Mapping[Fault, Callable[..., Undo]] = {
    Fault.KILL: Player._kill,
    Fault.PAUSE: Player._pause,
    Fault.RESTART: Player._restart,
    Fault.POWER_CUT: Player._power,
    Fault.POWER_CUT_WIPED: Player._wipe,
    Fault.POWER_CUT_STALE: Player._swap,
    Fault.CUT_FROM_BROKERS: Player._cut_from_brokers,
    Fault.ISOLATED: Player._isolate,
    Fault.EACH_OTHER: Player._each_other,
    Fault.DEAF: Player._deaf,
    Fault.DEAF_TO_IT: Player._deaf_to_it,
    Fault.NO_CLIENTS: Player._no_clients,
    Fault.SHORT_ANSWERS: Player._short_answers,
    Fault.SLOW_IN: Player._slow_in,
    Fault.FAILING_WRITE: Player._failing_write,
    Fault.MIN_ISR_1: Player._min_isr_1,
    Fault.REASSIGN: Player._reassign,
    Fault.REASSIGN_QUICKLY: Player._reassign,
    Fault.TRANSFER_LEADERSHIP: Player._transfer,
}
_KEPT: Mapping[Kept, str] = {
    Kept.FETCH_REQUEST: "FetchRequest",
    Kept.FETCH_ANSWER: "FetchResponse",
    Kept.PROPOSAL: "AlterPartitionRequest",
    Kept.PROPOSAL_ANSWER: "AlterPartitionResponse",
}


def schedules(scene: Scene) -> Iterator[Guided]:
    """One for each thing that the scene shows."""
    for each in scene.shows:
        surroundings = {
            **each.setting,
            "lag_ms": each.lag_ms,
            "broker": {"heartbeat_interval_ms": 300, **each.setting.get("broker", {})},
            "controller": {"session_timeout_ms": each.session_ms},
        }
        schedule = guided(
            each.name,
            each.code,
            *each.oracles,
            defects=each.defects,
            setting=Setting(**surroundings),
            exposing=each.exposing,
            harmless=each.harmless,
            text=each.text,
        )
        yield schedule(lambda stage: _perform(stage, scene))


def _perform(stage: Stage, scene: Scene) -> None:
    load, player = Load(stage), Player(stage)
    setting = stage.setting
    watchers = [Stalls((T,), setting.profile), Flaps((T,)), Deaf((T,)), EndOffsets((T,))]
    stage.world.observers += watchers
    stage.run(ACTIVE_MS)
    for step in scene.steps:
        player.step(step, last=step is scene.steps[-1])
        if stage.stuck:
            return
    load.stop()
    if not stage.stuck:
        load.judge()
    for watcher in watchers:
        for violation in watcher.found:
            stage.find(violation.oracle, violation.text)
