"""A cluster in virtual time: nodes, clock, event queue. ``world.step()`` lets exactly one thing happen.

Public and stable::

    world.now_ms              virtual milliseconds since the start
    world.brokers             id -> SimBroker      (.core is None while it is down, .disk, .incarnation, ...)
    world.controllers         id -> SimController  (the same attributes)
    world.clients             id -> SimClient
    world.image               committed ClusterImage of the active controller (the last known one if none is)
    world.step()              -> StepRecord, or None when nothing will ever happen again
    world.observers           called after EVERY step with (world, step)
    world.run(ms), world.until(condition)          many steps
    kill, power, clean_stop, wipe, restore, start, pause, resume, cut, heal, hold, release, cut_process, ...

Ghost state (what was acknowledged, the true high watermark) is the observers' business, never the world's.
Everything random comes from generators seeded with the world's seed; ``Random(f"{seed}/network")`` and so on, so
that one more draw in one place changes nothing in the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from random import Random
from typing import Any, Literal, Protocol
from uuid import UUID

from broker.core import effects as fx
from broker.core import events as ev
from broker.core.broker import Broker
from broker.core.config import BrokerConfig, ControllerConfig
from broker.core.controller import Controller
from broker.core.effects import Effect
from broker.core.events import Event
from broker.core.image import ClusterImage
from broker.core.lifecycle import State
from broker.core.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
    Request,
    Response,
)
from broker.core.types import Endpoint, NodeId, TopicPartition
from broker.defects import apply
from broker.rules.profile import Rules, profile
from simulator.answers import resolve
from simulator.disk import Disk, Lost, SimulationError
from simulator.network import Connection, Hold, Matches, Message, NetworkOptions, Slot

FIRST_CONTROLLER = 101
FIRST_CLIENT = 1_001
_HAIR_MS = 1e-6
_LIVELOCK_STEPS = 5_000
PROBE = 1_000
"""The node of ``world.ask``."""

StepKind = Literal["boot", "receive", "handle", "timer", "flushed", "down", "fault", "refused", "closed"]
Down = Literal["kill", "power", "clean", "exit", "never"]


class Core(Protocol):
    def handle(self, event: Event, now_ms: float) -> list[Effect]: ...


@dataclass(slots=True)
class StepRecord:
    """What one step was.

    =========  ==========================================================================================
    boot       the process starts: ``event`` is the Boot
    receive    a message has arrived in the node's inbox: nothing has looked at it yet (``message``)
    handle     the node handles an event of its inbox
    timer      the node handles TimerFired
    flushed    a flush has ended; the node handles Flushed
    down       the process is gone (``note`` says how)
    refused    a connection was refused or reset, at the asker (its SendFailed events follow as ``handle``)
    closed     a connection was closed, at the asked
    fault      something was done to the world from outside (``note``)
    =========  ==========================================================================================

    ``effects`` are those carried out; ``cut`` says that the process ended before the rest of them was.
    """

    number: int
    at_ms: float
    kind: StepKind
    node: NodeId
    event: Event | None = None
    effects: Sequence[Effect] = ()
    message: Message | None = None
    note: str = ""
    cut: bool = False


Observer = Callable[["World", StepRecord], None]
CutRule = Callable[[Event, Sequence[Effect]], int | None]
"""How many of these effects are carried out before the process ends; None: all, and it lives on."""


@dataclass(slots=True)
class SimNode:
    """``core`` is None while the process is down. ``incarnation`` counts its lives, from 1."""

    id: NodeId
    core: Any = None
    incarnation: int = 0
    down: Down = "never"
    paused: bool = False
    clock_rate: float = 1.0
    """Local milliseconds per world millisecond."""
    clock_base: tuple[float, float] = (0.0, 0.0)
    """(world, local) when the rate was last changed."""
    inbox: deque[tuple[Event, Message | None]] = field(default_factory=deque)
    timers: dict[str, int] = field(default_factory=dict)
    """Key -> number of its latest setting."""
    exits: list[fx.Exit] = field(default_factory=list)
    """Of all lives."""
    requests: dict[int, tuple[Connection, Slot]] = field(default_factory=dict)
    """Request id -> where its answer goes."""
    handling: bool = False
    """A step for the inbox is queued."""
    cut_rule: tuple[CutRule, Literal["kill", "power"]] | None = None
    ended_life: int = 0
    """The incarnation whose end has been dealt with."""

    @property
    def up(self) -> bool:
        return self.core is not None

    def local_ms(self, world_ms: float) -> float:
        world, local = self.clock_base
        return local + (world_ms - world) * self.clock_rate

    def world_ms(self, local_ms: float) -> float:
        world, local = self.clock_base
        return world + (local_ms - local) / self.clock_rate


@dataclass(slots=True)
class SimServer(SimNode):
    disk: Disk = field(default_factory=lambda: Disk(UUID(int=0)))
    losses: list[tuple[float, Lost]] = field(default_factory=list)
    """(when, what): taken by power cuts."""
    accepts: bool = False
    """Lets clients and peers in: a broker not before it knows its roles."""


@dataclass(slots=True)
class SimBroker(SimServer):
    core: Broker | None = None


@dataclass(slots=True)
class SimController(SimServer):
    core: Controller | None = None


@dataclass(slots=True)
class SimClient(SimNode):
    core: Core | None = None


@dataclass(frozen=True, slots=True)
class WorldOptions:
    brokers: int = 3
    controllers: int = 1
    profile: str = "kip966"
    defects: tuple[str, ...] = ()
    broker: Mapping[str, Any] = field(default_factory=dict)
    """Fields of BrokerConfig."""
    controller: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ControllerConfig."""
    network: NetworkOptions = field(default_factory=NetworkOptions)
    flush_min_ms: float = 0.5
    flush_max_ms: float = 8.0
    handle_ms: float = 0.05
    """At most this long between receiving and handling."""
    segment_bytes: int = 64_000
    max_skew: float = 0.0
    """Clocks run at rates within 1 +- this."""
    boot: bool = True


