"""Every API in every version we speak: kio as the other side of the wire."""

from __future__ import annotations

import struct
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.broker.wire import admin_samples
from wrackline.broker.core.replication.uplink import not_in_charge
from wrackline.broker.model import controller_messages, metadata_messages, quorum_messages
from wrackline.broker.model import messages as m
from wrackline.broker.model.admin_messages import ForwardedRequest
from wrackline.broker.model.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, Endpoint, SnapshotId, TopicPartition
from wrackline.broker.wire.apis import BY_KEY, BY_REQUEST, advertised
from wrackline.broker.wire.codec import AnswerNow, Codec, Incoming
from wrackline.broker.wire.framing import FrameReader
from wrackline.broker.wire.refusals import expand
from wrackline.broker.wire.schema import Schema, WireError, request_schema, response_schema

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
TP = TopicPartition("t", 3)
SNAPSHOT = SnapshotId(900, 3)
RECORDS = b"\x01opaque\x00records"


def codec(*, controller: bool = False) -> Codec:
    return Codec(controller=controller, names=lambda topic_id: "t" if topic_id == TOPIC_ID else None)


def every_version() -> list[tuple[int, int]]:
    return [
        (api.key, version)
        for api in BY_KEY.values()
        for span in (api.clients, api.peers)
        if span is not None
        for version in range(span[0], span[1] + 1)
    ]


def request_frame(
    key: int, version: int, body: bytes, *, flexible: bool, client: bytes | None = b"me"
) -> bytes:
    length = -1 if client is None else len(client)
    head = struct.pack(">hhih", key, version, 77, length) + (client or b"")
    return head + (b"\x00" if flexible else b"") + body


