"""The proof of a node to another one that it is of the cluster: SASL PLAIN, said before all else.

Every node has the same secret. The password is made of it, of the cluster's id and of the node's own, so what
one node says proves nothing about another node. Both requests are sent in front of the first one that
matters, and nobody waits for their answers: a connection takes no longer to be made.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Mapping

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v1.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.primitive import i64Timedelta

from wrackline.broker.model.types import NodeId
from wrackline.broker.wire.api import Range
from wrackline.broker.wire.schema import NO_THROTTLE, request_schema, response_schema

HANDSHAKE, AUTHENTICATE = 17, 36
VERSION = 1
"""Of both. Neither is flexible."""
PROOF: Mapping[int, Range] = {HANDSHAKE: (VERSION, VERSION), AUTHENTICATE: (VERSION, VERSION)}
CORRELATION = 0
"""Of both requests. Those that are asked behind them begin with 1."""
_MECHANISM = "PLAIN"
_HEAD = struct.Struct(">ihhih")


class ClusterSecret:
    """The secret of one cluster."""

    def __init__(self, secret: bytes, cluster_id: str) -> None:
        self._secret = secret
        self._cluster_id = cluster_id

    def token(self, node: NodeId) -> bytes:
        """RFC 4616: nothing, the name and the password, each behind a zero byte."""
        said = f"{self._cluster_id}/{node}".encode()
        password = hmac.new(self._secret, said, hashlib.sha256).hexdigest()
        return f"\0{node}\0{password}".encode()

    def node_of(self, token: bytes) -> NodeId | None:
        """Returns the node whose token it is; None: of no node of this cluster."""
        name = token[1:].partition(b"\0")[0]
        if not (name.isdigit() and len(name) <= 10):
            return None
        node = int(name)
        return node if hmac.compare_digest(token, self.token(node)) else None

    def greeting(self, node: NodeId) -> bytes:
        """Two frames, sizes in front: what a node says first on a connection to another node."""
        shake, say = request_schema(HANDSHAKE, VERSION), request_schema(AUTHENTICATE, VERSION)
        return _framed(HANDSHAKE, shake.write(SaslHandshakeRequest(mechanism=_MECHANISM))) + _framed(
            AUTHENTICATE, say.write(SaslAuthenticateRequest(auth_bytes=self.token(node)))
        )


def _framed(key: int, body: bytes) -> bytes:
    return _HEAD.pack(_HEAD.size - 4 + len(body), key, VERSION, CORRELATION, -1) + body


def answer_handshake(body: bytes) -> bytes:
    """The answer's body. Raises WireError."""
    asked = request_schema(HANDSHAKE, VERSION).read(body, 0)
    known = asked.mechanism == _MECHANISM
    schema = response_schema(HANDSHAKE, VERSION)
    error = ErrorCode.none if known else ErrorCode.unsupported_sasl_mechanism
    return schema.write(SaslHandshakeResponse(error_code=error, mechanisms=(_MECHANISM,)))


def refused(answer: bytes) -> bool:
    """An answer to either request, its correlation in front: both say next whether there was an error."""
    return answer[4:6] != b"\0\0"


def token_in(body: bytes) -> bytes:
    """Returns the token in the body of a SaslAuthenticate. Raises WireError."""
    token: bytes = request_schema(AUTHENTICATE, VERSION).read(body, 0).auth_bytes
    return token


def answer_token(refusal: str | None) -> bytes:
    """The answer's body: the token is right, or why it is not."""
    schema = response_schema(AUTHENTICATE, VERSION)
    return schema.write(
        SaslAuthenticateResponse(
            error_code=ErrorCode.sasl_authentication_failed if refusal else ErrorCode.none,
            error_message=refusal,
            auth_bytes=b"",
            session_lifetime=i64Timedelta.parse(NO_THROTTLE),
        )
    )
