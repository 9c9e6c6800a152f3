"""Connections between nodes: latency, cuts per direction, holds of chosen messages, resets, time-outs.

A connection is (asker, asked, channel), as in production: messages of one direction arrive in order, answers
leave in the order of the requests, a time-out takes the whole connection with it. While a direction is cut
its messages wait to be sent again, as TCP's do; the asker's time-out ends that. With ``reorder`` and
``duplicate`` messages may also overtake each other or come twice, which TCP would not do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from wrackline.broker.model.effects import Send
from wrackline.broker.model.messages.requests import FetchRequest, FetchResponse, Request, Response
from wrackline.broker.model.types import METADATA, NodeId

Kind = Literal["request", "response", "close"]


@dataclass(slots=True, eq=False)
class Message:
    """A message on its way from ``source`` to ``destination``. ``request`` is what is asked, or was asked."""

    kind: Kind
    source: NodeId
    destination: NodeId
    channel: str
    request: Request | None
    response: Response | None
    connection: Connection
    correlation: int
    number: int
    """Unique in the run, in the order of sending."""
    duplicate: bool = False
    """A duplicate: its answer goes nowhere."""
    incoming: Any = None
    """A request as the broker's codec has decoded it (``wire``), in runs that have it in the loop."""
    decoded: Response | None = None
    """A response as it has been decoded in such a run."""

    @property
    def name(self) -> str:
        """``FetchRequest``, ``AlterPartitionResponse``, ``MetadataFetchResponse`` (a fetch of the metadata
        log has the prefix Metadata), ``Close``."""
        body = self.response if self.kind == "response" else self.request
        if body is None:
            return "Close"
        name = type(body).__name__
        if isinstance(body, FetchRequest | FetchResponse) and self.is_metadata:
            return f"Metadata{name}"
        if name == "Refused" and self.request is not None:
            return f"{type(self.request).__name__.removesuffix('Request')}Refused"
        return name

    @property
    def is_metadata(self) -> bool:
        """Is it part of a fetch of the metadata log?"""
        request = self.request
        return isinstance(request, FetchRequest) and any(part.tp == METADATA for part in request.partitions)


Matches = Callable[[Message], bool]


@dataclass(slots=True, eq=False)
class Slot:
    """A request at the asked node. Answers leave in order, so a ready one may wait for those before it."""

    request_id: int
    correlation: int
    request: Request
    duplicate: bool = False
    done: bool = False
    response: Response | None = None
    incoming: Any = None
    """Of its message."""


@dataclass(slots=True, eq=False)
class Connection:
    source: NodeId
    destination: NodeId
    channel: str
    source_life: int
    destination_life: int = -1
    """-1: not established yet."""
    open: bool = True
    """As the asker sees it."""
    asked: dict[int, Send] = field(default_factory=dict)
    """By correlation: not answered yet."""
    slots: deque[Slot] = field(default_factory=deque)
    """The asked node's end."""
    last_at: dict[NodeId, float] = field(default_factory=dict)
    """By destination: when the last message under way to it arrives."""
    stalled: dict[NodeId, deque[Message]] = field(default_factory=dict)
    """By destination: messages that do not get through (cut, or behind a held one)."""


@dataclass(slots=True, eq=False)
class Hold:
    """Chosen messages wait until released; those behind them on the same connection wait too."""

    matches: Matches
    label: str = ""
    limit: int | None = None
    """Hold at most this many, then let pass."""
    held: list[Message] = field(default_factory=list)
    active: bool = True


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """Milliseconds and probabilities."""

    latency_min_ms: float = 0.2
    latency_max_ms: float = 2.0
    spike: float = 0.01
    """Share of messages that take up to ``spike_ms``."""
    spike_ms: float = 40.0
    drop: float = 0.0
    """Share of messages lost for good: without TCP's help the asker runs into its time-out."""
    reorder: float = 0.0
    """Share of messages that may overtake others of their connection."""
    duplicate: float = 0.0
    """Share of requests that arrive twice."""
    connect_timeout_ms: float = 1_000.0
    retransmit_ms: float = 200.0
    """After a cut heals, what waited is sent again within this time."""