def asked(key: int, s: Schema) -> Any:
    """A request entity of the API, with every field the version has set to something."""
    make, seconds = s.make, timedelta(seconds=2)
    topic = {"name": "t", "topic": "t", "topic_id": TOPIC_ID}
    match key:
        case 0:
            part = make("PartitionProduceData", index=3, records=RECORDS)
            data = make("TopicProduceData", partition_data=(part,), **topic)
            return make("ProduceRequest", transactional_id=None, acks=-1, timeout=seconds, topic_data=(data,))
        case 1:
            part = make(
                "FetchPartition",
                partition=3,
                current_leader_epoch=4,
                fetch_offset=5,
                last_fetched_epoch=2,
                log_start_offset=1,
                partition_max_bytes=1_000,
            )
            replica = make("ReplicaState", replica_id=2, replica_epoch=9) if s.has("ReplicaState") else None
            return make(
                "FetchRequest",
                replica_id=2,
                **({} if replica is None else {"replica_state": replica}),
                max_wait=seconds,
                min_bytes=1,
                max_bytes=10_000,
                isolation_level=0,
                session_id=0,
                session_epoch=-1,
                topics=(make("FetchTopic", partitions=(part,), **topic),),
                forgotten_topics_data=(),
                rack_id="",
            )
        case 2:
            part = make("ListOffsetsPartition", partition_index=3, current_leader_epoch=4, timestamp=-1)
            topics = (make("ListOffsetsTopic", name="t", partitions=(part,)),)
            return make("ListOffsetsRequest", replica_id=-1, isolation_level=0, topics=topics)
        case 3:
            topics = (make("MetadataRequestTopic", name="t", topic_id=None),)
            return make(
                "MetadataRequest",
                topics=topics,
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=False,
                include_topic_authorized_operations=False,
            )
        case 19:
            config = make("CreatableTopicConfig", name="min.insync.replicas", value="2")
            new = make(
                "CreatableTopic",
                name="t",
                num_partitions=3,
                replication_factor=2,
                assignments=(),
                configs=(config,),
            )
            return make("CreateTopicsRequest", topics=(new,), timeout=seconds, validate_only=True)
        case 20:
            states = (make("DeleteTopicState", name="t", topic_id=None),) if s.has("DeleteTopicState") else ()
            return make("DeleteTopicsRequest", topics=states, topic_names=("t",), timeout=seconds)
        case 22:
            return make(
                "InitProducerIdRequest",
                transactional_id=None,
                transaction_timeout=seconds,
                producer_id=5,
                producer_epoch=1,
            )
        case 23:
            part = make("OffsetForLeaderPartition", partition=3, current_leader_epoch=4, leader_epoch=2)
            topics = (make("OffsetForLeaderTopic", topic="t", partitions=(part,)),)
            return make("OffsetForLeaderEpochRequest", replica_id=2, topics=topics)
        case 56:
            members = (make("BrokerState", broker_id=1, broker_epoch=9),)
            part = make(
                "PartitionData",
                partition_index=3,
                leader_epoch=4,
                new_isr_with_epochs=members,
                leader_recovery_state=0,
                partition_epoch=6,
            )
            topics = (make("TopicData", topic_id=TOPIC_ID, partitions=(part,)),)
            return make("AlterPartitionRequest", broker_id=1, broker_epoch=9, topics=topics)
        case 60:
            return make("DescribeClusterRequest", include_cluster_authorized_operations=False)
        case 62:
            listener = make("Listener", name="PLAINTEXT", host="h", port=9_092, security_protocol=0)
            return make(
                "BrokerRegistrationRequest",
                broker_id=1,
                cluster_id="c",
                incarnation_id=TOPIC_ID,
                listeners=(listener,),
                features=(),
                rack="r",
                previous_broker_epoch=7,
            )
        case 63:
            return make(
                "BrokerHeartbeatRequest",
                broker_id=1,
                broker_epoch=9,
                current_metadata_offset=12,
                want_fence=False,
                want_shut_down=True,
            )
        case 52 | 53 | 54:
            part = make(
                "PartitionData",
                partition_index=0,
                replica_epoch=4,
                replica_id=102,
                replica_directory_id=TOPIC_ID,
                voter_directory_id=None,
                last_offset_epoch=3,
                last_offset=17,
                pre_vote=True,
                leader_id=102,
                leader_epoch=4,
                preferred_successors=(103, 101),
            )
            metadata = make("TopicData", topic_name="__cluster_metadata", partitions=(part,))
            kind = {52: "VoteRequest", 53: "BeginQuorumEpochRequest", 54: "EndQuorumEpochRequest"}[key]
            return make(kind, cluster_id="c", voter_id=101, topics=(metadata,))
        case 59:
            part = make(
                "PartitionSnapshot",
                partition=0,
                current_leader_epoch=4,
                snapshot_id=make("SnapshotId", end_offset=900, epoch=3),
                position=512,
                replica_directory_id=TOPIC_ID,
            )
            metadata = make("TopicSnapshot", name="__cluster_metadata", partitions=(part,))
            return make(
                "FetchSnapshotRequest", cluster_id="c", replica_id=102, max_bytes=4_096, topics=(metadata,)
            )
        case 67:
            return make("AllocateProducerIdsRequest", broker_id=1, broker_epoch=9)
        case 21:
            part = make("DeleteRecordsPartition", partition_index=3, offset=5)
            topics = (make("DeleteRecordsTopic", name="t", partitions=(part,)),)
            return make("DeleteRecordsRequest", topics=topics, timeout=seconds)
        case 93:
            topics = (make("TopicPartitions", topic_id=TOPIC_ID, partitions=(3, 4)),)
            return make("GetReplicaLogInfoRequest", topic_partitions=topics)
        case _ if key in admin_samples.EXPECTED:
            return admin_samples.asked(key, s)
        case _:
            topics = (make("TopicRequest", name="t"),)
            return make("DescribeTopicPartitionsRequest", topics=topics)


META = metadata_messages.MetadataResponse(
    brokers=(Endpoint(1, "h1", 9_092, "r"), Endpoint(2, "h2", 9_093)),
    cluster_id="c",
    controller_id=1,
    topics=(
        metadata_messages.TopicMetadata(
            "t",
            TOPIC_ID,
            (
                metadata_messages.PartitionMetadata(
                    3, 1, 4, (1, 2, 3), (1, 2), (3,), elr=(3,), last_known_elr=(2,)
                ),
            ),
        ),
    ),
)

