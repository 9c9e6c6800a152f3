"""The cluster that a guided schedule asks for, and what it can find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.world.network import NetworkOptions
from wrackline.simulator.world.world import FIRST_CONTROLLER

T = TopicPartition("t", 0)
CONTROLLER = FIRST_CONTROLLER
QUIET = NetworkOptions(spike=0.0, latency_max_ms=1.0, retransmit_ms=5.0)
LONG_MS = 60_000


@dataclass(frozen=True, slots=True)
class Setting:
    profile: str = "kip966"
    brokers: int = 3
    controllers: int = 1
    replicas: tuple[NodeId, ...] = (1, 2, 3)
    """The first leads."""
    min_isr: int = 2
    lag_ms: int = LONG_MS
    """replica.lag.time.max.ms: long unless the schedule is about lag."""
    request_timeout_ms: int = 30_000
    broker: Mapping[str, Any] = field(default_factory=dict)
    controller: Mapping[str, Any] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=dict)
    acks: int = -1
    """Of ``Stage.commit``, for schedules about too weak acknowledgements."""
    idempotent: bool = True
    losing: bool = False
    """The settings allow loss (unclean elections): what is acknowledged may go, divergence may not."""

    def but(self, **changes: Any) -> Setting:
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Finding:
    oracle: str
    text: str
    at_ms: float
