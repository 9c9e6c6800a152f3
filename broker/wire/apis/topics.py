"""CreateTopics, DeleteTopics and CreatePartitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.messages import metadata as m
from wrackline.broker.wire.api import api, passed_on
from wrackline.broker.wire.declarations import Each, Pairs, message
from wrackline.broker.wire.schema import NO_UUID


class _Topic(NamedTuple):
    name: str | None
    topic_id: UUID | None


@dataclass(frozen=True, slots=True)
class _DeleteTopicsRequest:
    timeout_ms: int
    topics: tuple[_Topic, ...] = ()
    topic_names: tuple[str, ...] = ()
    """Before version 6."""


def _by_name_or_id(form: _DeleteTopicsRequest) -> m.DeleteTopicsRequest:
    return m.DeleteTopicsRequest(
        form.topic_names + tuple(topic.name for topic in form.topics if topic.name is not None),
        form.timeout_ms,
        tuple(topic.topic_id or NO_UUID for topic in form.topics if topic.name is None),
    )


def _deleted(request: m.DeleteTopicsRequest, *_: object) -> _DeleteTopicsRequest:
    names = (_Topic(name, None) for name in request.topics)
    return _DeleteTopicsRequest(
        request.timeout_ms, (*names, *(_Topic(None, topic_id) for topic_id in request.topic_ids))
    )


def _refused(request: m.DeleteTopicsRequest, error: ErrorCode, why: str | None) -> m.DeleteTopicsResponse:
    return m.DeleteTopicsResponse(
        (
            *(m.DeletedTopic(name, error, message=why) for name in request.topics),
            *(m.DeletedTopic(None, error, topic_id, why) for topic_id in request.topic_ids),
        )
    )


APIS = (
    api(
        19,
        "CreateTopics",
        passed_on(2, 7),
        request=message(
            m.CreateTopicsRequest,
            topics=Each(
                "topics",
                message(
                    m.NewTopic,
                    partitions="num_partitions",
                    assignments=Pairs("assignments", "partition_index", "broker_ids"),
                    configs=Pairs("configs", "name", "value"),
                ),
            ),
        ),
        response=message(
            m.CreateTopicsResponse,
            topics=Each(
                "topics", message(m.CreatedTopic, partitions="num_partitions", fixed={"configs": ()})
            ),
        ),
    ),
    api(
        20,
        "DeleteTopics",
        passed_on(1, 6),
        request=message(
            m.DeleteTopicsRequest,
            form=_DeleteTopicsRequest,
            finish=_by_name_or_id,
            prepare=_deleted,
            lacking=("topic_names",),
        ),
        response=message(m.DeleteTopicsResponse, topics="responses"),
        refuse=_refused,
    ),
    api(
        37,
        "CreatePartitions",
        passed_on(0, 3),
        request=message(
            a.CreatePartitionsRequest,
            topics=Each(
                "topics",
                message(a.NewPartitions, topic="name", assignments=Each("assignments", "broker_ids")),
            ),
        ),
        response=message(
            a.CreatePartitionsResponse, topics=Each("results", message(a.TopicOutcome, topic="name"))
        ),
    ),
)
