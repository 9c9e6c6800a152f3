"""Connections of the harness's own to a cluster that asks for TLS or SASL (KIP-43, KIP-152)."""

from __future__ import annotations

import socket
import ssl

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v1.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from wrackline.kafka_client.connection import Connection, ProtocolError
from wrackline.kafka_client.scram import Scram, ScramError
from wrackline.kafka_client.security import Security


class Refused(ProtocolError):
    """Who we are, or who the broker is, was not believed: asking again gives the same answer."""


class SecuredConnection(Connection):
    """A connection that is encrypted and authenticated as a `Security` says."""

    def __init__(self, host: str, port: int, *, security: Security, timeout_s: float = 5.0) -> None:
        """Raises Refused, and ProtocolError when nobody answers in ``timeout_s``."""
        self._security = security
        super().__init__(host, port, timeout_s=timeout_s)
        if security.sasl:
            try:
                self._authenticate()
            except ProtocolError:
                self.close()
                raise

    def _secured(self, plain: socket.socket, host: str) -> socket.socket:
        context = self._security.context
        if context is None:
            return plain
        try:
            return context.wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as wrong:
            plain.close()
            raise Refused(
                f"{self.address} has a certificate that is not believed: {wrong.verify_message}; see that "
                "ssl.ca_location is the file of who signed it, and names the host as bootstrap does"
            ) from wrong
        except ssl.SSLError as wrong:
            plain.close()
            raise Refused(f"{self.address} does not speak TLS with us: {wrong.reason or wrong}") from wrong
        except OSError:
            plain.close()
            raise

    def _authenticate(self) -> None:
        mechanism = self._security.mechanism
        hello = self.request(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
        if hello.error_code is not ErrorCode.none:
            offered = ", ".join(hello.mechanisms) or "none"
            raise Refused(
                f"{self.address} does not take the mechanism {mechanism} ({hello.error_code.name}); it takes "
                f"{offered}"
            )
        name, password = self._security.username, self._security.password
        if mechanism == "PLAIN":
            self._send(f"\0{name}\0{password}".encode())
            return
        exchange = Scram(mechanism, name, password)
        try:
            exchange.verify(self._send(exchange.final(self._send(exchange.first()))))
        except ScramError as wrong:
            raise Refused(f"{self.address}: {mechanism}: {wrong}") from wrong

    def _send(self, message: bytes) -> bytes:
        answer = self.request(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse)
        if answer.error_code is not ErrorCode.none:
            said = " ".join((answer.error_message or answer.error_code.name).split())
            raise Refused(
                f"{self.address} refused {self._security.mechanism} of {self._security.username!r}: "
                f"{self._security.hide(said)}"
            )
        return answer.auth_bytes
