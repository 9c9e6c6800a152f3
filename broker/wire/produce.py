"""Produce (key 0), versions 3 to 9."""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.messages.requests import ProducePartition, ProduceRequest, ProduceResponse
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, by_topic, milliseconds, topic_of
from wrackline.broker.wire.schema import Schema

_ZSTD = 7
"""The first version that may carry batches compressed so."""


def decode_request(entity: Any, names: TopicNames) -> ProduceRequest:
    partitions = []
    for topic in entity.topic_data:
        name, topic_id = topic_of(topic, names)
        partitions += [
            ProducePartition(TopicPartition(name, part.index), part.records or b"", topic_id)
            for part in topic.partition_data
        ]
    return ProduceRequest(
        entity.acks,
        milliseconds(entity.timeout),
        tuple(partitions),
        entity.transactional_id,
        zstd=entity.__version__ >= _ZSTD,
    )


def encode_response(schema: Schema, _: ProduceRequest, response: ProduceResponse) -> Any:
    make = schema.make
    return make(
        "ProduceResponse",
        responses=tuple(
            make(
                "TopicProduceResponse",
                name=topic,
                partition_responses=tuple(
                    make(
                        "PartitionProduceResponse",
                        index=result.tp.partition,
                        error_code=result.error,
                        base_offset=result.base_offset,
                        log_append_time=None,
                        log_start_offset=result.log_start,
                        record_errors=(),
                        error_message=result.message,
                    )
                    for result in results
                ),
            )
            for topic, results in by_topic(response.partitions)
        ),
        throttle_time=NO_THROTTLE,
    )
