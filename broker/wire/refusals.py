"""One error for a whole request, said in the way the response of its API says errors: at the top or per
item."""

from __future__ import annotations

from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)
from wrackline.broker.model.messages.metadata import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataResponse,
    TopicMetadata,
)
from wrackline.broker.model.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from wrackline.broker.model.messages.requests import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResult,
    FetchRequest,
    FetchResponse,
    FetchResult,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResult,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    Refused,
    Request,
    Response,
)
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.wire.admin_refusals import expand_admin
from wrackline.broker.wire.schema import NO_UUID


def expand(request: Request, refused: Refused) -> Response:
    """The response of ``request``'s own kind that carries the error."""
    error, message = refused.error, refused.message or None
    match request:
        case ProduceRequest():
            return ProduceResponse(
                tuple(ProduceResult(part.tp, error, message=message) for part in request.partitions)
            )
        case FetchRequest():
            results = (FetchResult(part.tp, error, topic_id=part.topic_id) for part in request.partitions)
            return FetchResponse(tuple(results), error)
        case ListOffsetsRequest():
            return ListOffsetsResponse(
                tuple(ListOffsetsResult(part.tp, error) for part in request.partitions)
            )
        case OffsetForLeaderEpochRequest():
            return OffsetForLeaderEpochResponse(
                tuple(OffsetForLeaderEpochResult(part.tp, error) for part in request.partitions)
            )
        case DeleteRecordsRequest():
            return DeleteRecordsResponse(
                tuple(DeleteRecordsResult(tp, error=error) for tp, _ in request.partitions)
            )
        case MetadataRequest() | DescribeTopicPartitionsRequest():
            topics = tuple(TopicMetadata(name, NO_UUID, error=error) for name in request.topics or ())
            return MetadataResponse((), "", -1, topics)
        case DescribeClusterRequest():
            return MetadataResponse((), "", -1, error=error)
        case CreateTopicsRequest():
            return CreateTopicsResponse(
                tuple(CreatedTopic(topic.name, error, message) for topic in request.topics)
            )
        case DeleteTopicsRequest():
            return DeleteTopicsResponse(
                (
                    *(DeletedTopic(name, error, message=message) for name in request.topics),
                    *(DeletedTopic(None, error, topic_id, message) for topic_id in request.topic_ids),
                )
            )
        case InitProducerIdRequest():
            return InitProducerIdResponse(error)
        case AlterPartitionRequest():
            return AlterPartitionResponse(error)
        case BrokerRegistrationRequest():
            return BrokerRegistrationResponse(error)
        case ControllerRegistrationRequest():
            return ControllerRegistrationResponse(error, message)
        case BrokerHeartbeatRequest():
            return BrokerHeartbeatResponse(error)
        case AllocateProducerIdsRequest():
            return AllocateProducerIdsResponse(error)
        case GetReplicaLogInfoRequest():
            infos = tuple(ReplicaLogInfo(*which, error=error) for which in request.partitions)
            return GetReplicaLogInfoResponse(-1, infos)
        case VoteRequest():
            return VoteResponse(error)
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            return QuorumEpochResponse(error)
        case FetchSnapshotRequest():
            return FetchSnapshotResponse(error, request.snapshot)
        case _:
            return expand_admin(request, refused)