_BROKER_DEFAULTS: dict[str, Any] = {
    "heartbeat_interval_ms": 500,
    "replica_lag_time_max_ms": 2_000,
    "replica_fetch_wait_max_ms": 500,
    "replica_fetch_backoff_ms": 200,
    "request_timeout_ms": 3_000,
    "high_watermark_checkpoint_interval_ms": 1_000,
    "recovery_point_checkpoint_interval_ms": 5_000,
}
_CONTROLLER_DEFAULTS: dict[str, Any] = {"session_timeout_ms": 3_000, "min_insync_replicas": 2}


@dataclass(slots=True, eq=False)
class Call:
    """A request asked through ``world.ask`` and what came of it."""

    request: Request
    response: Any = None
    failed: str = ""

    @property
    def done(self) -> bool:
        return self.response is not None or bool(self.failed)


class _Prober:
    """The core of the node behind ``world.ask``."""

    def __init__(self) -> None:
        self.queue: list[tuple[int, NodeId, Request, int]] = []
        self.calls: dict[int, Call] = {}
        self.correlation = 0

    def handle(self, event: Event, now_ms: float) -> list[Effect]:  # noqa: ARG002
        if isinstance(event, ev.ResponseReceived):
            self.calls.pop(event.correlation).response = event.response
        elif isinstance(event, ev.SendFailed):
            self.calls.pop(event.correlation).failed = event.reason
        queue, self.queue = self.queue, []
        return [fx.Send(number, node, f"probe-{number}", body, ms) for number, node, body, ms in queue]


