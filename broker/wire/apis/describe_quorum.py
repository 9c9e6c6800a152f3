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
from wrackline.broker.wire.api import api, forwarded_access
from wrackline.broker.wire.schema import Entity
from wrackline.broker.wire.translation.declarations import (
    Array,
    FieldPath,
    Grouping,
    RowKey,
    Rows,
    copy_fields,
    message,
)


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


def _form_of_response(
    response: a.DescribeQuorumResponse, request: a.DescribeQuorumRequest, _: int
) -> _Response:
    r = response
    quorum = r.leader_id, r.leader_epoch, r.high_watermark
    stranger = ErrorCode.unknown_topic_or_partition, f"only {METADATA} has a quorum", *quorum, (), ()
    parts = (
        _Partition(METADATA, r.error, r.message, *quorum, r.voters, r.observers)
        if tp == METADATA
        else _Partition(tp, *stranger)
        for tp in request.partitions
    )
    return copy_fields(response, _Response, partitions=tuple(parts))


def _check_error(entity: Entity) -> a.DescribeQuorumResponse | None:
    """Returns the response for an error, also for an answer that says nothing of the metadata log; None:
    there is no error."""
    tps = ((topic.topic_name, part.partition_index) for topic in entity.topics for part in topic.partitions)
    if entity.error_code is ErrorCode.none and METADATA in tps:
        return None
    return a.DescribeQuorumResponse(entity.error_code, entity.error_message)


def _response_of_form(form: _Response) -> a.DescribeQuorumResponse:
    part = next(part for part in form.partitions if part.tp == METADATA)
    return copy_fields(part, a.DescribeQuorumResponse, nodes=form.nodes)


def _timestamp_ms(ago_ms: float | None) -> int:
    return -1 if ago_ms is None else int(time.time() * 1000 - ago_ms)


def _ago_ms(timestamp_ms: int) -> float | None:
    return None if timestamp_ms < 0 else max(0.0, time.time() * 1000 - timestamp_ms)


_REPLICA = message(
    a.QuorumReplica,
    node_id="replica_id",
    directory_id="replica_directory_id",
    fetched_ago_ms=FieldPath("last_fetch_timestamp", read=_ago_ms, write=_timestamp_ms),
    caught_up_ago_ms=FieldPath("last_caught_up_timestamp", read=_ago_ms, write=_timestamp_ms),
)
_PARTITION = message(
    _Partition, voters=Array("current_voters", _REPLICA), observers=Array("observers", _REPLICA)
)
_NODE = message(
    Endpoint,
    host="listeners.host",
    port="listeners.port",
    constants={"listeners.name": "CONTROLLER"},
    missing=("rack",),
)

APIS = (
    api(
        55,
        "DescribeQuorum",
        forwarded_access(0, 2),
        request=message(a.DescribeQuorumRequest, partitions=Rows("topics", RowKey.TP, Grouping.SEPARATE)),
        response=message(
            a.DescribeQuorumResponse,
            form=_Response,
            check=_check_error,
            from_form=_response_of_form,
            to_form=_form_of_response,
            partitions=Rows("topics", _PARTITION, Grouping.SEPARATE),
            nodes=Array("nodes", _NODE),
        ),
    ),
)
