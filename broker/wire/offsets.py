"""ListOffsets (key 2, versions 1 to 7) and OffsetForLeaderEpoch (key 23, versions 2 to 4)."""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.messages.requests import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResult,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, by_topic
from wrackline.broker.wire.schema import Schema

_KNOWS_OFFSET_NOT_AVAILABLE = 5


def decode_list_offsets(entity: Any, _: TopicNames) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        partitions=tuple(
            ListOffsetsPartition(
                TopicPartition(topic.name, part.partition_index),
                part.timestamp,
                getattr(part, "current_leader_epoch", -1),
            )
            for topic in entity.topics
            for part in topic.partitions
        ),
        replica_id=entity.replica_id,
        isolation_level=getattr(entity, "isolation_level", 0),
        knows_offset_not_available=entity.__version__ >= _KNOWS_OFFSET_NOT_AVAILABLE,
    )


def encode_list_offsets_request(schema: Schema, request: ListOffsetsRequest) -> Any:
    make = schema.make
    return make(
        "ListOffsetsRequest",
        replica_id=request.replica_id,
        isolation_level=request.isolation_level,
        topics=tuple(
            make(
                "ListOffsetsTopic",
                name=topic,
                partitions=tuple(
                    make(
                        "ListOffsetsPartition",
                        partition_index=part.tp.partition,
                        current_leader_epoch=part.current_leader_epoch,
                        timestamp=part.timestamp,
                    )
                    for part in parts
                ),
            )
            for topic, parts in by_topic(request.partitions)
        ),
    )


def decode_list_offsets_response(entity: Any, _: ListOffsetsRequest) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        tuple(
            ListOffsetsResult(
                tp=TopicPartition(topic.name, part.partition_index),
                error=part.error_code,
                timestamp=part.timestamp,
                offset=part.offset,
                leader_epoch=part.leader_epoch,
            )
            for topic in entity.topics
            for part in topic.partitions
        )
    )


def encode_list_offsets(schema: Schema, _: ListOffsetsRequest, response: ListOffsetsResponse) -> Any:
    make = schema.make
    return make(
        "ListOffsetsResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            make(
                "ListOffsetsTopicResponse",
                name=topic,
                partitions=tuple(
                    make(
                        "ListOffsetsPartitionResponse",
                        partition_index=result.tp.partition,
                        error_code=result.error,
                        timestamp=result.timestamp,
                        offset=result.offset,
                        leader_epoch=result.leader_epoch,
                    )
                    for result in results
                ),
            )
            for topic, results in by_topic(response.partitions)
        ),
    )


def decode_epoch_request(entity: Any, _: TopicNames) -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(
        partitions=tuple(
            OffsetForLeaderEpochPartition(
                TopicPartition(topic.topic, part.partition), part.leader_epoch, part.current_leader_epoch
            )
            for topic in entity.topics
            for part in topic.partitions
        ),
        # Version 2 has no replica id: only consumers still speak it. -2 is Kafka's "debugging consumer".
        replica_id=max(getattr(entity, "replica_id", -1), -1),
    )


def encode_epoch_request(schema: Schema, request: OffsetForLeaderEpochRequest) -> Any:
    make = schema.make
    return make(
        "OffsetForLeaderEpochRequest",
        replica_id=request.replica_id,
        topics=tuple(
            make(
                "OffsetForLeaderTopic",
                topic=topic,
                partitions=tuple(
                    make(
                        "OffsetForLeaderPartition",
                        partition=part.tp.partition,
                        current_leader_epoch=part.current_leader_epoch,
                        leader_epoch=part.leader_epoch,
                    )
                    for part in parts
                ),
            )
            for topic, parts in by_topic(request.partitions)
        ),
    )


def encode_epoch_response(
    schema: Schema, _: OffsetForLeaderEpochRequest, response: OffsetForLeaderEpochResponse
) -> Any:
    make = schema.make
    return make(
        "OffsetForLeaderEpochResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            make(
                "OffsetForLeaderTopicResult",
                topic=topic,
                partitions=tuple(
                    make(
                        "EpochEndOffset",
                        error_code=result.error,
                        partition=result.tp.partition,
                        leader_epoch=result.leader_epoch,
                        end_offset=result.end_offset,
                    )
                    for result in results
                ),
            )
            for topic, results in by_topic(response.partitions)
        ),
    )


def decode_epoch_response(entity: Any, _: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        tuple(
            OffsetForLeaderEpochResult(
                TopicPartition(topic.topic, part.partition),
                part.error_code,
                part.leader_epoch,
                part.end_offset,
            )
            for topic in entity.topics
            for part in topic.partitions
        )
    )
