"""DescribeQuorum: who leads the controllers and how far everyone's log reaches (KIP-595, KIP-836).

Times travel as wall clocks; inside they are how long ago something was."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model import admin_messages as a
from wrackline.broker.model.types import METADATA, Endpoint, NodeId, TopicPartition
from wrackline.broker.wire.api import CLIENT, CONTROLLER, Api
from wrackline.broker.wire.declarations import Each, message
from wrackline.broker.wire.translate import uuid_or_none

_LISTENER = "CONTROLLER"


class _AskedTopic(NamedTuple):
    topic_name: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Request:
    topics: tuple[_AskedTopic, ...]


class _Replica(NamedTuple):
    replica_id: NodeId
    leo: int
    replica_directory_id: UUID | None
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


class _Partition(NamedTuple):
    partition_index: int
    error: ErrorCode
    message: str | None
    leader_id: NodeId
    leader_epoch: int
    high_watermark: int
    current_voters: tuple[_Replica, ...]
    observers: tuple[_Replica, ...]


class _Topic(NamedTuple):
    topic_name: str
    partitions: tuple[_Partition, ...]


class _Listener(NamedTuple):
    name: str
    host: str
    port: int


class _Node(NamedTuple):
    node_id: NodeId
    listeners: tuple[_Listener, ...]


@dataclass(frozen=True, slots=True)
class _Response:
    error: ErrorCode
    message: str | None
    topics: tuple[_Topic, ...]
    nodes: tuple[_Node, ...] = ()


def _request(form: _Request) -> a.DescribeQuorumRequest:
    tps = (TopicPartition(each.topic_name, number) for each in form.topics for number in each.partitions)
    return a.DescribeQuorumRequest(tuple(tps))


def _asking(request: a.DescribeQuorumRequest, *_: object) -> _Request:
    return _Request(tuple(_AskedTopic(topic, (number,)) for topic, number in request.partitions))


def _answering(response: a.DescribeQuorumResponse, request: a.DescribeQuorumRequest, _: int) -> _Response:
    now_ms = time.time() * 1000

    def at_ms(ago_ms: float | None) -> int:
        return -1 if ago_ms is None else int(now_ms - ago_ms)

    def replicas(listed: tuple[a.QuorumReplica, ...]) -> tuple[_Replica, ...]:
        return tuple(
            _Replica(
                each.node_id,
                each.leo,
                each.directory_id,
                at_ms(each.fetched_ago_ms),
                at_ms(each.caught_up_ago_ms),
            )
            for each in listed
        )

    def partition(tp: TopicPartition) -> _Partition:
        known = tp == METADATA
        return _Partition(
            tp.partition,
            response.error if known else ErrorCode.unknown_topic_or_partition,
            response.message if known else f"only {METADATA} has a quorum",
            response.leader_id,
            response.leader_epoch,
            response.high_watermark,
            replicas(response.voters if known else ()),
            replicas(response.observers if known else ()),
        )

    return _Response(
        response.error,
        response.message,
        tuple(_Topic(tp.topic, (partition(tp),)) for tp in request.partitions),
        tuple(_Node(node.node_id, (_Listener(_LISTENER, node.host, node.port),)) for node in response.nodes),
    )


def _response(form: _Response) -> a.DescribeQuorumResponse:
    """Of version 2."""
    parts = [
        part
        for topic in form.topics
        if topic.topic_name == METADATA.topic
        for part in topic.partitions
        if part.partition_index == METADATA.partition
    ]
    if form.error is not ErrorCode.none or not parts:
        return a.DescribeQuorumResponse(form.error, form.message)
    part, now_ms = parts[0], time.time() * 1000

    def ago_ms(at_ms: int) -> float | None:
        return None if at_ms < 0 else max(0.0, now_ms - at_ms)

    def replicas(listed: tuple[_Replica, ...]) -> tuple[a.QuorumReplica, ...]:
        return tuple(
            a.QuorumReplica(
                each.replica_id,
                each.leo,
                uuid_or_none(each.replica_directory_id),
                ago_ms(each.last_fetch_timestamp),
                ago_ms(each.last_caught_up_timestamp),
            )
            for each in listed
        )

    return a.DescribeQuorumResponse(
        part.error,
        part.message,
        part.leader_id,
        part.leader_epoch,
        part.high_watermark,
        replicas(part.current_voters),
        replicas(part.observers),
        tuple(Endpoint(node.node_id, node.listeners[0].host, node.listeners[0].port) for node in form.nodes),
    )


APIS = (
    Api(
        55,
        "DescribeQuorum",
        clients=(0, 2),
        sent=2,
        open_on=(CLIENT, CONTROLLER),
        request=message(
            a.DescribeQuorumRequest,
            form=_Request,
            finish=_request,
            prepare=_asking,
            topics=Each("topics", message(_AskedTopic, partitions=Each("partitions", "partition_index"))),
        ),
        response=message(a.DescribeQuorumResponse, form=_Response, finish=_response, prepare=_answering),
    ),
)
