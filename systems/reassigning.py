"""Moving replicas from one broker to another, over the Kafka protocol (KIP-455): begin, cancel, list.

Whoever is asked passes it on to the active controller, and that may be changing: every broker is asked in
turn until one has an answer that counts. Asking twice for the same replicas is asking once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from kio.schema.alter_partition_reassignments.v0 import request as alter_request
from kio.schema.alter_partition_reassignments.v0 import response as alter_response
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import request as list_request
from kio.schema.list_partition_reassignments.v0 import response as list_response
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i32Timedelta

from wrackline.systems.base import DeployError, Node, Place
from wrackline.systems.protocol import Connection, ProtocolError

ASK_S = 3.0
"""How long one broker may take."""
PAUSE_S = 0.2
_NOTHING_TO_CANCEL = (ErrorCode.no_reassignment_in_progress, ErrorCode.unknown_topic_or_partition)

T = TypeVar("T")


class _NotNow(Exception):
    """Refused for a reason that passes."""


class Reassigner:
    """Moves the replicas of partitions over the Kafka protocol, at any broker that answers."""

    def __init__(self, brokers: Sequence[Node], connect: Callable[[Node, float], Connection]) -> None:
        self._brokers = tuple(brokers)
        self._connect = connect

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float) -> None:
        """None cancels. Raises DeployError when it is refused, or nobody took it in time."""
        if targets:
            self._ask("reassign", lambda connection: _alter(connection, targets), timeout_s)

    def under_way(self, *, timeout_s: float) -> frozenset[Place]:
        """Partitions whose replicas are changing. Raises DeployError when nobody answers in time."""
        return self._ask("list reassignments", _list, timeout_s)

    def _ask(self, what: str, question: Callable[[Connection], T], timeout_s: float) -> T:
        deadline = time.monotonic() + timeout_s
        last = "nobody was asked"
        while True:
            for node in self._brokers:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DeployError(f"{what}: not done within {timeout_s:g} s; last answer: {last}")
                try:
                    with self._connect(node, min(left, ASK_S)) as connection:
                        return question(connection)
                except (ProtocolError, _NotNow) as wrong:
                    last = f"{node.host.name}: {wrong}"
            time.sleep(PAUSE_S)


def _timeout() -> i32Timedelta:
    return i32Timedelta.parse(timedelta(seconds=ASK_S))


def _alter(connection: Connection, targets: Mapping[Place, tuple[int, ...] | None]) -> None:
    by_topic: dict[str, list[alter_request.ReassignablePartition]] = {}
    for (topic, partition), replicas in sorted(targets.items()):
        by_topic.setdefault(topic, []).append(
            alter_request.ReassignablePartition(
                partition_index=i32(partition),
                replicas=None if replicas is None else tuple(map(BrokerId, replicas)),
            )
        )
    answer = connection.request(
        alter_request.AlterPartitionReassignmentsRequest(
            timeout=_timeout(),
            topics=tuple(
                alter_request.ReassignableTopic(name=TopicName(topic), partitions=tuple(partitions))
                for topic, partitions in by_topic.items()
            ),
        ),
        alter_response.AlterPartitionReassignmentsResponse,
    )
    _check("the request", answer.error_code, answer.error_message)
    for response in answer.responses:
        for done in response.partitions:
            place = str(response.name), int(done.partition_index)
            if targets.get(place) is None and done.error_code in _NOTHING_TO_CANCEL:
                continue  # it was through meanwhile
            _check(f"{place[0]}-{place[1]}", done.error_code, done.error_message)


def _list(connection: Connection) -> frozenset[Place]:
    answer = connection.request(
        list_request.ListPartitionReassignmentsRequest(timeout=_timeout(), topics=None),
        list_response.ListPartitionReassignmentsResponse,
    )
    _check("the request", answer.error_code, answer.error_message)
    return frozenset(
        (str(topic.name), int(one.partition_index)) for topic in answer.topics for one in topic.partitions
    )


def _check(what: str, error: ErrorCode, message: str | None) -> None:
    if error is ErrorCode.none:
        return
    problem = f"{what}: {error.name}" + (f" ({message})" if message else "")
    if error.retriable:
        raise _NotNow(problem)
    raise DeployError(f"the cluster refused: {problem}")
