"""Carries a plan of faults out on a world: looks roles up, waits for what a sequence waits for, takes back.

What each kind does is in ``actions``; here is when it begins and ends, on whom, and how many lossy faults
there may be at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.messages.requests import Request
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.faults.kinds import Fault, FaultOptions, Kind, Role, Wait
from wrackline.simulator.world.disk import Disk
from wrackline.simulator.world.nodes import Call
from wrackline.simulator.world.world import FIRST_CONTROLLER, SimBroker, SimServer, World

_LOOK_EVERY_MS = 15.0
_WAIT_AT_MOST_MS = 8_000.0
"""For something to come to pass; then a fault begins, or is taken back, anyway."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A fault in force. ``nodes`` are those it acts on; ``down`` those it took down and will start again."""

    description: str
    undo: Callable[[], None]
    nodes: tuple[NodeId, ...] = ()
    down: frozenset[NodeId] = frozenset()
    how: Mapping[str, Any] = field(default_factory=dict)
    """What it did besides, for who does it again elsewhere; hosts are named."""


def host(node: NodeId) -> str:
    """The host that a node would be on in a fleet."""
    return f"n{node}" if node < FIRST_CONTROLLER else f"c{node - FIRST_CONTROLLER + 1}"


Begin = Callable[["FaultDriver", Fault, Random], Begun | None]


class FaultRows(Protocol):
    """Writes the history's rows of the nemesis: the driver calls it as each fault begins and ends."""

    def begun(self, fault: Fault, begun: Begun) -> None: ...

    def ended(self, fault: Fault, begun: Begun) -> None: ...


@dataclass(slots=True, eq=False)
class _Running:
    fault: Fault
    begun: Begun


