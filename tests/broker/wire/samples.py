"""A request and a response of every API, as the wire has them and as the core does."""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from tests.broker.wire import admin_samples, entities
from wrackline.broker.model.messages import controller, metadata, quorum
from wrackline.broker.model.messages import requests as m
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.model.metadata.features import METADATA_VERSION, Levels
from wrackline.broker.model.types import Endpoint, SnapshotId, TopicPartition
from wrackline.broker.wire.apis import BY_KEY
from wrackline.broker.wire.codec import Caller, Codec, Incoming
from wrackline.broker.wire.schema import Schema, request_schema

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
TP = TopicPartition("t", 3)
SNAPSHOT = SnapshotId(900, 3)
RECORDS = b"\x01opaque\x00records"


class AnyNode(int):
    """An id that is the same as every other: of a node that may speak for all of them."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int)

    __hash__ = int.__hash__


def caller(key: int) -> Caller:
    """Who may ask everything of this API, where that is."""
    api = BY_KEY[key]
    return Caller((*api.nodes_on, *api.open_on)[0], AnyNode())


def codec() -> Codec:
    return Codec(names=lambda topic_id: "t" if topic_id == TOPIC_ID else None)


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


def _supported(make: Any) -> Any:
    return make("Feature", name=METADATA_VERSION, min_supported_version=11, max_supported_version=15)


def asked(key: int, s: Schema) -> Any:
    """A request entity of the API, with every field the version has set to something."""
    make, seconds = partial(entities.make, s), timedelta(seconds=2)
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
            replica = (
                make("ReplicaState", replica_id=2, replica_epoch=9)
                if entities.has(s, "ReplicaState")
                else None
            )
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
            states = (
                (make("DeleteTopicState", name="t", topic_id=None),)
                if entities.has(s, "DeleteTopicState")
                else ()
            )
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
            listeners = tuple(
                make("Listener", name=name, host="h", port=port, security_protocol=protocol)
                for name, port, protocol in (("CLIENT", 9_092, 0), ("REPLICATION", 9_094, 2))
            )
            return make(
                "BrokerRegistrationRequest",
                broker_id=1,
                cluster_id="c",
                incarnation_id=TOPIC_ID,
                listeners=listeners,
                features=(_supported(make),),
                rack="r",
                previous_broker_epoch=7,
            )
        case 70:
            listener = make("Listener", name="CONTROLLER", host="h", port=9_093, security_protocol=0)
            return make(
                "ControllerRegistrationRequest",
                controller_id=101,
                incarnation_id=TOPIC_ID,
                zk_migration_ready=False,
                listeners=(listener,),
                features=(_supported(make),),
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


META = metadata.MetadataResponse(
    brokers=(Endpoint(1, "h1", 9_092, "r"), Endpoint(2, "h2", 9_093)),
    cluster_id="c",
    controller_id=1,
    topics=(
        metadata.TopicMetadata(
            "t",
            TOPIC_ID,
            (metadata.PartitionMetadata(3, 1, 4, (1, 2, 3), (1, 2), (3,), elr=(3,), last_known_elr=(2,)),),
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
    3: (metadata.MetadataRequest(("t",)), META),
    19: (
        metadata.CreateTopicsRequest(
            (metadata.NewTopic("t", 3, 2, {}, {"min.insync.replicas": "2"}),), 2_000, True
        ),
        metadata.CreateTopicsResponse((metadata.CreatedTopic("t", ErrorCode.none, None, TOPIC_ID, 3, 2),)),
    ),
    20: (
        metadata.DeleteTopicsRequest(("t",), 2_000),
        metadata.DeleteTopicsResponse(
            (metadata.DeletedTopic("t", ErrorCode.unknown_topic_or_partition, TOPIC_ID, "no"),)
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
        controller.AlterPartitionRequest(
            1, 9, (controller.AlterPartitionItem(TP, TOPIC_ID, 4, 6, ((1, 9),)),)
        ),
        controller.AlterPartitionResponse(
            partitions=(controller.AlterPartitionResult(TP, TOPIC_ID, ErrorCode.none, 1, 4, (1, 2), 7),)
        ),
    ),
    60: (metadata.DescribeClusterRequest(), META),
    62: (
        controller.BrokerRegistrationRequest(1, "c", TOPIC_ID, "h", 9_092, "r", 7, Levels(11, 15), 9_094),
        controller.BrokerRegistrationResponse(ErrorCode.none, 99),
    ),
    63: (
        controller.BrokerHeartbeatRequest(1, 9, 12, False, True),
        controller.BrokerHeartbeatResponse(ErrorCode.none, True, False, True),
    ),
    70: (
        controller.ControllerRegistrationRequest(101, TOPIC_ID, "h", 9_093, Levels(11, 15)),
        controller.ControllerRegistrationResponse(ErrorCode.not_controller, "no"),
    ),
    52: (
        quorum.VoteRequest("c", 101, 4, 102, TOPIC_ID, 3, 17, pre_vote=True),
        quorum.VoteResponse(ErrorCode.none, 4, 103, granted=True),
    ),
    53: (
        quorum.BeginQuorumEpochRequest("c", 102, 4),
        quorum.QuorumEpochResponse(ErrorCode.fenced_leader_epoch, 5, 101),
    ),
    54: (
        quorum.EndQuorumEpochRequest("c", 102, 4, (103, 101)),
        quorum.QuorumEpochResponse(ErrorCode.none, 4, -1),
    ),
    59: (
        FetchSnapshotRequest("c", 102, SNAPSHOT, 512, 4_096, 4, TOPIC_ID),
        FetchSnapshotResponse(ErrorCode.none, SNAPSHOT, 2_000, 512, RECORDS, 101, 4),
    ),
    67: (
        controller.AllocateProducerIdsRequest(1, 9),
        controller.AllocateProducerIdsResponse(ErrorCode.none, 1_000, 1_000),
    ),
    75: (metadata.DescribeTopicPartitionsRequest(("t",)), META),
    93: (
        controller.GetReplicaLogInfoRequest(((TOPIC_ID, 3), (TOPIC_ID, 4))),
        controller.GetReplicaLogInfoResponse(
            9,
            (
                controller.ReplicaLogInfo(TOPIC_ID, 3, 2, 4, 40),
                controller.ReplicaLogInfo(TOPIC_ID, 4, error=ErrorCode.not_leader_or_follower),
            ),
            has_more=True,
        ),
    ),
    **admin_samples.EXPECTED,
}


def lacking(request: Any, key: int, version: int) -> Any:
    """What a version cannot say is the default in the core's request."""
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
    if key == 43 and version < 3:
        return replace(request, election=request.election if version >= 1 else 0, desired=())
    if key == 23 and version < 3:
        return replace(request, replica_id=-1)
    return request


def incoming(key: int, version: int) -> Incoming:
    schema = request_schema(key, version)
    frame = request_frame(key, version, schema.write(asked(key, schema)), flexible=schema.flexible)
    decoded = codec().decode_request(frame, caller(key))
    assert isinstance(decoded, Incoming)
    return decoded
