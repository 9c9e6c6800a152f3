"""Asking a cluster until it takes what it is asked for.

Whoever is asked passes it on to the active controller, and that may be changing: every broker is asked in
turn until one has an answer that counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from kio.schema.errors import ErrorCode

from wrackline.kafka_client.connection import Connection, ProtocolError
from wrackline.systems.base import DeployError, Node

ASK_S = 3.0
"""How long one broker may take."""
PAUSE_S = 0.2

_LACKS_BROKERS = frozenset({ErrorCode.broker_not_available, ErrorCode.invalid_replication_factor})
"""Kafka's list has them as final. A broker that registers, or is no longer fenced, mends them."""

T = TypeVar("T")


class NotNow(Exception):
    """Refused for a reason that passes."""


def insist(
    what: str,
    brokers: Sequence[Node],
    connect: Callable[[Node, float], Connection],
    question: Callable[[Connection], T],
    timeout_s: float,
) -> T:
    """The first answer that counts. Raises DeployError when the cluster refuses, or nobody took it in
    time."""
    deadline = time.monotonic() + timeout_s
    last = "nobody was asked"
    while True:
        for node in brokers:
            left = deadline - time.monotonic()
            if left <= 0:
                raise DeployError(f"{what}: not done within {timeout_s:g} s; last answer: {last}")
            try:
                with connect(node, min(left, ASK_S)) as connection:
                    return question(connection)
            except (ProtocolError, NotNow) as wrong:
                last = f"{node.host.name}: {wrong}"
        time.sleep(PAUSE_S)


def passes(error: ErrorCode) -> bool:
    """Whether a cluster that is left alone may take what it has refused with this error."""
    return error.retriable or error in _LACKS_BROKERS


def check(what: str, error: ErrorCode, message: str | None) -> None:
    """Raises NotNow for an error that passes, DeployError for one that does not."""
    if error is ErrorCode.none:
        return
    problem = f"{what}: {error.name}" + (f" ({message})" if message else "")
    if passes(error):
        raise NotNow(problem)
    raise DeployError(f"the cluster refused: {problem}")
