"""Members of share groups (KIP-932), and the administration of these groups."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Any

from wrackline.clients_java import configs
from wrackline.clients_java.consumers import fetched
from wrackline.clients_java.errors import error_of
from wrackline.clients_java.jvm import Kafka, closed, opened
from wrackline.workloads.clients.base import Settings
from wrackline.workloads.clients.sharing import Acknowledged, Acquired, Lag

log = logging.getLogger("wrackline.client")

CLOSE_S = 2.0
"""How long a member may take to leave."""
ADMIN_S = 15
LIMIT = "share.delivery.count.limit"
LIMIT_OF_BROKERS = f"group.{LIMIT}"
"""Before 4.3 no group has a limit of its own."""


class JavaShareMember:
    def __init__(
        self, kafka: Kafka, bootstrap: str, settings: Settings, group: str, *, explicit: bool
    ) -> None:
        self._kafka = kafka
        self._request_s = settings.client.socket_timeout_ms / 1e3
        self._broken = False
        self._topic = ""
        self._acknowledged: Acknowledged | None = None
        self._failure: Exception | None = None
        """Of whoever is called with what became of acknowledgements."""
        self._records: dict[tuple[int, int], Any] = {}
        """What the last poll gave."""
        self._kinds = kafka.named("org.apache.kafka.clients.consumer.AcknowledgeType")
        deserializer = kafka.named("org.apache.kafka.common.serialization.ByteArrayDeserializer")
        config = configs.share_member(bootstrap, settings, group, explicit=explicit)
        self._made = self._seen_empty = time.monotonic()
        self._handle = kafka.made("consumer.KafkaShareConsumer", config, deserializer(), deserializer())
        opened(self)

    @property
    def broken(self) -> bool:
        return self._broken

    def subscribe(self, topic: str, acknowledged: Acknowledged) -> None:
        self._topic, self._acknowledged = topic, acknowledged
        callback = self._kafka.callback("consumer.AcknowledgementCommitCallback", onComplete=self._complete)
        self._handle.setAcknowledgementCommitCallback(callback)
        self._handle.subscribe(self._kafka.list([topic]))

    def _complete(self, offsets: Any, error: Any) -> None:
        """Is called by the library; what it raised would be taken for an error of the library."""
        if self._acknowledged is None or self._failure is not None:
            return
        try:
            name = None if error is None else error_of(self._kafka.thrown(error)).name
            for entry in offsets.entrySet():
                given = [int(offset) for offset in entry.getValue()]
                self._acknowledged(int(entry.getKey().partition()), given, name)
        except Exception as failure:
            log.debug("what became of acknowledgements is not taken", exc_info=True)
            self._failure = failure

    def poll(self, timeout_s: float) -> Acquired:
        begin = time.monotonic()
        # A poll that gave nothing shows nothing: while locks are renewed, the client keeps what it has.
        if self._buffer_is_empty():
            self._seen_empty = begin
        # A response that had not come by then was not given up yet, and what it brings was acquired when the
        # broker made it.
        age_s = min(begin - self._made, begin - self._seen_empty + self._request_s)
        try:
            given = list(self._handle.poll(self._kafka.ms(timeout_s)))
        except self._kafka.jpype.JException as error:
            thrown = self._kafka.thrown(error)
            self._broken = self._broken or thrown.fatal
            self._raise_failure()
            return Acquired([], [], thrown.name, age_s)
        self._raise_failure()
        self._records = {(int(one.partition()), int(one.offset())): one for one in given}
        return Acquired([fetched(one) for one in given], [_count(one) for one in given], None, age_s)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _buffer_is_empty(self) -> bool:
        """Tells whether the client has no records that it has not given; False where it does not show its
        buffer."""
        kafka = self._kafka
        try:
            buffer = kafka.field(kafka.field(self._handle, "delegate"), "fetchBuffer")
            rest = kafka.ask(buffer, "nextInLineFetch")
            is_over = rest is None or bool(kafka.ask(rest, "isConsumed"))
            return is_over and bool(kafka.ask(buffer, "isEmpty"))
        except (kafka.jpype.JException, AttributeError):
            return False

    def acknowledge(self, partition: int, offset: int, kind: str) -> None:
        with self._words():
            self._handle.acknowledge(self._records[partition, offset], self._kinds.valueOf(kind.upper()))

    def commit(self) -> Mapping[int, str | None]:
        with self._words():
            given = self._handle.commitSync(self._kafka.ms(self._request_s))
        self._raise_failure()
        result: dict[int, str | None] = {}
        for entry in given.entrySet():
            error = entry.getValue()
            name = error_of(self._kafka.thrown(error.get())).name if error.isPresent() else None
            result[int(entry.getKey().partition())] = name
        return result

    def commit_later(self) -> None:
        with self._words():
            self._handle.commitAsync()
        self._raise_failure()

    @contextlib.contextmanager
    def _words(self) -> Any:
        """Raises ClientError in the place of Java's exceptions, and remembers those that are fatal."""
        try:
            yield
        except self._kafka.jpype.JException as error:
            thrown = self._kafka.thrown(error)
            self._broken = self._broken or thrown.fatal
            raise error_of(thrown) from error

    def close(self) -> None:
        """Leaves the group: acknowledgements that were not sent yet are, and what else it has acquired is
        released."""
        self._close(CLOSE_S)

    def _close(self, timeout_s: float) -> None:
        self._kafka.close(self, self._handle, self._kafka.ms(timeout_s))

    def crash(self) -> None:
        """No version can be asked for that, so the thread that sends and receives is ended. The client cannot
        be closed then: it would wait for that thread for ever."""
        log.debug("a member of a share group crashes")
        self._acknowledged = None
        kafka = self._kafka
        try:
            delegate = kafka.field(self._handle, "delegate")
            handler = kafka.field(delegate, "applicationEventHandler")
            kafka.ask(kafka.field(handler, "networkThread"), "close", kafka.ms(0))
            kafka.field(delegate, "metrics").close()
        except (kafka.jpype.JException, AttributeError) as error:
            log.warning("a member of a share group cannot be made to crash, and leaves: %s", error)
            self._close(0)
        closed(self)

    def end(self) -> None:
        """The one call that another thread may make."""
        self._handle.wakeup()


