"""Whether a broker throttles clients: asked by requests that count for a quota and do nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.principals import throttle_ms
from wrackline.kafka_client.transport import ProtocolError
from wrackline.systems.base import DeployError, Node

MEASURED_AS = "wrackline-quota"
"""Client id of the requests: no other client's quota is used up by them."""
REQUEST_BYTES: Mapping[str, int] = {
    "producer_byte_rate": 200_000,
    "consumer_byte_rate": 100_000,
    "request_percentage": 40_000,
}
TRIES = 12
"""A quota is of the mean of ten seconds: so many exceed the largest that a specification may give."""


def measure(connect: Callable[[Node, float], Connection], node: Node, quota: str, timeout_s: float) -> int:
    """Returns for how many milliseconds the broker throttles; 0 where it does not. Raises DeployError."""
    try:
        for _ in range(TRIES):
            # A connection of its own each time: the next request of a throttled one has to wait.
            with connect(node, timeout_s) as connection:
                connection.client_id = MEASURED_AS
                if longest_ms := throttle_ms(connection, quota, REQUEST_BYTES[quota]):
                    return longest_ms
    except ProtocolError as error:
        raise DeployError(f"{node.host.name}: {error}") from error
    return 0
