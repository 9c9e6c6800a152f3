"""How one API of the protocol is translated: a row of the table in ``apis``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from wrackline.broker.model.types import NodeId
from wrackline.broker.wire.common import TopicNames
from wrackline.broker.wire.schema import Schema

Range = tuple[int, int]
CLIENT_ID: NodeId = -1
"""Whom a request of a client speaks for."""


class Listener(Enum):
    """A port of a node, by who is meant to ask there."""

    CLIENT = "CLIENT"
    """Of a broker (``port``): everybody. Nothing that is said here counts as said by a node."""
    REPLICATION = "REPLICATION"
    """Of a broker (``replication_port``): other nodes of the cluster."""
    CONTROLLER = "CONTROLLER"
    """Of a controller (``port``): nodes of the cluster; everybody for what a broker would pass on to it."""


@dataclass(frozen=True, slots=True)
class Api:
    """``open_on``: the listeners on which everybody may ask it, as long as no request speaks for a node.
    ``nodes_on``: those on which the nodes of the cluster may ask it. On all others it is unknown.
    ``speaks_for``: by which id a request claims to be of a node; negative: it does not."""

    key: int
    name: str
    request: type
    decode_request: Callable[[Any, TopicNames], Any]
    encode_response: Callable[[Schema, Any, Any], Any]
    clients: Range | None = None
    peers: Range | None = None
    open_on: tuple[Listener, ...] = ()
    nodes_on: tuple[Listener, ...] = ()
    speaks_for: Callable[[Any], NodeId] = lambda _: CLIENT_ID
    sent: int | None = None
    encode_request: Callable[[Schema, Any], Any] | None = None
    decode_response: Callable[[Any, Any], Any] | None = None

    def served_on(self, listener: Listener) -> bool:
        return listener in self.open_on or listener in self.nodes_on

    def accepts(self, version: int) -> bool:
        return within(self.clients, version) or within(self.peers, version)


def within(spoken: Range | None, version: int) -> bool:
    return spoken is not None and spoken[0] <= version <= spoken[1]
