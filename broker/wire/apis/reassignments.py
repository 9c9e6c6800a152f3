"""AlterPartitionReassignments, ListPartitionReassignments and ElectLeaders."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.wire.api import CLIENT, CONTROLLER, Access, api, forwarded_access
from wrackline.broker.wire.schema import WireError
from wrackline.broker.wire.translation.declarations import (
    FieldPath,
    Grouping,
    RowKey,
    Rows,
    copy_fields,
    message,
)
from wrackline.broker.wire.translation.values import group_by_topic


class _Topic(NamedTuple):
    topic: str
    partitions: tuple[int, ...]
    desired_leaders: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class _ElectRequest:
    election: int
    topic_partitions: tuple[_Topic, ...] | None
    timeout_ms: int


def _election_of_form(form: _ElectRequest) -> a.ElectLeadersRequest:
    """Raises WireError when not each partition of a topic has a leader named for it, or none."""
    topics = form.topic_partitions
    if topics is None:
        return a.ElectLeadersRequest(form.election, None, form.timeout_ms)
    for topic in topics:
        if topic.desired_leaders and len(topic.desired_leaders) != len(topic.partitions):
            raise WireError(
                f"{len(topic.desired_leaders)} desired leaders of {len(topic.partitions)} partitions"
            )
    tps = tuple(TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions)
    desired = tuple(leader for topic in topics for leader in topic.desired_leaders)
    return a.ElectLeadersRequest(form.election, tps, form.timeout_ms, desired)


def _form_of_election(request: a.ElectLeadersRequest, *_: object) -> _ElectRequest:
    if request.partitions is None:
        return copy_fields(request, _ElectRequest, topic_partitions=None)
    leader = dict(zip(request.partitions, request.desired, strict=False))
    topics = (
        _Topic(topic, tuple(tp.partition for tp in tps), tuple(leader[tp] for tp in tps if tp in leader))
        for topic, tps in group_by_topic(request.partitions, attrgetter("topic"))
    )
    return copy_fields(request, _ElectRequest, topic_partitions=tuple(topics))


def _election_refusal(
    request: a.ElectLeadersRequest, error: ErrorCode, why: str | None
) -> a.ElectLeadersResponse:
    """Version 0 has no error of its own, so every partition gets it too."""
    outcomes = tuple(a.PartitionOutcome(tp, error, why) for tp in request.partitions or ())
    return a.ElectLeadersResponse(outcomes, error)


APIS = (
    api(
        43,
        "ElectLeaders",
        Access(clients=(0, 2), peers=(3, 3), sent=3, open_on=(CLIENT, CONTROLLER)),
        request=message(
            a.ElectLeadersRequest,
            form=_ElectRequest,
            from_form=_election_of_form,
            to_form=_form_of_election,
            # Version 0 knows the preferred election only; before version 3 nobody can name a leader.
            election=FieldPath("election_type", absent=a.ElectionType.PREFERRED),
        ),
        response=message(a.ElectLeadersResponse, partitions="replica_election_results"),
        refuse=_election_refusal,
    ),
    api(
        45,
        "AlterPartitionReassignments",
        forwarded_access(0, 0),
        request=message(
            a.AlterPartitionReassignmentsRequest,
            partitions=Rows("topics", message(a.Reassignment, target="replicas")),
        ),
        response=message(a.AlterPartitionReassignmentsResponse, partitions="responses"),
    ),
    api(
        46,
        "ListPartitionReassignments",
        forwarded_access(0, 0),
        request=message(
            a.ListPartitionReassignmentsRequest, partitions=Rows("topics", RowKey.TP, Grouping.BY_TOPIC)
        ),
        response=message(
            a.ListPartitionReassignmentsResponse,
            partitions=Rows(
                "topics",
                message(a.OngoingReassignment, adding="adding_replicas", removing="removing_replicas"),
            ),
        ),
    ),
)
