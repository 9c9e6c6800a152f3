"""confluent-kafka behind two small classes: one sends records and waits, one reads and asks for the end.

librdkafka's threads inherit the network namespace of the thread that makes the client, so clients are made
inside ``fleet.entered()``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from wrackline.history.model import FAILED, UNKNOWN
from wrackline.workloads.log import outcomes
from wrackline.workloads.log.outcomes import Outcome
from wrackline.workloads.log.spec import ClientsSpec

log = logging.getLogger("wrackline.client")

REPORT_GRACE_S = 2.0
"""How long after the message timeout a delivery report may still come."""
POSITION_LOST = frozenset(
    {KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION}
)
"""After these read errors the consumer has no position, and must be assigned one."""
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


@dataclass(frozen=True, slots=True)
class Outgoing:
    partition: int
    key: bytes
    payload: bytes
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Polled:
    """What one poll brought. ``error``: the first error event among it; ``ended``: partition -> offset where
    the consumer met the end (only with ``tell_end``)."""

    messages: Sequence[Message]
    error: KafkaError | None
    ended: Mapping[int, int]


def present(number: int | None) -> int:
    """The number itself; every consumed message has one, though the type of the method allows None."""
    return -1 if number is None else number


def _settings(bootstrap: str, spec: ClientsSpec, own: Mapping[str, Any]) -> dict[str, Any]:
    client = {"bootstrap.servers": bootstrap, "socket.timeout.ms": spec.client.socket_timeout_ms}
    return {**_COMMON, **client, **own, **spec.client.librdkafka}


class _Pending:
    """One operation's records on their way. Thread-safe."""

    def __init__(self, count: int, deadline: float, finished: Callable[[list[Outcome]], None]) -> None:
        self.deadline = deadline
        self._found: list[Outcome | None] = [None] * count
        self._left = count
        self._finished: Callable[[list[Outcome]], None] | None = finished
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        return self._finished is None

    def settle(self, place: int, outcome: Outcome) -> None:
        """What became of one record; ignored once the operation is over."""
        with self._lock:
            if self._found[place] is None:
                self._found[place] = outcome
                self._left -= 1
            done = self._take() if not self._left else None
        self._tell(done)

    def expire(self) -> None:
        """What is not known by now is unknown for ever."""
        with self._lock:
            done = self._take()
        self._tell(done)

    def _take(self) -> Callable[[list[Outcome]], None] | None:
        done, self._finished = self._finished, None
        return done

    def _tell(self, finished: Callable[[list[Outcome]], None] | None) -> None:
        if finished is not None:
            finished([outcome or Outcome(UNKNOWN, "_NO_REPORT") for outcome in self._found])


def try_settings(spec: ClientsSpec) -> None:
    """Make one client of each kind, which connects nowhere, and end it. Raises KafkaException with what
    librdkafka says of a value that is none."""
    LogProducer("", spec).close()
    LogConsumer("", spec).close()


