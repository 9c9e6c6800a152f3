"""Vote (key 52, version 2), BeginQuorumEpoch (53, 0) and EndQuorumEpoch (54, 0): controllers among themselves
(KIP-595, KIP-996). Each speaks of one partition, the metadata log."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from wrackline.broker.model.types import METADATA
from wrackline.broker.wire.common import TopicNames, uuid_or_none
from wrackline.broker.wire.schema import NO_UUID, Schema, WireError

_HIGHEST_EPOCH = 2**31 - 1 - 2**24
"""From here on there are sixteen million elections to go."""


def metadata_part(
    entity: Any, topics: Any, topic_name: str = "topic_name", index: str = "partition_index"
) -> Any:
    """What is said of the metadata log. Raises WireError when that is not exactly one thing."""
    parts = [part for topic in topics for part in topic.partitions]
    names = {getattr(topic, topic_name) for topic in topics}
    if len(parts) != 1 or names != {METADATA.topic} or getattr(parts[0], index) != METADATA.partition:
        raise WireError(f"{type(entity).__name__} is not of {METADATA} alone")
    return parts[0]


def _only(entity: Any) -> Any:
    """Raises WireError also when the epoch leaves no room: whoever took it over, and then stood for election
    in the one behind it, would have none to write down."""
    part = metadata_part(entity, entity.topics)
    epoch = part.replica_epoch if hasattr(part, "replica_epoch") else part.leader_epoch
    if epoch > _HIGHEST_EPOCH:
        raise WireError(
            f"{type(entity).__name__} of epoch {epoch}; the highest taken over is {_HIGHEST_EPOCH}"
        )
    return part


def _topics(schema: Schema, **part: object) -> Any:
    make = schema.make
    partition = make("PartitionData", partition_index=METADATA.partition, **part)
    return (make("TopicData", topic_name=METADATA.topic, partitions=(partition,)),)


# --- Vote --------------------------------------------------------------------------------------------------


def decode_vote(entity: Any, _: TopicNames) -> VoteRequest:
    part = _only(entity)
    return VoteRequest(
        cluster_id=entity.cluster_id or "",
        voter_id=entity.voter_id,
        epoch=part.replica_epoch,
        candidate_id=part.replica_id,
        candidate_directory=part.replica_directory_id or NO_UUID,
        last_epoch=part.last_offset_epoch,
        last_offset=part.last_offset,
        pre_vote=part.pre_vote,
    )


def encode_vote_request(schema: Schema, request: VoteRequest) -> Any:
    topics = _topics(
        schema,
        replica_epoch=request.epoch,
        replica_id=request.candidate_id,
        replica_directory_id=uuid_or_none(request.candidate_directory),
        voter_directory_id=None,
        last_offset_epoch=request.last_epoch,
        last_offset=request.last_offset,
        pre_vote=request.pre_vote,
    )
    return schema.make("VoteRequest", cluster_id=request.cluster_id, voter_id=request.voter_id, topics=topics)


def encode_vote_response(schema: Schema, _: VoteRequest, response: VoteResponse) -> Any:
    topics = _topics(
        schema,
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
        vote_granted=response.granted,
    )
    return schema.make("VoteResponse", error_code=ErrorCode.none, topics=topics, node_endpoints=())


def decode_vote_response(entity: Any, _: VoteRequest) -> VoteResponse:
    if entity.error_code is not ErrorCode.none:
        return VoteResponse(entity.error_code)
    part = _only(entity)
    return VoteResponse(part.error_code, part.leader_epoch, part.leader_id, part.vote_granted)


# --- BeginQuorumEpoch, EndQuorumEpoch -----------------------------------------------------------------------


def decode_begin(entity: Any, _: TopicNames) -> BeginQuorumEpochRequest:
    part = _only(entity)
    return BeginQuorumEpochRequest(entity.cluster_id or "", part.leader_id, part.leader_epoch)


def encode_begin_request(schema: Schema, request: BeginQuorumEpochRequest) -> Any:
    topics = _topics(schema, leader_id=request.leader_id, leader_epoch=request.epoch)
    return schema.make("BeginQuorumEpochRequest", cluster_id=request.cluster_id, topics=topics)


def decode_end(entity: Any, _: TopicNames) -> EndQuorumEpochRequest:
    part = _only(entity)
    return EndQuorumEpochRequest(
        entity.cluster_id or "", part.leader_id, part.leader_epoch, tuple(part.preferred_successors)
    )


def encode_end_request(schema: Schema, request: EndQuorumEpochRequest) -> Any:
    topics = _topics(
        schema,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_successors=request.successors,
    )
    return schema.make("EndQuorumEpochRequest", cluster_id=request.cluster_id, topics=topics)


def _encode_answer(schema: Schema, kind: str, response: QuorumEpochResponse) -> Any:
    topics = _topics(
        schema, error_code=response.error, leader_id=response.leader_id, leader_epoch=response.epoch
    )
    return schema.make(kind, error_code=ErrorCode.none, topics=topics)


def encode_begin_response(schema: Schema, _: BeginQuorumEpochRequest, response: QuorumEpochResponse) -> Any:
    return _encode_answer(schema, "BeginQuorumEpochResponse", response)


def encode_end_response(schema: Schema, _: EndQuorumEpochRequest, response: QuorumEpochResponse) -> Any:
    return _encode_answer(schema, "EndQuorumEpochResponse", response)


def decode_answer(entity: Any, _: BeginQuorumEpochRequest | EndQuorumEpochRequest) -> QuorumEpochResponse:
    if entity.error_code is not ErrorCode.none:
        return QuorumEpochResponse(entity.error_code)
    part = _only(entity)
    return QuorumEpochResponse(part.error_code, part.leader_epoch, part.leader_id)
