"""A cluster in virtual time: nodes, clock, event queue. ``world.step()`` lets exactly one thing happen.

Public and stable::

    world.now_ms              virtual milliseconds since the start
    world.brokers             id -> SimBroker      (.core is None while it is down, .disk, .incarnation, ...)
    world.controllers         id -> SimController  (the same attributes)
    world.clients             id -> SimClient
    world.image               committed ClusterImage of the active controller (the last known one if none is)
    world.step()              -> StepRecord, or None when nothing will ever happen again
    world.observers           called after EVERY step with (world, step)
    world.watchers            the same, after every step but those in which a message lies down in an inbox
    world.run(ms), world.until(condition)          many steps
    kill, power, clean_stop, wipe, restore, start, pause, resume, cut, heal, hold, release, cut_process, ...

Ghost state (what was acknowledged, the true high watermark) is the observers' business, never the world's.
Everything random comes from generators seeded with the world's seed; ``Random(f"{seed}/network")`` and so on,
so that one more draw in one place changes nothing in the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any, Literal
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.lifecycle import State
from wrackline.broker.defects import apply
from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.events import Event
from wrackline.broker.model.image import ClusterImage
from wrackline.broker.model.messages import Refused, Request
from wrackline.broker.model.metadata_messages import CreateTopicsRequest, CreateTopicsResponse, NewTopic
from wrackline.broker.model.types import METADATA, Endpoint, NodeId, SnapshotId, TopicPartition
from wrackline.broker.rules.profile import Rules, profile
from wrackline.simulator.world.disk import Disk, DiskRefused, SimulationError
from wrackline.simulator.world.network import Connection, Hold, Message
from wrackline.simulator.world.nodes import (
    BROKER_DEFAULTS,
    CONTROLLER_DEFAULTS,
    FIRST_CLIENT,
    FIRST_CONTROLLER,
    PROBE,
    Call,
    Core,
    CutRule,
    Down,
    Prober,
    SimBroker,
    SimClient,
    SimController,
    SimNode,
    SimServer,
    StepKind,
    StepRecord,
    WorldOptions,
)
from wrackline.simulator.world.transport import Transport

__all__ = [
    "FIRST_CLIENT",
    "FIRST_CONTROLLER",
    "PROBE",
    "Call",
    "Core",
    "CutRule",
    "Observer",
    "SimBroker",
    "SimClient",
    "SimController",
    "SimNode",
    "SimServer",
    "StepKind",
    "StepRecord",
    "World",
    "WorldOptions",
    "is_active",
]

Observer = Callable[["World", StepRecord], None]
_HAIR_MS = 1e-6
_LIVELOCK_STEPS = 5_000
_CREATE_TRIES = 5
_CREATE_AGAIN = (ErrorCode.request_timed_out, ErrorCode.invalid_replication_factor)


class World(Transport):
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
        self.watchers: list[Observer] = []
        self.cuts: dict[tuple[NodeId, NodeId], int] = {}
        """Ordered pairs that are cut, with how many times over."""
        self.lag: dict[tuple[NodeId, NodeId], float] = {}
        """Ordered pairs whose messages take this much longer, in milliseconds."""
        self.holds: list[Hold] = []
        self.network = options.network
        self._handle_ms = options.handle_ms
        self._queue: list[tuple[float, int, Callable[..., StepRecord | None], Any, Any]] = []
        self._numbers = 0
        self._number = 0
        """Of the entry of the queue whose time it is."""
        self._network_random = Random(f"{seed}/network")
        self._disk_random = Random(f"{seed}/disk")
        self._node_random = Random(f"{seed}/nodes")
        self._snapshot_random = Random(f"{seed}/snapshots")
        self._connections: dict[tuple[NodeId, NodeId, str], Connection] = {}
        self._last_image = ClusterImage()
        self._looked_at = -2
        """End of the metadata that ``_unfenced`` is said of."""
        self._unfenced = False
        ids = range(FIRST_CONTROLLER, FIRST_CONTROLLER + options.controllers)
        self.endpoints = tuple(Endpoint(node, f"c{node - FIRST_CONTROLLER + 1}", 9093) for node in ids)
        self.brokers = {node: SimBroker(node) for node in range(1, options.brokers + 1)}
        self.controllers = {node: SimController(node) for node in ids}
        self.clients: dict[NodeId, SimClient] = {}
        self._prober = Prober()
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
            if core is not None and core.is_active and (found is None or _term(core) > _term(found.core)):
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
            when, self._number, what, a, b = heappop(queue)
            if when > self.now_ms:
                self.now_ms = when
                self._instant = self.steps
            elif self.steps - self._instant > _LIVELOCK_STEPS:
                raise SimulationError(f"livelock: {_LIVELOCK_STEPS} steps in no time")
            record = what(a, b)
            if record is not None:
                if record.kind != "receive":
                    for watcher in self.watchers:
                        watcher(self, record)
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
        for watcher in self.watchers:
            watcher(self, record)
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
        found = server.disk.recover(rebuild_epochs=self.rules.switches.start_rebuilds_epochs)
        if not self.rules.switches.start_removes_clean_file:
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
            snapshots=found.snapshots,
        )
        return self._tell(self._handle(server, boot, "boot"))

    def _make_core(self, node: NodeId) -> Any:
        options = self.options
        if node in self.controllers:
            host = f"c{node - FIRST_CONTROLLER + 1}"
            settings = {**CONTROLLER_DEFAULTS, **options.controller}
            return Controller(
                ControllerConfig(node, "simulated", host, 9093, self.endpoints, **settings), self.rules
            )
        settings = {**BROKER_DEFAULTS, **options.broker}
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
        """End the process in the middle of the effects of one event: the first for which ``rule`` says how
        many of them are still carried out."""
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
            node.disk.abandon_snapshots(self._snapshot_random)
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
        if node.handling or not node.inbox or node.paused or node.core is None:
            return
        node.handling = True
        self._numbers = number = self._numbers + 1
        when = self.now_ms + self._node_random.random() * self._handle_ms
        heappush(self._queue, (when, number, self._handle_next, node, None))

    def _handle_next(self, node: SimNode, _: None) -> StepRecord | None:
        node.handling = False
        if node.core is None or node.paused or not node.inbox:
            return None
        event, message = node.inbox.popleft()
        record = self._handle(node, event, "handle", message)
        if node.inbox:
            self._wake(node)
        return record

    def _handle(
        self, node: SimNode, event: Event, kind: StepKind, message: Message | None = None
    ) -> StepRecord:
        now_ms = self.now_ms
        world, local = node.clock_base
        effects = node.core.handle(event, local + (now_ms - world) * node.clock_rate)
        self.steps += 1
        record = StepRecord(self.steps, now_ms, kind, node.id, event, effects, message)
        limit = None if node.cut_rule is None else node.cut_rule[0](event, effects)
        if limit is not None and node.cut_rule is not None:
            ending = node.cut_rule[1]
            record.effects = effects[:limit]
            record.cut = True
            self._carry_out_all(node, record.effects)
            if node.core is not None:
                # Observers see the disk as the effects left it first, and what a power cut takes a step
                # later.
                node.core, node.down, node.cut_rule = None, ending, None
                heappush(self._queue, (self.now_ms, -self._numbers, self._end_of_cut, node, ending))
            return record
        done = self._carry_out_all(node, effects)
        if done < len(effects):
            record.effects = effects[:done]
        if not node.accepts and node.core is not None and isinstance(node, SimServer):
            node.accepts = not isinstance(node.core, Broker) or node.core.state is not State.STARTING
        return record

    def _carry_out_all(self, node: SimNode, effects: Sequence[Effect]) -> int:
        """How many were: those after an Exit are not."""
        at = 0
        try:
            for at, effect in enumerate(effects):
                kind = type(effect)
                if kind is fx.Trace:
                    continue
                _CARRIERS[kind](self, node, effect)
                if kind is fx.Exit:
                    return at + 1
        except DiskRefused as refused:
            return self._disk_refused(node, effects, at, refused)
        return len(effects)

    def _disk_refused(self, node: Any, effects: Sequence[Effect], at: int, refused: DiskRefused) -> int:
        """As the shell does it: the core hears of it after what is in its inbox. It wrote the effects that
        follow in the belief that all went well: askers are told of the disk, the rest is left undone
        (B57)."""
        self._put(node, ev.DiskFailed(refused.tp, refused.reason), None)
        if not self.rules.switches.stops_on_disk_failure:
            return at + 1 + self._carry_out_all(node, effects[at + 1 :])
        node.disk.offline = refused.reason
        for effect in effects[at + 1 :]:
            if isinstance(effect, fx.Reply):
                refusal = Refused(ErrorCode.kafka_storage_error, refused.reason)
                self._reply(node, fx.Reply(effect.request_id, refusal))
            elif isinstance(effect, fx.NoReply):
                self._no_reply(node, fx.NoReply(effect.request_id, close=True))
            elif isinstance(effect, fx.Exit):
                self._exit(node, effect)
        return at

    def _set_timer(self, node: SimNode, effect: fx.SetTimer) -> None:
        self._numbers = ticket = self._numbers + 1
        key, when = effect.key, effect.at_ms
        node.timers[key] = ticket
        world, local = node.clock_base
        if node.clock_rate != 1.0 or world:
            # A hair late: the core must never find its timer fired before the time it had asked for.
            when = world + (when - local) / node.clock_rate + _HAIR_MS
        if when < self.now_ms:
            when = self.now_ms
        heappush(self._queue, (when, ticket, self._fire, node, key))

    def _cancel_timer(self, node: SimNode, effect: fx.CancelTimer) -> None:
        node.timers.pop(effect.key, None)

    def _fire(self, node: SimNode, key: str) -> StepRecord | None:
        if node.timers.get(key) != self._number or node.core is None:
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

    def _write_snapshot(self, node: SimServer, effect: fx.WriteSnapshot) -> None:
        node.disk.begin_snapshot(effect)
        options = self.options
        delay = self._snapshot_random.uniform(options.flush_min_ms, 4 * options.flush_max_ms)
        self._at(self.now_ms + delay, self._snapshot_written, node, (effect.id, node.incarnation))

    def _snapshot_written(self, node: SimServer, what: tuple[SnapshotId, int]) -> StepRecord | None:
        snapshot, life = what
        if node.incarnation != life or node.core is None or snapshot not in node.disk.unfinished:
            return None
        reason = node.disk.end_snapshot(snapshot)
        if reason:
            if self.rules.switches.stops_on_disk_failure:
                node.disk.offline = reason
            self._put(node, ev.DiskFailed(METADATA, reason), None)
            return None
        if node.paused:
            node.inbox.append((ev.SnapshotWritten(snapshot), None))
            return None
        return self._handle(node, ev.SnapshotWritten(snapshot), "flushed")

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
        given = {} if replicas is None else dict.fromkeys(range(partitions), tuple(replicas))
        topic = NewTopic(
            name,
            -1 if given else partitions,
            -1 if given else replication_factor,
            given,
            configs or {},
        )
        error = "no answer"
        for _ in range(_CREATE_TRIES):
            self.until(self.all_unfenced, what="every broker unfenced")
            call = self.ask(next(iter(self.brokers)), CreateTopicsRequest((topic,), 10_000))
            self.until(lambda call=call: call.done, 31_000, f"an answer about topic {name}")  # type: ignore[misc]
            answer = call.response
            created = answer.topics[0] if isinstance(answer, CreateTopicsResponse) else answer
            error = call.failed if created is None else created.error.name
            if error in ("none", "topic_already_exists"):
                break
            # Too few brokers: one was fenced again meanwhile, since its heartbeats got lost.
            if created is not None and created.error not in _CREATE_AGAIN:
                raise SimulationError(f"topic {name} was not created: {error}")
        else:
            raise SimulationError(f"topic {name} was not created: {error}")
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
        if image.metadata_offset != self._looked_at:
            self._looked_at, self._unfenced = image.metadata_offset, self._is_unfenced(image)
        return self._unfenced

    def _is_unfenced(self, image: ClusterImage) -> bool:
        return all((seen := image.brokers.get(node)) is not None and not seen.fenced for node in self.brokers)


def _call(action: Callable[[], object], _: None) -> None:
    action()


def is_active(core: Any) -> bool:
    """Is this controller the one in charge, as far as it knows itself?"""
    return bool(core.is_active)


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
    fx.WriteSnapshot: World._write_snapshot,
    fx.DeleteSnapshot: lambda _, node, effect: node.disk.delete_snapshot(effect),
    fx.CloseLogs: World._close_logs,
    fx.SetTimer: World._set_timer,
    fx.CancelTimer: World._cancel_timer,
    fx.Exit: World._exit,
}
