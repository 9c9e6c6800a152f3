"""How far logs reach: ListOffsets, OffsetForLeaderEpoch and, from controller to broker, GetReplicaLogInfo
(KIP-966)."""

from __future__ import annotations

from operator import attrgetter

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import controller as c
from wrackline.broker.model.messages import requests as m
from wrackline.broker.model.types import NodeId
from wrackline.broker.wire.api import CLIENT, REPLICATION, Access, Range, api
from wrackline.broker.wire.declarations import At, Grouped, Location, Row, Since, message


def _of_replicas_too(clients: Range) -> Access:
    """What clients and followers ask a leader, these in the newest version."""
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


def _refused(
    request: c.GetReplicaLogInfoRequest, error: ErrorCode, _: str | None
) -> c.GetReplicaLogInfoResponse:
    entries = tuple(c.ReplicaLogInfo(*which, error=error) for which in request.partitions)
    return c.GetReplicaLogInfoResponse(-1, entries)


APIS = (
    api(
        2,
        "ListOffsets",
        _of_replicas_too((1, 7)),
        request=message(
            m.ListOffsetsRequest,
            partitions="topics",
            knows_offset_not_available=Since(5),
        ),
        response=message(
            m.ListOffsetsResponse,
            partitions=Grouped("topics", message(m.ListOffsetsResult, lacking=("lookup",))),
        ),
    ),
    api(
        23,
        "OffsetForLeaderEpoch",
        _of_replicas_too((2, 4)),
        request=message(
            m.OffsetForLeaderEpochRequest,
            partitions="topics",
            # Version 2 has no replica id: only consumers still speak it.
            replica_id=At("replica_id", read=_replica_id),
        ),
        response=message(m.OffsetForLeaderEpochResponse, partitions="topics"),
    ),
    api(
        93,
        "GetReplicaLogInfo",
        Access(peers=(0, 0), sent=0, nodes_on=(REPLICATION,)),
        request=message(
            c.GetReplicaLogInfoRequest,
            partitions=Grouped("topic_partitions", Row("topic_id", Location.INDEX)),
        ),
        response=message(
            c.GetReplicaLogInfoResponse,
            entries=Grouped("topic_partition_log_info_list", c.ReplicaLogInfo),
        ),
        refuse=_refused,
    ),
)
