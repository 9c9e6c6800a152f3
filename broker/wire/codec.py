"""Frames to core messages and back: what the server reads and writes on a connection.

A request is ``header (key, version, correlation, client id[, tags]) + body``; a response is ``correlation[,
tags] + body``. The size in front belongs to `wrackline.broker.wire.framing`. ApiVersions is answered here: it
speaks of the wire alone, and its response header is always version 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kio.schema.errors import ErrorCode
from kio.serial.errors import SerialError

from wrackline.broker.model.messages.requests import Refused, Request, Response
from wrackline.broker.model.types import Endpoint, NodeId
from wrackline.broker.wire import proof
from wrackline.broker.wire.api import Api, Listener, within
from wrackline.broker.wire.apis import (
    API_VERSIONS,
    API_VERSIONS_RANGE,
    BY_KEY,
    BY_REQUEST,
    advertised,
)
from wrackline.broker.wire.apis.features import AskFeatures, in_api_versions
from wrackline.broker.wire.fast import REQUESTS, RESPONSES
from wrackline.broker.wire.guard import skip_tags
from wrackline.broker.wire.refusals import expand
from wrackline.broker.wire.schema import Schema, WireError, request_schema, response_schema
from wrackline.broker.wire.translation.declarations import TopicNames
from wrackline.broker.wire.unserved import UNSERVED

_HEADER = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
_SIZE = struct.Struct(">i")
_LINE = 300
"""Characters of an error that are told."""


_NOBODY = Endpoint(-1, "", -1)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as it came in; keep it to encode the answer."""

    api: Api
    version: int
    correlation: int
    client_id: str
    request: Request


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: where the connection came in, and the node that has proved to be at its
    other end."""

    listener: Listener
    node: NodeId | None = None


_CLIENT = Caller(Listener.CLIENT)


@dataclass(frozen=True, slots=True)
class AnswerNow:
    """The bytes of a frame that answers without asking the core."""

    frame: bytes
    node: NodeId | None = None
    """Who has just proved to be at the other end."""
    refusal: str | None = None
    """Why nothing more is taken from this connection."""


class Codec:
    """The codec of one node: the listener decides what is served, the node's logs what topic ids mean.
    Without a secret nobody is taken for a node."""

    def __init__(
        self,
        *,
        names: TopicNames,
        me: Endpoint = _NOBODY,
        features: AskFeatures = lambda: None,
        secret: proof.ClusterSecret | None = None,
    ) -> None:
        self._names = names
        self._me = me
        self._features = features
        self._secret = secret

    # --- as a server -----------------------------------------------------------------------------------

    def decode_request(self, frame: bytes, caller: Caller = _CLIENT) -> Incoming | AnswerNow:
        """Raises WireError, saying what is wrong: nothing more can be read from that connection."""
        with _wire_errors("a request"):
            return self._decode_request(frame, caller)

    def _decode_request(self, frame: bytes, caller: Caller) -> Incoming | AnswerNow:
        key, version, correlation, client_id, at = _request_header(frame)
        listener = caller.listener
        if key == API_VERSIONS:
            return AnswerNow(self._answer_api_versions(frame, version, correlation, at, listener))
        if key in UNSERVED and listener is Listener.CLIENT:
            return AnswerNow(self._answer_unserved(frame, key, version, correlation, at))
        if key in proof.PROOF and listener is not Listener.CLIENT:
            return self._hear_proof(key, version, correlation, frame[at:])
        api = BY_KEY.get(key)
        if api is None or not api.served_on(listener):
            name = f"{api.name} (API key {key})" if api else f"API key {key}"
            raise WireError(f"{name} is not served on the listener {listener.value}")
        if caller.node is None and listener not in api.open_on:
            raise WireError(f"{api.name} is for nodes of the cluster, and nobody here has proved to be one")
        if not api.accepts(version):
            raise WireError(f"{api.name} version {version} is not spoken here (clients: {api.clients})")
        schema = request_schema(key, version)
        if schema.flexible:
            at = skip_tags(frame, at)
        request = api.decode_request(schema.read(frame, at), self._names)
        incoming = Incoming(api, version, correlation, client_id, request)
        speaker = api.speaks_for(request)
        if speaker < 0 or speaker == caller.node:
            return incoming
        who = "a client" if caller.node is None else f"node {caller.node}"
        why = f"{who} sent {api.name} in the name of node {speaker}"
        refused = Refused(ErrorCode.cluster_authorization_failed, why)
        return AnswerNow(self.encode_response(incoming, refused), refusal=why)

    def _hear_proof(self, key: int, version: int, correlation: int, body: bytes) -> AnswerNow:
        if version != proof.VERSION:
            raise WireError(f"API key {key} version {version} is not spoken here ({proof.VERSION})")
        if key == proof.HANDSHAKE:
            return AnswerNow(_framed(correlation, proof.answer_handshake(body)))
        node = self._secret.node_of(proof.token_in(body)) if self._secret else None
        why = (
            "this is no proof of a node of this cluster: is its secret_file the same?"
            if node is None
            else None
        )
        return AnswerNow(_framed(correlation, proof.answer_token(why)), node, why)

    def encode_response(self, incoming: Incoming, response: Response) -> bytes:
        """The whole frame, size in front. Raises WireError when the version has no room for what is to be
        said."""
        if isinstance(response, Refused):
            response = expand(incoming.request, response)
        schema = response_schema(incoming.api.key, incoming.version)
        write = RESPONSES.get((incoming.api.key, incoming.version))
        if write is None:
            entity = incoming.api.encode_response(schema, incoming.request, response)
            try:
                body = schema.write(entity)
            except SerialError as error:
                problem = f"the answer to {incoming.api.name} v{incoming.version} cannot be written: {error}"
                raise WireError(_one_line(problem)) from error
        else:
            body = write(incoming.request, response)
        tags = b"\x00" if schema.flexible else b""
        head = _CORRELATION.pack(incoming.correlation) + tags
        return b"".join((_SIZE.pack(len(head) + len(body)), head, body))

    def _answer_api_versions(
        self, frame: bytes, version: int, correlation: int, at: int, listener: Listener
    ) -> bytes:
        low, high = API_VERSIONS_RANGE
        error = ErrorCode.none if low <= version <= high else ErrorCode.unsupported_version
        if error is ErrorCode.none:
            asked = request_schema(API_VERSIONS, version)
            asked.read(frame, skip_tags(frame, at) if asked.flexible else at)
        # A version we do not know is answered in version 0, with the list: the client tries again lower.
        schema = response_schema(API_VERSIONS, version if error is ErrorCode.none else 0)
        ranges = tuple(
            {"api_key": key, "min_version": lowest, "max_version": highest}
            for key, lowest, highest in advertised(listener)
        )
        return _framed(
            correlation,
            schema.filled(error_code=error, api_keys=ranges, **in_api_versions(self._features())),
        )

    def _answer_unserved(self, frame: bytes, key: int, version: int, correlation: int, at: int) -> bytes:
        api = UNSERVED[key]
        if not within(api.versions, version):
            raise WireError(f"{api.name} version {version} is not spoken here (clients: {api.versions})")
        asked, schema = request_schema(key, version), response_schema(key, version)
        request = asked.read(frame, skip_tags(frame, at) if asked.flexible else at)
        tags = b"\x00" if schema.flexible else b""
        return _framed(correlation, tags + schema.filled(**api.answer(request, self._me)))

    # --- as a client -----------------------------------------------------------------------------------

    def greeting(self) -> bytes:
        """Returns the bytes that this node says first on a connection to another one."""
        return self._secret.greeting(self._me.node_id) if self._secret else b""

    def encode_request(self, correlation: int, client_id: str, request: Request) -> bytes:
        """The whole frame, size in front, in the version nodes of the cluster speak among themselves."""
        api, schema = self._sent(request)
        name = client_id.encode()
        head = _HEADER.pack(api.key, schema.version, correlation, len(name)) + name
        if schema.flexible:
            head += b"\x00"
        write = REQUESTS.get((api.key, schema.version))
        body = schema.write(api.encode_request(schema, request)) if write is None else write(request)
        return b"".join((_SIZE.pack(len(head) + len(body)), head, body))

    def decode_response(self, frame: bytes, request: Request) -> Response:
        """Decodes the response in a frame without its size. Raises WireError."""
        api, _ = self._sent(request)
        assert api.sent is not None
        schema = response_schema(api.key, api.sent)
        with _wire_errors(f"an answer to {api.name}"):
            at = skip_tags(frame, _CORRELATION.size) if schema.flexible else _CORRELATION.size
            return api.decode_response(schema.read(frame, at), request)

    @staticmethod
    def _sent(request: Request) -> tuple[Api, Schema]:
        api = BY_REQUEST[type(request)]
        if api.sent is None:
            raise WireError(f"{api.name} is never sent from node to node")
        return api, request_schema(api.key, api.sent)


@contextmanager
def _wire_errors(what: str) -> Iterator[None]:
    """Bytes from the network can be wrong in more ways than anybody has thought of, so whatever reading them
    raises is the frame's fault and costs its connection, never the node. One line is told of it."""
    try:
        yield
    except WireError as error:
        raise WireError(_one_line(str(error))) from error
    except Exception as error:
        raise WireError(_one_line(f"{what} cannot be read: {type(error).__name__}: {error}")) from error


