"""The writers by hand write what kio writes, byte for byte; the readers read what kio reads, or leave it to kio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from broker.core import messages as m
from broker.core.types import METADATA, SnapshotId, TopicPartition
from broker.wire import fast_read
from broker.wire.apis import BY_KEY
from broker.wire.common import as_timedelta
from broker.wire.fast import REQUESTS, RESPONSES
from broker.wire.schema import WireError, request_schema, response_schema

I32 = st.integers(-1, 2**31 - 1)
I64 = st.integers(-1, 2**63 - 1)
IDS = {"a": UUID(int=7), "b" * 130: UUID(int=8), "caf\u00e9": UUID(int=9)}
TPS = st.builds(TopicPartition, st.sampled_from(sorted(IDS)), st.integers(0, 300))
EPOCHS = st.integers(0, 2**31 - 1) | st.just(-1)
RECORDS = st.sampled_from([b"", b"x" * 126, b"y" * 127, b"z" * 128, b"w" * 20_000])


def _with_id(part: Any) -> Any:
    return replace(part, topic_id=IDS[part.tp.topic])


PARTS = st.builds(m.FetchPartition, TPS, I64, I32, I32, I32, I64).map(_with_id)
VOTERS = st.just(m.FetchPartition(METADATA, 5, 10, 3, 2, 0, directory_id=UUID(int=77)))
OFTEN_METADATA = PARTS | st.just(m.FetchPartition(METADATA, 5, 10)) | VOTERS
FORGOTTEN = TPS.map(lambda tp: m.ForgottenPartition(tp, IDS[tp.topic]))
FETCHES = st.builds(
    m.FetchRequest,
    max_wait_ms=st.integers(0, 2**31 - 1),
    min_bytes=I32,
    max_bytes=I32,
    partitions=st.lists(OFTEN_METADATA, max_size=200).map(tuple),
    replica_id=st.integers(0, 2**31 - 1),
    broker_epoch=I64,
    session_id=I32,
    session_epoch=I32,
    forgotten=st.lists(FORGOTTEN, max_size=5).map(tuple),
    isolation_level=st.integers(0, 1),
)
RESULTS = st.builds(
    m.FetchResult,
    TPS,
    st.sampled_from([ErrorCode.none, ErrorCode.offset_out_of_range, ErrorCode.kafka_storage_error]),
    I64,
    I64,
    I64,
    st.none() | st.builds(m.EpochEndOffset, EPOCHS, I64 | st.just(-1)),
    st.none() | st.builds(m.LeaderIdAndEpoch, I32 | st.just(-1), EPOCHS),
    RECORDS,
    snapshot=st.none() | st.builds(SnapshotId, st.integers(0, 2**63 - 1), EPOCHS),
).map(_with_id)
FETCHED = st.builds(
    m.FetchResponse,
    st.lists(RESULTS, max_size=8).map(tuple),
    st.sampled_from([ErrorCode.none, ErrorCode.fetch_session_id_not_found]),
    I32,
)
PRODUCED = st.builds(
    m.ProduceResponse,
    st.lists(
        st.builds(
            m.ProduceResult,
            TPS,
            st.sampled_from([ErrorCode.none, ErrorCode.not_enough_replicas]),
            I64,
            I64,
            message=st.none() | st.text(max_size=200),
        ),
        max_size=8,
    ).map(tuple),
)


@given(FETCHES)
def test_fetch_requests(request: m.FetchRequest) -> None:
    schema = request_schema(1, 17)
    encode = BY_KEY[1].encode_request
    assert encode is not None
    assert REQUESTS[1, 17](request) == schema.write(encode(schema, request))


@given(FETCHED, FETCHES, st.integers(12, 17))
def test_fetch_responses(response: m.FetchResponse, request: m.FetchRequest, version: int) -> None:
    schema = response_schema(1, version)
    by_kio = schema.write(BY_KEY[1].encode_response(schema, request, response))
    assert RESPONSES[1, version](request, response) == by_kio


@given(PRODUCED)
def test_produce_responses(response: m.ProduceResponse) -> None:
    schema = response_schema(0, 9)
    request = m.ProduceRequest(-1, 100, ())
    by_kio = schema.write(BY_KEY[0].encode_response(schema, request, response))
    assert RESPONSES[0, 9](request, response) == by_kio


NAMES = {topic_id: name for name, topic_id in IDS.items()}.get
PLAIN_FETCHES = st.builds(
    m.FetchRequest,
    max_wait_ms=st.integers(0, 2**31 - 1),
    min_bytes=I32,
    max_bytes=I32,
    partitions=st.lists(PARTS, max_size=8).map(tuple),
    replica_id=st.integers(0, 2**31 - 1),
    broker_epoch=I64,
    session_id=I32,
    session_epoch=I32,
    forgotten=st.lists(FORGOTTEN, max_size=3).map(tuple),
    isolation_level=st.integers(0, 1),
)
PLAIN_FETCHED = st.builds(
    m.FetchResponse,
    st.lists(
        RESULTS.map(lambda one: replace(one, diverging=None, current_leader=None, snapshot=None)), max_size=4
    ).map(tuple),
    st.sampled_from([ErrorCode.none, ErrorCode.fetch_session_id_not_found]),
    I32,
)
PRODUCES = st.builds(
    m.ProduceRequest,
    st.sampled_from([-1, 0, 1, 7]),
    st.integers(0, 2**31 - 1),
    st.lists(st.builds(m.ProducePartition, TPS, RECORDS), max_size=4).map(tuple),
)
DAMAGE = st.none() | st.tuples(st.integers(0, 10_000), st.integers(0, 255)) | st.integers(0, 10_000)


def damaged(body: bytes, damage: Any) -> bytes:
    """One byte another one, or an end too early."""
    match damage:
        case (at, byte) if body:
            return body[: at % len(body)] + bytes([byte]) + body[at % len(body) + 1 :]
        case int():
            return body[: damage % (len(body) + 1)]
        case _:
            return body


def agrees(by_hand: Any, by_kio: Callable[[], Any], damage: Any) -> None:
    if damage is None:
        assert by_hand is not None
    if by_hand is not None:
        assert by_hand == by_kio()


def refused_or(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except WireError as refusal:
        return refusal


def produced(request: m.ProduceRequest) -> bytes:
    """A producer's request: no node writes one."""
    make = request_schema(0, 9).make
    data = tuple(
        make("TopicProduceData", name=part.tp.topic, partition_data=(
            make("PartitionProduceData", index=part.tp.partition, records=part.records),
        ))
        for part in request.partitions
    )  # fmt: skip
    timeout = as_timedelta(request.timeout_ms)
    return request_schema(0, 9).write(
        make("ProduceRequest", transactional_id=None, acks=request.acks, timeout=timeout, topic_data=data)
    )


