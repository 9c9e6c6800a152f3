"""A cluster of our broker, and a producer that never rests beside the faults: what of its records is gone."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Message, Producer

from wrackline.fleets.base import Fleet
from wrackline.systems.base import DeployError, TopicSpec
from wrackline.systems.wrackline.system import WracklineSystem

CONFIG = {
    "session_timeout_ms": 1_500,
    "heartbeat_interval_ms": 200,
    "replica_lag_time_max_ms": 3_000,
    "replica_fetch_backoff_ms": 200,
    "quorum_election_timeout_ms": 500,
    "quorum_fetch_timeout_ms": 1_000,
    "quorum_request_timeout_ms": 1_000,
}
"""Time-outs that are short, so that a fault shows soon."""
LOG = TopicSpec("log", 1, 3, {"min.insync.replicas": "2"})
DEADLINE_S = 60.0


@contextmanager
def started(
    fleet: Fleet, bundle_cache: Path, topic: TopicSpec = LOG, **settings: Any
) -> Iterator[WracklineSystem]:
    """A running cluster of our broker on these hosts, with the topic."""
    system = WracklineSystem(
        fleet, **{"cluster_id": "test-nemesis", "config": CONFIG, "bundle_cache": bundle_cache, **settings}
    )
    system.install()
    system.start_all()
    system.wait_ready()
    system.create_topic(topic)
    try:
        yield system
    finally:
        system.close()


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Asks again and again, also while nobody answers."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        with suppress(DeployError):
            if condition():
                return
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {what}"
        time.sleep(0.1)


@contextmanager
def producing(system: WracklineSystem, acks: str = "all") -> Iterator[Load]:
    """A load until the end of the block."""
    under_way = Load(os.urandom(4).hex().encode())
    with system.fleet.entered():
        thread = threading.Thread(target=under_way.run, args=(system.bootstrap(), acks))
        thread.start()
    try:
        yield under_way
    finally:
        under_way.stop.set()
        thread.join()


@dataclass
class Load:
    """A confluent-kafka producer that never rests; remembers what was acknowledged."""

    run_id: bytes
    acked: dict[bytes, int] = field(default_factory=dict)
    """Value -> offset, of partition 0: an offset can be acknowledged twice when records are lost."""
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, bootstrap: str, acks: str) -> None:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": acks,
                "linger.ms": 2,
                "message.timeout.ms": 3_000,
                "topic.metadata.refresh.interval.ms": 500,
                "reconnect.backoff.max.ms": 500,
                "retries": 0,
            }
        )
        number = 0
        while not self.stop.wait(0.004):
            value = b"%s %08d" % (self.run_id, number) + b"." * 500
            producer.produce("log", value, partition=0, on_delivery=self._delivered)
            producer.poll(0)
            number += 1
        producer.flush(5)

    def _delivered(self, error: object, message: Message) -> None:
        offset, value = message.offset(), message.value()
        if error is None and offset is not None and value is not None:
            self.acked[value] = offset


def missing(system: WracklineSystem, acked: Mapping[bytes, int]) -> dict[bytes, int]:
    state = system.describe().partition("log", 0)
    assert state is not None
    assert state.full_isr
    leader = next(node for node in system.brokers if node.node_id == state.leader)
    log = system.replica_log(leader, "log", 0)
    assert log.problem is None
    stored = {one.offset: one.value for one in log.records}
    return {value: offset for value, offset in acked.items() if stored.get(offset) != value}
