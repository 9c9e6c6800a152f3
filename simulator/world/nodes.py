"""The parts of a world: nodes, options, the record of a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Literal, Protocol, get_type_hints
from uuid import UUID

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.dispatcher import Dispatcher
from wrackline.broker.core.zookeeper_door import BrokerCore
from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.config import BrokerConfig, ControllerConfig, NodeConfig
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.events import Event
from wrackline.broker.model.messages.requests import Request
from wrackline.broker.model.types import NodeId
from wrackline.simulator.world.disk import Disk, Lost
from wrackline.simulator.world.network import Connection, Message, NetworkOptions, Slot

FIRST_CONTROLLER = 101
ZOOKEEPER: NodeId = 201
"""The ensemble of ZooKeeper, one node of the network."""
FIRST_CLIENT = 1_001
PROBE = 1_000
"""The node of ``world.ask``."""

StepKind = Literal["boot", "receive", "handle", "timer", "flushed", "down", "fault", "refused", "closed"]
Down = Literal["kill", "power", "clean", "exit", "never"]


class Core(Protocol):
    def handle(self, event: Event, now_ms: float) -> list[Effect]: ...


@dataclass(slots=True)
class StepRecord:
    """The record of one step.

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


CutRule = Callable[[Event, Sequence[Effect]], int | None]
"""How many of these effects are carried out before the process ends; None: all, and it lives on."""


@dataclass(slots=True)
class SimNode:
    """``core`` is None while the process is down. ``incarnation`` counts its lives, from 1."""

    id: NodeId
    core: Any = None
    last_core: Any = None
    """Of the life that a ``cut_rule`` ended last."""
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
    accepts: bool = False
    """Lets clients and peers in: a broker not before it knows its roles, a client never."""
    name: str = ""

    def __post_init__(self) -> None:
        self.name = f"node-{self.id}"

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


@dataclass(slots=True)
class SimBroker(SimServer):
    core: BrokerCore | None = None

    @property
    def acting(self) -> Dispatcher | None:
        """The core that decides now: of a bridging broker one of its two."""
        return None if self.core is None else self.core.acting


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
    upgrade_to: str = ""
    """The profile that nodes have from their ``World.upgrade`` on; empty: none is upgraded."""
    level: int | None = None
    """That a new cluster on ZooKeeper is given; None: the highest that the profile supports."""
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
    wall_clock: bool = False
    """Brokers know the time of day, so that they judge the times of records."""
    codec: bool = False
    """Messages go through the broker's codec, and receivers get what it has decoded (``wire``)."""
    boot: bool = True


BROKER_DEFAULTS: dict[str, Any] = {
    "heartbeat_interval_ms": 500,
    "replica_lag_time_max_ms": 2_000,
    "replica_fetch_wait_max_ms": 500,
    "replica_fetch_backoff_ms": 200,
    "request_timeout_ms": 3_000,
    "high_watermark_checkpoint_interval_ms": 1_000,
    "recovery_point_checkpoint_interval_ms": 5_000,
    "metadata_log_max_records_between_snapshots": 40,
    "quorum_fetch_snapshot_max_bytes": 1_000,
    "zookeeper_session_timeout_ms": 3_000,
    "leader_election_wait_ms": 1_500,
    "preferred_replica_ms": 200,
}
CONTROLLER_DEFAULTS: dict[str, Any] = {
    "session_timeout_ms": 3_000,
    "min_insync_replicas": 2,
    "metadata_log_max_records_between_snapshots": 40,
    "quorum_fetch_snapshot_max_bytes": 1_000,
    "zookeeper_session_timeout_ms": 3_000,
}


@dataclass(slots=True, eq=False)
class Call:
    """A request asked through ``world.ask`` and what came of it."""

    request: Request
    response: Any = None
    failed: str = ""

    @property
    def done(self) -> bool:
        return self.response is not None or bool(self.failed)


class Prober:
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


_OF_EACH_NODE = frozenset(each.name for each in fields(NodeConfig)) - {
    "fetch_max_bytes",
    "metadata_log_max_records_between_snapshots",
    "quorum_fetch_snapshot_max_bytes",
}
"""Settings that the world gives to each node by itself, or has no use for."""


def knows_setting(name: str) -> bool:
    """Tells whether nodes of the world have this setting."""
    names = {each.name for config in (BrokerConfig, ControllerConfig) for each in fields(config)}
    return name in names - _OF_EACH_NODE


Settings = tuple[tuple[str, Any], ...]


def as_deployed(config: Mapping[str, Any]) -> tuple[Settings, Settings]:
    """The settings of brokers and of controllers as the deployed program has them with this configuration:
    what it does not say is as by default there, not as in other worlds, which are faster."""
    return _typed(BrokerConfig, BROKER_DEFAULTS, config), _typed(
        ControllerConfig, CONTROLLER_DEFAULTS, config
    )


def _typed(of: type, faster: Mapping[str, Any], config: Mapping[str, Any]) -> Settings:
    hints = get_type_hints(of)
    usual = {each.name: each.default for each in fields(of) if each.name in faster}
    values = {**usual, **{name: value for name, value in config.items() if name in hints}}
    return tuple(
        (name, hints[name](value) if _is_word(hints[name]) else value) for name, value in values.items()
    )


def _is_word(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)
