"""Apache Kafka's metadata log: the records that tell of partitions, as KRaft's controllers wrote them.

The layouts are those of Kafka's metadata/src/main/resources/common/metadata/*.json. A record is a frame (its
version, the record's number and version, each an unsigned varint) and then fields in flexible encoding: what
came later than the first version, and all that a change may leave out, is tagged.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from wrackline.systems.base import ReplicaLog
from wrackline.systems.metadata_changes import UNCHANGED, Change, Chronicle, MetadataLog, UncleanRecovery

TOPIC = "__cluster_metadata"
SOURCE = f"the metadata log {TOPIC}-0"
_TOPIC_RECORD, _PARTITION_RECORD, _PARTITION_CHANGE_RECORD = 2, 3, 5
_MS = 1_000_000


class NotUnderstood(ValueError):
    """The bytes are no record of the layouts that are known here."""


def chronicle(log: ReplicaLog, host: str, topic: str) -> Chronicle:
    """``log``: of a node on ``host``. Times are those of the batches: the active controller's, in whole
    milliseconds."""
    followed = MetadataLog(topic)
    recoveries: list[UncleanRecovery] = []
    missing = [f"the log begins at offset {log.log_start} only"] if log.log_start else []
    if log.problem is not None and not log.records:
        missing.append(log.problem)
    for stored in log.records:
        try:
            record = decode(stored.value)
            if record is None:
                continue
            change = followed.take(record, stored.timestamp_ms * _MS, host, stored.offset)
        except (NotUnderstood, KeyError) as error:
            missing.append(f"the record at offset {stored.offset}: {error}")
            continue
        if change is not None:
            recoveries += _unclean(change, record)
    return Chronicle(SOURCE, tuple(followed.changes), tuple(recoveries), tuple(missing))


def _unclean(change: Change, record: Mapping[str, Any]) -> Iterable[UncleanRecovery]:
    """Kafka writes down that a leader was elected uncleanly, and when that leader had taken over."""
    if record["type"] != "PartitionChangeRecord" or record["leader_recovery_state"] is None:
        return
    why = "elected uncleanly: possible data loss" if change.recovering else "the leader has taken over"
    yield UncleanRecovery(change.at_ns, change.host, change.topic, change.partition, change.leader, why)


def decode(value: bytes | None) -> dict[str, Any] | None:
    """A record of a topic's or a partition's as a mapping; None for one of anything else. Raises
    NotUnderstood."""
    if value is None:
        return None
    fields = _Fields(value)
    try:
        frame, number, version = fields.uvarint(), fields.uvarint(), fields.uvarint()
        if number not in _DECODERS:
            return None
        if frame != 1:
            raise NotUnderstood(f"frame version {frame}, only 1 is known")
        return _DECODERS[number](fields, version)
    except (IndexError, struct.error, UnicodeDecodeError) as wrong:
        raise NotUnderstood(f"not a metadata record: {value[:40].hex()} ({wrong})") from wrong


def _topic(fields: _Fields, version: int) -> dict[str, Any]:  # noqa: ARG001
    return {"type": "TopicRecord", "name": fields.text(), "topic_id": fields.uuid()}


def _partition(fields: _Fields, version: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "PartitionRecord",
        "partition_id": fields.int32(),
        "topic_id": fields.uuid(),
        "replicas": fields.nodes() or (),
        "isr": fields.nodes() or (),
        "removing_replicas": fields.nodes() or (),
        "adding_replicas": fields.nodes() or (),
        "leader": fields.int32(),
        "leader_epoch": fields.int32(),
        "partition_epoch": fields.int32(),
        "leader_recovery_state": 0,
        "elr": (),
        "last_known_elr": (),
    }
    if version >= 1:
        fields.skip_uuids()
    for tag, tagged in fields.tagged():
        match tag:
            case 0:
                result["leader_recovery_state"] = tagged.int8()
            case 1:
                result["elr"] = tagged.nodes() or ()
            case 2:
                result["last_known_elr"] = tagged.nodes() or ()
    return result


_OF_CHANGE = {
    0: "isr",
    2: "replicas",
    3: "removing_replicas",
    4: "adding_replicas",
    6: "elr",
    7: "last_known_elr",
}


def _partition_change(fields: _Fields, version: int) -> dict[str, Any]:  # noqa: ARG001
    result: dict[str, Any] = {
        "type": "PartitionChangeRecord",
        "partition_id": fields.int32(),
        "topic_id": fields.uuid(),
        "leader": UNCHANGED,
        "leader_recovery_state": None,
        **dict.fromkeys(_OF_CHANGE.values()),
    }
    for tag, tagged in fields.tagged():
        if tag in _OF_CHANGE:
            result[_OF_CHANGE[tag]] = tagged.nodes()
        elif tag == 1:
            result["leader"] = tagged.int32()
        elif tag == 5:
            result["leader_recovery_state"] = tagged.int8()
    return result


_DECODERS: Mapping[int, Callable[[_Fields, int], dict[str, Any]]] = {
    _TOPIC_RECORD: _topic,
    _PARTITION_RECORD: _partition,
    _PARTITION_CHANGE_RECORD: _partition_change,
}


class _Fields:
    """Reads fields one after the other. Raises IndexError or struct.error where the bytes end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def uvarint(self) -> int:
        result = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            result |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return result
            shift += 7

    def _unpack(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def int8(self) -> int:
        return self._unpack(">b")

    def int32(self) -> int:
        return self._unpack(">i")

    def _bytes(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise IndexError(f"{size} bytes are wanted, {len(self._data) - self._at} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self) -> str:
        return self._bytes(self.uvarint() - 1).decode()

    def uuid(self) -> str:
        return str(UUID(bytes=self._bytes(16)))

    def nodes(self) -> tuple[int, ...] | None:
        """A compact array of node ids; None where it is null."""
        size = self.uvarint()
        return None if size == 0 else tuple(self.int32() for _ in range(size - 1))

    def skip_uuids(self) -> None:
        self._bytes(16 * max(self.uvarint() - 1, 0))

    def tagged(self) -> list[tuple[int, _Fields]]:
        result = []
        for _ in range(self.uvarint()):
            tag, size = self.uvarint(), self.uvarint()
            result.append((tag, _Fields(self._bytes(size))))
        return result


def furthest(logs: Iterable[tuple[str, ReplicaLog]]) -> tuple[str, ReplicaLog]:
    """(host, log) of the copy that reaches furthest, of those that begin at the beginning if any does."""
    return max(logs, key=lambda one: (one[1].log_start == 0, one[1].leo))
