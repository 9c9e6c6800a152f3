"""A server that is no broker in plain text is told by the first bytes that it answers."""

from __future__ import annotations

import socket
import threading

import pytest

from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import AuthenticationError, ProtocolError


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (
            b"\x15\x03\x03\x00\x02\x02\x50",
            AuthenticationError,
            "speaks TLS, .* PLAINTEXT: use SSL or SASL_SSL",
        ),
        (
            b"HTTP/1.1 400 Bad Request",
            ProtocolError,
            "announced an answer of 1213486160 bytes: is it a broker",
        ),
        (b"\0\0\0\0", ProtocolError, "announced an answer of 0 bytes"),
    ],
)
def test_an_answer_of_another_protocol_is_named(answer: bytes, error: type[Exception], why: str) -> None:
    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        connection = Connection("127.0.0.1", server.getsockname()[1], timeout_s=5)
        with connection, pytest.raises(error, match=why) as refused:
            connection.api_versions()
        assert type(refused.value) is error