@given(PRODUCES, DAMAGE)
def test_produce_requests_are_read_as_kio_reads_them(request: m.ProduceRequest, damage: Any) -> None:
    frame = b"head" + damaged(produced(request), damage)
    by_hand = fast_read.request(0, 9, frame, 4, NAMES)
    agrees(
        by_hand,
        lambda: refused_or(lambda: BY_KEY[0].decode_request(request_schema(0, 9).read(frame, 4), NAMES)),
        damage,
    )


@given(PLAIN_FETCHES, DAMAGE)
def test_fetch_requests_are_read_as_kio_reads_them(request: m.FetchRequest, damage: Any) -> None:
    frame = b"head" + damaged(REQUESTS[1, 17](request), damage)
    by_hand = fast_read.request(1, 17, frame, 4, NAMES)
    agrees(
        by_hand,
        lambda: refused_or(lambda: BY_KEY[1].decode_request(request_schema(1, 17).read(frame, 4), NAMES)),
        damage,
    )


@given(PLAIN_FETCHED, PLAIN_FETCHES, DAMAGE)
def test_fetch_responses_are_read_as_kio_reads_them(
    response: m.FetchResponse, request: m.FetchRequest, damage: Any
) -> None:
    frame = b"head" + damaged(RESPONSES[1, 17](request, response), damage)
    decode = BY_KEY[1].decode_response
    assert decode is not None
    by_hand = fast_read.response(1, 17, frame, 4, request)
    agrees(
        by_hand, lambda: refused_or(lambda: decode(response_schema(1, 17).read(frame, 4), request)), damage
    )


@given(FETCHES)
def test_a_voter_that_names_its_directory_is_left_to_kio(request: m.FetchRequest) -> None:
    named = any(part.directory_id is not None for part in request.partitions)
    read = fast_read.request(1, 17, REQUESTS[1, 17](request), 0, NAMES)
    assert (read is None) is named