class World:
    def __init__(
        self, seed: int | str = 0, options: WorldOptions | None = None, *, rules: Rules | None = None
    ) -> None:
        self.seed = seed
        self.options = options = options or WorldOptions()
        self.rules = rules if rules is not None else apply(profile(options.profile), options.defects)
        self.now_ms = 0.0
        self.steps = 0
        self._instant = 0
        """Steps when time last went on."""
        self.observers: list[Observer] = []
        self.cuts: dict[tuple[NodeId, NodeId], int] = {}
        """Ordered pairs that are cut, with how many times over."""
        self.lag: dict[tuple[NodeId, NodeId], float] = {}
        """Ordered pairs whose messages take this much longer, in milliseconds."""
        self.holds: list[Hold] = []
        self.network = options.network
        self._queue: list[tuple[float, int, Callable[..., StepRecord | None], Any, Any]] = []
        self._numbers = 0
        self._network_random = Random(f"{seed}/network")
        self._disk_random = Random(f"{seed}/disk")
        self._node_random = Random(f"{seed}/nodes")
        self._connections: dict[tuple[NodeId, NodeId, str], Connection] = {}
        self._last_image = ClusterImage()
        ids = range(FIRST_CONTROLLER, FIRST_CONTROLLER + options.controllers)
        self.endpoints = tuple(Endpoint(node, f"c{node - FIRST_CONTROLLER + 1}", 9093) for node in ids)
        self.brokers = {node: SimBroker(node) for node in range(1, options.brokers + 1)}
        self.controllers = {node: SimController(node) for node in ids}
        self.clients: dict[NodeId, SimClient] = {}
        self._prober = _Prober()
        self._probe = SimClient(PROBE, core=self._prober, incarnation=1)
        self._nodes: dict[NodeId, SimNode] = {**self.controllers, **self.brokers, PROBE: self._probe}
        for server in self.servers():
            server.disk = self._new_disk()
            skew = options.max_skew
            server.clock_rate = 1.0 + (self._node_random.uniform(-skew, skew) if skew else 0.0)
        if options.boot:
            for server in self.servers():
                self.start(server.id)

    # --- what there is -------------------------------------------------------------------------------------

    def servers(self) -> list[SimServer]:
        return [*self.controllers.values(), *self.brokers.values()]

    def server(self, node: NodeId) -> SimServer:
        found = self._nodes[node]
        if not isinstance(found, SimServer):
            raise SimulationError(f"node {node} is a client")
        return found

    def node(self, node: NodeId) -> SimNode:
        return self._nodes[node]

    def active_controller(self) -> SimController | None:
        """The one in charge, the newest where two think they are; None when none does."""
        found: SimController | None = None
        for controller in self.controllers.values():
            core = controller.core
            if core is not None and is_active(core) and (found is None or _term(core) > _term(found.core)):
                found = controller
        return found

    @property
    def image(self) -> ClusterImage:
        active = self.active_controller()
        if active is not None and active.core is not None:
            self._last_image = active.core.committed
        return self._last_image

    def leader(self, tp: TopicPartition) -> NodeId:
        """As the controller has committed it; -1: none."""
        partition = self.image.partition(tp)
        return -1 if partition is None else partition.leader

    def add_client(self, core: Core) -> SimClient:
        """Its core gets a Boot at once, and then answers and timers, like any core."""
        node = FIRST_CLIENT + len(self.clients)
        client = SimClient(node, core=core, incarnation=1, down="never")
        self.clients[node] = self._nodes[node] = client
        self._at(self.now_ms, self._boot_client, client, None)
        return client

    def _boot_client(self, client: SimClient, _: None) -> StepRecord:
        return self._handle(client, ev.Boot(UUID(int=client.id), {}), "boot")

    # --- time ----------------------------------------------------------------------------------------------

    def _at(self, when: float, what: Callable[..., StepRecord | None], a: Any = None, b: Any = None) -> None:
        self._numbers += 1
        heappush(self._queue, (when, self._numbers, what, a, b))

    def at(self, when_ms: float, action: Callable[[], object]) -> None:
        """Do something to the world at a time; the observers are told by what it does."""
        self._at(max(when_ms, self.now_ms), _call, action)

    def step(self) -> StepRecord | None:
        """Let the next thing happen, tell the observers; None when the queue is empty."""
        queue = self._queue
        while queue:
            when, _, what, a, b = heappop(queue)
            if when > self.now_ms:
                self.now_ms = when
                self._instant = self.steps
            elif self.steps - self._instant > _LIVELOCK_STEPS:
                raise SimulationError(f"livelock: {_LIVELOCK_STEPS} steps in no time")
            record = what(a, b)
            if record is not None:
                for observer in self.observers:
                    observer(self, record)
                return record
        return None

    def run(self, ms: float) -> None:
        self.run_to(self.now_ms + ms)

    def run_to(self, end_ms: float) -> None:
        queue = self._queue
        while queue and queue[0][0] <= end_ms:
            self.step()
        self.now_ms = max(self.now_ms, end_ms)

    def until(self, condition: Callable[[], bool], within_ms: float = 30_000, what: str = "") -> None:
        """Raises SimulationError when it does not come to pass."""
        end_ms = self.now_ms + within_ms
        while not condition():
            if not self._queue or self._queue[0][0] > end_ms:
                raise SimulationError(f"not within {within_ms:.0f} ms: {what or condition}")
            self.step()

    def _record(self, kind: StepKind, node: NodeId, **more: Any) -> StepRecord:
        self.steps += 1
        return StepRecord(self.steps, self.now_ms, kind, node, **more)

    def say(self, note: str, node: NodeId = 0) -> StepRecord:
        """A line for the observers: what the one outside is doing."""
        return self._tell(self._record("fault", node, note=note))

    def _tell(self, record: StepRecord) -> StepRecord:
        """A step that was not taken from the queue (a fault from outside): observers see it now."""
        for observer in self.observers:
            observer(self, record)
        return record

    # --- processes -----------------------------------------------------------------------------------------

    def _new_disk(self) -> Disk:
        return Disk(UUID(int=self._node_random.getrandbits(128)), self.options.segment_bytes)

    def start(self, node: NodeId) -> StepRecord:
        """A new process on the node's disk. Raises SimulationError when one runs already."""
        server = self.server(node)
        if server.core is not None:
            raise SimulationError(f"node {node} runs already")
        if server.ended_life != server.incarnation:
            self._end(server, server.down)
        server.incarnation += 1
        server.down, server.paused, server.accepts = "never", False, False
        server.inbox.clear()
        found = server.disk.recover()
        if not self.rules.storage.takes_clean_file():
            server.disk.clean_epoch = found.previous_broker_epoch
        server.core = self._make_core(node)
        incarnation = UUID(int=self._node_random.getrandbits(128))
        boot = ev.Boot(
            incarnation,
            found.logs,
            found.metadata,
            found.previous_broker_epoch,
            quorum_state=server.disk.quorum_state,
            directory_id=server.disk.directory_id,
        )
        return self._tell(self._handle(server, boot, "boot"))

    def _make_core(self, node: NodeId) -> Any:
        options = self.options
        if node in self.controllers:
            host = f"c{node - FIRST_CONTROLLER + 1}"
            settings = {**_CONTROLLER_DEFAULTS, **options.controller}
            return Controller(
                ControllerConfig(node, "simulated", host, 9093, self.endpoints, **settings), self.rules
            )
        settings = {**_BROKER_DEFAULTS, **options.broker}
        return Broker(
            BrokerConfig(node, "simulated", f"n{node}", 9092, self.endpoints, **settings), self.rules
        )

    def kill(self, node: NodeId) -> StepRecord | None:
        """kill -9: everything written stays, peers are told by resets."""
        return self._end_from_outside(node, "kill")

    def power(self, node: NodeId, keep: Mapping[TopicPartition, int] | None = None) -> StepRecord | None:
        """Unsynced batches may go (see Disk.lose_power); peers hear nothing."""
        return self._end_from_outside(node, "power", keep)

    def _end_from_outside(
        self, node: NodeId, how: Down, keep: Mapping[TopicPartition, int] | None = None
    ) -> StepRecord | None:
        server = self.server(node)
        if server.core is None:
            return None
        note = self._end(server, how, keep)
        return self._tell(self._record("down", node, note=note))

    def clean_stop(self, node: NodeId) -> None:
        """SIGTERM: the core is asked to shut down in the controlled way; it takes its time."""
        server = self.server(node)
        if server.core is not None:
            self._put(server, ev.StopRequested(), None)

    def wipe(self, node: NodeId) -> StepRecord:
        """A new, empty disk under a node that is down."""
        server = self._down_server(node)
        server.disk = self._new_disk()
        return self._tell(self._record("fault", node, note="wipe"))

    def restore(self, node: NodeId, disk: Disk) -> StepRecord:
        """The node's disk is as it was when ``disk`` (a ``Disk.snapshot()``) was taken; it must be down."""
        server = self._down_server(node)
        server.disk = disk.snapshot()
        return self._tell(self._record("fault", node, note="stale restore"))

    def _down_server(self, node: NodeId) -> SimServer:
        server = self.server(node)
        if server.core is not None:
            raise SimulationError(f"node {node} is up: its disk is in use")
        return server

    def pause(self, node: NodeId) -> StepRecord:
        """SIGSTOP: it handles nothing, time goes on."""
        self._nodes[node].paused = True
        return self._tell(self._record("fault", node, note="pause"))

    def resume(self, node: NodeId) -> StepRecord:
        paused = self._nodes[node]
        paused.paused = False
        self._wake(paused)
        return self._tell(self._record("fault", node, note="resume"))

    def set_clock_rate(self, node: NodeId, rate: float) -> None:
        """From now on; timers that are set already keep their world time."""
        at = self._nodes[node]
        at.clock_base = (self.now_ms, at.local_ms(self.now_ms))
        at.clock_rate = rate

    def cut_process(self, node: NodeId, rule: CutRule, how: Literal["kill", "power"] = "kill") -> None:
        """End the process in the middle of the effects of one event: the first for which ``rule`` says how many
        of them are still carried out."""
        self._nodes[node].cut_rule = (rule, how)

    def _end(self, node: SimNode, how: Down, keep: Mapping[TopicPartition, int] | None = None) -> str:
        """The process is gone. What is said of it."""
        node.core, node.down, node.paused, node.cut_rule = None, how, False, None
        node.ended_life = node.incarnation
        node.timers.clear()
        node.inbox.clear()
        node.requests.clear()
        note: str = how
        if isinstance(node, SimServer):
            node.accepts = False
            node.disk.stopped()
            if how == "power":
                lost = node.disk.lose_power(self._disk_random, keep)
                node.losses += [(self.now_ms, item) for item in lost]
                note += "".join(
                    f" {item.tp}:{item.from_offset}..{item.to_offset}{' torn' if item.torn else ''}"
                    for item in lost
                )
        self._hang_up(node, silent=how == "power")
        return note

    def _end_of_cut(self, node: SimNode, how: Down) -> StepRecord | None:
        if node.core is not None or node.ended_life == node.incarnation:
            return None
        return self._record("down", node.id, note=self._end(node, how))

    # --- events and effects --------------------------------------------------------------------------------

    def _put(self, node: SimNode, event: Event, message: Message | None) -> None:
        node.inbox.append((event, message))
        self._wake(node)

    def _wake(self, node: SimNode) -> None:
        if node.inbox and not node.handling and not node.paused and node.core is not None:
            node.handling = True
            delay = self._node_random.random() * self.options.handle_ms
            self._at(self.now_ms + delay, self._handle_next, node)

    def _handle_next(self, node: SimNode, _: None) -> StepRecord | None:
        node.handling = False
        if node.core is None or node.paused or not node.inbox:
            return None
        event, message = node.inbox.popleft()
        record = self._handle(node, event, "handle", message)
        self._wake(node)
        return record

    def _handle(
        self, node: SimNode, event: Event, kind: StepKind, message: Message | None = None
    ) -> StepRecord:
        effects = node.core.handle(event, node.local_ms(self.now_ms))
        limit = None
        if node.cut_rule is not None:
            limit = node.cut_rule[0](event, effects)
        self.steps += 1
        record = StepRecord(self.steps, self.now_ms, kind, node.id, event, effects, message)
        if limit is not None and node.cut_rule is not None:
            ending = node.cut_rule[1]
            record.effects = effects[:limit]
            record.cut = True
            self._carry_out_all(node, record.effects)
            if node.core is not None:
                # Observers see the disk as the effects left it first, and what a power cut takes a step later.
                node.core, node.down, node.cut_rule = None, ending, None
                heappush(self._queue, (self.now_ms, -self._numbers, self._end_of_cut, node, ending))
            return record
        done = self._carry_out_all(node, effects)
        if done < len(effects):
            record.effects = effects[:done]
        if isinstance(node, SimServer) and not node.accepts and node.core is not None:
            node.accepts = not isinstance(node.core, Broker) or node.core.state is not State.STARTING
        return record

    def _carry_out_all(self, node: SimNode, effects: Sequence[Effect]) -> int:
        """How many were: those after an Exit are not."""
        carriers = _CARRIERS
        for at, effect in enumerate(effects):
            kind = type(effect)
            if kind is fx.Trace:
                continue
            carriers[kind](self, node, effect)
            if node.core is None:
                return at + 1
        return len(effects)

    def _set_timer(self, node: SimNode, effect: fx.SetTimer) -> None:
        self._numbers += 1
        ticket = node.timers[effect.key] = self._numbers
        when = effect.at_ms
        if node.clock_rate != 1.0 or node.clock_base[0]:
            # A hair late: the core must never find its timer fired before the time it had asked for.
            when = node.world_ms(when) + _HAIR_MS
        when = max(when, self.now_ms)
        heappush(self._queue, (when, ticket, self._fire, node, (effect.key, ticket)))

    def _cancel_timer(self, node: SimNode, effect: fx.CancelTimer) -> None:
        node.timers.pop(effect.key, None)

    def _fire(self, node: SimNode, timer: tuple[str, int]) -> StepRecord | None:
        key, ticket = timer
        if node.timers.get(key) != ticket or node.core is None:
            return None
        del node.timers[key]
        if node.paused:
            node.inbox.append((ev.TimerFired(key), None))
            return None
        return self._handle(node, ev.TimerFired(key), "timer")

    def _exit(self, node: SimNode, effect: fx.Exit) -> None:
        node.exits.append(effect)
        self._end(node, "clean" if effect.code == 0 else "exit")

    # --- disk ----------------------------------------------------------------------------------------------

    def _append(self, node: SimServer, effect: fx.Append) -> None:
        if node.disk.append(effect):
            self._flush(node, fx.Flush(effect.tp, effect.end_offset))

    def _flush(self, node: SimServer, effect: fx.Flush) -> None:
        if node.disk.begin_flush(effect.tp):
            self._flush_later(node, effect.tp)

    def _flush_later(self, node: SimServer, tp: TopicPartition) -> None:
        options = self.options
        delay = self._disk_random.uniform(options.flush_min_ms, options.flush_max_ms)
        self._at(self.now_ms + delay, self._flushed, node, (tp, node.disk.logs[tp], node.incarnation))

    def _flushed(self, node: SimServer, what: tuple[TopicPartition, Any, int]) -> StepRecord | None:
        tp, log, life = what
        if node.incarnation != life or node.disk.logs.get(tp) is not log or node.core is None:
            return None
        upto, again = node.disk.end_flush(node.disk.logs[tp])
        if again and node.disk.begin_flush(tp):
            self._flush_later(node, tp)
        if node.paused:
            node.inbox.append((ev.Flushed(tp, upto), None))
            return None
        return self._handle(node, ev.Flushed(tp, upto), "flushed")

    def _close_logs(self, node: SimServer, effect: fx.CloseLogs) -> None:
        self._put(node, ev.LogsClosed(node.disk.close_cleanly(effect)), None)

    # --- messages ------------------------------------------------------------------------------------------

    def ask(self, node: NodeId, request: Request, timeout_ms: int = 30_000) -> Call:
        """A question from outside, over the network; time must pass before it has an answer."""
        prober = self._prober
        prober.correlation += 1
        call = prober.calls[prober.correlation] = Call(request)
        prober.queue.append((prober.correlation, node, request, timeout_ms))
        self._put(self._probe, ev.TimerFired("ask"), None)
        return call

    def asked(self, node: NodeId, request: Request, timeout_ms: int = 30_000) -> Any:
        """``ask``, and run until the answer is there. Raises SimulationError when none comes."""
        call = self.ask(node, request, timeout_ms)
        self.until(lambda: call.done, timeout_ms + 1_000, f"an answer of node {node} to {request}")
        if call.failed:
            raise SimulationError(f"node {node} did not answer: {call.failed}")
        return call.response

    def create_topic(
        self,
        name: str = "t",
        partitions: int = 1,
        replicas: Sequence[NodeId] | None = None,
        configs: Mapping[str, str] | None = None,
        replication_factor: int = -1,
    ) -> None:
        """And wait until every replica has it. ``replicas``: the assignment of each partition."""
        self.until(self.all_unfenced, what="every broker unfenced")
        given = {} if replicas is None else dict.fromkeys(range(partitions), tuple(replicas))
        topic = NewTopic(
            name,
            -1 if given else partitions,
            -1 if given else replication_factor,
            given,
            configs or {},
        )
        answer = self.asked(next(iter(self.brokers)), CreateTopicsRequest((topic,), 10_000))
        created = answer.topics[0] if isinstance(answer, CreateTopicsResponse) else answer
        if created.error:
            raise SimulationError(f"topic {name} was not created: {created.error.name}")
        self.until(lambda: self._everywhere(name, partitions), what=f"topic {name} on its replicas")

    def _everywhere(self, name: str, partitions: int) -> bool:
        for number in range(partitions):
            partition = self.image.partition(TopicPartition(name, number))
            if partition is None:
                return False
            for node in partition.replicas:
                core = self.brokers[node].core
                replica = None if core is None else core.replica(partition.tp)
                if replica is None or replica.leader_epoch != partition.leader_epoch:
                    return False
        return True

    def all_unfenced(self) -> bool:
        image = self.image
        return all((seen := image.brokers.get(node)) is not None and not seen.fenced for node in self.brokers)

    def _send(self, node: SimNode, effect: fx.Send) -> None:
        if effect.destination not in self._nodes:
            failed = ev.SendFailed(effect.correlation, effect.destination, "no such node")
            self._put(node, failed, None)
            return
        key = (node.id, effect.destination, effect.channel)
        connection = self._connections.get(key)
        if connection is None or not connection.open:
            connection = Connection(node.id, effect.destination, effect.channel, node.incarnation)
            self._connections[key] = connection
        connection.asked[effect.correlation] = effect
        self._at(
            self.now_ms + effect.timeout_ms / node.clock_rate, self._timed_out, connection, effect.correlation
        )
        message = self._message("request", connection, effect.request, None, effect.correlation)
        self._post(message)
        if self.network.duplicate and self._network_random.random() < self.network.duplicate:
            self._post(replace(message, number=self._numbers, ghost=True))

    def _message(
        self,
        kind: Literal["request", "response", "close"],
        connection: Connection,
        request: Request | None,
        response: Response | None,
        correlation: int,
    ) -> Message:
        self._numbers += 1
        source, destination = connection.source, connection.destination
        if kind == "response":
            source, destination = destination, source
        return Message(
            kind,
            source,
            destination,
            connection.channel,
            request,
            response,
            connection,
            correlation,
            self._numbers,
        )

    def _post(self, message: Message) -> None:
        network, draw = self.network, self._network_random
        connection, destination = message.connection, message.destination
        for hold in self.holds:
            full = hold.limit is not None and len(hold.held) >= hold.limit
            if not full and message.kind != "close" and hold.matches(message):
                hold.held.append(message)
                connection.stalled.setdefault(destination, deque()).append(message)
                return
        if connection.stalled and connection.stalled.get(destination):
            connection.stalled[destination].append(message)
            return
        latency = network.latency_min_ms + draw.random() * (network.latency_max_ms - network.latency_min_ms)
        if network.spike and draw.random() < network.spike:
            latency += draw.random() * network.spike_ms
        if self.lag:
            latency += self.lag.get((message.source, destination), 0.0)
        if network.drop and draw.random() < network.drop:
            return
        when = self.now_ms + latency
        if not (network.reorder and draw.random() < network.reorder):
            when = max(when, connection.last_at.get(destination, 0.0))
            connection.last_at[destination] = when
        self._at(when, self._arrive, message)

    def _arrive(self, message: Message, _: None) -> StepRecord | None:
        connection, destination = message.connection, message.destination
        blocked = (message.source, destination) in self.cuts or (
            connection.destination_life < 0 and (destination, message.source) in self.cuts
        )
        if blocked or (connection.stalled and connection.stalled.get(destination)):
            connection.stalled.setdefault(destination, deque()).append(message)
            return None
        if message.kind == "request":
            return self._request_arrives(message)
        if message.kind == "response":
            return self._response_arrives(message)
        return self._close_arrives(message)

    def _request_arrives(self, message: Message) -> StepRecord | None:
        connection = message.connection
        node = self._nodes[message.destination]
        if node.down == "power" and node.core is None:
            return None
        life_is_over = connection.destination_life not in (-1, node.incarnation)
        if node.core is None or life_is_over or not getattr(node, "accepts", False):
            if connection.open:
                delay = self._network_random.uniform(self.network.latency_min_ms, self.network.latency_max_ms)
                why = "connection reset" if life_is_over else "connection refused"
                self._at(self.now_ms + delay, self._reset, connection, why)
            return None
        connection.destination_life = node.incarnation
        self._numbers += 1
        assert message.request is not None
        slot = Slot(self._numbers, message.correlation, message.request, message.ghost)
        if not message.ghost:
            connection.slots.append(slot)
        node.requests[slot.request_id] = (connection, slot)
        client = f"node-{message.source}"
        self._put(node, ev.RequestReceived(slot.request_id, message.request, client, client), message)
        self.steps += 1
        return StepRecord(self.steps, self.now_ms, "receive", node.id, None, (), message)

    def _response_arrives(self, message: Message) -> StepRecord | None:
        connection = message.connection
        node = self._nodes[message.destination]
        if not connection.open or node.core is None or connection.source_life != node.incarnation:
            return None
        if connection.asked.pop(message.correlation, None) is None:
            return None
        assert message.response is not None
        event = ev.ResponseReceived(message.correlation, message.source, message.response)
        self._put(node, event, message)
        self.steps += 1
        return StepRecord(self.steps, self.now_ms, "receive", node.id, None, (), message)

    def _close_arrives(self, message: Message) -> StepRecord | None:
        """The asker has hung up: what is parked for it is forgotten."""
        connection, node = message.connection, self._nodes[message.destination]
        slots = [slot for slot in connection.slots if not slot.done]
        connection.slots.clear()
        if node.core is None or connection.destination_life != node.incarnation or not slots:
            return None
        for slot in slots:
            if node.requests.pop(slot.request_id, None) is not None:
                self._put(node, ev.RequestCancelled(slot.request_id), None)
        return self._record("closed", node.id, message=message, note=f"{connection.source} hung up")

    def _reply(self, node: SimServer, effect: fx.Reply) -> None:
        found = node.requests.pop(effect.request_id, None)
        if found is None:
            return
        connection, slot = found
        slot.response = resolve(node.disk, slot.request, effect.response)
        slot.done = True
        self._answer(connection)

    def _no_reply(self, node: SimNode, effect: fx.NoReply) -> None:
        found = node.requests.pop(effect.request_id, None)
        if found is None:
            return
        connection, slot = found
        slot.done = True
        connection.asked.pop(slot.correlation, None)
        self._answer(connection)
        if effect.close:
            self._at(
                self.now_ms + self.network.latency_max_ms, self._reset, connection, "closed by the broker"
            )

    def _answer(self, connection: Connection) -> None:
        slots = connection.slots
        while slots and slots[0].done:
            slot = slots.popleft()
            if slot.response is not None:
                self._post(
                    self._message("response", connection, slot.request, slot.response, slot.correlation)
                )

    def _timed_out(self, connection: Connection, correlation: int) -> StepRecord | None:
        send = connection.asked.get(correlation)
        if send is None or not connection.open:
            return None
        return self._reset(connection, f"no answer in {send.timeout_ms} ms")

    def _reset(self, connection: Connection, why: str) -> StepRecord | None:
        """The asker gives the connection up: all that was asked on it fails."""
        if not connection.open:
            return None
        node = self._nodes[connection.source]
        back = (connection.destination, connection.source)
        if why.startswith("connection") and back in self.cuts:
            return None
        self._close(connection)
        if node.core is None or connection.source_life != node.incarnation:
            return None
        asked, connection.asked = connection.asked, {}
        for correlation in asked:
            self._put(node, ev.SendFailed(correlation, connection.destination, why), None)
        return self._record(
            "refused", node.id, note=f"{connection.channel} to {connection.destination}: {why}"
        )

    def _close(self, connection: Connection) -> None:
        connection.open = False
        self._connections.pop((connection.source, connection.destination, connection.channel), None)
        for waiting in connection.stalled.values():
            for hold in self.holds:
                hold.held = [message for message in hold.held if message not in waiting]
        connection.stalled.clear()
        if connection.destination_life >= 0:
            self._post(self._message("close", connection, None, None, -1))

    def _hang_up(self, node: SimNode, *, silent: bool) -> None:
        """The node's process is gone: its kernel tells the others, unless the power went."""
        for connection in list(self._connections.values()):
            if connection.source == node.id:
                if silent:
                    connection.open = False
                    del self._connections[connection.source, connection.destination, connection.channel]
                    connection.stalled.clear()
                else:
                    self._close(connection)
            elif connection.destination == node.id and connection.destination_life >= 0:
                connection.slots.clear()
                if not silent:
                    delay = self._network_random.uniform(
                        self.network.latency_min_ms, self.network.latency_max_ms
                    )
                    self._at(self.now_ms + delay, self._reset, connection, "connection reset")

    # --- network faults ------------------------------------------------------------------------------------

    def cut(self, a: NodeId, b: NodeId, *, one_way: bool = False) -> StepRecord:
        """Nothing gets from a to b (nor, unless ``one_way``, back). Cuts of one pair add up."""
        for pair in ((a, b),) if one_way else ((a, b), (b, a)):
            self.cuts[pair] = self.cuts.get(pair, 0) + 1
        return self._tell(self._record("fault", a, note=f"cut {a}{'->' if one_way else '<->'}{b}"))

    def mend(self, a: NodeId, b: NodeId, *, one_way: bool = False) -> StepRecord:
        """Take one ``cut`` back."""
        for pair in ((a, b),) if one_way else ((a, b), (b, a)):
            count = self.cuts.pop(pair, 0) - 1
            if count > 0:
                self.cuts[pair] = count
        self._resend()
        return self._tell(self._record("fault", a, note=f"mend {a}{'->' if one_way else '<->'}{b}"))

    def isolate(self, node: NodeId, others: Iterable[NodeId] | None = None) -> None:
        """From all other nodes, or from these."""
        for other in sorted(self._nodes) if others is None else others:
            if other != node:
                self.cut(node, other)

    def heal(self) -> StepRecord:
        """Every cut, lag and hold ends."""
        self.cuts.clear()
        self.lag.clear()
        for hold in list(self.holds):
            self.release(hold)
        self._resend()
        return self._tell(self._record("fault", 0, note="heal"))

    def hold(self, matches: Matches, label: str = "", limit: int | None = None) -> Hold:
        """Keep back the messages (sent from now on) for which this is true, until ``release``."""
        hold = Hold(matches, label, limit)
        self.holds.append(hold)
        return hold

    def release(self, hold: Hold, *, drop: bool = False) -> None:
        """Let go what is held (and stop holding), or with ``drop`` lose it: the asker runs into its time-out."""
        if hold in self.holds:
            self.holds.remove(hold)
        hold.active = False
        held, hold.held = hold.held, []
        if drop:
            for message in held:
                waiting = message.connection.stalled.get(message.destination)
                if waiting is not None and message in waiting:
                    waiting.remove(message)
        self._resend()

    def _resend(self) -> None:
        """What is stalled without a reason goes on its way, in order."""
        for connection in list(self._connections.values()):
            for destination, waiting in connection.stalled.items():
                source = waiting[0].source if waiting else destination
                if not waiting or (source, destination) in self.cuts:
                    continue
                if connection.destination_life < 0 and (destination, source) in self.cuts:
                    continue
                self._release_until_held(connection, destination, waiting)

    def _release_until_held(
        self, connection: Connection, destination: NodeId, waiting: deque[Message]
    ) -> None:
        held = {id(message) for hold in self.holds for message in hold.held}
        late = self.now_ms + self._network_random.random() * self.network.retransmit_ms
        while waiting and id(waiting[0]) not in held:
            message = waiting.popleft()
            when = max(late, connection.last_at.get(destination, 0.0))
            connection.last_at[destination] = when
            self._at(when, self._arrive, message)


