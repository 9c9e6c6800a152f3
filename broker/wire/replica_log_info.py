"""GetReplicaLogInfo (key 93, version 0): the controller asks a broker how far its logs reach (KIP-966)."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from wrackline.broker.model.messages.controller import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, uuid_or_none
from wrackline.broker.wire.schema import NO_UUID, Schema


def decode_request(entity: Any, _: TopicNames) -> GetReplicaLogInfoRequest:
    return GetReplicaLogInfoRequest(
        tuple(
            (topic.topic_id or NO_UUID, partition)
            for topic in entity.topic_partitions or ()
            for partition in topic.partitions
        )
    )


def encode_request(schema: Schema, request: GetReplicaLogInfoRequest) -> Any:
    topics = tuple(
        schema.make(
            "TopicPartitions",
            topic_id=uuid_or_none(topic_id),
            partitions=tuple(partition for _, partition in asked),
        )
        for topic_id, asked in groupby(request.partitions, key=lambda pair: pair[0])
    )
    return schema.make("GetReplicaLogInfoRequest", topic_partitions=topics)


def encode_response(schema: Schema, _: GetReplicaLogInfoRequest, response: GetReplicaLogInfoResponse) -> Any:
    topics = tuple(
        schema.make(
            "TopicPartitionLogInfo",
            topic_id=uuid_or_none(topic_id),
            partition_log_info=tuple(
                schema.make(
                    "PartitionLogInfo",
                    partition=info.partition,
                    last_written_leader_epoch=info.last_written_leader_epoch,
                    current_leader_epoch=info.current_leader_epoch,
                    log_end_offset=info.leo,
                    error_code=info.error,
                )
                for info in infos
            ),
        )
        for topic_id, infos in groupby(response.entries, key=lambda info: info.topic_id)
    )
    return schema.make(
        "GetReplicaLogInfoResponse",
        throttle_time=NO_THROTTLE,
        broker_epoch=response.broker_epoch,
        has_more=response.has_more,
        topic_partition_log_info_list=topics,
    )


def decode_response(entity: Any, _: GetReplicaLogInfoRequest) -> GetReplicaLogInfoResponse:
    return GetReplicaLogInfoResponse(
        entity.broker_epoch,
        tuple(
            ReplicaLogInfo(
                topic.topic_id or NO_UUID,
                info.partition,
                info.last_written_leader_epoch,
                info.current_leader_epoch,
                info.log_end_offset,
                info.error_code,
            )
            for topic in entity.topic_partition_log_info_list
            for info in topic.partition_log_info
        ),
        entity.has_more,
    )