def _framed(correlation: int, rest: bytes) -> bytes:
    body = _CORRELATION.pack(correlation) + rest
    return _SIZE.pack(len(body)) + body


def _one_line(text: str) -> str:
    """Returns the text on one line: it may quote the sender, who must not write lines into the log."""
    return text.encode("unicode_escape").decode()[:_LINE]


def correlation_of(frame: bytes) -> int:
    """Raises WireError on a frame too short to have one."""
    if len(frame) < _CORRELATION.size:
        raise WireError(f"a response of {len(frame)} bytes")
    correlation: int = _CORRELATION.unpack_from(frame)[0]
    return correlation


def _request_header(frame: bytes) -> tuple[int, int, int, str, int]:
    """(key, version, correlation, client id, where the rest begins)."""
    if len(frame) < _HEADER.size:
        raise WireError(f"a request of {len(frame)} bytes is shorter than its header")
    key, version, correlation, length = _HEADER.unpack_from(frame)
    end = _HEADER.size + max(length, 0)
    if end > len(frame):
        raise WireError(f"client id of {length} bytes in a request of {len(frame)} bytes")
    try:
        client_id = frame[_HEADER.size : end].decode()
    except UnicodeDecodeError as error:
        raise WireError(f"client id is not UTF-8: {error.reason}") from error
    return key, version, correlation, client_id, end
