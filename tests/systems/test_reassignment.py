"""A cluster is asked to move replicas: some answers are asked for again, others are final."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.alter_partition_reassignments.v0 import response as altered
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import response as listed
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i32Timedelta

from wrackline.fleets.base import Host
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import ProtocolError
from wrackline.systems.administration import Reassigner
from wrackline.systems.base import DeployError, Node
from wrackline.systems.wrackline.config_text import planned_replicas

NODES = tuple(Node(number, Host(f"n{number}", ""), frozenset({"broker"}), 9092) for number in (1, 2))
NOW = i32Timedelta.parse(timedelta())


class Paper(Connection):
    """A connection that answers from a list, one answer a connection."""

    address = "paper:9092"

    def __init__(self, answer: Callable[[Any], Any], asked: list[Any]) -> None:
        self._answer, self._asked = answer, asked

    def close(self) -> None: ...

    def request(self, payload: Any, _: Any) -> Any:
        self._asked.append(payload)
        return self._answer(payload)


def reassigner(*answers: ErrorCode | Exception) -> tuple[Reassigner, list[Any]]:
    """A cluster that gives these answers in turn, the last for ever."""
    left, asked = list(answers), []  # type: ignore[var-annotated]

    def answer(_: Any) -> Any:
        said = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(said, Exception):
            raise said
        partition = altered.ReassignablePartitionResponse(
            partition_index=i32(0), error_code=said, error_message="why"
        )
        topic = altered.ReassignableTopicResponse(name=TopicName("log"), partitions=(partition,))
        return altered.AlterPartitionReassignmentsResponse(
            throttle_time=NOW, error_code=ErrorCode.none, error_message=None, responses=(topic,)
        )

    def connect(_: Node, __: float) -> Connection:
        return Paper(answer, asked)

    return Reassigner(NODES, connect), asked


def test_who_does_not_answer_or_is_not_ready_is_asked_again() -> None:
    mover, asked = reassigner(
        ProtocolError("silence"), ErrorCode.not_controller, ErrorCode.request_timed_out, ErrorCode.none
    )
    mover.reassign({("log", 0): (4, 2, 3)}, timeout_s=20)
    assert len(asked) == 4
    assert all(
        [(topic.name, one.partition_index, one.replicas) for topic in each.topics for one in topic.partitions]
        == [("log", 0, (4, 2, 3))]
        for each in asked
    )


def test_a_refusal_is_final_and_a_cluster_that_stays_silent_is_told() -> None:
    mover, asked = reassigner(ErrorCode.invalid_replica_assignment)
    with pytest.raises(DeployError, match=r"refused: log-0: invalid_replica_assignment \(why\)"):
        mover.reassign({("log", 0): (9,)}, timeout_s=20)
    assert len(asked) == 1
    mover, _ = reassigner(ProtocolError("silence"))
    with pytest.raises(DeployError, match=r"reassign: not done within 0\.1 s; last answer: n[12]: silence"):
        mover.reassign({("log", 0): (4,)}, timeout_s=0.1)
    mover, asked = reassigner(ErrorCode.none)
    mover.reassign({}, timeout_s=20)
    assert asked == []


def test_cancelling_what_is_complete_is_no_trouble() -> None:
    mover, asked = reassigner(ErrorCode.no_reassignment_in_progress)
    mover.reassign({("log", 0): None}, timeout_s=20)
    assert [one.replicas for one in asked[0].topics[0].partitions] == [None]
    with pytest.raises(DeployError, match="no_reassignment_in_progress"):
        mover.reassign({("log", 0): (1, 2)}, timeout_s=20)


def test_what_is_under_way_is_named_by_partition() -> None:
    ongoing = tuple(
        listed.OngoingPartitionReassignment(
            partition_index=i32(number),
            replicas=(BrokerId(1), BrokerId(4)),
            adding_replicas=(BrokerId(4),),
            removing_replicas=(BrokerId(1),),
        )
        for number in (0, 2)
    )
    topic = listed.OngoingTopicReassignment(name=TopicName("log"), partitions=ongoing)
    answer = listed.ListPartitionReassignmentsResponse(
        throttle_time=NOW, error_code=ErrorCode.none, error_message=None, topics=(topic,)
    )

    def connect(_: Node, __: float) -> Connection:
        return Paper(lambda _: answer, [])

    assert Reassigner(NODES, connect).under_way(timeout_s=5) == {("log", 0), ("log", 2)}


def test_the_planners_lines_are_read_and_all_else_is_passed_over() -> None:
    said = "2 partitions change, 2 replicas are copied\nlog:0=4,2,3  # now 1,2,3\na.b-c:11=2,4  # now 2,1\n"
    assert planned_replicas(said) == {("log", 0): (4, 2, 3), ("a.b-c", 11): (2, 4)}
    assert planned_replicas("0 partitions change, 0 replicas are copied\n") == {}
