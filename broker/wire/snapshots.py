"""FetchSnapshot (key 59, version 1): pieces of a snapshot of the metadata log (KIP-630)."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.model.types import METADATA, SnapshotId
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, uuid_or_none
from wrackline.broker.wire.quorum import metadata_part
from wrackline.broker.wire.schema import NO_UUID, Schema


def decode_request(entity: Any, _: TopicNames) -> FetchSnapshotRequest:
    part = metadata_part(entity, entity.topics, "name", "partition")
    directory = getattr(part, "replica_directory_id", None)
    return FetchSnapshotRequest(
        cluster_id=entity.cluster_id or "",
        replica_id=entity.replica_id,
        snapshot=SnapshotId(part.snapshot_id.end_offset, part.snapshot_id.epoch),
        position=part.position,
        max_bytes=entity.max_bytes,
        current_leader_epoch=part.current_leader_epoch,
        directory_id=None if directory in (None, NO_UUID) else directory,
    )


def encode_request(schema: Schema, request: FetchSnapshotRequest) -> Any:
    make = schema.make
    part = make(
        "PartitionSnapshot",
        partition=METADATA.partition,
        current_leader_epoch=request.current_leader_epoch,
        snapshot_id=make("SnapshotId", **request.snapshot._asdict()),
        position=request.position,
        replica_directory_id=uuid_or_none(request.directory_id),
    )
    return make(
        "FetchSnapshotRequest",
        cluster_id=request.cluster_id,
        replica_id=request.replica_id,
        max_bytes=request.max_bytes,
        topics=(make("TopicSnapshot", name=METADATA.topic, partitions=(part,)),),
    )


def encode_response(schema: Schema, _: FetchSnapshotRequest, response: FetchSnapshotResponse) -> Any:
    """The shell has put the bytes of a slice in its place before."""
    make = schema.make
    part = make(
        "PartitionSnapshot",
        index=METADATA.partition,
        error_code=response.error,
        snapshot_id=make("SnapshotId", **response.snapshot._asdict()),
        current_leader=make(
            "LeaderIdAndEpoch", leader_id=response.leader_id, leader_epoch=response.leader_epoch
        ),
        size=response.size,
        position=response.position,
        unaligned_records=response.records,
    )
    return make(
        "FetchSnapshotResponse",
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        topics=(make("TopicSnapshot", name=METADATA.topic, partitions=(part,)),),
        node_endpoints=(),
    )


def decode_response(entity: Any, _: FetchSnapshotRequest) -> FetchSnapshotResponse:
    if entity.error_code is not ErrorCode.none:
        return FetchSnapshotResponse(entity.error_code)
    part = metadata_part(entity, entity.topics, "name", "index")
    return FetchSnapshotResponse(
        error=part.error_code,
        snapshot=SnapshotId(part.snapshot_id.end_offset, part.snapshot_id.epoch),
        size=part.size,
        position=part.position,
        records=part.unaligned_records or b"",
        leader_id=part.current_leader.leader_id,
        leader_epoch=part.current_leader.leader_epoch,
    )
