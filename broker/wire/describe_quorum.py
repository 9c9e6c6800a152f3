"""DescribeQuorum (key 55, versions 0 to 2): who leads the controllers and how far everyone's log reaches
(KIP-595, KIP-836). Times travel as wall clocks; inside they are how long ago something was."""

from __future__ import annotations

import time
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import DescribeQuorumRequest, DescribeQuorumResponse, QuorumReplica
from wrackline.broker.model.types import METADATA, Endpoint, TopicPartition
from wrackline.broker.wire.common import TopicNames, uuid_or_none
from wrackline.broker.wire.schema import NO_UUID, Schema

_LISTENER = "CONTROLLER"


def decode_request(entity: Any, _: TopicNames) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        tuple(
            TopicPartition(topic.topic_name, part.partition_index)
            for topic in entity.topics
            for part in topic.partitions
        )
    )


def encode_request(schema: Schema, request: DescribeQuorumRequest) -> Any:
    make = schema.make
    topics = (
        make(
            "TopicData",
            topic_name=tp.topic,
            partitions=(make("PartitionData", partition_index=tp.partition),),
        )
        for tp in request.partitions
    )
    return make("DescribeQuorumRequest", topics=tuple(topics))


def encode_response(schema: Schema, request: DescribeQuorumRequest, response: DescribeQuorumResponse) -> Any:
    make = schema.make
    now_ms = time.time() * 1000

    def replicas(listed: tuple[QuorumReplica, ...]) -> tuple[Any, ...]:
        return tuple(
            make(
                "ReplicaState",
                replica_id=each.node_id,
                replica_directory_id=uuid_or_none(each.directory_id),
                log_end_offset=each.leo,
                last_fetch_timestamp=_at(now_ms, each.fetched_ago_ms),
                last_caught_up_timestamp=_at(now_ms, each.caught_up_ago_ms),
            )
            for each in listed
        )

    topics = []
    for tp in request.partitions:
        known = tp == METADATA
        part = make(
            "PartitionData",
            partition_index=tp.partition,
            error_code=response.error if known else ErrorCode.unknown_topic_or_partition,
            error_message=response.message if known else f"only {METADATA} has a quorum",
            leader_id=response.leader_id,
            leader_epoch=response.leader_epoch,
            high_watermark=response.high_watermark,
            current_voters=replicas(response.voters if known else ()),
            observers=replicas(response.observers if known else ()),
        )
        topics.append(make("TopicData", topic_name=tp.topic, partitions=(part,)))
    nodes: tuple[Any, ...] = ()
    if schema.has("Node"):
        nodes = tuple(
            make(
                "Node",
                node_id=node.node_id,
                listeners=(make("Listener", name=_LISTENER, host=node.host, port=node.port),),
            )
            for node in response.nodes
        )
    return make(
        "DescribeQuorumResponse",
        error_code=response.error,
        error_message=response.message,
        topics=tuple(topics),
        nodes=nodes,
    )


def decode_response(entity: Any, _: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Of version 2."""
    parts = [
        part
        for topic in entity.topics
        if topic.topic_name == METADATA.topic
        for part in topic.partitions
        if part.partition_index == METADATA.partition
    ]
    if entity.error_code is not ErrorCode.none or not parts:
        return DescribeQuorumResponse(entity.error_code, entity.error_message)
    part, now_ms = parts[0], time.time() * 1000

    def replicas(listed: Any) -> tuple[QuorumReplica, ...]:
        return tuple(
            QuorumReplica(
                each.replica_id,
                each.log_end_offset,
                None if each.replica_directory_id in (None, NO_UUID) else each.replica_directory_id,
                _ago(now_ms, each.last_fetch_timestamp),
                _ago(now_ms, each.last_caught_up_timestamp),
            )
            for each in listed
        )

    return DescribeQuorumResponse(
        part.error_code,
        part.error_message,
        part.leader_id,
        part.leader_epoch,
        part.high_watermark,
        replicas(part.current_voters),
        replicas(part.observers),
        tuple(
            Endpoint(node.node_id, node.listeners[0].host, node.listeners[0].port) for node in entity.nodes
        ),
    )


def _at(now_ms: float, ago_ms: float | None) -> int:
    return -1 if ago_ms is None else int(now_ms - ago_ms)


def _ago(now_ms: float, at_ms: int) -> float | None:
    return None if at_ms < 0 else max(0.0, now_ms - at_ms)
