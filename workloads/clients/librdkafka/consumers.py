"""Consumers: one takes partitions by itself, the other is a member of a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, Message

from wrackline.workloads.clients.base import (
    Fetched,
    Polled,
    Settings,
)
from wrackline.workloads.clients.librdkafka.binding import binding
from wrackline.workloads.clients.librdkafka.common import Coordinator, Health, error_of, in_our_words, made
from wrackline.workloads.payload import HEADER, NO_TIMESTAMP

POSITION_LOST = frozenset(
    {KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION}
)
"""After these read errors the consumer has no position, and must be assigned one."""
NO_GROUP = "wrackline"
"""librdkafka demands the name of a group; where nothing is committed it is never used."""
NEVER_LATE_MS = 600_000
"""``max.poll.interval.ms``: members poll all the time, or are closed."""


def _present(number: int | None) -> int:
    """The number itself; every consumed message has one, though the type of the method allows None."""
    return -1 if number is None else number


def _with_statistics(*readers: Callable[[str], None]) -> dict[str, Any]:
    """The settings of a client whose statistics somebody reads."""

    def read(text: str) -> None:
        for reader in readers:
            reader(text)

    return {"stats_cb": read, "statistics.interval.ms": Coordinator.EVERY_MS} if readers else {}


def _timestamp(message: Message) -> int:
    """-1 of a record whose format has none, which librdkafka calls 0."""
    kind, timestamp_ms = message.timestamp()
    return NO_TIMESTAMP if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms


def _fetched(message: Message) -> Fetched:
    return Fetched(
        _present(message.partition()),
        _present(message.offset()),
        _present(message.leader_epoch()),
        _timestamp(message),
        message.key(),
        _value(message),
    )


def _value(message: Message) -> bytes | None:
    value: bytes | None = message.value()
    if value is not None:
        return value
    headers: Any = message.headers() or ()
    return next((one for name, one in headers if name == HEADER), None)


class RdkafkaConsumer:
    """Takes partitions by itself."""

    def __init__(
        self,
        bootstrap: str,
        settings: Settings,
        *,
        tell_end: bool = False,
        isolation: str | None = None,
        group: str = "",
        reset: str = "",
        **own: Any,
    ) -> None:
        self._client = settings.client
        self._health = Health()
        self._coordinator = Coordinator()
        self._isolation = isolation or settings.isolation or "read_uncommitted"
        config: dict[str, Any] = {
            "group.id": group or NO_GROUP,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": reset or "error",
            "isolation.level": self._isolation,
            "fetch.wait.max.ms": self._client.fetch_wait_max_ms,
            "fetch.error.backoff.ms": 100,
            "check.crcs": True,
            "enable.partition.eof": tell_end,
            "error_cb": self._health,
            **own,
        }
        self._followers: dict[int, int] = {}
        readers: list[Callable[[str], None]] = [self._coordinator] if group else []
        if self._client.rack and not tell_end:
            config["client.rack"] = self._client.rack
            readers.append(self._take_statistics)
        config |= _with_statistics(*readers)
        self._kafka = binding(self._client.version)
        self._handle = made(self._kafka, "Consumer", bootstrap, settings, config)

    @property
    def broken(self) -> bool:
        return self._health.broken

    def assign(self, topic: str, positions: Mapping[int, int]) -> None:
        self._handle.assign(self._places(topic, positions))

    def poll(self, max_records: int | None = None, timeout_s: float | None = None) -> Polled:
        self._health.all_down = False
        limit = self._client.poll_records if max_records is None else max_records
        wait = self._client.poll_ms / 1e3 if timeout_s is None else timeout_s
        first = self._handle.poll(wait)
        got = [] if first is None else [first]
        if first is not None and limit > 1:
            got += self._handle.consume(limit - 1, 0)
        records: list[Fetched] = []
        ended: dict[int, int] = {}
        error: KafkaError | None = None
        for message in got:
            problem = message.error()
            if problem is None:
                records.append(_fetched(message))
            elif problem.code() == KafkaError._PARTITION_EOF:
                ended[_present(message.partition())] = _present(message.offset())
            else:
                error = error or problem
                self._health.broken = self.broken or problem.fatal()
        if error is None and not records and self._health.all_down:
            error = KafkaError(KafkaError._ALL_BROKERS_DOWN)
        if error is None:
            return Polled(records, None, False, ended, self._followers)
        return Polled(records, error.name(), error.code() in POSITION_LOST, ended)

    def _take_statistics(self, text: str) -> None:
        """Notes from which broker each partition is fetched, where that is not its leader."""
        self._followers = {
            partition["partition"]: partition["broker"]
            for topic in orjson.loads(text)["topics"].values()
            for partition in topic["partitions"].values()
            if partition["broker"] >= 0 and partition["broker"] != partition["leader"]
        }

    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        timeout_s = self._client.end_timeout_ms / 1e3
        with in_our_words(self._kafka):
            try:
                low, high = self._handle.get_watermark_offsets(
                    self._kafka.TopicPartition(topic, partition), timeout=timeout_s, cached=False
                )
            except self._kafka.KafkaException as refused:
                # Once no broker was there it forgets its topics, and asks for none of them by itself.
                if refused.args[0].code() == KafkaError._UNKNOWN_PARTITION:
                    self._handle.list_topics(topic, timeout=timeout_s)
                raise
        return low, high

    def committed(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        places = [self._kafka.TopicPartition(topic, partition) for partition in partitions]
        with in_our_words(self._kafka):
            answers = self._handle.committed(places, timeout=self._client.end_timeout_ms / 1e3)
        for one in answers:
            if one.error is not None:
                raise error_of(one.error)
        return {one.partition: max(one.offset, -1) for one in answers}

    def _places(self, topic: str, offsets: Mapping[int, int], metadata: str = "") -> list[Any]:
        make = self._kafka.TopicPartition
        return [make(topic, partition, offset, metadata) for partition, offset in offsets.items()]

    @property
    def requires_stable(self) -> bool:
        return self._isolation == "read_committed"

    def coordinator(self) -> int:
        return self._coordinator.node

    def group_metadata(self) -> Any:
        """Returns what a transactional producer must know to commit offsets of this consumer's group."""
        return self._handle.consumer_group_metadata()

    def close(self) -> None:
        self._handle.close()
