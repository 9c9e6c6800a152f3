"""Consumers that are members of a group."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from wrackline.clients_java import configs
from wrackline.clients_java.consumers import JavaConsumer
from wrackline.clients_java.errors import error_of
from wrackline.clients_java.jvm import Kafka
from wrackline.workloads.clients.base import GroupSettings, Listener, Membership, Polled, Settings

log = logging.getLogger("wrackline.client")

CLOSE_OPTIONS = "org.apache.kafka.clients.consumer.CloseOptions"
"""Of 4.1 and later (KIP-1092)."""
CLOSE_S = 2.0
"""How long a member may take to leave."""


class JavaMember(JavaConsumer):
    def __init__(self, kafka: Kafka, bootstrap: str, settings: Settings, group: GroupSettings) -> None:
        self._close_options = kafka.has(CLOSE_OPTIONS)
        config = configs.member(bootstrap, settings, group, close_options=self._close_options)
        super().__init__(kafka, settings, config)
        self._listener: Listener | None = None
        self._failure: Exception | None = None
        """Of the listener: the library would make a failed rebalance of it."""

    def subscribe(self, topic: str, listener: Listener) -> None:
        self._listener = listener
        rebalances = self._kafka.callback(
            "consumer.ConsumerRebalanceListener",
            onPartitionsAssigned=self._told(self._assigned),
            onPartitionsRevoked=self._told(lambda taken: listener.revoked(_numbers(taken))),
            onPartitionsLost=self._told(lambda taken: listener.lost(_numbers(taken))),
        )
        self._handle.subscribe(self._kafka.list([topic]), rebalances)

    def _told(self, tell: Callable[[Any], None]) -> Callable[[Any], None]:
        def told(partitions: Any) -> None:
            if self._listener is None or self._failure is not None:
                return
            try:
                tell(partitions)
            except Exception as failure:
                log.debug("a listener failed", exc_info=True)
                self._failure = failure

        return told

    def _assigned(self, given: Any) -> None:
        assert self._listener is not None
        starts = self._listener.assigned(_numbers(given))
        for place in given:
            if int(place.partition()) in starts:
                self._handle.seek(place, self._kafka.long(starts[int(place.partition())]))

    def poll(self, max_records: int | None = None, timeout_s: float | None = None) -> Polled:
        polled = super().poll(max_records, timeout_s)
        if self._failure is not None:
            raise self._failure
        return polled

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        with self._kafka.in_our_words():
            wait = self._kafka.ms(self._client.socket_timeout_ms / 1e3)
            self._handle.commitSync(self._kafka.offsets(topic, offsets), wait)

    def commit_later(self, topic: str, offsets: Mapping[int, int]) -> None:
        def committed(_offsets: Any, wrong: Any) -> None:
            if self._listener is not None:
                name = None if wrong is None else error_of(self._kafka.thrown(wrong)).name
                self._listener.committed(name)

        told = self._kafka.callback("consumer.OffsetCommitCallback", onComplete=committed)
        with self._kafka.in_our_words():
            self._handle.commitAsync(self._kafka.offsets(topic, offsets), told)

    def membership(self) -> Membership:
        told = self._handle.groupMetadata()
        return Membership(str(told.memberId()), int(told.generationId()))

    def close(self) -> None:
        """Leave the group; the listener is told of the revoke."""
        with contextlib.suppress(self._kafka.jpype.JException):
            self._handle.unsubscribe()  # leaves, whatever closing does
        self._close(leave=True)

    def crash(self) -> None:
        """The library sends nothing of it to the coordinator: not even the last commit."""
        log.debug("a member crashes")
        self._listener = None
        self._close(leave=False)

    def _close(self, *, leave: bool) -> None:
        if not self._close_options:  # it was made not to leave by being closed
            super().close()
            return
        operation = self._kafka.named(f"{CLOSE_OPTIONS}$GroupMembershipOperation")
        what = operation.DEFAULT if leave else operation.REMAIN_IN_GROUP
        options = self._kafka.named(CLOSE_OPTIONS).groupMembershipOperation(what)
        how = options.withTimeout(self._kafka.ms(CLOSE_S if leave else 0))
        self._kafka.close(self, self._handle, how)


def _numbers(places: Any) -> list[int]:
    return [int(place.partition()) for place in places]