@dataclass(slots=True)
class FaultDriver:
    """``stop`` takes back whatever is still in force and starts every node that is down."""

    world: World
    topic: str
    seed: int | str
    options: FaultOptions
    actions: Mapping[Kind, Begin]
    combined: bool = False
    """A broker and a controller are one machine, as far as there are controllers."""
    rows: FaultRows | None = None
    done: list[tuple[float, Fault, str]] = field(default_factory=list)
    """(when, fault, what was done)"""
    lossy_total: int = 0
    lossy_limit: int = 0
    """At present; lower than the options' while MinISR is."""
    deleted: dict[TopicPartition, int] = field(default_factory=dict)
    """The highest log start that anybody has asked for by DeleteRecords."""
    snapshots: dict[NodeId, Disk] = field(default_factory=dict)
    """Older copies of disks, for stale restores."""
    lossy: set[NodeId] = field(default_factory=set)
    """Nodes that may have lost something since all was in sync."""
    repeated: int = 0
    """Requests of operators that are made again until they are carried out."""
    _requests: list[Call] = field(default_factory=list)
    _running: list[_Running] = field(default_factory=list)
    _bound: dict[int, dict[str, NodeId]] = field(default_factory=dict)
    stopped: bool = False
    supervises: bool = True
    """Whether what ends by itself is started again: also after the faults, since a request of a former life
    may come only then and end the present one."""

    def __post_init__(self) -> None:
        self.lossy_limit = self.options.max_lossy

    def schedule(self, faults: Iterable[Fault]) -> None:
        start_ms = self.world.now_ms
        for fault in faults:
            self.world.at(start_ms + fault.at_ms, lambda fault=fault: self._due(fault))  # type: ignore[misc]
        self.world.at(start_ms + 1_000, self._supervise)

    def stop(self) -> None:
        self.stopped = True
        while self._running:
            self._end(self._running[-1])
        world = self.world
        world.heal()
        for server in world.servers():
            if server.paused:
                world.resume(server.id)
            server.cut_rule = None
            if server.core is None:
                world.start(server.id)

    def ask(self, node: NodeId, request: Request, timeout_ms: int) -> Call:
        """An operator asks the node."""
        call = self.world.ask(node, request, timeout_ms)
        self._requests.append(call)
        return call

    @property
    def is_answered(self) -> bool:
        """Whether operators wait for nothing any more: what they asked for may change the cluster so far."""
        return not self.repeated and all(call.done for call in self._requests)

    def _supervise(self) -> None:
        """Starts again what ended by itself (an Exit of the core), as a service manager does."""
        if not self.supervises:
            return
        planned = {node for running in self._running for node in running.begun.down}
        for server in self.world.servers():
            if server.core is None and server.down in ("exit", "clean") and server.id not in planned:
                self.world.start(server.id)
        self.world.at(self.world.now_ms + 1_000, self._supervise)

    # --- one fault -----------------------------------------------------------------------------------------

    def _due(self, fault: Fault) -> None:
        self._bind(fault)
        if fault.after is None:
            self._begin(fault)
        else:
            self._when(fault, fault.after, lambda: self._begin(fault))

    def _when(self, fault: Fault, wait: Wait, then: Callable[[], None]) -> None:
        """Calls as soon as the condition has come to pass; anyway after a time, and at once when the run is
        being ended."""
        world = self.world
        last_ms = world.now_ms + _WAIT_AT_MOST_MS

        def look() -> None:
            if self.stopped or world.now_ms >= last_ms or self._holds(fault, wait):
                then()
            else:
                world.at(world.now_ms + _LOOK_EVERY_MS, look)

        look()

    def _begin(self, fault: Fault) -> None:
        if self.stopped or (self.options.one_by_one and not self.recovered()):
            return
        begun = self.actions[fault.kind](self, fault, Random(f"{self.seed}/fault/{fault.id}"))
        if begun is not None:
            self.put_in_force(fault, begun)

    @property
    def in_force(self) -> Iterator[Fault]:
        return (running.fault for running in self._running)

    def put_in_force(self, fault: Fault, begun: Begun) -> Callable[[], None]:
        """Notes a fault that has begun, and takes it back when its time is over; what is returned does it
        before."""
        self.done.append((self.world.now_ms, fault, begun.description))
        self.world.say(f"f{fault.id} {fault.kind} {begun.description}")
        running = _Running(fault, begun)
        self._running.append(running)
        if self.rows is not None:
            self.rows.begun(fault, begun)

        def later() -> None:
            self.world.at(self.world.now_ms + fault.for_ms, lambda: self._end(running))

        if fault.until is None:
            later()
        else:
            self._when(fault, fault.until, later)
        return lambda: self._end(running)

    def _end(self, running: _Running) -> None:
        if running not in self._running:
            return
        self._running.remove(running)
        fault, begun = running.fault, running.begun
        self.world.say(f"f{fault.id} ends: {fault.kind} {begun.description}")
        begun.undo()
        if self.rows is not None:
            self.rows.ended(fault, begun)

    # --- who ---------------------------------------------------------------------------------------------

    def partition(self, fault: Fault) -> PartitionImage | None:
        return self.world.image.partition(TopicPartition(self.topic, fault.partition))

    def target(self, fault: Fault, draw: Random) -> NodeId:
        return fault.on[0] if fault.on else self._who(fault, fault.role, draw)

    def _bind(self, fault: Fault) -> None:
        """Settles who is who in a sequence when its first fault is due."""
        if fault.sequence in self._bound:
            return
        draw = Random(f"{self.seed}/chain/{fault.sequence}")
        everyone = sorted(self.world.brokers)
        partition = self.partition(fault)
        replicas = [] if partition is None else [node for node in partition.replicas if node in everyone]
        leader = partition.leader if partition is not None and partition.leader in everyone else None
        if leader is None:
            leader = draw.choice(replicas or everyone)
        followers = [node for node in replicas if node != leader] or [n for n in everyone if n != leader]
        followers = followers or [leader]
        draw.shuffle(followers)
        spare = [node for node in everyone if node not in replicas]
        self._bound[fault.sequence] = {
            "first-leader": leader,
            "one": followers[0],
            "other": followers[-1],
            "spare": draw.choice(spare or followers),
        }

    def _who(self, fault: Fault, role: Role, draw: Random) -> NodeId:
        bound = self._bound.get(fault.sequence, {})
        if role in bound:
            return bound[role]
        partition = self.partition(fault)
        everyone = sorted(self.world.brokers)
        if partition is None:
            return draw.choice(everyone)
        followers = [node for node in partition.replicas if node != partition.leader]
        choices = {
            "leader": [partition.leader] if partition.leader in self.world.brokers else [],
            "follower": followers,
            "isr-follower": [node for node in followers if node in partition.isr],
            "out-of-sync": [node for node in partition.replicas if node not in partition.isr],
        }.get(role, everyone)
        return draw.choice(choices or followers or everyone)

    def _holds(self, fault: Fault, wait: Wait) -> bool:
        """Has it come to pass?"""
        image = self.world.image
        partition = image.partition(TopicPartition(self.topic, fault.partition))
        if partition is None:
            return False
        bound = self._bound.get(fault.sequence, {})
        node = bound[wait.role] if wait.role in bound else self._who(fault, wait.role, Random(0))
        broker, known = self.world.brokers[node], image.brokers.get(node)
        replica = None if broker.core is None else broker.core.replica(partition.tp)
        match wait.word:
            case "out":
                return node not in partition.isr
            case "in":
                return node in partition.isr
            case "fenced":
                return known is None or known.fenced
            case "back":
                return _is_back(broker, self.world)
            case "proposed":
                return (
                    replica is not None and replica.leader is not None and replica.leader.proposal is not None
                )
            case "leads":
                knows = replica is not None and replica.leader_epoch == partition.leader_epoch
                return partition.leader == node and knows

    # --- how much may be lost ------------------------------------------------------------------------------

    def may_lose(self, node: NodeId) -> bool:
        """Is one more lossy shutdown, of this node, within the promise?"""
        if self.all_in_sync():
            self.lossy.clear()
        if len(self.lossy | {node}) > self.lossy_limit:
            return False
        self.lossy.add(node)
        self.lossy_total += 1
        return True

    def all_in_sync(self) -> bool:
        """Every ISR is full, and by the present lives of the brokers: the image of a moment ago may still
        speak of lives that have lost what made them members."""
        return all(_is_back(broker, self.world) for broker in self.world.brokers.values()) and all(
            set(partition.isr) == set(partition.replicas) for partition in self.world.image.partitions()
        )

    def recovered(self) -> bool:
        """Every member of every ISR has what is committed, follows the leader, and is in no fault's reach;
        so the next failure is one more, and not half of two. Who is out of the ISR may be down, or cut off,
        for long."""
        partitions = list(self.world.image.partitions())
        members = {node for partition in partitions for node in partition.isr}
        for running in self._running:
            if not running.begun.nodes or members.intersection(running.begun.nodes):
                return False
        return all(self._is_settled(partition) for partition in partitions)

    def _is_settled(self, partition: PartitionImage) -> bool:
        leader = self._replica(partition.leader, partition.tp)
        if leader is None or leader.leader is None or not leader.leader.open or leader.leader.proposal:
            return False
        for node in partition.isr:
            replica = self._replica(node, partition.tp)
            if replica is None or replica.log.leo < leader.high_watermark:
                return False
            if replica.leader_id != partition.leader or not _is_back(self.world.brokers[node], self.world):
                return False
        return True

    def _replica(self, node: NodeId, tp: TopicPartition) -> Replica | None:
        server = self.world.brokers.get(node)
        return None if server is None or server.core is None or server.paused else server.core.replica(tp)

    # --- machines ------------------------------------------------------------------------------------------

    def machine(self, node: NodeId) -> tuple[SimServer, ...]:
        """Returns the servers that share a broker's fate: itself, and with ``combined`` its controller."""
        servers: list[SimServer] = [self.world.server(node)]
        controller = FIRST_CONTROLLER + node - 1
        if self.combined and node in self.world.brokers and controller in self.world.controllers:
            servers.append(self.world.server(controller))
        return tuple(servers)

    def restarter(self, *servers: SimServer) -> Callable[[], None]:
        """Starts those again that are down in the life they have now."""
        lives = [(server, server.incarnation) for server in servers]

        def undo() -> None:
            for server, life in lives:
                if server.core is None and server.incarnation == life:
                    self.world.start(server.id)

        return undo


def _is_back(broker: SimBroker, world: World) -> bool:
    known = world.image.brokers.get(broker.id)
    up = broker.core is not None and known is not None and not known.fenced
    return up and known.epoch == broker.core.broker_epoch  # type: ignore[union-attr]
