"""The demands of a topic's settings on each of its replicas, as the metadata has them at the moment.

Every setting that `wrackline.broker.rules.placement.topics` accepts is honoured: min.insync.replicas,
max.message.bytes and unclean.leader.election.enable elsewhere, these here; the rest have one legal value.
"""

from __future__ import annotations

from dataclasses import field

from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import LogOverrides
from wrackline.broker.model.values import dataclass

UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class TopicSettings:
    flush_messages: int | None = None
    """Records that may be unflushed; 1 flushes every write before it counts (R01). None: the broker's flush
    mode."""
    flush_ms: int | None = None
    """How long a record may be unflushed."""
    retention_bytes: int = UNLIMITED
    retention_ms: int = UNLIMITED
    on_disk: LogOverrides = field(default_factory=LogOverrides)

    @property
    def retains_all(self) -> bool:
        return self.retention_bytes == UNLIMITED and self.retention_ms == UNLIMITED


def settings_of(image: ClusterImage, topic: str) -> TopicSettings:
    """The topic's own settings, else the cluster's defaults."""

    def number(key: str) -> int | None:
        value = image.setting(topic, key)
        return None if value is None else int(value)

    def limit(key: str) -> int:
        value = number(key)
        return UNLIMITED if value is None else value

    return TopicSettings(
        flush_messages=number("flush.messages"),
        flush_ms=number("flush.ms"),
        retention_bytes=limit("retention.bytes"),
        retention_ms=limit("retention.ms"),
        on_disk=LogOverrides(
            segment_bytes=number("segment.bytes"),
            segment_ms=number("segment.ms"),
            index_interval_bytes=number("index.interval.bytes"),
        ),
    )
