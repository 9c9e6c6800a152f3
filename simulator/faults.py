"""Random faults from a seed: a plan made beforehand, and the driver that carries it out on a world.

The plan names kinds, times and roles ("the leader of t-0"), not nodes: roles are looked up when the time has
come, which is what makes random faults hit where it hurts. Each fault draws from a generator of its own, so a
plan without one of its faults leaves the others as they are: that is what shrinking rests on.

Bias (protocol.md 4.4: uniform search misses the rare ones): half of what is planned are *combinations* around
one partition: hold AlterPartition or metadata or fetch responses, restart or cut somebody meanwhile, let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Literal, get_args

from broker.core.admin_messages import (
    AlterPartitionReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    Reassignment,
)
from broker.core.types import NodeId, TopicPartition
from simulator.disk import Disk
from simulator.network import Hold, Matches, Message
from simulator.world import SimServer, World

Kind = Literal[
    "kill",
    "power",
    "clean",
    "kill-midway",
    "power-midway",
    "pause",
    "isolate",
    "cut",
    "cut-one-way",
    "cut-controller",
    "lag",
    "hold-alter-request",
    "hold-alter-response",
    "hold-fetch-response",
    "hold-fetch-request",
    "hold-metadata",
    "hold-produce-response",
    "skew",
    "wipe",
    "restore",
    "controller-kill",
    "controller-power",
    "controller-pause",
    "controller-isolate",
    "elect",
    "reassign",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
LOSSY = frozenset({"power", "power-midway", "wipe", "restore"})
"""May take what a broker had acknowledged to its leader: allowed MinISR - 1 times until the ISR is whole again."""
DEFAULT_KINDS = tuple(kind for kind in KINDS if kind not in ("wipe", "restore"))
"""Without those that need an operator's mistake: R37 and the contracts exclude them."""

