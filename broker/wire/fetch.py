"""Fetch (key 1): versions 4 to 12 from clients, 17 between brokers (topic ids, and the replica's broker
epoch, without which KIP-903 cannot tell a restarted follower from the one that was caught up)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from wrackline.broker.model.messages.requests import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ForgottenPartition,
    LeaderIdAndEpoch,
)
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, SnapshotId, TopicPartition
from wrackline.broker.wire.common import (
    NO_THROTTLE,
    TopicNames,
    as_timedelta,
    by_topic,
    milliseconds,
    topic_of,
    uuid_or_none,
)
from wrackline.broker.wire.schema import Schema

_BY_TOPIC_ID = 13


def decode_request(entity: Any, names: TopicNames) -> FetchRequest:
    partitions = []
    for topic in entity.topics:
        name, topic_id = topic_of(topic, names)
        partitions += [
            FetchPartition(
                tp=TopicPartition(name, part.partition),
                fetch_offset=part.fetch_offset,
                max_bytes=part.partition_max_bytes,
                current_leader_epoch=getattr(part, "current_leader_epoch", -1),
                last_fetched_epoch=getattr(part, "last_fetched_epoch", -1),
                log_start=getattr(part, "log_start_offset", -1),
                topic_id=topic_id,
                directory_id=getattr(part, "replica_directory_id", None),
            )
            for part in topic.partitions
        ]
    forgotten = [
        ForgottenPartition(TopicPartition(name, partition), topic_id)
        for topic in getattr(entity, "forgotten_topics_data", ())
        for name, topic_id in (topic_of(topic, names),)
        for partition in topic.partitions
    ]
    replica = getattr(entity, "replica_state", None)
    return FetchRequest(
        max_wait_ms=milliseconds(entity.max_wait),
        min_bytes=entity.min_bytes,
        max_bytes=entity.max_bytes,
        partitions=tuple(partitions),
        replica_id=entity.replica_id if replica is None else replica.replica_id,
        broker_epoch=-1 if replica is None else replica.replica_epoch,
        session_id=getattr(entity, "session_id", 0),
        session_epoch=getattr(entity, "session_epoch", -1),
        forgotten=tuple(forgotten),
        isolation_level=entity.isolation_level,
    )


def encode_request(schema: Schema, request: FetchRequest) -> Any:
    make = schema.make
    return make(
        "FetchRequest",
        cluster_id=None,
        replica_state=make("ReplicaState", replica_id=request.replica_id, replica_epoch=request.broker_epoch),
        max_wait=as_timedelta(request.max_wait_ms),
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation_level=request.isolation_level,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        topics=tuple(
            make(
                "FetchTopic",
                topic_id=_id_of(parts[0]),
                partitions=tuple(
                    make(
                        "FetchPartition",
                        partition=part.tp.partition,
                        current_leader_epoch=part.current_leader_epoch,
                        fetch_offset=part.fetch_offset,
                        last_fetched_epoch=part.last_fetched_epoch,
                        log_start_offset=part.log_start,
                        replica_directory_id=uuid_or_none(part.directory_id),
                        partition_max_bytes=part.max_bytes,
                    )
                    for part in parts
                ),
            )
            for _, parts in by_topic(request.partitions)
        ),
        forgotten_topics_data=tuple(
            make(
                "ForgottenTopic",
                topic_id=uuid_or_none(parts[0].topic_id),
                partitions=tuple(part.tp.partition for part in parts),
            )
            for _, parts in by_topic(request.forgotten)
        ),
        rack_id="",
    )


def _id_of(part: FetchPartition) -> UUID | None:
    if part.topic_id is None and part.tp == METADATA:
        return METADATA_TOPIC_ID
    return uuid_or_none(part.topic_id)


def encode_response(schema: Schema, request: FetchRequest, response: FetchResponse) -> Any:
    make = schema.make
    ids = {part.tp: part.topic_id for part in request.partitions} if schema.version >= _BY_TOPIC_ID else {}
    return make(
        "FetchResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        session_id=response.session_id,
        responses=tuple(
            make(
                "FetchableTopicResponse",
                topic=topic,
                topic_id=uuid_or_none(results[0].topic_id or ids.get(results[0].tp)),
                partitions=tuple(_encode_result(schema, result) for result in results),
            )
            for topic, results in by_topic(response.partitions)
        ),
        node_endpoints=(),
    )


def _encode_result(schema: Schema, result: FetchResult) -> Any:
    """The shell has put the bytes of a slice in its place before."""
    make = schema.make
    tagged: dict[str, object] = {}
    if result.diverging is not None and schema.has("EpochEndOffset"):
        tagged["diverging_epoch"] = make(
            "EpochEndOffset", epoch=result.diverging.epoch, end_offset=result.diverging.end_offset
        )
    if result.current_leader is not None and schema.has("LeaderIdAndEpoch"):
        tagged["current_leader"] = make(
            "LeaderIdAndEpoch",
            leader_id=result.current_leader.leader_id,
            leader_epoch=result.current_leader.leader_epoch,
        )
    if result.snapshot is not None and schema.has("SnapshotId"):
        tagged["snapshot_id"] = make("SnapshotId", **result.snapshot._asdict())
    return make(
        "PartitionData",
        partition_index=result.tp.partition,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start,
        aborted_transactions=(),
        preferred_read_replica=-1,
        records=result.records,
        **tagged,
    )


def decode_response(entity: Any, request: FetchRequest) -> FetchResponse:
    names = dict(request.session_topics)
    names |= {_id_of(part): part.tp.topic for part in request.partitions}  # type: ignore[misc]
    results = []
    for topic in entity.responses:
        name = names.get(topic.topic_id, "")
        results += [_decode_result(part, name, topic.topic_id) for part in topic.partitions]
    return FetchResponse(tuple(results), entity.error_code, entity.session_id)


def _decode_result(part: Any, topic: str, topic_id: UUID | None) -> FetchResult:
    diverging, leader = part.diverging_epoch, part.current_leader
    return FetchResult(
        tp=TopicPartition(topic, part.partition_index),
        error=part.error_code,
        high_watermark=part.high_watermark,
        last_stable_offset=part.last_stable_offset,
        log_start=part.log_start_offset,
        diverging=None
        if diverging.epoch < 0 and diverging.end_offset < 0
        else EpochEndOffset(diverging.epoch, diverging.end_offset),
        current_leader=None
        if leader.leader_epoch < 0
        else LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch),
        records=part.records or b"",
        topic_id=topic_id,
        snapshot=None
        if part.snapshot_id.end_offset < 0
        else SnapshotId(part.snapshot_id.end_offset, part.snapshot_id.epoch),
    )
