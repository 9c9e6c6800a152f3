"""The library ``librdkafka``: what makes its clients."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

from wrackline.workloads.clients.base import ClientError, GroupSettings, Settings
from wrackline.workloads.clients.librdkafka.admin import RdkafkaAdmin
from wrackline.workloads.clients.librdkafka.binding import binding
from wrackline.workloads.clients.librdkafka.consumers import RdkafkaConsumer
from wrackline.workloads.clients.librdkafka.members import RdkafkaMember
from wrackline.workloads.clients.librdkafka.producers import RdkafkaProducer, RdkafkaTransactionalProducer
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.clients.store import ClientStore
from wrackline.workloads.clients.versions import LIBRDKAFKA

_SENT_END_TXN = re.compile(r"Sent EndTxnRequest \(v(\d+),")
PROBE_S = 10.0
LOG_S = 2.0
"""How long after the transaction's end its log lines may still come."""


def library(client: ClientSettings) -> Librdkafka:
    """Makes the library in the version that the settings say; the entry point of the clients
    ``librdkafka``."""
    return Librdkafka(client.version)


class Librdkafka:
    name = "librdkafka"

    def __init__(self, version: str = "") -> None:
        """``version``: of confluent-kafka; "": as it is installed with Wrackline."""
        self._version = version

    @property
    def version(self) -> str:
        return str(binding(self._version).libversion()[0])

    def locate(self) -> str:
        return str(binding(self._version).__file__)

    def check(self, settings: Settings) -> None:
        """Make one client of each kind, which connects nowhere, and end it. A version that a run will
        fetch is asked once it is there."""
        if self._version and ClientStore(package=LIBRDKAFKA).find(self._version) is None:
            return
        self.producer("", settings).close()
        self.consumer("", settings, reset=settings.reset).close()

    def prepare(self, say: Callable[[str], None]) -> None:
        if self._version:
            ClientStore(package=LIBRDKAFKA).install(self._version, say=say).verify()
            binding(self._version)  # from the main thread

    def producer(self, bootstrap: str, settings: Settings) -> RdkafkaProducer:
        return RdkafkaProducer(bootstrap, settings)

    def transactional(
        self, bootstrap: str, settings: Settings, transactional_id: str, timeout_ms: int
    ) -> RdkafkaTransactionalProducer:
        return RdkafkaTransactionalProducer(bootstrap, settings, transactional_id, timeout_ms)

    def consumer(
        self,
        bootstrap: str,
        settings: Settings,
        *,
        tell_end: bool = False,
        isolation: str | None = None,
        group: str = "",
        reset: str = "",
    ) -> RdkafkaConsumer:
        return RdkafkaConsumer(
            bootstrap, settings, tell_end=tell_end, isolation=isolation, group=group, reset=reset
        )

    def admin(self, bootstrap: str, settings: Settings) -> RdkafkaAdmin:
        return RdkafkaAdmin(bootstrap, settings)

    def member(self, bootstrap: str, settings: Settings, group: GroupSettings) -> RdkafkaMember:
        return RdkafkaMember(bootstrap, settings, group)

    def end_txn_version(self, bootstrap: str, settings: Settings, topic: str, name: str) -> int | None:
        """librdkafka sends no EndTxn for a transaction that nothing belongs to, so an offset does. The
        version stands in its log of the protocol."""
        lines = _Lines()
        consumer = RdkafkaConsumer(bootstrap, settings, group=name)
        producer = RdkafkaTransactionalProducer(
            bootstrap, settings, name, 10_000, debug="protocol", logger=lines.logger
        )
        try:
            producer.init_transactions(PROBE_S)
            producer.begin_transaction()
            producer.send_offsets(topic, {0: 0}, consumer, PROBE_S)
            producer.abort_transaction(PROBE_S)
            deadline = time.monotonic() + LOG_S
            while (result := lines.end_txn_version) is None and time.monotonic() < deadline:
                producer.serve(0.1)
        except ClientError:
            return lines.end_txn_version
        finally:
            producer.close()
            consumer.close()
        return result


class _Lines(logging.Handler):
    """The log of one client, read and not kept."""

    def __init__(self) -> None:
        super().__init__()
        self.logger = logging.Logger("wrackline.client.probe", logging.DEBUG)
        self.logger.addHandler(self)
        self.end_txn_version: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if match := _SENT_END_TXN.search(record.getMessage()):
            self.end_txn_version = int(match[1])