Role = Literal["leader", "follower", "isr-follower", "out-of-sync", "any"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Fault:
    """``at_ms`` from the start of the main phase, ``for_ms`` until it is taken back (a restart, a healing)."""

    id: int
    kind: Kind
    at_ms: float
    for_ms: float
    role: Role
    partition: int = 0

    def __str__(self) -> str:
        return f"f{self.id} {self.kind} {self.role}({self.partition}) for {self.for_ms:.0f} ms"


@dataclass(frozen=True, slots=True)
class FaultOptions:
    kinds: tuple[Kind, ...] = DEFAULT_KINDS
    every_ms: float = 1_500.0
    """Mean pause between two plans (a single fault, or a combination)."""
    combinations: float = 0.5
    """Share of plans that are combinations."""
    max_lossy: int = 1
    """Lossy faults at a time, at most: MinISR - 1 keeps the promise, more breaks it."""


_COMBINATIONS: tuple[tuple[Kind, ...], ...] = (
    ("hold-alter-request", "kill"),
    ("hold-alter-request", "clean"),
    ("hold-alter-response", "kill"),
    ("hold-alter-response", "cut"),
    ("hold-metadata", "kill"),
    ("hold-metadata", "clean"),
    ("hold-metadata", "power"),
    ("hold-metadata", "cut-controller"),
    ("hold-fetch-response", "kill"),
    ("hold-fetch-response", "clean", "clean"),
    ("hold-fetch-request", "kill"),
    ("kill", "kill"),
    ("power", "kill"),
    ("lag", "kill"),
    ("lag", "power"),
    ("cut-controller", "kill"),
    ("cut-controller", "cut"),
    ("isolate", "kill", "kill"),
    ("lag", "hold-alter-request", "kill"),
    ("lag", "hold-metadata", "kill"),
    ("hold-alter-request", "kill", "hold-metadata", "kill"),
    ("pause", "kill"),
    ("reassign", "kill"),
    ("reassign", "hold-metadata", "clean"),
    ("reassign", "hold-alter-request", "power"),
    ("controller-isolate", "kill"),
    ("controller-isolate", "hold-alter-request", "clean"),
)


def plan(seed: int | str, until_ms: float, partitions: int, options: FaultOptions) -> list[Fault]:
    """Faults from 0 to ``until_ms``, in order of time."""
    draw = Random(f"{seed}/faults")
    kinds = set(options.kinds)
    combinations = [combo for combo in _COMBINATIONS if kinds.issuperset(combo)]
    singles = [kind for kind in KINDS if kind in kinds]
    faults: list[Fault] = []
    at_ms = draw.expovariate(1 / options.every_ms)
    while singles and at_ms < until_ms:
        partition = draw.randrange(partitions)
        if combinations and draw.random() < options.combinations:
            chosen: tuple[Kind, ...] = draw.choice(combinations)
        else:
            chosen = (draw.choice(singles),)
        begin_ms = at_ms
        for kind in chosen:
            for_ms = draw.choice(
                (draw.uniform(50, 500), draw.uniform(300, 3_000), draw.uniform(2_000, 8_000))
            )
            role = draw.choice(ROLES)
            faults.append(Fault(len(faults), kind, begin_ms, for_ms, role, partition))
            begin_ms += draw.choice((0.0, draw.uniform(1, 60), draw.uniform(50, 1_500)))
        at_ms += draw.expovariate(1 / options.every_ms)
    return sorted(faults, key=lambda fault: (fault.at_ms, fault.id))


Undo = Callable[[], None]
"""Takes a fault back."""


@dataclass(slots=True)
class _Running:
    fault: Fault
    undo: Undo


@dataclass(slots=True)
class FaultDriver:
    """Carries a plan out. ``stop`` takes back whatever is still in force and starts every node that is down."""

    world: World
    topic: str
    seed: int | str
    options: FaultOptions
    done: list[tuple[float, Fault, str]] = field(default_factory=list)
    """(when, fault, what was done)"""
    lossy_total: int = 0
    _running: list[_Running] = field(default_factory=list)
    _lossy: set[NodeId] = field(default_factory=set)
    _snapshots: dict[NodeId, Disk] = field(default_factory=dict)
    _stopped: bool = False

    def schedule(self, faults: Iterable[Fault]) -> None:
        start_ms = self.world.now_ms
        for fault in faults:
            self.world.at(start_ms + fault.at_ms, lambda fault=fault: self._begin(fault))  # type: ignore[misc]
        self.world.at(start_ms + 1_000, self._supervise)

    def stop(self) -> None:
        self._stopped = True
        while self._running:
            self._running.pop().undo()
        world = self.world
        world.heal()
        for server in world.servers():
            if server.paused:
                world.resume(server.id)
            server.cut_rule = None
            if server.core is None:
                world.start(server.id)

    def _supervise(self) -> None:
        """What ended by itself (an Exit of the core) is started again, as a service manager does."""
        if self._stopped:
            return
        for server in self.world.servers():
            if (
                server.core is None
                and server.down in ("exit", "clean")
                and not self._is_down_by_plan(server.id)
            ):
                self.world.start(server.id)
        self.world.at(self.world.now_ms + 1_000, self._supervise)

    def _is_down_by_plan(self, node: NodeId) -> bool:
        return any(getattr(running.undo, "node", None) == node for running in self._running)

    # --- one fault -----------------------------------------------------------------------------------------

    def _begin(self, fault: Fault) -> None:
        if self._stopped:
            return
        draw = Random(f"{self.seed}/fault/{fault.id}")
        begun = _BEGIN[fault.kind](self, fault, draw)
        if begun is None:
            return
        said, undo = begun
        self.done.append((self.world.now_ms, fault, said))
        self.world.say(f"f{fault.id} {fault.kind} {said}")
        running = _Running(fault, undo)
        self._running.append(running)

        def end() -> None:
            if running in self._running:
                self._running.remove(running)
                self.world.say(f"f{fault.id} ends: {fault.kind} {said}")
                undo()

        self.world.at(self.world.now_ms + fault.for_ms, end)

    def _target(self, fault: Fault, draw: Random) -> NodeId:
        partition = self.world.image.partition(TopicPartition(self.topic, fault.partition))
        everyone = sorted(self.world.brokers)
        if partition is None:
            return draw.choice(everyone)
        followers = [node for node in partition.replicas if node != partition.leader]
        choices = {
            "leader": [partition.leader] if partition.leader in self.world.brokers else [],
            "follower": followers,
            "isr-follower": [node for node in followers if node in partition.isr],
            "out-of-sync": [node for node in partition.replicas if node not in partition.isr],
            "any": everyone,
        }[fault.role]
        return draw.choice(choices or followers or everyone)

    def may_lose(self, node: NodeId) -> bool:
        """Is one more lossy shutdown, of this node, within the promise?"""
        if self._all_in_sync():
            self._lossy.clear()
        if len(self._lossy | {node}) > self.options.max_lossy:
            return False
        self._lossy.add(node)
        self.lossy_total += 1
        return True

    def _all_in_sync(self) -> bool:
        """Every ISR is full, and by the present lives of the brokers: the image of a moment ago may still speak
        of lives that have lost what made them members."""
        image = self.world.image
        for node, broker in self.world.brokers.items():
            known = image.brokers.get(node)
            if (
                broker.core is None
                or known is None
                or known.fenced
                or known.epoch != broker.core.broker_epoch
            ):
                return False
        return all(set(partition.isr) == set(partition.replicas) for partition in image.partitions())

    def restarter(self, server: SimServer) -> Undo:
        life = server.incarnation

        def undo() -> None:
            if server.core is None and server.incarnation == life:
                self.world.start(server.id)

        undo.node = server.id  # type: ignore[attr-defined]
        return undo


Begun = tuple[str, Undo] | None
Begin = Callable[[FaultDriver, Fault, Random], Begun]


def _ending(how: Literal["kill", "power"]) -> Begin:
    def begin(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
        server = driver.world.brokers[driver._target(fault, draw)]
        if not server.up:
            return None
        chosen = how if how == "kill" or driver.may_lose(server.id) else "kill"
        if chosen == "kill":
            driver.world.kill(server.id)
        else:
            driver.world.power(server.id)
        return f"n{server.id}", driver.restarter(server)

    return begin


def _clean(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    server = driver.world.brokers[driver._target(fault, draw)]
    if not server.up:
        return None
    driver.world.clean_stop(server.id)
    life = server.incarnation

    def undo() -> None:
        """It may still be stopping: then whoever wants it back kills it."""
        if server.incarnation == life:
            driver.world.kill(server.id)
            driver.world.start(server.id)

    undo.node = server.id  # type: ignore[attr-defined]
    return f"n{server.id}", undo


def _midway(how: Literal["kill", "power"]) -> Begin:
    """The process ends between two effects of one of its next events that has several."""

    def begin(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
        server = driver.world.brokers[driver._target(fault, draw)]
        if not server.up:
            return None
        skip = draw.randint(0, 20)
        left = [skip]

        def rule(_: object, effects: object) -> int | None:
            count = len(effects)  # type: ignore[arg-type]
            if count < 2:
                return None
            left[0] -= 1
            if left[0] >= 0 or (how == "power" and not driver.may_lose(server.id)):
                return None
            return draw.randint(0, count - 1)

        driver.world.cut_process(server.id, rule, how)
        restart = driver.restarter(server)

        def undo() -> None:
            server.cut_rule = None
            restart()

        undo.node = server.id  # type: ignore[attr-defined]
        return f"n{server.id} between two effects", undo

    return begin


def _pause(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    return _pause_server(driver, driver.world.brokers[driver._target(fault, draw)])


def _pause_server(driver: FaultDriver, server: SimServer) -> Begun:
    if not server.up or server.paused:
        return None
    driver.world.pause(server.id)
    life = server.incarnation

    def undo() -> None:
        if server.incarnation == life and server.paused:
            driver.world.resume(server.id)

    return f"node {server.id}", undo


def _cuts(driver: FaultDriver, pairs: list[tuple[NodeId, NodeId]], *, one_way: bool = False) -> Undo:
    for a, b in pairs:
        driver.world.cut(a, b, one_way=one_way)

    def undo() -> None:
        for a, b in pairs:
            driver.world.mend(a, b, one_way=one_way)

    return undo


def _isolate(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    node = driver._target(fault, draw)
    return f"n{node}", _cuts(
        driver, [(node, other.id) for other in driver.world.servers() if other.id != node]
    )


def _cut(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    node = driver._target(fault, draw)
    other = draw.choice([broker for broker in sorted(driver.world.brokers) if broker != node])
    return f"n{node} n{other}", _cuts(driver, [(node, other)])


def _cut_one_way(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    node = driver._target(fault, draw)
    other = draw.choice([server.id for server in driver.world.servers() if server.id != node])
    pair = (node, other) if draw.random() < 0.5 else (other, node)
    return f"{pair[0]}->{pair[1]}", _cuts(driver, [pair], one_way=True)


def _cut_controller(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    node = driver._target(fault, draw)
    return f"n{node}", _cuts(driver, [(node, controller) for controller in driver.world.controllers])


def _lag(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    """A follower's fetches do not arrive: the leader takes it out of the ISR, everything else works."""
    partition = driver.world.image.partition(TopicPartition(driver.topic, fault.partition))
    followers = [] if partition is None else [n for n in partition.replicas if n != partition.leader]
    node = draw.choice(followers or sorted(driver.world.brokers))

    def its_fetches(message: Message) -> bool:
        return message.name == "FetchRequest" and message.source == node

    return _hold(driver, its_fetches, f"fetches of n{node}")


def _hold(driver: FaultDriver, matches: Matches, label: str) -> Begun:
    hold: Hold = driver.world.hold(matches, label)
    return label, lambda: driver.world.release(hold)


def _hold_named(name: str, *, sent_by_target: bool) -> Begin:
    def begin(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
        node = driver._target(fault, draw)

        def matches(message: Message) -> bool:
            end = message.source if sent_by_target else message.destination
            return end == node and message.name == name

        return _hold(driver, matches, f"{name} {'from' if sent_by_target else 'to'} n{node}")

    return begin


def _skew(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    server = driver.world.brokers[driver._target(fault, draw)]
    rate = draw.choice((0.5, 0.8, 0.95, 1.05, 1.25, 2.0))
    driver.world.set_clock_rate(server.id, rate)
    return f"n{server.id} at {rate}", lambda: driver.world.set_clock_rate(server.id, 1.0)


def _new_disk(kind: Literal["wipe", "restore"]) -> Begin:
    def begin(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
        server = driver.world.brokers[driver._target(fault, draw)]
        taken = driver._snapshots.get(server.id)
        if kind == "restore" and taken is None:
            driver._snapshots[server.id] = server.disk.snapshot()
            return None
        if not server.up or not driver.may_lose(server.id):
            return None
        driver.world.kill(server.id)
        if taken is None or kind == "wipe":
            driver.world.wipe(server.id)
        else:
            driver.world.restore(server.id, taken)
        return f"n{server.id}", driver.restarter(server)

    return begin


def _isolate_controller(driver: FaultDriver, _: Fault, draw: Random) -> Begun:
    """From the other controllers, or from everybody."""
    world = driver.world
    active = world.active_controller()
    node = active.id if active is not None else draw.choice(sorted(world.controllers))
    others = [other for other in sorted(world.controllers) if other != node]
    if not others or draw.random() < 0.5:
        others += sorted(world.brokers)
    return f"c{node}", _cuts(driver, [(node, other) for other in others])


def _elect(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    """Somebody asks for the preferred leader. There is nothing to take back."""
    tp = TopicPartition(driver.topic, fault.partition)
    node = draw.choice(sorted(driver.world.brokers))
    driver.world.ask(node, ElectLeadersRequest(ElectionType.PREFERRED, (tp,), 5_000), 5_000)
    return f"preferred leader of {tp}", _nothing


def _reassign(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    """As many replicas as there are now, elsewhere or in another order. There is nothing to take back."""
    tp = TopicPartition(driver.topic, fault.partition)
    partition = driver.world.image.partition(tp)
    if partition is None:
        return None
    brokers = sorted(driver.world.brokers)
    count = len(partition.replicas) - len(partition.adding)
    target = tuple(draw.sample(brokers, min(count, len(brokers))))
    request = AlterPartitionReassignmentsRequest((Reassignment(tp, target),), 5_000)
    driver.world.ask(draw.choice(brokers), request, 5_000)
    return f"{tp} to {list(target)}", _nothing


def _nothing() -> None:
    pass


def _controller(how: Literal["kill", "power", "pause"]) -> Begin:
    def begin(driver: FaultDriver, _: Fault, draw: Random) -> Begun:
        world = driver.world
        active = world.active_controller()
        server = active if active is not None else world.controllers[draw.choice(sorted(world.controllers))]
        if how == "pause":
            return _pause_server(driver, server)
        if not server.up:
            return None
        if how == "kill":
            world.kill(server.id)
        else:
            world.power(server.id)
        return f"c{server.id}", driver.restarter(server)

    return begin


_BEGIN: dict[Kind, Begin] = {
    "kill": _ending("kill"),
    "power": _ending("power"),
    "clean": _clean,
    "kill-midway": _midway("kill"),
    "power-midway": _midway("power"),
    "pause": _pause,
    "isolate": _isolate,
    "cut": _cut,
    "cut-one-way": _cut_one_way,
    "cut-controller": _cut_controller,
    "lag": _lag,
    "hold-alter-request": _hold_named("AlterPartitionRequest", sent_by_target=True),
    "hold-alter-response": _hold_named("AlterPartitionResponse", sent_by_target=False),
    "hold-fetch-response": _hold_named("FetchResponse", sent_by_target=False),
    "hold-fetch-request": _hold_named("FetchRequest", sent_by_target=True),
    "hold-metadata": _hold_named("MetadataFetchResponse", sent_by_target=False),
    "hold-produce-response": _hold_named("ProduceResponse", sent_by_target=True),
    "skew": _skew,
    "wipe": _new_disk("wipe"),
    "restore": _new_disk("restore"),
    "controller-kill": _controller("kill"),
    "controller-power": _controller("power"),
    "controller-pause": _controller("pause"),
    "controller-isolate": _isolate_controller,
    "elect": _elect,
    "reassign": _reassign,
}
