"""Readers by hand for the messages of the hot path, beside the writers of `broker.wire.fast`.

They read what nodes and modern clients send all the time and nothing else. Whatever is not of that shape (a tagged
field, a null, a value out of range, bytes that are missing) is `None`: kio reads it then, and refuses it if it must,
so what is accepted and what an error says is kio's word alone. A test compares the two.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.core.messages import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ForgottenPartition,
    ProducePartition,
    ProduceRequest,
)
from broker.core.types import METADATA, METADATA_TOPIC_ID, TopicPartition
from broker.wire.common import TopicNames

_ACKS_TIMEOUT = struct.Struct(">hi")
_INT = struct.Struct(">i")
_FETCH_HEAD = struct.Struct(">iiibii")
_FETCH_PARTITION = struct.Struct(">iiqiqi")
_REPLICA_STATE = struct.Struct(">BBBiqB")
_RESPONSE_HEAD = struct.Struct(">ihi")
_RESULT = struct.Struct(">ihqqqBi")
_ID_BYTES = 16
_NO_ID = bytes(_ID_BYTES)
_ERRORS: Mapping[int, ErrorCode] = {code.value: code for code in ErrorCode}


class _Unusual(Exception):
    """Not of the shape read here."""


@lru_cache(maxsize=4_096)
def _uuid(raw: bytes) -> UUID:
    if raw == _NO_ID or len(raw) != _ID_BYTES:
        raise _Unusual
    return UUID(bytes=raw)


def _length(frame: bytes, at: int) -> tuple[int, int]:
    """Of a compact array, string or bytes, and where it begins."""
    value = frame[at]
    at += 1
    if value >= 0x80:
        value &= 0x7F
        for shift in (7, 14, 21):
            byte = frame[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            raise _Unusual
    if value == 0:
        raise _Unusual  # null
    return value - 1, at


def _slice(frame: bytes, at: int) -> tuple[bytes, int]:
    """Compact bytes or a string, whole."""
    size, at = _length(frame, at)
    end = at + size
    if end > len(frame):
        raise _Unusual
    return frame[at:end], end


def _no_tags(frame: bytes, at: int) -> int:
    if frame[at]:
        raise _Unusual
    return at + 1


def produce_request(frame: bytes, at: int, _: TopicNames) -> ProduceRequest:
    """Version 9, without a transactional id."""
    if frame[at]:
        raise _Unusual
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, at + 1)
    if timeout_ms < 0:
        raise _Unusual
    topics, at = _length(frame, at + 1 + _ACKS_TIMEOUT.size)
    partitions = []
    for _topic in range(topics):
        name, at = _slice(frame, at)
        topic = name.decode()
        count, at = _length(frame, at)
        for _partition in range(count):
            (index,) = _INT.unpack_from(frame, at)
            records, at = _slice(frame, at + _INT.size)
            at = _no_tags(frame, at)
            partitions.append(ProducePartition(TopicPartition(topic, index), records, None))
        at = _no_tags(frame, at)
    _no_tags(frame, at)
    return ProduceRequest(acks, timeout_ms, tuple(partitions), None)


def fetch_request(frame: bytes, at: int, names: TopicNames) -> FetchRequest:
    """Version 17, of a replica that names no directory."""
    max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = _FETCH_HEAD.unpack_from(
        frame, at
    )
    if max_wait_ms < 0:
        raise _Unusual
    topics, at = _length(frame, at + _FETCH_HEAD.size)
    partitions = []
    for _ in range(topics):
        topic_id, name = _topic(frame, at, names)
        count, at = _length(frame, at + _ID_BYTES)
        for _ in range(count):
            index, leader_epoch, offset, last_epoch, log_start, limit = _FETCH_PARTITION.unpack_from(
                frame, at
            )
            at = _no_tags(frame, at + _FETCH_PARTITION.size)
            partitions.append(
                FetchPartition(
                    TopicPartition(name, index),
                    offset,
                    limit,
                    leader_epoch,
                    last_epoch,
                    log_start,
                    topic_id,
                )
            )
        at = _no_tags(frame, at)
    forgotten, at = _forgotten(frame, at, names)
    rack, at = _slice(frame, at)
    if rack:
        raise _Unusual
    tags, tag, size, replica_id, broker_epoch, none = _REPLICA_STATE.unpack_from(frame, at)
    if (tags, tag, size, none) != (1, 1, 13, 0):
        raise _Unusual
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        partitions=tuple(partitions),
        replica_id=replica_id,
        broker_epoch=broker_epoch,
        session_id=session_id,
        session_epoch=session_epoch,
        forgotten=forgotten,
        isolation_level=isolation,
    )


def _topic(frame: bytes, at: int, names: TopicNames) -> tuple[UUID, str]:
    topic_id = _uuid(frame[at : at + _ID_BYTES])
    name = METADATA.topic if topic_id == METADATA_TOPIC_ID else names(topic_id)
    return topic_id, name or ""


def _forgotten(frame: bytes, at: int, names: TopicNames) -> tuple[tuple[ForgottenPartition, ...], int]:
    topics, at = _length(frame, at)
    gone = []
    for _ in range(topics):
        topic_id, name = _topic(frame, at, names)
        count, at = _length(frame, at + _ID_BYTES)
        for _ in range(count):
            (index,) = _INT.unpack_from(frame, at)
            at += _INT.size
            gone.append(ForgottenPartition(TopicPartition(name, index), topic_id))
        at = _no_tags(frame, at)
    return tuple(gone), at


def fetch_response(frame: bytes, at: int, request: FetchRequest) -> FetchResponse:
    """Version 17, in which no log diverges and no leader has changed."""
    throttle_ms, error, session_id = _RESPONSE_HEAD.unpack_from(frame, at)
    if throttle_ms < 0:
        raise _Unusual
    topics, at = _length(frame, at + _RESPONSE_HEAD.size)
    names: dict[UUID | None, str] = dict(request.session_topics)
    for part in request.partitions:
        named = METADATA_TOPIC_ID if part.topic_id is None and part.tp == METADATA else part.topic_id
        names[named] = part.tp.topic
    results = []
    for _ in range(topics):
        topic_id = _uuid(frame[at : at + _ID_BYTES])
        name = names.get(topic_id, "")
        count, at = _length(frame, at + _ID_BYTES)
        for _ in range(count):
            index, code, high_watermark, stable, log_start, aborted, _preferred = _RESULT.unpack_from(
                frame, at
            )
            if aborted > 1:
                raise _Unusual
            records, at = _slice(frame, at + _RESULT.size)
            at = _no_tags(frame, at)
            results.append(
                FetchResult(
                    TopicPartition(name, index),
                    _ERRORS[code],
                    high_watermark,
                    stable,
                    log_start,
                    None,
                    None,
                    records,
                    topic_id,
                )
            )
        at = _no_tags(frame, at)
    _no_tags(frame, at)
    return FetchResponse(tuple(results), _ERRORS[error], session_id)


_UNREADABLE = (_Unusual, struct.error, IndexError, KeyError, UnicodeDecodeError)
_REQUESTS: Mapping[tuple[int, int], Callable[[bytes, int, TopicNames], Any]] = {
    (0, 9): produce_request,
    (1, 17): fetch_request,
}
_RESPONSES: Mapping[tuple[int, int], Callable[[bytes, int, Any], Any]] = {(1, 17): fetch_response}


def request(key: int, version: int, frame: bytes, at: int, names: TopicNames) -> Any:
    """The core's message, from the byte where the body begins. None: kio is to read it."""
    read = _REQUESTS.get((key, version))
    if read is None:
        return None
    try:
        return read(frame, at, names)
    except _UNREADABLE:
        return None


def response(key: int, version: int, frame: bytes, at: int, asked: Any) -> Any:
    """The answer to ``asked``. None: kio is to read it."""
    read = _RESPONSES.get((key, version))
    if read is None:
        return None
    try:
        return read(frame, at, asked)
    except _UNREADABLE:
        return None
