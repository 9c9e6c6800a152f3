"""Administration: what clients ask of a topic besides its records."""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.clients_java.errors import error_of
from wrackline.clients_java.jvm import Kafka, opened
from wrackline.workloads.clients.base import Settings

WAIT_S = 5.0
"""How much longer than its own time a request is waited for."""


class JavaAdmin:
    broken = False

    def __init__(self, kafka: Kafka, settings: Settings, config: Mapping[str, str]) -> None:
        self._kafka = kafka
        self._wait_ms = settings.client.end_timeout_ms + round(WAIT_S * 1e3)
        self._unit = kafka.jpype.JClass("java.util.concurrent.TimeUnit").MILLISECONDS
        self._delete = kafka.named("org.apache.kafka.clients.admin.RecordsToDelete")
        kafka.enter()
        self._handle = kafka.named("org.apache.kafka.clients.admin.Admin").create(kafka.map(config))
        opened(self)

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        kafka = self._kafka
        place = kafka.place(topic, partition)
        try:
            asked = {place: self._delete.beforeOffset(kafka.long(before))}
            future = self._handle.deleteRecords(kafka.map(asked)).lowWatermarks().get(place)
            return int(future.get(kafka.long(self._wait_ms), self._unit).lowWatermark())
        except kafka.jpype.JException as error:
            raise error_of(kafka.thrown(error.getCause() or error)) from error

    def close(self) -> None:
        self._kafka.close(self, self._handle, self._kafka.ms(0))

    def end(self) -> None:
        self.close()
