"""Producers: one sends records and waits, the other does so in transactions."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from wrackline.clients_java import configs, errors
from wrackline.clients_java.consumers import JavaConsumer
from wrackline.clients_java.jvm import Kafka, opened
from wrackline.workloads.clients import outcomes
from wrackline.workloads.clients.base import Consumer, Outgoing, Settings
from wrackline.workloads.clients.outcomes import Outcome
from wrackline.workloads.clients.pending import Pending, ProducerOfOperations
from wrackline.workloads.payload import HEADER


class JavaProducer(ProducerOfOperations):
    """A producer of operations: each sends a few records and gets the outcome of every one.

    The library reports in a thread of its own; what it says is kept until ``serve`` passes it on."""

    def __init__(
        self, kafka: Kafka, bootstrap: str, settings: Settings, config: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(settings)
        self._kafka = kafka
        self._reports: SimpleQueue[tuple[Pending, int, Outcome]] = SimpleQueue()
        self._broken = False
        serializer = kafka.named("org.apache.kafka.common.serialization.ByteArraySerializer")
        self._handle = kafka.made(
            "producer.KafkaProducer",
            config or configs.producer(bootstrap, settings),
            serializer(),
            serializer(),
        )
        opened(self)

    @property
    def broken(self) -> bool:
        return self._broken

    @property
    def handle(self) -> Any:
        """The library's own object."""
        return self._handle

    def begin(
        self, topic: str, records: Sequence[Outgoing], finished: Callable[[list[Outcome]], None]
    ) -> None:
        kafka = self._kafka
        pending = self._under_way(len(records), finished)
        for place, record in enumerate(records):
            outgoing = kafka.record(
                topic,
                kafka.int(record.partition),
                kafka.long(record.timestamp_ms),
                kafka.bytes(record.key),
                None if record.is_tombstone else kafka.bytes(record.payload),
            )
            if record.is_tombstone:
                outgoing.headers().add(HEADER, kafka.bytes(record.payload))
            try:
                self._handle.send(outgoing, self._reporter(pending, place))
            except kafka.jpype.JException as error:
                thrown = kafka.thrown(error)
                self._broken = self._broken or thrown.fatal
                pending.settle(place, outcomes.refused(thrown.name))

    def _reporter(self, pending: Pending, place: int) -> Callable[[Any, Any], None]:
        caller = threading.get_ident()

        def report(metadata: Any, wrong: Any) -> None:
            if wrong is None:
                offset = metadata.offset() if metadata.hasOffset() else None
                told = outcomes.delivered(
                    None if offset is None else int(offset), int(metadata.timestamp()), acks=self._acks
                )
            else:
                thrown = self._kafka.thrown(wrong)
                self._broken = self._broken or thrown.fatal
                if threading.get_ident() == caller:  # inside of send(): it was never queued
                    told = outcomes.refused(thrown.name)
                else:
                    told = errors.failed(thrown, first_try=self._first_try)
            self._reports.put((pending, place, told))

        return report

    def serve(self, timeout_s: float) -> None:
        with contextlib.suppress(Empty):
            pending, place, told = self._reports.get(timeout=max(0.0, timeout_s))
            pending.settle(place, told)
            while True:
                pending, place, told = self._reports.get_nowait()
                pending.settle(place, told)
        self._expire()

    def close(self) -> None:
        """Closes the producer without time to wait: the library drops what is queued, and aborts no
        transaction by itself."""
        self._kafka.close(self, self._handle, self._kafka.ms(0))

    def end(self) -> None:
        self.close()


class JavaTransactionalProducer(JavaProducer):
    """One transaction at a time, of one transactional id. A call blocks for as long as the client was made
    to (configs.CALL_MS); the time that a caller gives is not looked at."""

    def __init__(
        self, kafka: Kafka, bootstrap: str, settings: Settings, transactional_id: str, timeout_ms: int
    ) -> None:
        config = configs.transactional(bootstrap, settings, transactional_id, timeout_ms)
        super().__init__(kafka, bootstrap, settings, config)

    def _call(self, method: Callable[..., Any], *arguments: Any) -> None:
        try:
            method(*arguments)
        except self._kafka.jpype.JException as error:
            thrown = self._kafka.thrown(error)
            self._broken = self._broken or thrown.fatal
            raise errors.error_of(thrown) from error

    def init_transactions(self, timeout_s: float) -> None:  # noqa: ARG002
        self._call(self._handle.initTransactions)

    def begin_transaction(self) -> None:
        self._call(self._handle.beginTransaction)

    def send_offsets(
        self,
        topic: str,
        offsets: Mapping[int, int],
        consumer: Consumer,
        timeout_s: float,  # noqa: ARG002
    ) -> None:
        assert isinstance(consumer, JavaConsumer)
        places = self._kafka.offsets(topic, offsets)
        self._call(self._handle.sendOffsetsToTransaction, places, consumer.handle.groupMetadata())

    def commit_transaction(self, timeout_s: float) -> None:  # noqa: ARG002
        self._call(self._handle.commitTransaction)

    def abort_transaction(self, timeout_s: float) -> None:  # noqa: ARG002
        self._call(self._handle.abortTransaction)