def _call(action: Callable[[], object], _: None) -> None:
    action()


def is_active(core: Any) -> bool:
    """Is this controller the one in charge, as far as it knows itself?"""
    said = getattr(core, "is_active", None)
    if said is not None:
        return bool(said() if callable(said) else said)
    return bool(core._state == "active")


def _term(core: Any) -> int:
    return int(core.raft.epoch)


_CARRIERS: dict[type, Callable[[World, Any, Any], None]] = {
    fx.Send: World._send,
    fx.Reply: World._reply,
    fx.NoReply: World._no_reply,
    fx.CreateLog: lambda _, node, effect: node.disk.create(effect),
    fx.DeleteLog: lambda _, node, effect: node.disk.delete(effect),
    fx.Append: World._append,
    fx.Flush: World._flush,
    fx.Truncate: lambda _, node, effect: node.disk.truncate(effect),
    fx.ResetLog: lambda _, node, effect: node.disk.reset(effect),
    fx.MoveLogStart: lambda _, node, effect: node.disk.move_log_start(effect),
    # The simulated log is one segment, which is never old, and lies on the disk in one way.
    fx.Retain: lambda _, node, effect: None,  # noqa: ARG005
    fx.ConfigureLog: lambda _, node, effect: None,  # noqa: ARG005
    fx.WriteEpochs: lambda _, node, effect: node.disk.write_epochs(effect),
    fx.WriteCheckpoint: lambda _, node, effect: node.disk.write_checkpoint(effect),
    fx.WriteQuorumState: lambda _, node, effect: node.disk.write_quorum_state(effect),
    fx.CloseLogs: World._close_logs,
    fx.SetTimer: World._set_timer,
    fx.CancelTimer: World._cancel_timer,
    fx.Exit: World._exit,
}
