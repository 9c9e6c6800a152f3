"""Plays a scene in virtual time, among clients that write and read all the time.

What the clients see is judged as in a random run (``wrackline.simulator.invariants.client_view``), and so is
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
        self.nodes = [world.add_client(client).id for client in self._clients]
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
    """Carries the steps of a scene out on a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._world = stage.world
        replicas = stage.setting.replicas
        free = sorted(stage.world.brokers.keys() - set(replicas))
        self._cast: Cast = {
            L: replicas[0],
            F1: replicas[1],
            F2: replicas[-1],
            CONTROLLER: SOLE_CONTROLLER,
            NOBODY: -1,
            **({FOURTH: free[0]} if free else {}),
        }
        self._in_force: dict[str, Undo] = {}
        self._copies: dict[NodeId, Disk] = {}
        self._load = Load(stage)
        setting = stage.setting
        watchers = [Stalls((T,), setting.profile), Flaps((T,)), Deaf((T,)), EndOffsets((T,))]
        self._watchers = watchers
        stage.world.observers += watchers

    def play(self, scene: Scene) -> None:
        self._stage.run(ACTIVE_MS)
        for step in scene.steps:
            self._step(step, last=step is scene.steps[-1])
            if self._stage.stuck:
                return
        self._load.stop()
        if not self._stage.stuck:
            self._load.judge()
        for watcher in self._watchers:
            for violation in watcher.found:
                self._stage.find(violation.oracle, violation.text)

    def _step(self, step: language.Step, *, last: bool = False) -> None:
        """Plays a step; the state that the ``last`` step waits for must come: on hosts a threshold says
        so."""
        stage, cast = self._stage, self._cast
        match step:
            case language.Do():
                nodes = [cast[role] for role in step.roles]
                stage.say(f"{step.id}: {step.fault} {nodes}")
                self._in_force[step.id] = self._begin(step.fault, nodes)
            case language.Undo(ids=ids):
                for one in ids or sorted(self._in_force):
                    stage.say(f"{one} ends")
                    self._in_force.pop(one)()
                if not ids:
                    self._until(language.FULL_ISR, last)
            case language.Wait():
                stage.run(step.seconds * 1_000)
            case language.Until():
                self._until(step, last)
            case language.UntilBroker(role=role, alive=alive):
                node = cast[role]
                stage.must(
                    lambda: stage.fenced(node) is not alive, f"{node} {'alive' if alive else 'fenced'}"
                )
            case language.Flush(role=role):
                for log in self._world.brokers[cast[role]].disk.logs.values():
                    log.synced = log.leo
            case language.KeepDisk(role=role):
                self._copies[cast[role]] = self._world.brokers[cast[role]].disk.snapshot()
            case language.ElectUncleanly():
                stage.elect(ElectionType.UNCLEAN)
            case language.WhereController():
                pass  # controllers have machines of their own

    def _until(self, step: language.Until, last: bool) -> None:
        stage = self._stage

        def holds() -> bool:
            image = stage.world.image.partition(T)
            return image is not None and step.holds(image, self._cast)

        what = step.text(self._cast)
        if step.patience_s is None or last:
            stage.must(holds, what, PATIENCE_MS if step.patience_s is None else step.patience_s * 1_000)
        else:
            stage.within(holds, step.patience_s * 1_000)
        stage.say(f"{what}: leader {stage.elected}, ISR {sorted(stage.isr)}, ELR {sorted(stage.elr)}")

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
        self._world.kill(node)
        return partial(self._start, node)

    def _start(self, node: NodeId) -> None:
        if not self._stage.up(node):
            self._world.start(node)

    def _pause(self, node: NodeId) -> Undo:
        self._world.pause(node)
        return partial(self._world.resume, node)

    def _restart(self, node: NodeId) -> Undo:
        self._stage.stop(node)
        return partial(self._start, node)

    def _power(self, node: NodeId) -> Undo:
        self._stage.power(node, keep=0)
        return partial(self._start, node)

    def _wipe(self, node: NodeId) -> Undo:
        self._stage.power(node, keep=0)
        self._world.wipe(node)
        return partial(self._start, node)

    def _swap(self, node: NodeId) -> Undo:
        self._stage.power(node, keep=0)
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
        return self._cut(*_both_ways(node, [*self._world.brokers, *self._world.controllers]))

    def _each_other(self, one: NodeId, other: NodeId) -> Undo:
        return self._cut((one, other), (other, one))

    def _deaf(self, node: NodeId) -> Undo:
        return self._cut(*((other, node) for other in self._world.brokers if other != node))

    def _deaf_to_it(self, one: NodeId, other: NodeId) -> Undo:
        return self._cut((other, one))

    def _no_clients(self, node: NodeId) -> Undo:
        """Holds the clients' messages to and from the node, and drops them in the end: they would come too
        late, at a broker that has lost its office."""
        clients = set(self._load.nodes)

        def matches(message: Message) -> bool:
            ends = {message.source, message.destination}
            return node in ends and bool(ends & clients)

        return partial(self._world.release, self._world.hold(matches, "clients"), drop=True)

    def _short_answers(self, one: NodeId, other: NodeId) -> Undo:
        return partial(
            self._world.release,
            self._stage.hold("FetchResponse", source=other, to=one, when=carries_records),
            drop=True,
        )

    def _hold(self, hold: Hold, node: NodeId) -> Undo:
        asker = self._cast[hold.of]
        name = _KEPT[hold.kept]
        if name.startswith("Fetch") and node in self._world.controllers:
            name = f"Metadata{name}"
        source, to = (asker, node) if name.endswith("Request") else (node, asker)
        if hold.delay_s:
            return self._slow(source, to, hold.delay_s * 1_000)
        return partial(self._world.release, self._stage.hold(name, source=source, to=to))

    def _slow(self, source: NodeId, to: NodeId, ms: float) -> Undo:
        self._world.lag[source, to] = ms
        return partial(self._world.lag.pop, (source, to))

    def _slow_in(self, node: NodeId) -> Undo:
        return self._all([self._slow(other, node, SLOW_MS) for other in self._world.brokers if other != node])

    def _failing_write(self, node: NodeId) -> Undo:
        disk = self._world.brokers[node].disk

        def once(tp: object) -> str:
            if tp != T:
                return ""
            disk.refuses = None
            return "input/output error"

        disk.refuses = once
        return partial(self._start, node)

    def _min_isr_1(self, _: NodeId) -> Undo:
        self._stage.set_min_isr(1)
        return partial(self._stage.set_min_isr, self._stage.setting.min_isr)

    def _reassign(self, node: NodeId) -> Undo:
        before = self._stage.setting.replicas
        self._stage.reassign(*(self._cast[FOURTH] if one == node else one for one in before))
        return lambda: self._stage.must(self._stage.at_rest, "the reassignment done")

    def _transfer(self, node: NodeId) -> Undo:
        before = self._stage.setting.replicas
        first, *others = (one for one in before if one != node)
        self._stage.reassign(first, node, *others)
        self._stage.elect(ElectionType.PREFERRED)
        return partial(self._stage.reassign, *before)


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
        yield schedule(lambda stage: Player(stage).play(scene))
