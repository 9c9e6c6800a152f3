"""Small pieces every API's translation needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import groupby
from typing import Any, Protocol, TypeVar
from uuid import UUID

from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, TopicPartition
from wrackline.broker.wire.schema import NO_UUID

TopicNames = Callable[[UUID], str | None]
"""The name of a topic kept here, by its id: requests of newer versions name topics by id alone."""

NO_THROTTLE = timedelta(0)


class _HasTp(Protocol):
    @property
    def tp(self) -> TopicPartition: ...


T = TypeVar("T", bound=_HasTp)


def by_topic(items: Iterable[T]) -> list[tuple[str, list[T]]]:
    """Neighbours of one topic together, in the order given (order can matter: KIP-74)."""
    return [(topic, list(group)) for topic, group in groupby(items, key=lambda item: item.tp.topic)]


def milliseconds(value: timedelta) -> int:
    return value.days * 86_400_000 + value.seconds * 1_000 + value.microseconds // 1_000


def as_timedelta(value_ms: int) -> timedelta:
    return timedelta(milliseconds=value_ms)


def uuid_or_none(value: UUID | None) -> UUID | None:
    """kio's word for the zero id is None."""
    return None if value is None or value == NO_UUID else value


def topic_of(entity: Any, names: TopicNames) -> tuple[str, UUID | None]:
    """(name, id) of a request's topic; the name is "" when only an id was given and it is not of a log
    here."""
    topic_id = getattr(entity, "topic_id", None)
    name = getattr(entity, "topic", None) or getattr(entity, "name", None)
    if name is None and topic_id is not None:
        name = METADATA.topic if topic_id == METADATA_TOPIC_ID else names(topic_id)
    return name or "", topic_id
