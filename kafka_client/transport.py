"""Frames of Kafka's protocol on one TCP connection, encrypted and authenticated as a `Security` says (KIP-43,
KIP-152).

There is as little between the asker and the broker as can be: no retries, no caches, no background threads.
"""

from __future__ import annotations

import io
import socket
import ssl
import struct
import time
from typing import Self, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v1.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from wrackline.kafka_client.scram import Scram, ScramError
from wrackline.kafka_client.security import Security

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
TLS_ALERT = b"\x15\x03"
"""A TLS record of type alert begins so: what a TLS port answers to plaintext."""
_PLAINTEXT = Security()

Response = TypeVar("Response", bound=ResponsePayload)


class ProtocolError(Exception):
    """A broker did not answer, or not as the protocol says. The message names address and request."""


class AuthenticationError(ProtocolError):
    """The client's identity, or the broker's, was not believed: asking again gives the same answer."""


class NoAnswer(ProtocolError):
    """The connection failed, or its time was over, before the answer was there."""

    def __init__(self, address: str, request: str, why: OSError) -> None:
        super().__init__(f"{request} to {address}: {why}")
        self.address, self.request, self.why = address, request, why


class HungUp(NoAnswer):
    """The broker closed the connection instead of an answer."""


class Unreadable(ProtocolError):
    """There is an answer, and we cannot read it: it says nothing about the broker."""


class Rejected(ProtocolError):
    """The answer is an error code."""

    def __init__(self, request: str, error: ErrorCode, message: str | None = None, about: str = "") -> None:
        """``request``: which, and to whom. ``about``: what of the request is rejected, where not all is."""
        self.error, self.message, self.about = error, message, about
        self.reason = error.name + (f" ({message})" if message else "")
        super().__init__(f"{request}: {self.reason}")


class Transport:
    """One TCP connection: one request at a time, each with the connection's deadline.

    Open it inside ``fleet.entered()``: a socket stays in the network it was made in. Not thread-safe.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float = 5.0,
        answer_s: float | None = None,
        security: Security = _PLAINTEXT,
        client_id: str = "wrackline",
    ) -> None:
        """``timeout_s``: for connecting, and for the next bytes of an answer. ``answer_s``: for a whole
        answer, in place of that. Raises AuthenticationError, and ProtocolError when nobody answers."""
        self.address = f"{host}:{port}"
        self.client_id = client_id
        self._place = (host, port)
        self._timeout_s, self._answer_s = timeout_s, answer_s
        self._security = security
        self._correlation = 0
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def request(self, payload: RequestPayload, answer: type[Response]) -> Response:
        """Sends one request and reads its answer. Raises ProtocolError, after which the connection is of no
        use."""
        self._correlation += 1
        name = type(payload).__name__
        try:
            self._socket.sendall(self._frame(payload))
            body = self._read_frame()
        except OSError as error:
            self.close()
            kind = HungUp if isinstance(error, ConnectionError) else NoAnswer
            raise kind(self.address, name, error) from error
        try:
            header, at = entity_reader(answer.__header_schema__)(body, 0)
            if header.correlation_id != self._correlation:
                raise ProtocolError(f"{name} to {self.address}: the answer belongs to another request")
            response, _ = entity_reader(answer)(body, at)
        except (SerialError, ValueError, KeyError, IndexError, OverflowError) as error:
            self.close()
            raise Unreadable(f"{name} to {self.address}: malformed answer: {error}") from error
        return response

    def _frame(self, payload: RequestPayload) -> bytes:
        out = io.BytesIO()
        header = payload.__header_schema__(
            request_api_key=payload.__api_key__,
            request_api_version=payload.__version__,
            correlation_id=i32(self._correlation),
            client_id=self.client_id,
        )
        entity_writer(type(header))(out, header)
        entity_writer(type(payload))(out, payload)
        frame = out.getvalue()
        return struct.pack(">i", len(frame)) + frame

    def _read_frame(self) -> bytes:
        deadline = None if self._answer_s is None else time.monotonic() + self._answer_s
        head = self._read_exactly(4, deadline)
        (length,) = struct.unpack(">i", head)
        if not 4 <= length <= MAX_RESPONSE_BYTES:
            self.close()
            if head.startswith(TLS_ALERT):
                raise AuthenticationError(
                    f"{self.address} speaks TLS, and the security protocol is {self._security.protocol}: use "
                    "SSL or SASL_SSL"
                )
            raise ProtocolError(f"{self.address} announced an answer of {length} bytes: is it a broker?")
        return self._read_exactly(length, deadline)

    def _read_exactly(self, count: int, deadline: float | None) -> bytes:
        out = bytearray()
        while len(out) < count:
            if deadline is not None:
                self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            chunk = self._socket.recv(count - len(out))
            if not chunk:
                raise ConnectionError("the broker hung up")
            out += chunk
        return bytes(out)

    # --- connecting ---------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Connects. Raises AuthenticationError, ProtocolError."""
        try:
            self._socket = self._secured(socket.create_connection(self._place, timeout=self._timeout_s))
        except OSError as error:
            raise ProtocolError(f"cannot connect to {self.address}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._security.sasl:
            try:
                self._authenticate()
            except ProtocolError:
                self.close()
                raise

    def _secured(self, plain: socket.socket) -> socket.socket:
        """Begins TLS where it is wanted. Raises AuthenticationError, OSError."""
        context = self._security.context
        if context is None:
            return plain
        try:
            return context.wrap_socket(plain, server_hostname=self._place[0])
        except OSError as error:
            plain.close()
            if isinstance(error, ssl.SSLCertVerificationError):
                raise AuthenticationError(
                    f"{self.address} has a certificate that is not believed: {error.verify_message}; see "
                    "that ssl.ca_location is the file of who signed it, and names the host as bootstrap does"
                ) from error
            if isinstance(error, ssl.SSLError):
                raise AuthenticationError(
                    f"{self.address} does not speak TLS with us: {error.reason or error}"
                ) from error
            raise

    def _authenticate(self) -> None:
        """Proves who we are by SASL. Raises AuthenticationError, ProtocolError."""
        mechanism = self._security.mechanism
        hello = self.request(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
        if hello.error_code is not ErrorCode.none:
            offered = ", ".join(hello.mechanisms) or "none"
            raise AuthenticationError(
                f"{self.address} does not take the mechanism {mechanism} ({hello.error_code.name}); it takes "
                f"{offered}"
            )
        name, password = self._security.username, self._security.password
        if mechanism == "PLAIN":
            self._send_sasl(f"\0{name}\0{password}".encode())
            return
        exchange = Scram(mechanism, name, password)
        try:
            exchange.verify(self._send_sasl(exchange.final(self._send_sasl(exchange.first()))))
        except ScramError as error:
            raise AuthenticationError(f"{self.address}: {mechanism}: {error}") from error

    def _send_sasl(self, message: bytes) -> bytes:
        answer = self.request(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse)
        if answer.error_code is not ErrorCode.none:
            why = " ".join((answer.error_message or answer.error_code.name).split())
            raise AuthenticationError(
                f"{self.address} refused {self._security.mechanism} of {self._security.username!r}: "
                f"{self._security.hide(why)}"
            )
        return answer.auth_bytes
