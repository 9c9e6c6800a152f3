"""AlterPartitionReassignments, ListPartitionReassignments and ElectLeaders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model import admin_messages as a
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.wire.api import CLIENT, CONTROLLER, Api
from wrackline.broker.wire.declarations import Each, Grouped, at, message
from wrackline.broker.wire.schema import WireError


class _Partitions(NamedTuple):
    topic: str
    numbers: tuple[int, ...]
    desired: tuple[NodeId, ...] = ()


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return {topic: tuple(numbers) for topic, numbers in topics.items()}


def _one_by_one(topics: Iterable[_Partitions]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each.topic, number) for each in topics for number in each.numbers)


@dataclass(frozen=True, slots=True)
class _ListRequest:
    topics: tuple[_Partitions, ...] | None
    timeout_ms: int


def _listing(form: _ListRequest) -> a.ListPartitionReassignmentsRequest:
    asked = None if form.topics is None else _one_by_one(form.topics)
    return a.ListPartitionReassignmentsRequest(asked, form.timeout_ms)


def _list_form(request: a.ListPartitionReassignmentsRequest, *_: object) -> _ListRequest:
    if request.partitions is None:
        return _ListRequest(None, request.timeout_ms)
    topics = tuple(_Partitions(*item) for item in _by_topic(request.partitions).items())
    return _ListRequest(topics, request.timeout_ms)


@dataclass(frozen=True, slots=True)
class _ElectRequest:
    election: int
    topics: tuple[_Partitions, ...] | None
    timeout_ms: int


def _election(form: _ElectRequest) -> a.ElectLeadersRequest:
    """Raises WireError when not each partition of a topic has a leader named for it, or none."""
    if form.topics is None:
        return a.ElectLeadersRequest(form.election, None, form.timeout_ms)
    for topic in form.topics:
        if topic.desired and len(topic.desired) != len(topic.numbers):
            raise WireError(f"{len(topic.desired)} desired leaders of {len(topic.numbers)} partitions")
    desired = tuple(leader for topic in form.topics for leader in topic.desired)
    return a.ElectLeadersRequest(form.election, _one_by_one(form.topics), form.timeout_ms, desired)


def _elect_form(request: a.ElectLeadersRequest, *_: object) -> _ElectRequest:
    if request.partitions is None:
        return _ElectRequest(request.election, None, request.timeout_ms)
    leader = dict(zip(request.partitions, request.desired, strict=False))
    topics = tuple(
        _Partitions(
            topic,
            numbers,
            tuple(leader[tp] for number in numbers if (tp := TopicPartition(topic, number)) in leader),
        )
        for topic, numbers in _by_topic(request.partitions).items()
    )
    return _ElectRequest(request.election, topics, request.timeout_ms)


def _refused_election(
    request: a.ElectLeadersRequest, error: ErrorCode, why: str | None
) -> a.ElectLeadersResponse:
    """Version 0 has no error of its own, so every partition gets it too."""
    outcomes = tuple(a.PartitionOutcome(tp, error, why) for tp in request.partitions or ())
    return a.ElectLeadersResponse(outcomes, error)


APIS = (
    Api(
        43,
        "ElectLeaders",
        clients=(0, 2),
        peers=(3, 3),
        sent=3,
        open_on=(CLIENT, CONTROLLER),
        request=message(
            a.ElectLeadersRequest,
            form=_ElectRequest,
            finish=_election,
            prepare=_elect_form,
            # Version 0 knows the preferred election only; before version 3 nobody can name a leader.
            election=at("election_type", absent=a.ElectionType.PREFERRED),
            topics=Each(
                "topic_partitions", message(_Partitions, numbers="partitions", desired="desired_leaders")
            ),
        ),
        response=message(
            a.ElectLeadersResponse,
            partitions=Grouped("replica_election_results", message(a.PartitionOutcome)),
        ),
        refuse=_refused_election,
    ),
    Api(
        45,
        "AlterPartitionReassignments",
        clients=(0, 0),
        sent=0,
        open_on=(CLIENT, CONTROLLER),
        request=message(
            a.AlterPartitionReassignmentsRequest,
            partitions=Grouped("topics", message(a.Reassignment, target="replicas")),
        ),
        response=message(
            a.AlterPartitionReassignmentsResponse,
            partitions=Grouped("responses", message(a.PartitionOutcome)),
        ),
    ),
    Api(
        46,
        "ListPartitionReassignments",
        clients=(0, 0),
        sent=0,
        open_on=(CLIENT, CONTROLLER),
        request=message(
            a.ListPartitionReassignmentsRequest,
            form=_ListRequest,
            finish=_listing,
            prepare=_list_form,
            topics=Each(
                "topics",
                message(_Partitions, topic="name", numbers="partition_indexes", lacking=("desired",)),
            ),
        ),
        response=message(
            a.ListPartitionReassignmentsResponse,
            partitions=Grouped(
                "topics",
                message(a.OngoingReassignment, adding="adding_replicas", removing="removing_replicas"),
            ),
        ),
    ),
)
