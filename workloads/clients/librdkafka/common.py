"""Common parts of all clients of librdkafka: settings, errors, the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import orjson
from confluent_kafka import KafkaError

from wrackline.workloads.clients.base import ClientError, RefusedSetting, Settings
from wrackline.workloads.clients.librdkafka.binding import binding

log = logging.getLogger("wrackline.client")

_COMMON: dict[str, Any] = {
    "socket.nagle.disable": True,
    "socket.keepalive.enable": True,
    "socket.connection.setup.timeout.ms": 2_000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 100,
    "topic.metadata.refresh.interval.ms": 5_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
    "allow.auto.create.topics": False,
    "enable.metrics.push": False,
    "log.connection.close": False,
}


class Health:
    """The health of a client by its errors; made to be its ``error_cb``."""

    def __init__(self) -> None:
        self.broken = False
        self.all_down = False

    def __call__(self, error: KafkaError) -> None:
        self.broken = self.broken or error.fatal()
        self.all_down = self.all_down or error.code() == KafkaError._ALL_BROKERS_DOWN
        log.debug("%s", error)


class Coordinator:
    """The coordinator of a client's group, by its statistics; made to be its ``stats_cb``. It is as old as
    the last of them."""

    EVERY_MS = 200
    _CONNECTION = "GroupCoordinator"
    """librdkafka's own connection to the coordinator, named like a broker."""

    def __init__(self) -> None:
        self.node = -1

    def __call__(self, statistics: str) -> None:
        brokers: dict[str, dict[str, Any]] = orjson.loads(statistics)["brokers"]
        address = brokers.get(self._CONNECTION, {}).get("nodename")
        nodes = (one["nodeid"] for one in brokers.values() if one["nodename"] == address)
        self.node = next((node for node in nodes if node >= 0), -1)


def made(kafka: ModuleType, kind: str, bootstrap: str, settings: Settings, own: Mapping[str, Any]) -> Any:
    """Makes a client; ``kind``: ``Producer`` or ``Consumer`` of ``kafka``. ``own`` may hold a logger besides
    properties. Raises RefusedSetting."""
    client = {"bootstrap.servers": bootstrap, "socket.timeout.ms": settings.client.socket_timeout_ms}
    try:
        return getattr(kafka, kind)({**_COMMON, **client, "logger": log, **own, **settings.client.librdkafka})
    except binding(settings.client.version).KafkaException as error:
        raise RefusedSetting(" ".join(error.args[0].str().split())) from error


def error_of(error: KafkaError) -> ClientError:
    return ClientError(
        error.name(),
        fatal=error.fatal(),
        again=error.retriable(),
        must_abort=error.txn_requires_abort(),
        said=error.str(),
    )


@contextmanager
def in_our_words(kafka: ModuleType) -> Iterator[None]:
    """Raises ClientError in the place of librdkafka's exceptions."""
    try:
        yield
    except kafka.KafkaException as error:
        raise error_of(error.args[0]) from error
