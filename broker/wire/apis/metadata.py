"""Metadata, DescribeCluster and DescribeTopicPartitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import metadata as m
from wrackline.broker.model.types import Endpoint
from wrackline.broker.wire.api import CLIENT, CONTROLLER, Access, api
from wrackline.broker.wire.schema import NO_UUID, Entity
from wrackline.broker.wire.translation.declarations import Array, FieldPath, Items, Struct, message


def _self_access(low: int, high: int) -> Access:
    """Answered by brokers and controllers, each of itself."""
    return Access(clients=(low, high), open_on=(CLIENT, CONTROLLER))


class _Topic(NamedTuple):
    name: str | None
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class _MetadataRequest:
    topics: tuple[_Topic, ...] | None
    allow_auto_topic_creation: bool


def _check_all_topics(entity: Entity) -> m.MetadataRequest | None:
    """Version 0 cannot say null: its empty list means all topics."""
    all_of_them = entity.__version__ == 0 and not entity.topics
    return m.MetadataRequest(None, allow_auto_topic_creation=True) if all_of_them else None


def _request_of_form(form: _MetadataRequest) -> m.MetadataRequest:
    topics = form.topics
    return m.MetadataRequest(
        None if topics is None else tuple(topic.name for topic in topics if topic.name is not None),
        tuple(topic.topic_id for topic in topics or () if topic.name is None and topic.topic_id is not None),
        form.allow_auto_topic_creation,
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of an answer to DescribeTopicPartitions."""

    topics: tuple[m.TopicMetadata, ...]
    next_cursor: tuple[str, int] | None


def _page(response: m.MetadataResponse, request: m.DescribeTopicPartitionsRequest, _: int) -> _Page:
    """The topics from the cursor on, up to the limit of partitions, and where the next page begins."""
    first = request.cursor or ("", 0)
    left = max(request.partition_limit, 1)
    page: list[m.TopicMetadata] = []
    for topic in sorted(response.topics, key=lambda topic: topic.name or ""):
        name = topic.name or ""
        if name < first[0]:
            continue
        expected = tuple(part for part in topic.partitions if (name, part.partition) >= first)
        if left == 0 and (expected or not topic.partitions):
            return _Page(tuple(page), (name, expected[0].partition if expected else 0))
        page.append(replace(topic, partitions=expected[:left]))
        if len(expected) > left:
            return _Page(tuple(page), (name, expected[left].partition))
        left -= len(expected)
    return _Page(tuple(page), None)


_PARTITION = message(
    m.PartitionMetadata,
    partition="partition_index",
    replicas="replica_nodes",
    isr="isr_nodes",
    offline="offline_replicas",
    elr="eligible_leader_replicas",
    missing=("partition_epoch", "elr", "last_known_elr"),
)
_TOPIC = message(m.TopicMetadata, partitions=Array("partitions", _PARTITION))


def _refusal(
    request: m.MetadataRequest | m.DescribeTopicPartitionsRequest, error: ErrorCode, _: str | None
) -> m.MetadataResponse:
    topics = tuple(m.TopicMetadata(name, NO_UUID, error=error) for name in request.topics or ())
    return m.MetadataResponse((), "", -1, topics)


def _cluster_refusal(_: m.DescribeClusterRequest, error: ErrorCode, __: str | None) -> m.MetadataResponse:
    return m.MetadataResponse((), "", -1, error=error)


APIS = (
    api(
        3,
        "Metadata",
        _self_access(0, 12),
        request=message(
            m.MetadataRequest,
            form=_MetadataRequest,
            check=_check_all_topics,
            from_form=_request_of_form,
            allow_auto_topic_creation=FieldPath(absent=True),
        ),
        response=message(m.MetadataResponse, topics=Array("topics", _TOPIC), missing=("fenced", "error")),
        refuse=_refusal,
    ),
    api(
        60,
        "DescribeCluster",
        _self_access(0, 1),
        request=message(m.DescribeClusterRequest, missing=("include_fenced",)),
        response=message(
            m.MetadataResponse,
            brokers=Array("brokers", message(Endpoint, node_id="broker_id")),
            missing=("topics", "fenced"),
        ),
        refuse=_cluster_refusal,
    ),
    api(
        75,
        "DescribeTopicPartitions",
        _self_access(0, 0),
        request=message(
            m.DescribeTopicPartitionsRequest,
            topics=Array("topics", "name"),
            partition_limit="response_partition_limit",
            cursor=Struct("cursor", Items("topic_name", "partition_index")),
        ),
        response=message(
            m.MetadataResponse,
            form=_Page,
            to_form=_page,
            topics=Array("topics", _TOPIC),
            next_cursor=Struct("next_cursor", Items("topic_name", "partition_index")),
        ),
        refuse=_refusal,
    ),
)
