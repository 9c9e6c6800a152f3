"""Retries of a request at the peers of a cluster, until one gives an answer that counts.

Whoever is asked passes a request on to the active controller, and that may be changing: every peer is asked
in turn, again and again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kio.schema.errors import ErrorCode

from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import ProtocolError, Rejected

_LACKS_BROKERS = frozenset({ErrorCode.broker_not_available, ErrorCode.invalid_replication_factor})
"""Kafka's list has them as final. A broker that registers, or is no longer fenced, mends them."""

Peer = TypeVar("Peer")
T = TypeVar("T")


def is_passing(error: ErrorCode) -> bool:
    """Tells whether a cluster that is left alone may take what it has refused with this error."""
    return error.retriable or error in _LACKS_BROKERS


@dataclass(frozen=True)
class RetryUntil(Generic[Peer]):
    """Asks peers in turn until one's answer counts, or the time is over."""

    peers: Sequence[Peer]
    connect: Callable[[Peer, float], Connection]
    """Connects within so many seconds. Raises ProtocolError."""
    name: Callable[[Peer], str]
    failure: Callable[[str], Exception]
    """What is raised where the cluster refuses for good, and where the time is over."""
    ask_s: float = 3.0
    """How long one peer may take."""
    pause_s: float = 0.2
    """Between two rounds."""

    def __call__(self, what: str, ask: Callable[[Connection], T], timeout_s: float) -> T:
        """Returns the first answer that counts. An error code that does not pass is final."""

        def refusable(connection: Connection) -> T:
            try:
                return ask(connection)
            except Rejected as refused:
                problem = f"{refused.about or what}: {refused.reason}"
                if is_passing(refused.error):
                    raise ProtocolError(problem) from refused
                raise self.failure(f"the cluster refused: {problem}") from refused

        return self.first(refusable, timeout_s, f"{what}: not done")

    def first(self, ask: Callable[[Connection], T], timeout_s: float, late: str = "nobody answered") -> T:
        """Returns the first answer; an error code is none. ``late``: how the error begins when the time is
        over."""
        deadline = time.monotonic() + timeout_s
        last = "nobody was asked"
        while True:
            for peer in self.peers:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self.failure(f"{late} within {timeout_s:g} s; last answer: {last}")
                try:
                    with self.connect(peer, min(left, self.ask_s)) as connection:
                        return ask(connection)
                except ProtocolError as error:
                    last = f"{self.name(peer)}: {error}"
            time.sleep(self.pause_s)
