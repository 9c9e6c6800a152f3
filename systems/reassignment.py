"""Moving replicas from one broker to another, over the Kafka protocol (KIP-455): begin, cancel, list.

Asking twice for the same replicas is asking once.
"""

from __future__ import annotations

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

from wrackline.kafka_client.connection import Connection
from wrackline.systems.base import Node, Place
from wrackline.systems.retry import ASK_S, check, insist

_NOTHING_TO_CANCEL = (ErrorCode.no_reassignment_in_progress, ErrorCode.unknown_topic_or_partition)

T = TypeVar("T")


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
        return insist(what, self._brokers, self._connect, question, timeout_s)


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
    check("the request", answer.error_code, answer.error_message)
    for response in answer.responses:
        for done in response.partitions:
            place = str(response.name), int(done.partition_index)
            if targets.get(place) is None and done.error_code in _NOTHING_TO_CANCEL:
                continue  # it was through meanwhile
            check(f"{place[0]}-{place[1]}", done.error_code, done.error_message)


def _list(connection: Connection) -> frozenset[Place]:
    answer = connection.request(
        list_request.ListPartitionReassignmentsRequest(timeout=_timeout(), topics=None),
        list_response.ListPartitionReassignmentsResponse,
    )
    check("the request", answer.error_code, answer.error_message)
    return frozenset(
        (str(topic.name), int(one.partition_index)) for topic in answer.topics for one in topic.partitions
    )
