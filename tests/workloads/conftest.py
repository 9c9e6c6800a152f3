"""librdkafka's own mock cluster, on loopback."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

PARTITIONS = 4


@pytest.fixture
def mock_cluster() -> Iterator[str]:
    """``host:port,...`` of three mock brokers, which live as long as the client that made them."""
    quiet = logging.getLogger("mock-cluster")
    quiet.setLevel(logging.CRITICAL)
    owner = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "unused"}, logger=quiet)
    brokers = owner.list_topics(timeout=10).brokers.values()
    bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    assert (
        len(owner.list_topics("log", timeout=10).topics["log"].partitions) == PARTITIONS
    )  # made when asked for
    yield bootstrap
    del owner
