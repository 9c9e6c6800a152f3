"""The messages that a guided schedule waits for, or holds."""

from __future__ import annotations

from wrackline.broker.model.messages.requests import FetchResponse
from wrackline.simulator.guided.setting import T
from wrackline.simulator.world.network import Matches, Message


def has_high_watermark(at_least: int) -> Matches:
    """Matches responses to fetches whose high watermark is at least this."""
    return lambda m: (
        isinstance(m.response, FetchResponse)
        and any(part.tp == T and part.high_watermark >= at_least for part in m.response.partitions)
    )


def carries_records(message: Message) -> bool:
    return isinstance(message.response, FetchResponse) and any(
        part.tp == T and part.records for part in message.response.partitions
    )


def diverges(message: Message) -> bool:
    return isinstance(message.response, FetchResponse) and any(
        part.tp == T and part.diverging is not None for part in message.response.partitions
    )
