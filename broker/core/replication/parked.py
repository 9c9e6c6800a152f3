"""Requests that are parked at a replica until enough of its log is committed, or there to be read.

``purgatory`` parks and answers them; the replica only holds what waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from wrackline.broker.model.messages.requests import FetchRequest, ProduceResult
from wrackline.broker.model.types import TopicPartition


@dataclass(slots=True)
class ParkedProduce:
    request_id: int
    results: list[ProduceResult]
    waiting: set[int] = field(default_factory=set)
    """Indices into ``results`` that are not decided yet."""


class Waiter(NamedTuple):
    """Ordered by the offset it needs, then by arrival: acknowledgements leave in offset order."""

    required: int
    order: int
    slot: int
    parked: ParkedProduce


@dataclass(slots=True)
class ParkedFetch:
    request_id: int
    request: FetchRequest
    readable: dict[TopicPartition, int]
    """Bytes there are now, by partition."""
    total: int
    """The sum of ``readable``."""