EXPECTED: dict[int, tuple[m.Request, m.Response]] = {
    0: (
        m.ProduceRequest(-1, 2_000, (m.ProducePartition(TP, RECORDS),)),
        m.ProduceResponse((m.ProduceResult(TP, ErrorCode.not_enough_replicas, 41, 2, message="too few"),)),
    ),
    1: (
        m.FetchRequest(2_000, 1, 10_000, (m.FetchPartition(TP, 5, 1_000, 4, 2, 1),), 2, 9),
        m.FetchResponse(
            (
                m.FetchResult(
                    TP,
                    high_watermark=8,
                    last_stable_offset=8,
                    log_start=1,
                    diverging=m.EpochEndOffset(2, 4),
                    current_leader=m.LeaderIdAndEpoch(1, 4),
                    records=RECORDS,
                ),
            )
        ),
    ),
    2: (
        m.ListOffsetsRequest((m.ListOffsetsPartition(TP, -1, 4),)),
        m.ListOffsetsResponse((m.ListOffsetsResult(TP, ErrorCode.none, 55, 6, 4),)),
    ),
    3: (metadata_messages.MetadataRequest(("t",)), META),
    19: (
        metadata_messages.CreateTopicsRequest(
            (metadata_messages.NewTopic("t", 3, 2, {}, {"min.insync.replicas": "2"}),), 2_000, True
        ),
        metadata_messages.CreateTopicsResponse(
            (metadata_messages.CreatedTopic("t", ErrorCode.none, None, TOPIC_ID, 3, 2),)
        ),
    ),
    20: (
        metadata_messages.DeleteTopicsRequest(("t",), 2_000),
        metadata_messages.DeleteTopicsResponse(
            (metadata_messages.DeletedTopic("t", ErrorCode.unknown_topic_or_partition, TOPIC_ID, "no"),)
        ),
    ),
    21: (
        m.DeleteRecordsRequest(((TP, 5),), 2_000),
        m.DeleteRecordsResponse((m.DeleteRecordsResult(TP, 5, ErrorCode.none),)),
    ),
    22: (m.InitProducerIdRequest(None, 5, 1), m.InitProducerIdResponse(ErrorCode.none, 4_000, 0)),
    23: (
        m.OffsetForLeaderEpochRequest((m.OffsetForLeaderEpochPartition(TP, 2, 4),), 2),
        m.OffsetForLeaderEpochResponse((m.OffsetForLeaderEpochResult(TP, ErrorCode.none, 2, 40),)),
    ),
    56: (
        controller_messages.AlterPartitionRequest(
            1, 9, (controller_messages.AlterPartitionItem(TP, TOPIC_ID, 4, 6, ((1, 9),)),)
        ),
        controller_messages.AlterPartitionResponse(
            partitions=(
                controller_messages.AlterPartitionResult(TP, TOPIC_ID, ErrorCode.none, 1, 4, (1, 2), 7),
            )
        ),
    ),
    60: (metadata_messages.DescribeClusterRequest(), META),
    62: (
        controller_messages.BrokerRegistrationRequest(1, "c", TOPIC_ID, "h", 9_092, "r", 7),
        controller_messages.BrokerRegistrationResponse(ErrorCode.none, 99),
    ),
    63: (
        controller_messages.BrokerHeartbeatRequest(1, 9, 12, False, True),
        controller_messages.BrokerHeartbeatResponse(ErrorCode.none, True, False, True),
    ),
    52: (
        quorum_messages.VoteRequest("c", 101, 4, 102, TOPIC_ID, 3, 17, pre_vote=True),
        quorum_messages.VoteResponse(ErrorCode.none, 4, 103, granted=True),
    ),
    53: (
        quorum_messages.BeginQuorumEpochRequest("c", 102, 4),
        quorum_messages.QuorumEpochResponse(ErrorCode.fenced_leader_epoch, 5, 101),
    ),
    54: (
        quorum_messages.EndQuorumEpochRequest("c", 102, 4, (103, 101)),
        quorum_messages.QuorumEpochResponse(ErrorCode.none, 4, -1),
    ),
    59: (
        FetchSnapshotRequest("c", 102, SNAPSHOT, 512, 4_096, 4, TOPIC_ID),
        FetchSnapshotResponse(ErrorCode.none, SNAPSHOT, 2_000, 512, RECORDS, 101, 4),
    ),
    67: (
        controller_messages.AllocateProducerIdsRequest(1, 9),
        controller_messages.AllocateProducerIdsResponse(ErrorCode.none, 1_000, 1_000),
    ),
    75: (metadata_messages.DescribeTopicPartitionsRequest(("t",)), META),
    93: (
        controller_messages.GetReplicaLogInfoRequest(((TOPIC_ID, 3), (TOPIC_ID, 4))),
        controller_messages.GetReplicaLogInfoResponse(
            9,
            (
                controller_messages.ReplicaLogInfo(TOPIC_ID, 3, 2, 4, 40),
                controller_messages.ReplicaLogInfo(TOPIC_ID, 4, error=ErrorCode.not_leader_or_follower),
            ),
            has_more=True,
        ),
    ),
    **admin_samples.EXPECTED,
}


