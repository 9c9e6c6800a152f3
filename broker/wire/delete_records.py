"""DeleteRecords (key 21), versions 0 to 2."""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.messages.requests import DeleteRecordsRequest, DeleteRecordsResponse
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, by_topic, milliseconds
from wrackline.broker.wire.schema import Schema


def decode_request(entity: Any, _: TopicNames) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        tuple(
            (TopicPartition(topic.name, part.partition_index), part.offset)
            for topic in entity.topics
            for part in topic.partitions
        ),
        milliseconds(entity.timeout),
    )


def encode_response(schema: Schema, _: DeleteRecordsRequest, response: DeleteRecordsResponse) -> Any:
    make = schema.make
    return make(
        "DeleteRecordsResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            make(
                "DeleteRecordsTopicResult",
                name=topic,
                partitions=tuple(
                    make(
                        "DeleteRecordsPartitionResult",
                        partition_index=result.tp.partition,
                        low_watermark=result.low_watermark,
                        error_code=result.error,
                    )
                    for result in results
                ),
            )
            for topic, results in by_topic(response.partitions)
        ),
    )
