"""Clusters with ZooKeeper, driven and watched by tests."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Producer

from wrackline.systems.base import PartitionState, System

SEEN_S = 40.0


def produce(system: System, count: int, *, times: int = 1, **client: object) -> dict[int, bytes]:
    """Offset -> value, as acknowledged (acks=all). ``times``: how often a value repeats itself. ``client``:
    further settings of librdkafka."""
    acked: dict[int, bytes] = {}
    settings = {"bootstrap.servers": system.bootstrap(), "acks": "all", "linger.ms": 1, **client}
    with system.fleet.entered():
        producer = Producer(settings)
        for number in range(count):
            producer.produce(
                "log",
                f"value-{number}".encode() * times,
                partition=0,
                on_delivery=lambda _, m: acked.update({m.offset() or 0: m.value() or b""}),
            )
        assert producer.flush(60) == 0
    return acked


def until(system: System, met: Callable[[PartitionState], bool]) -> PartitionState:
    """The state of the only partition that there is, once it is as wanted."""
    deadline = time.monotonic() + SEEN_S
    while True:
        [found] = system.describe().partitions
        if met(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