def lacking(request: Any, key: int, version: int) -> Any:
    """What a version cannot say is the default in the core's request."""
    from dataclasses import replace

    if key == 0:
        return replace(request, zstd=version >= 7)
    if key == 1:
        part = request.partitions[0]
        part = replace(
            part,
            current_leader_epoch=part.current_leader_epoch if version >= 9 else -1,
            last_fetched_epoch=part.last_fetched_epoch if version >= 12 else -1,
            log_start=part.log_start if version >= 5 else -1,
            topic_id=TOPIC_ID if version >= 13 else None,
        )
        return replace(
            request, partitions=(part,), broker_epoch=request.broker_epoch if version >= 15 else -1
        )
    if key == 2:
        part = replace(request.partitions[0], current_leader_epoch=4 if version >= 4 else -1)
        return replace(request, partitions=(part,), knows_offset_not_available=version >= 5)
    if key == 3:
        return replace(request, allow_auto_topic_creation=version < 4)
    if key == 22 and version < 3:
        return m.InitProducerIdRequest(None)
    if key == 43 and version < 1:
        return replace(request, election=0)
    if key == 23 and version < 3:
        return replace(request, replica_id=-1)
    return request


def incoming(key: int, version: int) -> Incoming:
    schema = request_schema(key, version)
    frame = request_frame(key, version, schema.write(asked(key, schema)), flexible=schema.flexible)
    decoded = codec(controller=not BY_KEY[key].on_broker).decode_request(frame)
    assert isinstance(decoded, Incoming)
    return decoded


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
    from dataclasses import replace

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
    side = codec(controller=not BY_KEY[key].on_broker)
    frame = side.encode_request(5, "node-1", request)
    decoded = side.decode_request(frame[4:])
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
def test_a_controller_that_is_not_in_charge_is_known_by_any_answer_of_its(kind: type) -> None:
    """Otherwise a broker would never ask the next one."""
    refused = expand(EXPECTED[BY_REQUEST[kind].key][0], m.Refused(ErrorCode.not_controller, "ask another"))
    assert not_in_charge(refused)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_always_has_the_old_header(version: int) -> None:
    schema = request_schema(18, version)
    body = schema.write(
        schema.make("ApiVersionsRequest", client_software_name="x", client_software_version="1")
    )
    answer = codec().decode_request(request_frame(18, version, body, flexible=schema.flexible))
    assert isinstance(answer, AnswerNow)
    entity, size = response_schema(18, version)._read(answer.frame, 8)
    assert size + 8 == len(answer.frame)
    told = [(api.api_key, api.min_version, api.max_version) for api in entity.api_keys]
    assert told == advertised(controller=False)
    assert (1, 4, 12) in told
    assert not any(key in (56, 62, 63, 67, 93) for key, _, _ in told), "inter-broker APIs are not for clients"