class LogProducer:
    """A producer of operations: each sends a few records and gets the outcome of every one."""

    def __init__(self, bootstrap: str, spec: ClientsSpec) -> None:
        """Raises KafkaException when librdkafka refuses a setting."""
        client = spec.client
        settings: dict[str, Any] = {
            "acks": spec.acks,
            "enable.idempotence": spec.idempotence,
            "message.timeout.ms": client.message_timeout_ms,
            "request.timeout.ms": client.request_timeout_ms,
            "linger.ms": client.linger_ms,
            "error_cb": self._on_error,
        }
        if not spec.idempotence:
            settings["retries"] = client.retries
        self._acks = spec.acks
        self._first_try = not spec.idempotence and client.retries == 0
        self._deadline_s = client.message_timeout_ms / 1e3 + REPORT_GRACE_S
        self.broken = False
        """A fatal error: this client can send no more."""
        self._pending: deque[_Pending] = deque()
        """Oldest first: all have the same time to live."""
        self._producer = Producer(_settings(bootstrap, spec, settings), logger=log)

    def _on_error(self, error: KafkaError) -> None:
        self.broken = self.broken or error.fatal()
        log.debug("%s", error)

    def begin(
        self, topic: str, records: Sequence[Outgoing], finished: Callable[[list[Outcome]], None]
    ) -> None:
        """Hand records over and return; ``finished`` is given one outcome per record, in order, once: by
        ``serve`` in the thread that calls it, or here when the client refused them all."""
        pending = _Pending(len(records), time.monotonic() + self._deadline_s, finished)
        self._pending.append(pending)
        for place, record in enumerate(records):
            try:
                self._producer.produce(
                    topic,
                    record.payload,
                    record.key,
                    record.partition,
                    on_delivery=self._reporter(pending, place),
                    timestamp=record.timestamp_ms,
                )
            except BufferError:
                pending.settle(place, Outcome(FAILED, "_QUEUE_FULL"))
            except KafkaException as refusal:
                self.broken = self.broken or refusal.args[0].fatal()
                pending.settle(place, outcomes.refused(refusal.args[0]))

    def serve(self, timeout_s: float) -> None:
        """Wait up to so long for delivery reports and pass them on. A record without one by its deadline is
        unknown. One thread at a time; another may call ``begin`` meanwhile."""
        self._producer.poll(timeout_s)
        now = time.monotonic()
        while self._pending and (self._pending[0].over or self._pending[0].deadline <= now):
            self._pending.popleft().expire()

    def send(self, topic: str, records: Sequence[Outgoing]) -> list[Outcome]:
        """Send and wait: ``begin``, and ``serve`` until all is known."""
        found: list[list[Outcome]] = []
        self.begin(topic, records, found.append)
        while not found:
            self.serve(0.5)
        return found[0]

    def _reporter(self, pending: _Pending, place: int) -> Any:
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
        """Drop what is queued and end the client; takes as long as librdkafka's threads need."""
        self._producer.purge()
        self._producer.close()


class LogConsumer:
    """A consumer without a group: takes partitions by itself and reads uncommitted."""

    def __init__(self, bootstrap: str, spec: ClientsSpec, *, tell_end: bool = False) -> None:
        """Raises KafkaException when librdkafka refuses a setting."""
        client = spec.client
        self._spec = spec
        self.broken = False
        self._all_down = False
        settings: dict[str, Any] = {
            "group.id": "wrackline",  # demanded by librdkafka, never used: nothing is committed
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_uncommitted",
            "fetch.wait.max.ms": client.fetch_wait_max_ms,
            "fetch.error.backoff.ms": 100,
            "check.crcs": True,
            "enable.partition.eof": tell_end,
            "error_cb": self._on_error,
        }
        self._consumer = Consumer(_settings(bootstrap, spec, settings), logger=log)

    def _on_error(self, error: KafkaError) -> None:
        self.broken = self.broken or error.fatal()
        self._all_down = self._all_down or error.code() == KafkaError._ALL_BROKERS_DOWN
        log.debug("%s", error)

    def assign(self, topic: str, positions: Mapping[int, int]) -> None:
        """Take these partitions (and no others) from these offsets on."""
        self._consumer.assign([TopicPartition(topic, p, offset) for p, offset in positions.items()])

    def poll(self, max_records: int | None = None, timeout_s: float | None = None) -> Polled:
        """What is there by the timeout, without waiting for more once something came."""
        self._all_down = False
        limit = self._spec.client.poll_records if max_records is None else max_records
        wait = self._spec.client.poll_ms / 1e3 if timeout_s is None else timeout_s
        first = self._consumer.poll(wait)
        got = [] if first is None else [first]
        if first is not None and limit > 1:
            got += self._consumer.consume(limit - 1, 0)
        messages: list[Message] = []
        ended: dict[int, int] = {}
        error: KafkaError | None = None
        for message in got:
            problem = message.error()
            if problem is None:
                messages.append(message)
            elif problem.code() == KafkaError._PARTITION_EOF:
                ended[present(message.partition())] = present(message.offset())
            else:
                error = error or problem
                self.broken = self.broken or problem.fatal()
        if error is None and not messages and self._all_down:
            error = KafkaError(KafkaError._ALL_BROKERS_DOWN)
        return Polled(messages, error, ended)

    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        """(log start, end offset), asked of the leader now. Raises KafkaException."""
        timeout = self._spec.client.end_timeout_ms / 1e3
        low, high = self._consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=timeout, cached=False
        )
        return low, high

    def close(self) -> None:
        self._consumer.close()
