"""CreatePartitions (key 37, versions 0 to 3)."""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.messages.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    NewPartitions,
    TopicOutcome,
)
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, as_timedelta, milliseconds
from wrackline.broker.wire.schema import Schema


def decode_create(entity: Any, _: TopicNames) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        tuple(
            NewPartitions(
                topic.name,
                topic.count,
                None
                if topic.assignments is None
                else tuple(tuple(item.broker_ids) for item in topic.assignments),
            )
            for topic in entity.topics
        ),
        milliseconds(entity.timeout),
        entity.validate_only,
    )


def encode_create_request(schema: Schema, request: CreatePartitionsRequest) -> Any:
    make = schema.make
    return make(
        "CreatePartitionsRequest",
        topics=tuple(
            make(
                "CreatePartitionsTopic",
                name=topic.topic,
                count=topic.count,
                assignments=None
                if topic.assignments is None
                else tuple(
                    make("CreatePartitionsAssignment", broker_ids=replicas) for replicas in topic.assignments
                ),
            )
            for topic in request.topics
        ),
        timeout=as_timedelta(request.timeout_ms),
        validate_only=request.validate_only,
    )


def encode_create_response(
    schema: Schema, _: CreatePartitionsRequest, response: CreatePartitionsResponse
) -> Any:
    return schema.make(
        "CreatePartitionsResponse",
        throttle_time=NO_THROTTLE,
        results=tuple(
            schema.make(
                "CreatePartitionsTopicResult",
                name=topic.topic,
                error_code=topic.error,
                error_message=topic.message,
            )
            for topic in response.topics
        ),
    )


def decode_create_response(entity: Any, _: CreatePartitionsRequest) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        tuple(TopicOutcome(topic.name, topic.error_code, topic.error_message) for topic in entity.results)
    )
