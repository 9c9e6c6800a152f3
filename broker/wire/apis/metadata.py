"""Metadata, DescribeCluster and DescribeTopicPartitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import metadata as m
from wrackline.broker.model.types import Endpoint
from wrackline.broker.wire.api import CLIENT, CONTROLLER, Access, api
from wrackline.broker.wire.declarations import At, Each, One, Row, message
from wrackline.broker.wire.schema import NO_UUID, Entity


def _open(low: int, high: int) -> Access:
    """Answered by brokers and controllers, each of itself."""
    return Access(clients=(low, high), open_on=(CLIENT, CONTROLLER))


class _Topic(NamedTuple):
    name: str | None
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class _MetadataRequest:
    topics: tuple[_Topic, ...] | None
    allow_auto_topic_creation: bool


def _all_topics(entity: Entity) -> m.MetadataRequest | None:
    """Version 0 cannot say null: its empty list means all topics."""
    all_of_them = entity.__version__ == 0 and not entity.topics
    return m.MetadataRequest(None, allow_auto_topic_creation=True) if all_of_them else None


def _metadata_request(form: _MetadataRequest) -> m.MetadataRequest:
    topics = form.topics
    return m.MetadataRequest(
        None if topics is None else tuple(topic.name for topic in topics if topic.name is not None),
        tuple(topic.topic_id for topic in topics or () if topic.name is None and topic.topic_id is not None),
        form.allow_auto_topic_creation,
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """Of an answer to DescribeTopicPartitions."""

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
        wanted = tuple(part for part in topic.partitions if (name, part.partition) >= first)
        if left == 0 and (wanted or not topic.partitions):
            return _Page(tuple(page), (name, wanted[0].partition if wanted else 0))
        page.append(replace(topic, partitions=wanted[:left]))
        if len(wanted) > left:
            return _Page(tuple(page), (name, wanted[left].partition))
        left -= len(wanted)
    return _Page(tuple(page), None)


_PARTITION = message(
    m.PartitionMetadata,
    partition="partition_index",
    replicas="replica_nodes",
    isr="isr_nodes",
    offline="offline_replicas",
    elr="eligible_leader_replicas",
    lacking=("partition_epoch", "elr", "last_known_elr"),
)
_TOPIC = message(m.TopicMetadata, partitions=Each("partitions", _PARTITION))


def _refused(
    request: m.MetadataRequest | m.DescribeTopicPartitionsRequest, error: ErrorCode, _: str | None
) -> m.MetadataResponse:
    topics = tuple(m.TopicMetadata(name, NO_UUID, error=error) for name in request.topics or ())
    return m.MetadataResponse((), "", -1, topics)


def _refused_description(_: m.DescribeClusterRequest, error: ErrorCode, __: str | None) -> m.MetadataResponse:
    return m.MetadataResponse((), "", -1, error=error)


APIS = (
    api(
        3,
        "Metadata",
        _open(0, 12),
        request=message(
            m.MetadataRequest,
            form=_MetadataRequest,
            first=_all_topics,
            finish=_metadata_request,
            allow_auto_topic_creation=At(absent=True),
        ),
        response=message(m.MetadataResponse, topics=Each("topics", _TOPIC), lacking=("fenced", "error")),
        refuse=_refused,
    ),
    api(
        60,
        "DescribeCluster",
        _open(0, 1),
        request=message(m.DescribeClusterRequest, lacking=("include_fenced",)),
        response=message(
            m.MetadataResponse,
            brokers=Each("brokers", message(Endpoint, node_id="broker_id")),
            lacking=("topics", "fenced"),
        ),
        refuse=_refused_description,
    ),
    api(
        75,
        "DescribeTopicPartitions",
        _open(0, 0),
        request=message(
            m.DescribeTopicPartitionsRequest,
            topics=Each("topics", "name"),
            partition_limit="response_partition_limit",
            cursor=One("cursor", Row("topic_name", "partition_index")),
        ),
        response=message(
            m.MetadataResponse,
            form=_Page,
            prepare=_page,
            topics=Each("topics", _TOPIC),
            next_cursor=One("next_cursor", Row("topic_name", "partition_index")),
        ),
        refuse=_refused,
    ),
)
