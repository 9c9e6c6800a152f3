"""Alter- and ListPartitionReassignments (keys 45 and 46, version 0), ElectLeaders (key 43, 0 to 3),
UnregisterBroker (key 64, 0)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    PartitionOutcome,
    Reassignment,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, as_timedelta, by_topic, milliseconds
from wrackline.broker.wire.schema import Schema, WireError

# --- AlterPartitionReassignments ---------------------------------------------------------------------------


def decode_alter(entity: Any, _: TopicNames) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        tuple(
            Reassignment(
                TopicPartition(topic.name, item.partition_index),
                None if item.replicas is None else tuple(item.replicas),
            )
            for topic in entity.topics
            for item in topic.partitions
        ),
        milliseconds(entity.timeout),
    )


def encode_alter_request(schema: Schema, request: AlterPartitionReassignmentsRequest) -> Any:
    make = schema.make
    return make(
        "AlterPartitionReassignmentsRequest",
        timeout=as_timedelta(request.timeout_ms),
        topics=tuple(
            make(
                "ReassignableTopic",
                name=topic,
                partitions=tuple(
                    make("ReassignablePartition", partition_index=item.tp.partition, replicas=item.target)
                    for item in items
                ),
            )
            for topic, items in by_topic(request.partitions)
        ),
    )


def encode_alter_response(
    schema: Schema, _: AlterPartitionReassignmentsRequest, response: AlterPartitionReassignmentsResponse
) -> Any:
    make = schema.make
    return make(
        "AlterPartitionReassignmentsResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        error_message=response.message,
        responses=tuple(
            make(
                "ReassignableTopicResponse",
                name=topic,
                partitions=tuple(
                    make(
                        "ReassignablePartitionResponse",
                        partition_index=item.tp.partition,
                        error_code=item.error,
                        error_message=item.message,
                    )
                    for item in items
                ),
            )
            for topic, items in by_topic(response.partitions)
        ),
    )


def decode_alter_response(
    entity: Any, _: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        tuple(
            PartitionOutcome(
                TopicPartition(topic.name, item.partition_index), item.error_code, item.error_message
            )
            for topic in entity.responses
            for item in topic.partitions
        ),
        entity.error_code,
        entity.error_message,
    )


# --- ListPartitionReassignments ----------------------------------------------------------------------------


def decode_list(entity: Any, _: TopicNames) -> ListPartitionReassignmentsRequest:
    asked = None
    if entity.topics is not None:
        asked = tuple(
            TopicPartition(topic.name, number)
            for topic in entity.topics
            for number in topic.partition_indexes
        )
    return ListPartitionReassignmentsRequest(asked, milliseconds(entity.timeout))


def encode_list_request(schema: Schema, request: ListPartitionReassignmentsRequest) -> Any:
    topics = None
    if request.partitions is not None:
        topics = tuple(
            schema.make("ListPartitionReassignmentsTopics", name=topic, partition_indexes=numbers)
            for topic, numbers in _numbers(request.partitions)
        )
    return schema.make(
        "ListPartitionReassignmentsRequest", timeout=as_timedelta(request.timeout_ms), topics=topics
    )


def encode_list_response(
    schema: Schema, _: ListPartitionReassignmentsRequest, response: ListPartitionReassignmentsResponse
) -> Any:
    make = schema.make
    return make(
        "ListPartitionReassignmentsResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        error_message=response.message,
        topics=tuple(
            make(
                "OngoingTopicReassignment",
                name=topic,
                partitions=tuple(
                    make(
                        "OngoingPartitionReassignment",
                        partition_index=item.tp.partition,
                        replicas=item.replicas,
                        adding_replicas=item.adding,
                        removing_replicas=item.removing,
                    )
                    for item in items
                ),
            )
            for topic, items in by_topic(response.partitions)
        ),
    )


def decode_list_response(
    entity: Any, _: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        tuple(
            OngoingReassignment(
                TopicPartition(topic.name, item.partition_index),
                tuple(item.replicas),
                tuple(item.adding_replicas),
                tuple(item.removing_replicas),
            )
            for topic in entity.topics
            for item in topic.partitions
        ),
        entity.error_code,
        entity.error_message,
    )


# --- ElectLeaders ------------------------------------------------------------------------------------------


def decode_elect(entity: Any, _: TopicNames) -> ElectLeadersRequest:
    """Version 0 knows the preferred election only; before version 3 nobody can name a leader. Raises
    WireError when not each partition of a topic has one, or none."""
    asked, desired = None, tuple[NodeId, ...]()
    if entity.topic_partitions is not None:
        asked = tuple(
            TopicPartition(topic.topic, number)
            for topic in entity.topic_partitions
            for number in topic.partitions
        )
        desired = tuple(leader for topic in entity.topic_partitions for leader in _desired(topic))
    election = getattr(entity, "election_type", ElectionType.PREFERRED)
    return ElectLeadersRequest(election, asked, milliseconds(entity.timeout), desired)


def _desired(topic: Any) -> tuple[NodeId, ...]:
    leaders = tuple(getattr(topic, "desired_leaders", ()))
    if leaders and len(leaders) != len(topic.partitions):
        raise WireError(f"{len(leaders)} desired leaders of {len(topic.partitions)} partitions")
    return leaders


def encode_elect_request(schema: Schema, request: ElectLeadersRequest) -> Any:
    topics = None
    if request.partitions is not None:
        leader = dict(zip(request.partitions, request.desired, strict=False))
        topics = tuple(
            schema.make(
                "TopicPartitions",
                topic=topic,
                partitions=numbers,
                desired_leaders=tuple(
                    leader[tp] for number in numbers if (tp := TopicPartition(topic, number)) in leader
                ),
            )
            for topic, numbers in _numbers(request.partitions)
        )
    return schema.make(
        "ElectLeadersRequest",
        election_type=int(request.election),
        topic_partitions=topics,
        timeout=as_timedelta(request.timeout_ms),
    )


def encode_elect_response(schema: Schema, _: ElectLeadersRequest, response: ElectLeadersResponse) -> Any:
    make = schema.make
    return make(
        "ElectLeadersResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        replica_election_results=tuple(
            make(
                "ReplicaElectionResult",
                topic=topic,
                partition_result=tuple(
                    make(
                        "PartitionResult",
                        partition_id=item.tp.partition,
                        error_code=item.error,
                        error_message=item.message,
                    )
                    for item in items
                ),
            )
            for topic, items in by_topic(response.partitions)
        ),
    )


def decode_elect_response(entity: Any, _: ElectLeadersRequest) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        tuple(
            PartitionOutcome(
                TopicPartition(result.topic, item.partition_id), item.error_code, item.error_message
            )
            for result in entity.replica_election_results
            for item in result.partition_result
        ),
        getattr(entity, "error_code", ErrorCode.none),
    )


def _numbers(partitions: Iterable[TopicPartition]) -> list[tuple[str, tuple[int, ...]]]:
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return [(topic, tuple(numbers)) for topic, numbers in topics.items()]


# --- UnregisterBroker --------------------------------------------------------------------------------------


def decode_unregister(entity: Any, _: TopicNames) -> UnregisterBrokerRequest:
    return UnregisterBrokerRequest(entity.broker_id)


def encode_unregister_request(schema: Schema, request: UnregisterBrokerRequest) -> Any:
    return schema.make("UnregisterBrokerRequest", broker_id=request.broker_id)


def encode_unregister_response(
    schema: Schema, _: UnregisterBrokerRequest, response: UnregisterBrokerResponse
) -> Any:
    return schema.make(
        "UnregisterBrokerResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        error_message=response.message,
    )


def decode_unregister_response(entity: Any, _: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(entity.error_code, entity.error_message)
