"""Which APIs are spoken, in which versions, and how each is translated (docs/protocol.md 5.1, 5.3, 5.4).

``clients`` is the range that ApiVersions advertises: the one every client library was seen to work with.
``peers`` are versions accepted besides, from other nodes of the cluster, which do not ask; ``sent`` is the
one version in which a node itself sends the request. Who may ask an API, and on which listener, is said
beside it (`wrackline.broker.wire.api.Api`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import attrgetter

from wrackline.broker.model.messages import controller as controller_messages
from wrackline.broker.model.messages import metadata as metadata_messages
from wrackline.broker.model.messages import quorum as quorum_messages
from wrackline.broker.model.messages import requests as m
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest
from wrackline.broker.wire import (
    delete_records,
    features,
    fetch,
    lifecycle,
    metadata,
    offsets,
    produce,
    producer_ids,
    quorum,
    replica_log_info,
    snapshots,
    topics,
)
from wrackline.broker.wire.administration import ADMINISTRATION
from wrackline.broker.wire.api import Api, Listener, Range
from wrackline.broker.wire.proof import PROOF
from wrackline.broker.wire.unserved import UNSERVED

API_VERSIONS = 18
API_VERSIONS_RANGE: Range = (0, 4)
CLIENT, REPLICATION, CONTROLLER = Listener


_APIS = (
    Api(
        0,
        "Produce",
        m.ProduceRequest,
        produce.decode_request,
        produce.encode_response,
        clients=(3, 9),
        open_on=(CLIENT,),
    ),
    Api(
        1,
        "Fetch",
        m.FetchRequest,
        fetch.decode_request,
        fetch.encode_response,
        clients=(4, 12),
        peers=(13, 17),
        open_on=(CLIENT,),
        nodes_on=(REPLICATION, CONTROLLER),
        speaks_for=attrgetter("replica_id"),
        sent=17,
        encode_request=fetch.encode_request,
        decode_response=fetch.decode_response,
    ),
    Api(
        2,
        "ListOffsets",
        m.ListOffsetsRequest,
        offsets.decode_list_offsets,
        offsets.encode_list_offsets,
        clients=(1, 7),
        open_on=(CLIENT,),
        nodes_on=(REPLICATION,),
        speaks_for=attrgetter("replica_id"),
        sent=7,
        encode_request=offsets.encode_list_offsets_request,
        decode_response=offsets.decode_list_offsets_response,
    ),
    Api(
        3,
        "Metadata",
        metadata_messages.MetadataRequest,
        metadata.decode_metadata,
        metadata.encode_metadata,
        clients=(0, 12),
        open_on=(CLIENT, CONTROLLER),
    ),
    Api(
        19,
        "CreateTopics",
        metadata_messages.CreateTopicsRequest,
        topics.decode_create,
        topics.encode_create_response,
        clients=(2, 7),
        open_on=(CLIENT, CONTROLLER),
        sent=7,
        encode_request=topics.encode_create_request,
        decode_response=topics.decode_create_response,
    ),
    Api(
        20,
        "DeleteTopics",
        metadata_messages.DeleteTopicsRequest,
        topics.decode_delete,
        topics.encode_delete_response,
        clients=(1, 6),
        open_on=(CLIENT, CONTROLLER),
        sent=6,
        encode_request=topics.encode_delete_request,
        decode_response=topics.decode_delete_response,
    ),
    Api(
        21,
        "DeleteRecords",
        m.DeleteRecordsRequest,
        delete_records.decode_request,
        delete_records.encode_response,
        clients=(0, 2),
        open_on=(CLIENT,),
    ),
    Api(
        22,
        "InitProducerId",
        m.InitProducerIdRequest,
        producer_ids.decode_init,
        producer_ids.encode_init_response,
        clients=(0, 4),
        open_on=(CLIENT,),
    ),
    Api(
        23,
        "OffsetForLeaderEpoch",
        m.OffsetForLeaderEpochRequest,
        offsets.decode_epoch_request,
        offsets.encode_epoch_response,
        clients=(2, 4),
        open_on=(CLIENT,),
        nodes_on=(REPLICATION,),
        speaks_for=attrgetter("replica_id"),
        sent=4,
        encode_request=offsets.encode_epoch_request,
        decode_response=offsets.decode_epoch_response,
    ),
    Api(
        52,
        "Vote",
        quorum_messages.VoteRequest,
        quorum.decode_vote,
        quorum.encode_vote_response,
        peers=(2, 2),
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("candidate_id"),
        sent=2,
        encode_request=quorum.encode_vote_request,
        decode_response=quorum.decode_vote_response,
    ),
    Api(
        53,
        "BeginQuorumEpoch",
        quorum_messages.BeginQuorumEpochRequest,
        quorum.decode_begin,
        quorum.encode_begin_response,
        peers=(0, 0),
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("leader_id"),
        sent=0,
        encode_request=quorum.encode_begin_request,
        decode_response=quorum.decode_answer,
    ),
    Api(
        54,
        "EndQuorumEpoch",
        quorum_messages.EndQuorumEpochRequest,
        quorum.decode_end,
        quorum.encode_end_response,
        peers=(0, 0),
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("leader_id"),
        sent=0,
        encode_request=quorum.encode_end_request,
        decode_response=quorum.decode_answer,
    ),
    Api(
        56,
        "AlterPartition",
        controller_messages.AlterPartitionRequest,
        lifecycle.decode_alter,
        lifecycle.encode_alter_response,
        peers=(3, 3),
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("broker_id"),
        sent=3,
        encode_request=lifecycle.encode_alter_request,
        decode_response=lifecycle.decode_alter_response,
    ),
    Api(
        59,
        "FetchSnapshot",
        FetchSnapshotRequest,
        snapshots.decode_request,
        snapshots.encode_response,
        peers=(1, 1),
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("replica_id"),
        sent=1,
        encode_request=snapshots.encode_request,
        decode_response=snapshots.decode_response,
    ),
    Api(
        60,
        "DescribeCluster",
        metadata_messages.DescribeClusterRequest,
        metadata.decode_describe_cluster,
        metadata.encode_describe_cluster,
        clients=(0, 1),
        open_on=(CLIENT, CONTROLLER),
    ),
    Api(
        62,
        "BrokerRegistration",
        controller_messages.BrokerRegistrationRequest,
        lifecycle.decode_registration,
        lifecycle.encode_registration_response,
        peers=(4, 4),
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("broker_id"),
        sent=4,
        encode_request=lifecycle.encode_registration_request,
        decode_response=lifecycle.decode_registration_response,
    ),
    Api(
        63,
        "BrokerHeartbeat",
        controller_messages.BrokerHeartbeatRequest,
        lifecycle.decode_heartbeat,
        lifecycle.encode_heartbeat_response,
        peers=(1, 1),
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("broker_id"),
        sent=1,
        encode_request=lifecycle.encode_heartbeat_request,
        decode_response=lifecycle.decode_heartbeat_response,
    ),
    Api(
        67,
        "AllocateProducerIds",
        controller_messages.AllocateProducerIdsRequest,
        producer_ids.decode_allocate,
        producer_ids.encode_allocate_response,
        peers=(0, 0),
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("broker_id"),
        sent=0,
        encode_request=producer_ids.encode_allocate_request,
        decode_response=producer_ids.decode_allocate_response,
    ),
    Api(
        70,
        "ControllerRegistration",
        controller_messages.ControllerRegistrationRequest,
        features.decode_registration,
        features.encode_registration_response,
        peers=(0, 0),
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("controller_id"),
        sent=0,
        encode_request=features.encode_registration_request,
        decode_response=features.decode_registration_response,
    ),
    Api(
        75,
        "DescribeTopicPartitions",
        metadata_messages.DescribeTopicPartitionsRequest,
        metadata.decode_describe_topics,
        metadata.encode_describe_topics,
        clients=(0, 0),
        open_on=(CLIENT, CONTROLLER),
    ),
    Api(
        93,
        "GetReplicaLogInfo",
        controller_messages.GetReplicaLogInfoRequest,
        replica_log_info.decode_request,
        replica_log_info.encode_response,
        peers=(0, 0),
        nodes_on=(REPLICATION,),
        sent=0,
        encode_request=replica_log_info.encode_request,
        decode_response=replica_log_info.decode_response,
    ),
    *ADMINISTRATION,
)

BY_KEY: Mapping[int, Api] = {api.key: api for api in _APIS}
BY_REQUEST: Mapping[type, Api] = {api.request: api for api in _APIS}


def served(listener: Listener) -> list[Api]:
    """The APIs that are known on this listener."""
    return [api for api in _APIS if api.served_on(listener)]


@cache
def advertised(listener: Listener) -> tuple[tuple[int, int, int], ...]:
    """(key, lowest, highest version) as ApiVersions tells them."""
    nodes = listener is not CLIENT
    ranges = [
        (api.key, *span)
        for api in served(listener)
        if (span := api.clients or (api.peers if nodes else None)) is not None
    ]
    others = PROOF if nodes else {key: api.versions for key, api in UNSERVED.items()}
    ranges += [(key, *span) for key, span in others.items()]
    return tuple(sorted([*ranges, (API_VERSIONS, *API_VERSIONS_RANGE)]))
