"""Added replicas share one budget of bytes per second; all others copy as fast as they can."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.broker.core.solo import CONTROLLER, T
from wrackline.broker.core.replication.throttle import Throttle
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.metadata.image import CLUSTER_DYNAMIC, ClusterImage
from wrackline.broker.model.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from wrackline.broker.model.types import Endpoint, TopicPartition
from wrackline.broker.rules.placement.topics import REPLICATION_RATE

ADDED, OTHER_ADDED, MEMBER = T, TopicPartition("t", 1), TopicPartition("t", 2)
CONFIG = BrokerConfig(4, "cluster", "b4", 9092, (Endpoint(CONTROLLER, "c", 9093),), replication_port=9094)


def image(rate: int | None) -> ClusterImage:
    """Node 4 is being added to two partitions and has long been in the third."""
    found = ClusterImage()
    topic = UUID(int=77)
    records = [TopicRecord("t", topic)]
    for number, (isr, adding) in enumerate([((1, 2), (4,)), ((1, 2), (4,)), ((1, 2, 4), ())]):
        records.append(PartitionRecord(number, topic, (1, 2, 4), isr, 1, 0, 0, adding))
    if rate is not None:
        records.append(ConfigRecord(*CLUSTER_DYNAMIC, REPLICATION_RATE, str(rate)))
    for offset, record in enumerate(records):
        found.apply(record, offset)
    return found


@pytest.mark.parametrize(
    ("rate", "partition", "most"),
    [(None, ADDED, 1_048_576), (5_000, MEMBER, 1_048_576), (5_000, ADDED, 5_000)],
)
def test_only_added_replicas_are_held_back(rate: int | None, partition: TopicPartition, most: int) -> None:
    """One fetch of theirs asks for at most a second's worth."""
    known = image(rate)
    throttle = Throttle(CONFIG)
    assert throttle.max_bytes(partition, known) == most
    again_ms = throttle.received(partition, 10_000, known, now_ms=1_000.0)
    assert again_ms == (3_000.0 if most == rate else 0.0)


def test_added_replicas_share_one_budget() -> None:
    """What one has received is paid for by the next, until that time is over."""
    known, throttle = image(5_000), Throttle(CONFIG)
    assert throttle.received(ADDED, 10_000, known, now_ms=1_000.0) == 3_000.0
    assert throttle.received(OTHER_ADDED, 5_000, known, now_ms=1_500.0) == 4_000.0
    assert throttle.received(ADDED, 5_000, known, now_ms=9_000.0) == 10_000.0
