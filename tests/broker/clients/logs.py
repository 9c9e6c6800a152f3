"""Producing and reading with librdkafka, short and strict."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.broker.clients.loopback import wait_for


def produce(
    bootstrap: str, topic: str, values: Iterable[bytes], *, partition: int = 0, **settings: object
) -> dict[bytes, int]:
    """Value -> offset of what was acknowledged; what was not is left out."""
    config = {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "delivery.timeout.ms": 20_000,
        "log_level": 0,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    acked: dict[bytes, int] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acked[bytes(message.value() or b"")] = message.offset() or 0

    producer = Producer(config)
    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=delivered)
        producer.poll(0)
    left = producer.flush(25)
    assert left == 0, f"{left} messages without an outcome"
    return acked


def consume(
    bootstrap: str,
    topic: str,
    count: int,
    *,
    partition: int = 0,
    start: int = 0,
    timeout_s: float = 15.0,
    **more: object,
) -> list[tuple[int, bytes]]:
    """(offset, value) of the first ``count`` records from ``start``; fewer only after the deadline."""
    settings: Mapping[str, object] = {
        "bootstrap.servers": bootstrap,
        "group.id": "tests",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "check.crcs": True,
        "log_level": 0,
        **more,
    }
    consumer = Consumer(dict(settings))
    consumer.assign([TopicPartition(topic, partition, start)])
    got: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + timeout_s
    try:
        while len(got) < count and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.2):
                error = message.error()
                assert error is None or error.retriable(), error
                if error is None:
                    got.append((message.offset() or 0, bytes(message.value() or b"")))
    finally:
        consumer.close()
    return got


def end_offset(bootstrap: str, topic: str, partition: int = 0) -> int:
    """Asked anew while the client's metadata lags behind an election."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests", "log_level": 0})
    where = TopicPartition(topic, partition)
    try:
        return int(wait_for("an end offset", lambda: consumer.get_watermark_offsets(where, timeout=5))[1])
    finally:
        consumer.close()
