"""The cluster that a guided schedule asks for, and the messages that the schedule waits for or holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wrackline.broker.model.messages.requests import FetchResponse
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.world.network import Matches, Message, NetworkOptions
from wrackline.simulator.world.world import FIRST_CONTROLLER

T = TopicPartition("t", 0)
CONTROLLER = FIRST_CONTROLLER
QUIET = NetworkOptions(spike=0.0, latency_max_ms=1.0, retransmit_ms=5.0)
LONG_MS = 60_000


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster with one partition, and what the schedule's clients ask of it."""

    profile: str = "kip966"
    upgrade_to: str = ""
    """The profile that a node has from ``World.upgrade`` on."""
    level: int | None = None
    """Of a new cluster on ZooKeeper; None: the highest that the profile supports."""
    brokers: int = 3
    controllers: int = 1
    replicas: tuple[NodeId, ...] = (1, 2, 3)
    """The first of these leads."""
    min_isr: int = 2
    lag_ms: int = LONG_MS
    """This is replica.lag.time.max.ms. It is long unless the schedule is about lag."""
    request_timeout_ms: int = 30_000
    broker: Mapping[str, Any] = field(default_factory=dict)
    controller: Mapping[str, Any] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=dict)
    acks: int = -1
    """The acknowledgements that are a promise, beside all: 1 or 0 in schedules about too weak ones. With 0
    what was sent counts as acknowledged."""
    idempotent: bool = True
    weak_client: bool = False
    """Among the clients of a scene is one that writes with acks=1, without a promise."""
    losing: bool = False
    """The settings allow loss (unclean elections): acknowledged records may go, but logs may not diverge."""

    def but(self, **changes: Any) -> Setting:
        """The same with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that must not be, found in a schedule. ``oracle`` is its class."""

    oracle: str
    text: str
    at_ms: float


def has_high_watermark(at_least: int) -> Matches:
    """Matches responses to fetches whose high watermark is at least this."""
    return lambda m: (
        isinstance(m.response, FetchResponse)
        and any(part.tp == T and part.high_watermark >= at_least for part in m.response.partitions)
    )


def carries_records(message: Message) -> bool:
    return isinstance(message.response, FetchResponse) and any(
        part.records for part in message.response.partitions
    )


def diverges(message: Message) -> bool:
    return isinstance(message.response, FetchResponse) and any(
        part.tp == T and part.diverging is not None for part in message.response.partitions
    )
