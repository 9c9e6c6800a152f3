"""Conversions of values, and the grouping of rows, by the functions that a translation calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import groupby
from typing import Protocol, TypeVar
from uuid import UUID

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.schema import NO_UUID
from wrackline.broker.wire.translation.declarations import Grouping

_MESSAGE_LENGTH = 1_000
"""Characters. It may quote a request, whose strings may be as long as strings can be, and must be one
itself."""


def milliseconds(value: timedelta) -> int:
    return value.days * 86_400_000 + value.seconds * 1_000 + value.microseconds // 1_000


def as_timedelta(value_ms: int) -> timedelta:
    return timedelta(milliseconds=value_ms)


def uuid_or_none(value: UUID | None) -> UUID | None:
    """Puts None in the place of the zero id, as kio does."""
    return None if value is None or value == NO_UUID else value


def shortened(text: str | None) -> str | None:
    """Cuts an error's message to a length that every version has room for."""
    return f"{text[:_MESSAGE_LENGTH]}..." if text is not None and len(text) > _MESSAGE_LENGTH else text


class _HasTp(Protocol):
    @property
    def tp(self) -> TopicPartition: ...


T = TypeVar("T")
WithTp = TypeVar("WithTp", bound=_HasTp)


def group_adjacent(items: Iterable[WithTp]) -> list[tuple[str, list[WithTp]]]:
    """Groups neighbours of one topic, in the order given (order can matter: KIP-74)."""
    return [(topic, list(group)) for topic, group in groupby(items, key=lambda item: item.tp.topic)]


def group_by_topic(items: Iterable[T], key: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    """Groups all of one topic, wherever they are."""
    topics: dict[str, list[T]] = {}
    for item in items:
        topics.setdefault(key(item), []).append(item)
    return list(topics.items())


def _separate(items: Iterable[T], key: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    return [(key(item), [item]) for item in items]


def _adjacent(items: Iterable[T], key: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    return [(topic, list(group)) for topic, group in groupby(items, key=key)]


GROUPINGS: Mapping[Grouping, Callable[..., object]] = {
    Grouping.ADJACENT: _adjacent,
    Grouping.BY_TOPIC: group_by_topic,
    Grouping.SEPARATE: _separate,
}
EMPTY: Mapping[type, object] = {str: "", bytes: b"", tuple: (), UUID: NO_UUID}
"""What null becomes where only one side knows it."""
