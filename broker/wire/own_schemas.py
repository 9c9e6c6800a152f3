"""Messages that kio has no schema for: ElectLeaders version 3, which no released Kafka speaks (version 2 and
KIP-966's field DesiredLeaders), and GetReplicaLogInfo (docs/protocol.md 5.3).

Written as kio writes its own, so that its readers and writers take them. They look at the types of the
fields, so annotations must not be put off here.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.types import TopicName
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64


class _Request:
    __type__: ClassVar = EntityType.request
    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader


class _Response:
    __type__: ClassVar = EntityType.response
    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader


class _ElectLeaders:
    __api_key__: ClassVar[i16] = i16(43)
    __version__: ClassVar[i16] = i16(3)


class _GetReplicaLogInfo:
    __api_key__: ClassVar[i16] = i16(93)
    __version__: ClassVar[i16] = i16(0)


# --- ElectLeaders -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectedTopic(_ElectLeaders, _Request):
    __type__: ClassVar = EntityType.nested
    topic: TopicName = field(metadata={"kafka_type": "string"})
    partitions: tuple[i32, ...] = field(metadata={"kafka_type": "int32"}, default=())
    desired_leaders: tuple[i32, ...] = field(metadata={"kafka_type": "int32"}, default=())
    """The leader of each partition, by its place; empty unless the election type is 2 (designated)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest(_ElectLeaders, _Request):
    election_type: i8 = field(metadata={"kafka_type": "int8"})
    topic_partitions: tuple[ElectedTopic, ...] | None
    timeout: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult(_ElectLeaders, _Response):
    __type__: ClassVar = EntityType.nested
    partition_id: i32 = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    error_message: str | None = field(metadata={"kafka_type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaElectionResult(_ElectLeaders, _Response):
    __type__: ClassVar = EntityType.nested
    topic: TopicName = field(metadata={"kafka_type": "string"})
    partition_result: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponse(_ElectLeaders, _Response):
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    replica_election_results: tuple[ReplicaElectionResult, ...]


# --- GetReplicaLogInfo --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions(_GetReplicaLogInfo, _Request):
    __type__: ClassVar = EntityType.nested
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[i32, ...] = field(metadata={"kafka_type": "int32"}, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class GetReplicaLogInfoRequest(_GetReplicaLogInfo, _Request):
    topic_partitions: tuple[TopicPartitions, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLogInfo(_GetReplicaLogInfo, _Response):
    __type__: ClassVar = EntityType.nested
    partition: i32 = field(metadata={"kafka_type": "int32"})
    last_written_leader_epoch: i32 = field(metadata={"kafka_type": "int32"})
    current_leader_epoch: i32 = field(metadata={"kafka_type": "int32"})
    log_end_offset: i64 = field(metadata={"kafka_type": "int64"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionLogInfo(_GetReplicaLogInfo, _Response):
    __type__: ClassVar = EntityType.nested
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partition_log_info: tuple[PartitionLogInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GetReplicaLogInfoResponse(_GetReplicaLogInfo, _Response):
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    broker_epoch: i64 = field(metadata={"kafka_type": "int64"})
    has_more: bool = field(metadata={"kafka_type": "bool"})
    """Only the first 1,000 partitions are answered."""
    topic_partition_log_info_list: tuple[TopicPartitionLogInfo, ...]


OWN: Mapping[tuple[int, int], tuple[type, type]] = {
    (43, 3): (ElectLeadersRequest, ElectLeadersResponse),
    (93, 0): (GetReplicaLogInfoRequest, GetReplicaLogInfoResponse),
}
"""(API key, version) -> (request, response)"""
