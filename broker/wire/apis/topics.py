"""CreateTopics, DeleteTopics and CreatePartitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.messages import metadata as m
from wrackline.broker.wire.api import api, forwarded_access
from wrackline.broker.wire.schema import NO_UUID
from wrackline.broker.wire.translation.declarations import Array, Pairs, message


class _Topic(NamedTuple):
    name: str | None
    topic_id: UUID | None


@dataclass(frozen=True, slots=True)
class _DeleteTopicsRequest:
    timeout_ms: int
    topics: tuple[_Topic, ...] = ()
    topic_names: tuple[str, ...] = ()
    """Before version 6."""


def _request_of_form(form: _DeleteTopicsRequest) -> m.DeleteTopicsRequest:
    return m.DeleteTopicsRequest(
        form.topic_names + tuple(topic.name for topic in form.topics if topic.name is not None),
        form.timeout_ms,
        tuple(topic.topic_id or NO_UUID for topic in form.topics if topic.name is None),
    )


def _form_of_request(request: m.DeleteTopicsRequest, *_: object) -> _DeleteTopicsRequest:
    names = (_Topic(name, None) for name in request.topics)
    return _DeleteTopicsRequest(
        request.timeout_ms, (*names, *(_Topic(None, topic_id) for topic_id in request.topic_ids))
    )


def _refusal(request: m.DeleteTopicsRequest, error: ErrorCode, why: str | None) -> m.DeleteTopicsResponse:
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
        forwarded_access(2, 7),
        request=message(
            m.CreateTopicsRequest,
            topics=Array(
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
            topics=Array(
                "topics", message(m.CreatedTopic, partitions="num_partitions", constants={"configs": ()})
            ),
        ),
    ),
    api(
        20,
        "DeleteTopics",
        forwarded_access(1, 6),
        request=message(
            m.DeleteTopicsRequest,
            form=_DeleteTopicsRequest,
            from_form=_request_of_form,
            to_form=_form_of_request,
            missing=("topic_names",),
        ),
        response=message(m.DeleteTopicsResponse, topics="responses"),
        refuse=_refusal,
    ),
    api(
        37,
        "CreatePartitions",
        forwarded_access(0, 3),
        request=message(
            a.CreatePartitionsRequest,
            topics=Array(
                "topics",
                message(a.NewPartitions, topic="name", assignments=Array("assignments", "broker_ids")),
            ),
        ),
        response=message(
            a.CreatePartitionsResponse, topics=Array("results", message(a.TopicOutcome, topic="name"))
        ),
    ),
)