def test_the_bytes_of_get_replica_log_info() -> None:
    """Our own schema, so nothing else says whether it is right: compact arrays, an empty tag section each."""
    request, response = EXPECTED[93]
    asker, answerer = codec(controller=True), codec()
    frame = asker.encode_request(5, "n", request)
    head = "005d 0000 00000005 0001 6e 00"
    body = f"02 {TOPIC_ID.hex} 03 00000003 00000004 00 00"
    assert frame[4:] == bytes.fromhex(head + body)
    decoded = answerer.decode_request(frame[4:])
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
        (request_frame(999, 0, b"", flexible=False), "API key 999 is not served by a broker"),
        (request_frame(56, 3, b"", flexible=True), "API key 56 is not served by a broker"),
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
        codec(controller=not BY_KEY[key].on_broker).decode_request(frame[: cut % len(frame)])
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
    frame = codec(controller=not asked_for.api.on_broker).encode_response(
        asked_for, m.Refused(ErrorCode.invalid_topic_exception, f"topic {'x' * 32_767} has an illegal name")
    )
    schema = response_schema(key, version)
    answer = schema.read(frame, 9 if schema.flexible else 8)
    said = getattr(answer, "error_message", None)
    assert said is None or 1_000 < len(said) < 1_010


def test_an_epoch_that_leaves_no_room_for_the_next_election_is_refused() -> None:
    """A controller that took 2^31 - 1 over ended at its own election, and again at each start."""
    controller, last = codec(controller=True), 2**31 - 1
    for request in (
        quorum_messages.VoteRequest("c", 1, last, 2, UUID(int=9), 0, 0, pre_vote=False),
        quorum_messages.BeginQuorumEpochRequest("c", 2, last),
        quorum_messages.EndQuorumEpochRequest("c", 2, last, ()),
    ):
        frame = controller.encode_request(1, "n2", request)[4:]
        with pytest.raises(WireError, match="of epoch 2147483647; the highest taken over is 2130706431"):
            controller.decode_request(frame)
    asked = quorum_messages.VoteRequest("c", 1, 5, 2, UUID(int=9), 0, 0, pre_vote=False)
    incoming_vote = controller.decode_request(controller.encode_request(1, "n2", asked)[4:])
    assert isinstance(incoming_vote, Incoming)
    answer = controller.encode_response(
        incoming_vote, quorum_messages.VoteResponse(ErrorCode.none, last, -1, granted=False)
    )
    with pytest.raises(WireError, match="VoteResponse of epoch 2147483647"):
        controller.decode_response(answer[4:], asked)


def test_an_answer_that_a_version_has_no_room_for_is_an_error_of_its_connection() -> None:
    response = metadata_messages.MetadataResponse((), "x" * 32_768, -1)
    with pytest.raises(WireError, match="the answer to Metadata v4 cannot be written: String is too long"):
        codec().encode_response(incoming(3, 4), response)


def test_topics_are_described_page_by_page() -> None:
    parts = tuple(metadata_messages.PartitionMetadata(i, 1, 0, (1,), (1,)) for i in range(3))
    response = metadata_messages.MetadataResponse(
        (), "c", 1, tuple(metadata_messages.TopicMetadata(name, TOPIC_ID, parts) for name in ("b", "a", "c"))
    )
    seen, cursor = [], None
    for _ in range(20):
        request = metadata_messages.DescribeTopicPartitionsRequest((), partition_limit=2, cursor=cursor)
        schema = response_schema(75, 0)
        entity = BY_KEY[75].encode_response(schema, request, response)
        seen += [(t.name, p.partition_index) for t in entity.topics for p in t.partitions]
        assert sum(len(t.partitions) for t in entity.topics) <= 2
        if entity.next_cursor is None:
            break
        cursor = (entity.next_cursor.topic_name, entity.next_cursor.partition_index)
    assert seen == [(name, i) for name in "abc" for i in range(3)]
