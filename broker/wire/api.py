"""One API of the protocol: who may ask it, in which versions, and how its messages are translated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import cast

from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.types import NodeId
from wrackline.broker.wire.schema import Entity, Schema, entity_class
from wrackline.broker.wire.translation.declarations import Message, TopicNames, copy_fields, message
from wrackline.broker.wire.translation.reading import check_reader, reader
from wrackline.broker.wire.translation.source import DeclarationError
from wrackline.broker.wire.translation.writing import check_writer, writer

Range = tuple[int, int]
"""The lowest and the highest version."""
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


CLIENT, REPLICATION, CONTROLLER = Listener


@dataclass(frozen=True, eq=False, kw_only=True)
class Access:
    """The rules of who may ask an API, and in which versions."""

    clients: Range | None = None
    """The versions that ApiVersions advertises: those every client library was seen to work with."""
    peers: Range | None = None
    """Accepted besides, from other nodes of the cluster, which do not ask."""
    sent: int | None = None
    """The one version in which a node itself sends the request."""
    open_on: tuple[Listener, ...] = ()
    """Where everybody may ask it, as long as no request speaks for a node."""
    nodes_on: tuple[Listener, ...] = ()
    """Where the nodes of the cluster may ask it. On all other listeners it is unknown."""
    speaks_for: Callable[..., NodeId] = lambda _: CLIENT_ID
    """By which id a request claims to be of a node; negative: it does not."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Api(Access):
    """A row of the table in `wrackline.broker.wire.apis`: made by ``api``."""

    key: int
    name: str
    request: Message
    response: Message
    refuse: Callable[..., Response] | None
    """(request, error, message) -> the response that refuses it; None: `wrackline.broker.wire.refusals` makes
    it."""

    def served_on(self, listener: Listener) -> bool:
        return listener in self.open_on or listener in self.nodes_on

    def accepts(self, version: int) -> bool:
        return within(self.clients, version) or within(self.peers, version)

    def check(self) -> None:
        """Checks that the declaration fits kio's classes of the newest version. Raises DeclarationError."""
        newest = max(span[1] for span in (self.clients, self.peers) if span is not None)
        try:
            check_reader(self.request, entity_class(self.key, newest, response=False))
            check_writer(self.response, entity_class(self.key, newest, response=True))
            if self.sent is not None:
                check_writer(self.request, entity_class(self.key, self.sent, response=False))
                check_reader(self.response, entity_class(self.key, self.sent, response=True))
        except DeclarationError as error:
            raise DeclarationError(f"{self.name} (API key {self.key}): {error}") from None

    # --- translation ---------------------------------------------------------------------------------------

    def decode_request(self, entity: Entity, names: TopicNames) -> Request:
        return cast(Request, reader(self.request, entity.__class__)(entity, names))

    def encode_response(self, schema: Schema, request: Request, response: Response) -> Entity:
        return writer(self.response, schema.root)(response, request)

    def encode_request(self, schema: Schema, request: Request) -> Entity:
        return writer(self.request, schema.root)(request, request)

    def decode_response(self, entity: Entity, request: Request) -> Response:
        return cast(Response, reader(self.response, entity.__class__)(entity, request))


def api(
    key: int,
    name: str,
    access: Access,
    request: Message | type,
    response: Message | type,
    refuse: Callable[..., Response] | None = None,
) -> Api:
    """A class of ours alone is a message whose fields all have Kafka's names."""
    asked, answer = (message(of) if isinstance(of, type) else of for of in (request, response))
    return copy_fields(access, Api, key=key, name=name, request=asked, response=answer, refuse=refuse)


def client_access(low: int, high: int) -> Access:
    """Returns the access of an API that clients ask a broker, and nodes never."""
    return Access(clients=(low, high), open_on=(CLIENT,))


def forwarded_access(low: int, high: int) -> Access:
    """Returns the access of an API that clients ask a broker, which passes the request on to the active
    controller, in the newest version."""
    return Access(clients=(low, high), sent=high, open_on=(CLIENT, CONTROLLER))


def node_access(version: int, speaks_for: str) -> Access:
    """Returns the access of an API that nodes ask a controller, each in its own name, which is a field of
    the request."""
    return Access(
        peers=(version, version), sent=version, nodes_on=(CONTROLLER,), speaks_for=attrgetter(speaks_for)
    )


def within(spoken: Range | None, version: int) -> bool:
    return spoken is not None and spoken[0] <= version <= spoken[1]