def _count(record: Any) -> int:
    count = record.deliveryCount()
    return int(count.get()) if count.isPresent() else 0


class JavaShareGroups:
    def __init__(self, kafka: Kafka, bootstrap: str, settings: Settings) -> None:
        self._kafka = kafka
        kafka.enter()
        config = kafka.map(configs.admin(bootstrap, settings))
        with kafka.in_our_words():
            self._handle = kafka.named("org.apache.kafka.clients.admin.Admin").create(config)
        self._resource = kafka.named("org.apache.kafka.common.config.ConfigResource")
        self._types = kafka.named("org.apache.kafka.common.config.ConfigResource$Type")
        self._seconds = kafka.jpype.JClass("java.util.concurrent.TimeUnit").SECONDS

    def _got(self, future: Any) -> Any:
        return future.get(self._kafka.long(ADMIN_S), self._seconds)

    def configure(self, group: str, settings: Mapping[str, str]) -> None:
        entry, operation, set_it = (
            self._kafka.named(f"org.apache.kafka.clients.admin.{name}")
            for name in ("ConfigEntry", "AlterConfigOp", "AlterConfigOp$OpType")
        )
        changes = [operation(entry(name, value), set_it.SET) for name, value in settings.items()]
        resource = self._resource(self._types.GROUP, group)
        with self._kafka.in_our_words():
            every = self._kafka.map({resource: self._kafka.list(changes)})
            self._got(self._handle.incrementalAlterConfigs(every).all())

    def delivery_limit(self, group: str) -> int:
        with self._kafka.in_our_words():
            limit = self._setting(self._resource(self._types.GROUP, group), LIMIT)
            if limit is None:
                node = self._got(self._handle.describeCluster().nodes()).iterator().next()
                limit = self._setting(
                    self._resource(self._types.BROKER, str(node.idString())), LIMIT_OF_BROKERS
                )
        return int(limit or 0)

    def _setting(self, resource: Any, name: str) -> str | None:
        asked = self._kafka.list([resource])
        entry = self._got(self._handle.describeConfigs(asked).all()).get(resource).get(name)
        return None if entry is None else str(entry.value())

    def lags(self, group: str, topic: str) -> Mapping[int, Lag]:
        spec = self._kafka.named("org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec")
        with self._kafka.in_our_words():
            asked = self._handle.listShareGroupOffsets(self._kafka.map({group: spec()}))
            told = self._got(asked.partitionsToOffsetInfo(group))
        result = {}
        for entry in told.entrySet():
            place, lag = entry.getKey(), None if entry.getValue() is None else entry.getValue().lag()
            if str(place.topic()) == topic and lag is not None:
                known = int(lag.get()) if lag.isPresent() else -1
                result[int(place.partition())] = Lag(int(entry.getValue().startOffset()), known)
        return result

    def close(self) -> None:
        self._handle.close(self._kafka.ms(0))
