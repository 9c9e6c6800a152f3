"""DescribeQuorum: who leads the controllers and how far everyone's log reaches (KIP-595, KIP-836).

Times travel as wall clocks; inside they are how long ago something was.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.types import METADATA, Endpoint, NodeId, TopicPartition
from wrackline.broker.wire.api import api, passed_on
from wrackline.broker.wire.declarations import At, Each, Grouped, Grouping, Location, carried, message
from wrackline.broker.wire.schema import Entity


class _Partition(NamedTuple):
    tp: TopicPartition
    error: ErrorCode
    message: str | None
    leader_id: NodeId
    leader_epoch: int
    high_watermark: int
    voters: tuple[a.QuorumReplica, ...]
    observers: tuple[a.QuorumReplica, ...]


@dataclass(frozen=True, slots=True)
class _Response:
    error: ErrorCode
    message: str | None
    partitions: tuple[_Partition, ...]
    nodes: tuple[Endpoint, ...] = ()


def _of_each(response: a.DescribeQuorumResponse, request: a.DescribeQuorumRequest, _: int) -> _Response:
    r = response
    quorum = r.leader_id, r.leader_epoch, r.high_watermark
    stranger = ErrorCode.unknown_topic_or_partition, f"only {METADATA} has a quorum", *quorum, (), ()
    parts = (
        _Partition(METADATA, r.error, r.message, *quorum, r.voters, r.observers)
        if tp == METADATA
        else _Partition(tp, *stranger)
        for tp in request.partitions
    )
    return carried(response, _Response, partitions=tuple(parts))


def _error_alone(entity: Entity) -> a.DescribeQuorumResponse | None:
    """Also an answer that says nothing of the metadata log."""
    tps = ((topic.topic_name, part.partition_index) for topic in entity.topics for part in topic.partitions)
    if entity.error_code is ErrorCode.none and METADATA in tps:
        return None
    return a.DescribeQuorumResponse(entity.error_code, entity.error_message)


def _of_metadata(form: _Response) -> a.DescribeQuorumResponse:
    part = next(part for part in form.partitions if part.tp == METADATA)
    return carried(part, a.DescribeQuorumResponse, nodes=form.nodes)


def _timestamp_ms(ago_ms: float | None) -> int:
    return -1 if ago_ms is None else int(time.time() * 1000 - ago_ms)


def _ago_ms(timestamp_ms: int) -> float | None:
    return None if timestamp_ms < 0 else max(0.0, time.time() * 1000 - timestamp_ms)


_REPLICA = message(
    a.QuorumReplica,
    node_id="replica_id",
    directory_id="replica_directory_id",
    fetched_ago_ms=At("last_fetch_timestamp", read=_ago_ms, write=_timestamp_ms),
    caught_up_ago_ms=At("last_caught_up_timestamp", read=_ago_ms, write=_timestamp_ms),
)
_PARTITION = message(
    _Partition, voters=Each("current_voters", _REPLICA), observers=Each("observers", _REPLICA)
)
_NODE = message(
    Endpoint,
    host="listeners.host",
    port="listeners.port",
    fixed={"listeners.name": "CONTROLLER"},
    lacking=("rack",),
)

APIS = (
    api(
        55,
        "DescribeQuorum",
        passed_on(0, 2),
        request=message(a.DescribeQuorumRequest, partitions=Grouped("topics", Location.TP, Grouping.APART)),
        response=message(
            a.DescribeQuorumResponse,
            form=_Response,
            first=_error_alone,
            finish=_of_metadata,
            prepare=_of_each,
            partitions=Grouped("topics", _PARTITION, Grouping.APART),
            nodes=Each("nodes", _NODE),
        ),
    ),
)
