"""Producers: one sends records and waits, the other does so in transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, Message

from wrackline.history.model import FAILED
from wrackline.workloads.clients import outcomes
from wrackline.workloads.clients.base import Consumer, Outgoing, Settings
from wrackline.workloads.clients.librdkafka.binding import binding
from wrackline.workloads.clients.librdkafka.common import Health, in_our_words, log, made
from wrackline.workloads.clients.librdkafka.consumers import RdkafkaConsumer
from wrackline.workloads.clients.outcomes import Outcome
from wrackline.workloads.clients.pending import Pending, ProducerOfOperations
from wrackline.workloads.payload import HEADER


class RdkafkaProducer(ProducerOfOperations):
    """A producer of operations: each sends a few records and gets the outcome of every one."""

    def __init__(self, bootstrap: str, settings: Settings, **own: Any) -> None:
        super().__init__(settings)
        client = settings.client
        self._health = Health()
        given: dict[str, Any] = {
            "acks": settings.acks,
            "enable.idempotence": settings.idempotence,
            "message.timeout.ms": client.message_timeout_ms,
            "request.timeout.ms": client.request_timeout_ms,
            "linger.ms": client.linger_ms,
            "compression.type": client.compression,
            "error_cb": self._health,
            **own,
        }
        if not settings.idempotence:
            given["retries"] = client.retries
        self._kafka = binding(client.version)
        self._handle = made(self._kafka, "Producer", bootstrap, settings, given)

    @property
    def broken(self) -> bool:
        return self._health.broken

    def begin(
        self, topic: str, records: Sequence[Outgoing], finished: Callable[[list[Outcome]], None]
    ) -> None:
        pending = self._under_way(len(records), finished)
        for place, record in enumerate(records):
            try:
                self._handle.produce(
                    topic,
                    None if record.is_tombstone else record.payload,
                    record.key,
                    record.partition,
                    on_delivery=self._reporter(pending, place),
                    timestamp=record.timestamp_ms,
                    headers=[(HEADER, record.payload)] if record.is_tombstone else None,
                )
            except BufferError:
                pending.settle(place, Outcome(FAILED, "_QUEUE_FULL"))
            except self._kafka.KafkaException as refusal:
                error = refusal.args[0]
                self._health.broken = self.broken or error.fatal()
                pending.settle(place, outcomes.refused(error.name()))

    def serve(self, timeout_s: float) -> None:
        try:
            self._handle.poll(timeout_s)
        except self._kafka.KafkaException as error:  # `error_cb` is not told of a fatal error
            if not error.args[0].fatal():
                raise
            self._health.broken = True
        self._expire()

    def _reporter(self, pending: Pending, place: int) -> Any:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                outcome = outcomes.failed(
                    error.code(), error.name(), first_try=self._first_try, acks=self._acks
                )
            else:
                outcome = outcomes.delivered(message.offset(), message.timestamp()[1], acks=self._acks)
            pending.settle(place, outcome)

        return report

    def close(self) -> None:
        self._handle.purge()
        if not hasattr(self._handle, "close"):  # before confluent-kafka 2.12
            del self._handle
            return
        try:
            self._handle.close()
        except self._kafka.KafkaException as fatal:  # told once more what broke it
            log.debug("%s", fatal)


class RdkafkaTransactionalProducer(RdkafkaProducer):
    """One transaction at a time, of one transactional id."""

    def __init__(
        self, bootstrap: str, settings: Settings, transactional_id: str, timeout_ms: int, **own: Any
    ) -> None:
        own |= {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        super().__init__(bootstrap, settings, **own)

    def close(self) -> None:
        """Drop the client: confluent-kafka's own ``close`` would abort a transaction that nobody asked it to
        abort."""
        self._handle.purge()
        del self._handle

    def init_transactions(self, timeout_s: float) -> None:
        with in_our_words(self._kafka):
            self._handle.init_transactions(timeout_s)

    def begin_transaction(self) -> None:
        with in_our_words(self._kafka):
            self._handle.begin_transaction()

    def send_offsets(
        self, topic: str, offsets: Mapping[int, int], consumer: Consumer, timeout_s: float
    ) -> None:
        assert isinstance(consumer, RdkafkaConsumer)
        place = self._kafka.TopicPartition
        places = [place(topic, partition, offset) for partition, offset in offsets.items()]
        with in_our_words(self._kafka):
            self._handle.send_offsets_to_transaction(places, consumer.group_metadata(), timeout_s)

    def commit_transaction(self, timeout_s: float) -> None:
        with in_our_words(self._kafka):
            self._handle.commit_transaction(timeout_s)

    def abort_transaction(self, timeout_s: float) -> None:
        with in_our_words(self._kafka):
            self._handle.abort_transaction(timeout_s)
