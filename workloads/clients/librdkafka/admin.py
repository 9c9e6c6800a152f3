"""Administration: what clients ask of a topic besides its records."""

from __future__ import annotations

from wrackline.workloads.clients.base import Settings
from wrackline.workloads.clients.librdkafka.binding import binding
from wrackline.workloads.clients.librdkafka.common import Health, in_our_words, made

WAIT_S = 5.0
"""How much longer than its own time a request is waited for."""


class RdkafkaAdmin:
    def __init__(self, bootstrap: str, settings: Settings) -> None:
        self._kafka = binding(settings.client.version)
        self._health = Health()
        self._request_s = settings.client.end_timeout_ms / 1e3
        own = {"error_cb": self._health}
        self._handle = made(self._kafka.admin, "AdminClient", bootstrap, settings, own)

    @property
    def broken(self) -> bool:
        return self._health.broken

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = self._kafka.TopicPartition(topic, partition, before)
        with in_our_words(self._kafka):
            [future] = self._handle.delete_records(
                [place], request_timeout=self._request_s, operation_timeout=self._request_s
            ).values()
            return int(future.result(self._request_s + WAIT_S).low_watermark)

    def close(self) -> None:
        del self._handle
