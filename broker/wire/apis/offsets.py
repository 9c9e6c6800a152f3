"""How far logs reach: ListOffsets, OffsetForLeaderEpoch and, from controller to broker, GetReplicaLogInfo
(KIP-966)."""

from __future__ import annotations

from operator import attrgetter

from kio.schema.errors import ErrorCode

from wrackline.broker.model import controller_messages as c
from wrackline.broker.model import messages as m
from wrackline.broker.model.types import NodeId
from wrackline.broker.wire.api import CLIENT, REPLICATION, Api
from wrackline.broker.wire.declarations import Grouped, Location, Row, Since, at, message


def _replica_id(sent: NodeId) -> NodeId:
    """-2 is Kafka's "debugging consumer"."""
    return max(sent, -1)


def _refused_log_info(
    request: c.GetReplicaLogInfoRequest, error: ErrorCode, _: str | None
) -> c.GetReplicaLogInfoResponse:
    entries = tuple(c.ReplicaLogInfo(*which, error=error) for which in request.partitions)
    return c.GetReplicaLogInfoResponse(-1, entries)


APIS = (
    Api(
        2,
        "ListOffsets",
        clients=(1, 7),
        sent=7,
        open_on=(CLIENT,),
        nodes_on=(REPLICATION,),
        speaks_for=attrgetter("replica_id"),
        request=message(
            m.ListOffsetsRequest,
            partitions=Grouped("topics", message(m.ListOffsetsPartition)),
            knows_offset_not_available=Since(5),
        ),
        response=message(
            m.ListOffsetsResponse,
            partitions=Grouped("topics", message(m.ListOffsetsResult, lacking=("lookup",))),
        ),
    ),
    Api(
        23,
        "OffsetForLeaderEpoch",
        clients=(2, 4),
        sent=4,
        open_on=(CLIENT,),
        nodes_on=(REPLICATION,),
        speaks_for=attrgetter("replica_id"),
        request=message(
            m.OffsetForLeaderEpochRequest,
            partitions=Grouped("topics", message(m.OffsetForLeaderEpochPartition)),
            # Version 2 has no replica id: only consumers still speak it.
            replica_id=at("replica_id", read=_replica_id),
        ),
        response=message(
            m.OffsetForLeaderEpochResponse,
            partitions=Grouped("topics", message(m.OffsetForLeaderEpochResult)),
        ),
    ),
    Api(
        93,
        "GetReplicaLogInfo",
        peers=(0, 0),
        sent=0,
        nodes_on=(REPLICATION,),
        request=message(
            c.GetReplicaLogInfoRequest,
            partitions=Grouped("topic_partitions", Row("topic_id", Location.INDEX), by_id=True),
        ),
        response=message(
            c.GetReplicaLogInfoResponse,
            entries=Grouped("topic_partition_log_info_list", message(c.ReplicaLogInfo), by_id=True),
        ),
        refuse=_refused_log_info,
    ),
)
