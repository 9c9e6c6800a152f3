"""Added replicas copy no faster than the cluster allows (``follower.replication.throttled.rate``).

One budget per broker, in bytes per second: what was received is paid for by waiting before the next fetch of
that partition. Replicas that are in a set already are never held back, so no ISR suffers.
"""

from __future__ import annotations

from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.rules.placement.topics import REPLICATION_RATE


class Throttle:
    """``image`` is what the broker knows of the cluster at the time of the call."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._paid_until_ms = 0.0

    def rate(self, tp: TopicPartition, image: ClusterImage) -> int | None:
        """Bytes per second for this broker's replica, None for as fast as it can."""
        limit = image.cluster_setting(REPLICATION_RATE)
        if limit is None:
            return None
        partition = image.partition(tp)
        added = partition is not None and self._config.node_id in partition.adding
        return int(limit) if added else None

    def max_bytes(self, tp: TopicPartition, image: ClusterImage) -> int:
        """Returns the limit of one fetch: at most a second's worth, so that no single answer stops the rest
        for long."""
        most, rate = self._config.replica_fetch_max_bytes, self.rate(tp, image)
        return most if rate is None else min(most, rate)

    def received(self, tp: TopicPartition, size_bytes: int, image: ClusterImage, now_ms: float) -> float:
        """When the partition may be fetched again."""
        rate = self.rate(tp, image)
        if rate is None:
            return 0.0
        self._paid_until_ms = max(self._paid_until_ms, now_ms) + 1_000 * size_bytes / rate
        return self._paid_until_ms
