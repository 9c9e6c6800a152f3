"""The writers by hand write what kio writes, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import requests as m
from wrackline.broker.model.types import METADATA, SnapshotId, TopicPartition
from wrackline.broker.wire.apis import BY_KEY
from wrackline.broker.wire.fast import REQUESTS, RESPONSES
from wrackline.broker.wire.schema import request_schema, response_schema

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
    assert REQUESTS[1, 17](request) == schema.write(BY_KEY[1].encode_request(schema, request))


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
