"""The requests for the ends of logs: ListOffsets, OffsetForLeaderEpoch and, from controller to broker,
GetReplicaLogInfo (KIP-966)."""

from __future__ import annotations

from operator import attrgetter

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import controller as c
from wrackline.broker.model.messages import requests as m
from wrackline.broker.model.types import NodeId
from wrackline.broker.wire.api import CLIENT, REPLICATION, Access, Range, api
from wrackline.broker.wire.translation.declarations import (
    FieldPath,
    Items,
    RowKey,
    Rows,
    SinceVersion,
    message,
)


def _leader_access(clients: Range) -> Access:
    """Returns the access of an API that clients and followers ask a leader, these in the newest version."""
    return Access(
        clients=clients,
        sent=clients[1],
        open_on=(CLIENT,),
        nodes_on=(REPLICATION,),
        speaks_for=attrgetter("replica_id"),
    )


def _replica_id(sent: NodeId) -> NodeId:
    """-2 is Kafka's "debugging consumer"."""
    return max(sent, -1)


def _refusal(
    request: c.GetReplicaLogInfoRequest, error: ErrorCode, _: str | None
) -> c.GetReplicaLogInfoResponse:
    entries = tuple(c.ReplicaLogInfo(*which, error=error) for which in request.partitions)
    return c.GetReplicaLogInfoResponse(-1, entries)


APIS = (
    api(
        2,
        "ListOffsets",
        _leader_access((1, 7)),
        request=message(
            m.ListOffsetsRequest, partitions="topics", knows_offset_not_available=SinceVersion(5)
        ),
        response=message(
            m.ListOffsetsResponse,
            partitions=Rows("topics", message(m.ListOffsetsResult, missing=("lookup",))),
        ),
    ),
    api(
        23,
        "OffsetForLeaderEpoch",
        _leader_access((2, 4)),
        request=message(
            m.OffsetForLeaderEpochRequest,
            partitions="topics",
            # Version 2 has no replica id: only consumers still speak it.
            replica_id=FieldPath("replica_id", read=_replica_id),
        ),
        response=message(m.OffsetForLeaderEpochResponse, partitions="topics"),
    ),
    api(
        93,
        "GetReplicaLogInfo",
        Access(peers=(0, 0), sent=0, nodes_on=(REPLICATION,)),
        request=message(
            c.GetReplicaLogInfoRequest, partitions=Rows("topic_partitions", Items("topic_id", RowKey.INDEX))
        ),
        response=message(
            c.GetReplicaLogInfoResponse, entries=Rows("topic_partition_log_info_list", c.ReplicaLogInfo)
        ),
        refuse=_refusal,
    ),
)
