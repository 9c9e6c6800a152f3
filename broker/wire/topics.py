"""CreateTopics (key 19, versions 2 to 7) and DeleteTopics (key 20, versions 1 to 6)."""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.messages.metadata import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewTopic,
)
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, as_timedelta, milliseconds, uuid_or_none
from wrackline.broker.wire.schema import NO_UUID, Schema


def decode_create(entity: Any, _: TopicNames) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            NewTopic(
                name=topic.name,
                partitions=topic.num_partitions,
                replication_factor=topic.replication_factor,
                assignments={item.partition_index: tuple(item.broker_ids) for item in topic.assignments},
                configs={item.name: item.value for item in topic.configs if item.value is not None},
            )
            for topic in entity.topics
        ),
        timeout_ms=milliseconds(entity.timeout),
        validate_only=entity.validate_only,
    )


def encode_create_request(schema: Schema, request: CreateTopicsRequest) -> Any:
    make = schema.make
    return make(
        "CreateTopicsRequest",
        topics=tuple(
            make(
                "CreatableTopic",
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                assignments=tuple(
                    make("CreatableReplicaAssignment", partition_index=partition, broker_ids=replicas)
                    for partition, replicas in topic.assignments.items()
                ),
                configs=tuple(
                    make("CreatableTopicConfig", name=name, value=value)
                    for name, value in topic.configs.items()
                ),
            )
            for topic in request.topics
        ),
        timeout=as_timedelta(request.timeout_ms),
        validate_only=request.validate_only,
    )


def encode_create_response(schema: Schema, _: CreateTopicsRequest, response: CreateTopicsResponse) -> Any:
    make = schema.make
    return make(
        "CreateTopicsResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            make(
                "CreatableTopicResult",
                name=topic.name,
                topic_id=uuid_or_none(topic.topic_id),
                error_code=topic.error,
                error_message=topic.message,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                configs=(),
            )
            for topic in response.topics
        ),
    )


def decode_create_response(entity: Any, _: CreateTopicsRequest) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        tuple(
            CreatedTopic(
                name=topic.name,
                error=topic.error_code,
                message=topic.error_message,
                topic_id=topic.topic_id or NO_UUID,
                partitions=topic.num_partitions,
                replication_factor=topic.replication_factor,
            )
            for topic in entity.topics
        )
    )


def decode_delete(entity: Any, _: TopicNames) -> DeleteTopicsRequest:
    if hasattr(entity, "topic_names"):
        return DeleteTopicsRequest(tuple(entity.topic_names), milliseconds(entity.timeout))
    return DeleteTopicsRequest(
        topics=tuple(topic.name for topic in entity.topics if topic.name is not None),
        timeout_ms=milliseconds(entity.timeout),
        topic_ids=tuple(topic.topic_id or NO_UUID for topic in entity.topics if topic.name is None),
    )


def encode_delete_request(schema: Schema, request: DeleteTopicsRequest) -> Any:
    make = schema.make
    return make(
        "DeleteTopicsRequest",
        topics=(
            *(make("DeleteTopicState", name=name, topic_id=None) for name in request.topics),
            *(
                make("DeleteTopicState", name=None, topic_id=uuid_or_none(topic_id))
                for topic_id in request.topic_ids
            ),
        ),
        timeout=as_timedelta(request.timeout_ms),
    )


def encode_delete_response(schema: Schema, _: DeleteTopicsRequest, response: DeleteTopicsResponse) -> Any:
    make = schema.make
    return make(
        "DeleteTopicsResponse",
        throttle_time=NO_THROTTLE,
        responses=tuple(
            make(
                "DeletableTopicResult",
                name=topic.name,
                topic_id=uuid_or_none(topic.topic_id),
                error_code=topic.error,
                error_message=topic.message,
            )
            for topic in response.topics
        ),
    )


def decode_delete_response(entity: Any, _: DeleteTopicsRequest) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        tuple(
            DeletedTopic(topic.name, topic.error_code, topic.topic_id or NO_UUID, topic.error_message)
            for topic in entity.responses
        )
    )
