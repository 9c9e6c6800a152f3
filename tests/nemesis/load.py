"""A producer that never rests beside the faults, and what of its records is gone afterwards."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Message, Producer

from wrackline.systems.wrackline.system import WracklineSystem


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
