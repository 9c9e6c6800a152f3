"""The codec speaks every API in every version of ours; kio is the other side of the wire."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.broker.wire import admin_samples
from tests.broker.wire.entities import make
from tests.broker.wire.samples import (
    EXPECTED,
    RECORDS,
    SNAPSHOT,
    TOPIC_ID,
    asked,
    caller,
    codec,
    every_version,
    incoming,
    lacking,
    request_frame,
)
from wrackline.broker.core.replication.uplink import not_in_charge
from wrackline.broker.model.messages import metadata, quorum
from wrackline.broker.model.messages import requests as m
from wrackline.broker.model.messages.admin import ForwardedRequest
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID
from wrackline.broker.wire.api import Listener
from wrackline.broker.wire.apis import BY_KEY, BY_REQUEST, advertised
from wrackline.broker.wire.codec import AnswerNow, Incoming
from wrackline.broker.wire.framing import FrameReader
from wrackline.broker.wire.refusals import expand
from wrackline.broker.wire.schema import WireError, request_schema, response_schema


@pytest.mark.parametrize(("key", "version"), every_version())
def test_a_request_of_every_version_is_understood(key: int, version: int) -> None:
    decoded = incoming(key, version)
    assert (decoded.correlation, decoded.client_id, decoded.version) == (77, "me", version)
    assert decoded.request == lacking(EXPECTED[key][0], key, version)


@pytest.mark.parametrize(("key", "version"), every_version())
def test_a_response_of_every_version_says_what_the_core_said(key: int, version: int) -> None:
    response = EXPECTED[key][1]
    frame = codec().encode_response(incoming(key, version), response)
    assert struct.unpack(">ii", frame[:8]) == (len(frame) - 4, 77)
    schema = response_schema(key, version)
    at = 9 if schema.flexible else 8
    entity, size = schema._read(frame, at)
    assert at + size == len(frame)
    text = repr(entity)
    told = {
        0: ["base_offset=41", "ErrorCode.not_enough_replicas"],
        1: ["high_watermark=8", repr(RECORDS)],
        2: ["offset=6", "timestamp=55"],
        3: ["'h1'", "9093", "leader_id=1", "(1, 2, 3)", "isr_nodes=(1, 2)"],
        19: ["name='t'"],
        20: ["name='t'", "ErrorCode.unknown_topic_or_partition"],
        21: ["low_watermark=5", "name='t'"],
        22: ["producer_id=4000"],
        23: ["end_offset=40"],
        52: ["leader_id=103", "leader_epoch=4", "vote_granted=True"],
        53: ["fenced_leader_epoch", "leader_epoch=5", "leader_id=101"],
        54: ["leader_epoch=4", "leader_id=-1"],
        56: ["isr=(1, 2)", "partition_epoch=7"],
        59: ["size=2000", "position=512", "end_offset=900", "leader_id=101", repr(RECORDS)],
        60: ["'h1'", "controller_id=1", "cluster_id='c'"],
        62: ["broker_epoch=99"],
        70: ["ErrorCode.not_controller", "error_message='no'"],
        63: ["should_shut_down=True", "is_fenced=False"],
        67: ["producer_id_start=1000"],
        75: ["eligible_leader_replicas=(3,)", "last_known_elr=(2,)"],
        93: ["broker_epoch=9", "has_more=True", "log_end_offset=40", "not_leader_or_follower"],
        **admin_samples.TOLD,
    }[key]
    for word in told:
        assert word in text


@pytest.mark.parametrize("kind", [kind for kind, api in BY_REQUEST.items() if api.sent is not None])
def test_nodes_understand_each_other(kind: type) -> None:
    key = BY_REQUEST[kind].key
    request: Any
    request, response = EXPECTED[key]
    if isinstance(request, m.FetchRequest):
        # By topic id alone: the reader knows the name from its own logs, the asker from its question.
        metadata = m.FetchPartition(METADATA, 7, 500, topic_id=METADATA_TOPIC_ID)
        request = replace(request, partitions=(replace(request.partitions[0], topic_id=TOPIC_ID), metadata))
        assert isinstance(response, m.FetchResponse)
        result = replace(response.partitions[0], topic_id=TOPIC_ID)
        response = replace(
            response,
            partitions=(
                result,
                m.FetchResult(METADATA, high_watermark=7, topic_id=METADATA_TOPIC_ID, snapshot=SNAPSHOT),
            ),
        )
    side = codec()
    frame = side.encode_request(5, "node-1", request)
    decoded = side.decode_request(frame[4:], caller(key))
    assert isinstance(decoded, Incoming)
    assert decoded.request == request
    answer = side.encode_response(decoded, response)
    assert side.decode_response(answer[4:], request) == response


@pytest.mark.parametrize(("key", "version"), every_version())
def test_every_request_can_be_refused_in_its_own_words(key: int, version: int) -> None:
    decoded = incoming(key, version)
    frame = codec().encode_response(decoded, m.Refused(ErrorCode.not_controller, "ask another"))
    schema = response_schema(key, version)
    entity = schema.read(frame, 9 if schema.flexible else 8)
    assert "not_controller" in repr(entity)


@pytest.mark.parametrize("kind", ForwardedRequest.__args__)
def test_every_kind_of_response_can_say_that_the_controller_is_not_active(kind: type) -> None:
    """Otherwise a broker would never ask the next one."""
    refused = expand(EXPECTED[BY_REQUEST[kind].key][0], m.Refused(ErrorCode.not_controller, "ask another"))
    assert not_in_charge(refused)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_always_has_the_old_header(version: int) -> None:
    schema = request_schema(18, version)
    body = schema.write(
        make(schema, "ApiVersionsRequest", client_software_name="x", client_software_version="1")
    )
    answer = codec().decode_request(request_frame(18, version, body, flexible=schema.flexible))
    assert isinstance(answer, AnswerNow)
    entity, size = response_schema(18, version)._read(answer.frame, 8)
    assert size + 8 == len(answer.frame)
    told = [(api.api_key, api.min_version, api.max_version) for api in entity.api_keys]
    assert tuple(told) == advertised(Listener.CLIENT)
    assert (1, 4, 12) in told
    assert not any(key in (56, 62, 63, 67, 93) for key, _, _ in told), "inter-broker APIs are not for clients"


def test_the_bytes_of_get_replica_log_info() -> None:
    """Our own schema, so nothing else says whether it is right: compact arrays, an empty tag section each."""
    request, response = EXPECTED[93]
    asker, answerer = codec(), codec()
    frame = asker.encode_request(5, "n", request)
    head = "005d 0000 00000005 0001 6e 00"
    body = f"02 {TOPIC_ID.hex} 03 00000003 00000004 00 00"
    assert frame[4:] == bytes.fromhex(head + body)
    decoded = answerer.decode_request(frame[4:], caller(93))
    assert isinstance(decoded, Incoming)
    first = "00000003 00000002 00000004 0000000000000028 0000 00"
    second = "00000004 ffffffff ffffffff ffffffffffffffff 0006 00"
    told = f"00000000 0000000000000009 01 02 {TOPIC_ID.hex} 03 {first} {second} 00 00"
    assert answerer.encode_response(decoded, response)[4:] == bytes.fromhex("00000005 00" + told)


def test_an_unknown_version_of_api_versions_gets_error_35_and_the_list() -> None:
    answer = codec().decode_request(request_frame(18, 99, b"\x00whatever", flexible=False))
    assert isinstance(answer, AnswerNow)
    entity = response_schema(18, 0).read(answer.frame, 8)
    assert entity.error_code is ErrorCode.unsupported_version
    assert len(entity.api_keys) > 5


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"", "shorter than its header"),
        (request_frame(999, 0, b"", flexible=False), "API key 999 is not served on the listener CLIENT"),
        (
            request_frame(56, 3, b"", flexible=True),
            r"AlterPartition \(API key 56\) is not served on the listener CLIENT",
        ),
        (request_frame(0, 2, b"", flexible=False), "Produce version 2 is not spoken here"),
        (request_frame(1, 18, b"", flexible=True), "Fetch version 18 is not spoken here"),
        (struct.pack(">hhih", 3, 1, 1, 500) + b"x", "client id of 500 bytes"),
        (request_frame(3, 1, b"", flexible=False, client=b"\xff\xfe"), "client id is not UTF-8"),
        (struct.pack(">hhih", 3, 12, 1, -1) + b"\x01\x00\x7f", "ends past the frame"),
        (struct.pack(">hhih", 3, 12, 1, -1) + b"\xff" * 9, "longer than five bytes"),
        (request_frame(3, 1, b"\x7f\xff\xff\xff", flexible=False), "MetadataRequest v1"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(frame: bytes, says: str) -> None:
    with pytest.raises(WireError, match=says) as wrong:
        codec().decode_request(frame)
    assert "\n" not in str(wrong.value)


@given(junk=st.binary(max_size=60), key=st.sampled_from([*BY_KEY, 18]), version=st.integers(0, 17))
def test_junk_never_raises_anything_else(junk: bytes, key: int, version: int) -> None:
    for frame in (junk, struct.pack(">hhih", key, version, 1, -1) + junk):
        try:
            codec().decode_request(frame)
        except WireError:
            continue


@given(cut=st.integers(0, 200), case=st.sampled_from(every_version()))
def test_a_cut_request_never_raises_anything_else(cut: int, case: tuple[int, int]) -> None:
    key, version = case
    schema = request_schema(key, version)
    frame = request_frame(key, version, schema.write(asked(key, schema)), flexible=schema.flexible)
    try:
        codec().decode_request(frame[: cut % len(frame)], caller(key))
    except WireError:
        return


@given(frames=st.lists(st.binary(max_size=50), max_size=8), cuts=st.lists(st.integers(1, 60), max_size=20))
def test_frames_come_out_as_they_went_in(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    reader, out = FrameReader(1_000), []
    while stream:
        size = cuts.pop() if cuts else len(stream)
        out += list(reader.feed(stream[:size]))
        stream = stream[size:]
    assert out == frames
    assert reader.pending_bytes == 0


@pytest.mark.parametrize("size", [-1, 1_001, 2**31 - 1])
def test_a_frame_over_the_limit_is_refused_before_it_is_kept(size: int) -> None:
    reader = FrameReader(1_000)
    with pytest.raises(WireError, match="the limit is 1000"):
        list(reader.feed(struct.pack(">i", size) + b"x" * 100))


@pytest.mark.parametrize(("key", "version"), every_version())
def test_a_refusal_that_quotes_a_very_long_name_fits_into_every_version(key: int, version: int) -> None:
    """A topic's name of 32,767 letters, quoted in a message of an old version, once ended broker and
    controller."""
    asked_for = incoming(key, version)
    frame = codec().encode_response(
        asked_for, m.Refused(ErrorCode.invalid_topic_exception, f"topic {'x' * 32_767} has an illegal name")
    )
    schema = response_schema(key, version)
    answer = schema.read(frame, 9 if schema.flexible else 8)
    said = getattr(answer, "error_message", None)
    assert said is None or 1_000 < len(said) < 1_010


def test_an_epoch_that_leaves_no_room_for_the_next_election_is_refused() -> None:
    """A controller that took 2^31 - 1 over ended at its own election, and again at each start."""
    controller, last = codec(), 2**31 - 1
    for request in (
        quorum.VoteRequest("c", 1, last, 2, UUID(int=9), 0, 0, pre_vote=False),
        quorum.BeginQuorumEpochRequest("c", 2, last),
        quorum.EndQuorumEpochRequest("c", 2, last, ()),
    ):
        frame = controller.encode_request(1, "n2", request)[4:]
        with pytest.raises(WireError, match="of epoch 2147483647; the highest taken over is 2130706431"):
            controller.decode_request(frame, caller(52))
    asked = quorum.VoteRequest("c", 1, 5, 2, UUID(int=9), 0, 0, pre_vote=False)
    incoming_vote = controller.decode_request(controller.encode_request(1, "n2", asked)[4:], caller(52))
    assert isinstance(incoming_vote, Incoming)
    answer = controller.encode_response(
        incoming_vote, quorum.VoteResponse(ErrorCode.none, last, -1, granted=False)
    )
    with pytest.raises(WireError, match="VoteResponse of epoch 2147483647"):
        controller.decode_response(answer[4:], asked)


def test_an_answer_that_a_version_has_no_room_for_is_an_error_of_its_connection() -> None:
    response = metadata.MetadataResponse((), "x" * 32_768, -1)
    with pytest.raises(WireError, match="the answer to Metadata v4 cannot be written: String is too long"):
        codec().encode_response(incoming(3, 4), response)


def test_topics_are_described_page_by_page() -> None:
    parts = tuple(metadata.PartitionMetadata(i, 1, 0, (1,), (1,)) for i in range(3))
    response = metadata.MetadataResponse(
        (), "c", 1, tuple(metadata.TopicMetadata(name, TOPIC_ID, parts) for name in ("b", "a", "c"))
    )
    seen, cursor = [], None
    for _ in range(20):
        request = metadata.DescribeTopicPartitionsRequest((), partition_limit=2, cursor=cursor)
        schema = response_schema(75, 0)
        entity = BY_KEY[75].encode_response(schema, request, response)
        seen += [(t.name, p.partition_index) for t in entity.topics for p in t.partitions]
        assert sum(len(t.partitions) for t in entity.topics) <= 2
        if entity.next_cursor is None:
            break
        cursor = (entity.next_cursor.topic_name, entity.next_cursor.partition_index)
    assert seen == [(name, i) for name in "abc" for i in range(3)]


def test_a_leader_is_named_for_each_partition_of_a_topic_or_for_none() -> None:
    """ElectLeaders 3: by place, so a shorter list would name others than were meant."""
    schema = request_schema(43, 3)
    topic = make(schema, "ElectedTopic", topic="t", partitions=(3, 4), desired_leaders=(5,))
    request = make(
        schema,
        "ElectLeadersRequest",
        election_type=2,
        topic_partitions=(topic,),
        timeout=admin_samples.SECONDS,
    )
    with pytest.raises(WireError, match="1 desired leaders of 2 partitions"):
        BY_KEY[43].decode_request(schema.read(schema.write(request), 0), lambda _: None)
