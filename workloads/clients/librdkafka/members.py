"""Consumers that are members of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from wrackline.workloads.clients.base import GroupSettings, Listener, Membership, Settings
from wrackline.workloads.clients.librdkafka.common import in_our_words, log
from wrackline.workloads.clients.librdkafka.consumers import RdkafkaConsumer

NEVER_LATE_MS = 600_000
"""``max.poll.interval.ms``: members poll all the time, or are closed."""
LATER = "later"
"""Metadata of asynchronous commits, by which they are told from synchronous ones."""
_METADATA = b"CGMDv2:"
"""How librdkafka's own form of a member's metadata begins; the generation and the group follow."""


class RdkafkaMember(RdkafkaConsumer):
    def __init__(self, bootstrap: str, settings: Settings, group: GroupSettings) -> None:
        own: dict[str, Any] = {
            "group.protocol": group.protocol,
            "max.poll.interval.ms": max(NEVER_LATE_MS, group.session_timeout_ms),
            "on_commit": self._on_commit,
        }
        if group.instance:
            own["group.instance.id"] = group.instance
        if group.protocol == "consumer":  # the broker has the time-outs
            own["group.remote.assignor"] = group.assignor
        else:
            own["partition.assignment.strategy"] = group.assignor
            own["session.timeout.ms"] = group.session_timeout_ms
            own["heartbeat.interval.ms"] = group.heartbeat_ms
        self._listener: Listener | None = None
        self._incremental = group.protocol == "consumer" or group.assignor.startswith("cooperative")
        super().__init__(bootstrap, settings, group=group.group, reset=settings.reset, **own)

    def subscribe(self, topic: str, listener: Listener) -> None:
        self._listener = listener
        self._handle.subscribe(
            [topic],
            on_assign=lambda _, given: self._assigned(given, listener),
            on_revoke=lambda _, taken: self._taken(taken, listener.revoked),
            on_lost=lambda _, taken: self._taken(taken, listener.lost),
        )

    def _assigned(self, given: list[TopicPartition], listener: Listener) -> None:
        starts = listener.assigned([one.partition for one in given])
        for one in given:
            if one.partition in starts:
                one.offset = starts[one.partition]
        (self._handle.incremental_assign if self._incremental else self._handle.assign)(given)

    def _taken(self, taken: list[TopicPartition], tell: Any) -> None:
        tell([one.partition for one in taken])
        if self._incremental:
            self._handle.incremental_unassign(taken)
        else:
            self._handle.unassign()

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        with in_our_words(self._kafka):
            told = self._handle.commit(offsets=self._places(topic, offsets), asynchronous=False)
            for one in told or ():
                if one.error is not None:
                    raise self._kafka.KafkaException(one.error)

    def commit_later(self, topic: str, offsets: Mapping[int, int]) -> None:
        with in_our_words(self._kafka):
            self._handle.commit(offsets=self._places(topic, offsets, LATER), asynchronous=True)

    def _on_commit(self, error: KafkaError | None, told: Sequence[TopicPartition]) -> None:
        """Told of synchronous commits too, whose caller knows already."""
        if self._listener is None or not any(one.metadata == LATER for one in told):
            return
        problem = error or next((one.error for one in told if one.error is not None), None)
        self._listener.committed(None if problem is None else problem.name())

    def membership(self) -> Membership:
        told: bytes = self._handle.consumer_group_metadata()
        generation = -1
        if told.startswith(_METADATA):
            start = len(_METADATA)
            generation = int.from_bytes(told[start : start + 4], "little", signed=True)
        return Membership(self._handle.memberid() or "", generation)

    def crash(self) -> None:
        """A client that is dropped without being closed is ended without leaving its group."""
        log.debug("a member crashes")
        self._listener = None
        del self._handle
