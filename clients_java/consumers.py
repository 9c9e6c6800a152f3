"""Consumers: one takes partitions by itself, the other is a member of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wrackline.clients_java import configs
from wrackline.clients_java.jvm import Kafka, log, opened
from wrackline.workloads.clients.base import Fetched, Polled, Settings
from wrackline.workloads.payload import HEADER

_BIGGEST_ID = 2**31 - 1
"""Versions before 4.4 connect to a coordinator as to a node whose id is this less that of the broker."""
PREFERRED = "preferred-read-replica"
"""A measure of each partition (KIP-392); -1: it is read from its leader."""
ASK_S = 2.0
"""For the consumer's own position, which it knows without asking."""


def fetched(record: Any) -> Fetched:
    epoch, key, value = record.leaderEpoch(), record.key(), record.value()
    if value is None and (header := record.headers().lastHeader(HEADER)) is not None:
        value = header.value()
    return Fetched(
        int(record.partition()),
        int(record.offset()),
        int(epoch.get()) if epoch.isPresent() else -1,
        int(record.timestamp()),
        None if key is None else bytes(key),
        None if value is None else bytes(value),
    )


class JavaConsumer:
    """Takes partitions by itself. Of one thread at a time, as the library demands."""

    def __init__(
        self,
        kafka: Kafka,
        settings: Settings,
        config: Mapping[str, str],
        *,
        tell_end: bool = False,
    ) -> None:
        self._kafka = kafka
        self._client = settings.client
        self._tell_end = tell_end
        self._kept: list[Fetched] = []
        """The library gave more than was asked for."""
        self._taken: list[Any] = []
        self._broken = False
        self._unanswered = False
        """What was asked last of the group's commits had no answer in time."""
        deserializer = kafka.named("org.apache.kafka.common.serialization.ByteArrayDeserializer")
        self._handle = kafka.made("consumer.KafkaConsumer", config, deserializer(), deserializer())
        opened(self)

    @property
    def broken(self) -> bool:
        return self._broken

    @property
    def handle(self) -> Any:
        """The library's own object."""
        return self._handle

    def assign(self, topic: str, positions: Mapping[int, int]) -> None:
        self._kept = []
        self._taken = [self._kafka.place(topic, partition) for partition in positions]
        self._handle.assign(self._kafka.list(self._taken))
        for place, offset in zip(self._taken, positions.values(), strict=True):
            self._handle.seek(place, self._kafka.long(offset))

    def poll(self, max_records: int | None = None, timeout_s: float | None = None) -> Polled:
        limit = self._client.poll_records if max_records is None else max_records
        wait_s = self._client.poll_ms / 1e3 if timeout_s is None else timeout_s
        if not self._kept:
            try:
                self._kept = [fetched(record) for record in self._handle.poll(self._kafka.ms(wait_s))]
            except self._kafka.jpype.JException as error:
                thrown = self._kafka.thrown(error)
                self._broken = self._broken or thrown.fatal
                return Polled([], thrown.name, thrown.position_lost, {})
        records, self._kept = self._kept[:limit], self._kept[limit:]
        ended = self._ends_met() if self._tell_end and not self._kept else {}
        return Polled(records, None, False, ended, self._followers() if self._client.rack else {})

    def _followers(self) -> dict[int, int]:
        """Partition -> the broker that its leader sent this consumer to, by the library's own measures."""
        result = {}
        for name, metric in dict(self._handle.metrics()).items():
            if str(name.name()) == PREFERRED:
                broker = int(metric.metricValue())
                if broker >= 0:
                    result[int(str(name.tags().get("partition")))] = broker
        return result

    def _ends_met(self) -> dict[int, int]:
        """A fetch has told how far it is to the end, and it is no way. Unlike the last record's offset the
        position lies behind markers of transactions too."""
        result = {}
        for place in self._taken:
            lag = self._handle.currentLag(place)
            if lag.isPresent() and lag.getAsLong() == 0:
                result[int(place.partition())] = int(self._handle.position(place, self._kafka.ms(ASK_S)))
        return result

    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        place, wait = self._kafka.place(topic, partition), self._kafka.ms(self._client.end_timeout_ms / 1e3)
        asked = self._kafka.list([place])
        with self._kafka.in_our_words():
            low = self._handle.beginningOffsets(asked, wait).get(place)
            return int(low), int(self._handle.endOffsets(asked, wait).get(place))

    def committed(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        asked = self._kafka.sets()
        for partition in partitions:
            asked.add(self._kafka.place(topic, partition))
        wait = self._kafka.ms(self._client.end_timeout_ms / 1e3)
        with self._kafka.in_our_words():
            if self._unanswered:
                # The request is still under way, and its answer is given to whoever asks the same next,
                # however old it is by then (ConsumerCoordinator.fetchCommittedOffsets): not to us.
                self._handle.committed(asked, wait)
            self._unanswered = True
            told = self._handle.committed(asked, wait)
            self._unanswered = False
        result = {}
        for partition in partitions:
            one = told.get(self._kafka.place(topic, partition))
            result[partition] = -1 if one is None else int(one.offset())
        return result

    requires_stable = True

    def coordinator(self) -> int:
        """Returns the coordinator that the library has in its own fields, which no method tells."""
        try:
            return _coordinator(self._kafka, self._handle)
        except (self._kafka.jpype.JException, AttributeError) as error:  # of a version that has others
            log.debug("nobody tells the coordinator: %s", error)
            return -1

    def close(self) -> None:
        self._kafka.close(self, self._handle, self._kafka.ms(0))

    def end(self) -> None:
        """The one call of a consumer that another thread may make."""
        self._handle.wakeup()


def _coordinator(kafka: Kafka, handle: Any) -> int:
    """Returns the coordinator: a classic consumer has it in its ConsumerCoordinator, one of the protocol
    ``consumer`` in the request manager of its network thread."""
    consumer = kafka.field(handle, "delegate")
    if kafka.has_field(consumer, "coordinator"):
        coordinator = kafka.field(consumer, "coordinator")
    else:
        thread = kafka.field(kafka.field(consumer, "applicationEventHandler"), "networkThread")
        managers = kafka.field(thread, "requestManagers")
        manager = None if managers is None else kafka.field(managers, "coordinatorRequestManager")
        coordinator = manager.get() if manager is not None and manager.isPresent() else None
    node = None if coordinator is None else kafka.field(coordinator, "coordinator")
    if node is None:
        return -1
    node_id = int(node.id())
    return _BIGGEST_ID - node_id if node_id > _BIGGEST_ID // 2 else node_id


def consumer(
    kafka: Kafka,
    bootstrap: str,
    settings: Settings,
    *,
    tell_end: bool = False,
    isolation: str | None = None,
    group: str = "",
    reset: str = "",
) -> JavaConsumer:
    config = configs.consumer(bootstrap, settings, isolation=isolation, group=group, reset=reset)
    return JavaConsumer(kafka, settings, config, tell_end=tell_end)
