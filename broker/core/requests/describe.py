"""Answers to Metadata, DescribeCluster and DescribeTopicPartitions from an image; brokers and controllers
alike."""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from wrackline.broker.model.metadata.image import ClusterImage, PartitionImage, TopicImage
from wrackline.broker.model.types import NO_LEADER, Endpoint, NodeId

DescribeRequest = MetadataRequest | DescribeClusterRequest | DescribeTopicPartitionsRequest


def describe(
    image: ClusterImage, request: DescribeRequest, cluster_id: str, controller_id: NodeId
) -> MetadataResponse:
    """``controller_id`` is whom clients are to send administration to: it must be a node they are told of."""
    brokers = [image.brokers[broker] for broker in sorted(image.brokers)]
    return MetadataResponse(
        brokers=tuple(Endpoint(b.id, b.host, b.port, b.rack) for b in brokers if not b.fenced),
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=_topics(image, request),
        fenced=tuple(b.id for b in brokers if b.fenced),
    )


def _topics(image: ClusterImage, request: DescribeRequest) -> tuple[TopicMetadata, ...]:
    if isinstance(request, DescribeClusterRequest):
        return ()
    names: tuple[str, ...] = request.topics or ()
    ids: tuple[UUID, ...] = ()
    if isinstance(request, MetadataRequest):
        ids = request.topic_ids
        all_of_them = request.topics is None and not ids
    else:
        all_of_them = not names
    if all_of_them:
        return tuple(_topic(image, image.topics_by_name[name]) for name in sorted(image.topics_by_name))
    unknown = ErrorCode.unknown_topic_or_partition
    result = [
        _topic(image, image.topics_by_name[name])
        if name in image.topics_by_name
        else TopicMetadata(name, UUID(int=0), error=unknown)
        for name in dict.fromkeys(names)
    ]
    result += [
        _topic(image, image.topics_by_id[topic_id])
        if topic_id in image.topics_by_id
        else TopicMetadata(None, topic_id, error=ErrorCode.unknown_topic_id)
        for topic_id in dict.fromkeys(ids)
    ]
    return tuple(result)


def _topic(image: ClusterImage, topic: TopicImage) -> TopicMetadata:
    numbers = sorted(topic.partitions)
    return TopicMetadata(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(_partition(image, topic.partitions[number]) for number in numbers),
    )


def _partition(image: ClusterImage, partition: PartitionImage) -> PartitionMetadata:
    return PartitionMetadata(
        partition=partition.tp.partition,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replicas=partition.replicas,
        isr=partition.isr,
        offline=tuple(b for b in partition.replicas if not _alive(image, b)),
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        partition_epoch=partition.partition_epoch,
        error=ErrorCode.leader_not_available if partition.leader == NO_LEADER else ErrorCode.none,
    )


def _alive(image: ClusterImage, broker: NodeId) -> bool:
    return broker in image.brokers and not image.brokers[broker].fenced
