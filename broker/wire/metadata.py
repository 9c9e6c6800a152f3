"""Metadata (key 3, versions 0 to 12), DescribeCluster (60, 0 to 1), DescribeTopicPartitions (75, version
0)."""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, uuid_or_none
from wrackline.broker.wire.schema import Schema


def decode_metadata(entity: Any, _: TopicNames) -> MetadataRequest:
    topics = entity.topics
    # Version 0 cannot say null: its empty list means all topics.
    if topics is None or (entity.__version__ == 0 and not topics):
        names = None
    else:
        names = tuple(topic.name for topic in topics if topic.name is not None)
    return MetadataRequest(
        topics=names,
        topic_ids=tuple(
            topic.topic_id
            for topic in topics or ()
            if topic.name is None and getattr(topic, "topic_id", None) is not None
        ),
        allow_auto_topic_creation=getattr(entity, "allow_auto_topic_creation", True),
    )


def _encode_partition(schema: Schema, part: PartitionMetadata) -> Any:
    return schema.make(
        "MetadataResponsePartition",
        error_code=part.error,
        partition_index=part.partition,
        leader_id=part.leader_id,
        leader_epoch=part.leader_epoch,
        replica_nodes=part.replicas,
        isr_nodes=part.isr,
        offline_replicas=part.offline,
    )


def encode_metadata(schema: Schema, _: MetadataRequest, response: MetadataResponse) -> Any:
    make = schema.make
    return make(
        "MetadataResponse",
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            make(
                "MetadataResponseBroker",
                node_id=broker.node_id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
            )
            for broker in response.brokers
        ),
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        topics=tuple(
            make(
                "MetadataResponseTopic",
                error_code=topic.error,
                name=topic.name if topic.name is not None or schema.version >= 12 else "",
                topic_id=uuid_or_none(topic.topic_id),
                is_internal=topic.is_internal,
                partitions=tuple(_encode_partition(schema, part) for part in topic.partitions),
            )
            for topic in response.topics
        ),
    )


def decode_describe_cluster(entity: Any, _: TopicNames) -> DescribeClusterRequest:
    return DescribeClusterRequest(include_fenced=getattr(entity, "include_fenced_brokers", False))


def encode_describe_cluster(schema: Schema, _: DescribeClusterRequest, response: MetadataResponse) -> Any:
    make = schema.make
    return make(
        "DescribeClusterResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        brokers=tuple(
            make(
                "DescribeClusterBroker",
                broker_id=broker.node_id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
            )
            for broker in response.brokers
        ),
    )


def decode_describe_topics(entity: Any, _: TopicNames) -> DescribeTopicPartitionsRequest:
    cursor = entity.cursor
    return DescribeTopicPartitionsRequest(
        topics=tuple(topic.name for topic in entity.topics),
        partition_limit=entity.response_partition_limit,
        cursor=None if cursor is None else (cursor.topic_name, cursor.partition_index),
    )


def encode_describe_topics(
    schema: Schema, request: DescribeTopicPartitionsRequest, response: MetadataResponse
) -> Any:
    make = schema.make
    topics, left_off = _page(request, response.topics)
    return make(
        "DescribeTopicPartitionsResponse",
        throttle_time=NO_THROTTLE,
        topics=tuple(
            make(
                "DescribeTopicPartitionsResponseTopic",
                error_code=topic.error,
                name=topic.name,
                topic_id=uuid_or_none(topic.topic_id),
                is_internal=topic.is_internal,
                partitions=tuple(
                    make(
                        "DescribeTopicPartitionsResponsePartition",
                        error_code=part.error,
                        partition_index=part.partition,
                        leader_id=part.leader_id,
                        leader_epoch=part.leader_epoch,
                        replica_nodes=part.replicas,
                        isr_nodes=part.isr,
                        eligible_leader_replicas=part.elr,
                        last_known_elr=part.last_known_elr,
                        offline_replicas=part.offline,
                    )
                    for part in parts
                ),
            )
            for topic, parts in topics
        ),
        next_cursor=None
        if left_off is None
        else make("Cursor", topic_name=left_off[0], partition_index=left_off[1]),
    )


def _page(
    request: DescribeTopicPartitionsRequest, topics: tuple[TopicMetadata, ...]
) -> tuple[list[tuple[TopicMetadata, list[PartitionMetadata]]], tuple[str, int] | None]:
    """The topics from the cursor on, up to the limit of partitions, and where the next page begins."""
    first = request.cursor or ("", 0)
    left = max(request.partition_limit, 1)
    page: list[tuple[TopicMetadata, list[PartitionMetadata]]] = []
    for topic in sorted(topics, key=lambda topic: topic.name or ""):
        name = topic.name or ""
        if name < first[0]:
            continue
        wanted = [part for part in topic.partitions if (name, part.partition) >= first]
        if left == 0 and (wanted or not topic.partitions):
            return page, (name, wanted[0].partition if wanted else 0)
        page.append((topic, wanted[:left]))
        if len(wanted) > left:
            return page, (name, wanted[left].partition)
        left -= len(wanted)
    return page, None
