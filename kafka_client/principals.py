"""Requests about principals: their ACLs, their SCRAM credentials and their quotas.

The versions are ones that Apache Kafka from 3.7 to 4.x speaks.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kio.schema.alter_client_quotas.v0 import request as quotas_request
from kio.schema.alter_client_quotas.v0.response import AlterClientQuotasResponse
from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kio.schema.alter_user_scram_credentials.v0.response import AlterUserScramCredentialsResponse
from kio.schema.create_acls.v2.request import AclCreation, CreateAclsRequest
from kio.schema.create_acls.v2.response import CreateAclsResponse
from kio.schema.describe_client_quotas.v0.request import ComponentData, DescribeClientQuotasRequest
from kio.schema.describe_client_quotas.v0.response import DescribeClientQuotasResponse
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v4.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v4.response import FetchResponse
from kio.schema.produce.v7.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v7.response import ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import Records, f64, i8, i16, i32, i64

from wrackline.kafka_client.connection import Connection, duration
from wrackline.kafka_client.scram import HASHES
from wrackline.kafka_client.transport import Rejected

THE_CLUSTER = "kafka-cluster"
_LITERAL, _PREFIXED = 3, 4
_ALLOW = 3
_RESOURCES = {"topic": 2, "group": 3, "cluster": 4, "transactional-id": 5}
_OPERATIONS = {
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Alter": 7,
    "Describe": 8,
    "DescribeConfigs": 10,
    "AlterConfigs": 11,
    "IdempotentWrite": 12,
}


@dataclass(frozen=True, slots=True)
class Acl:
    """A user may do this, from any host. ``resource``: as `kafka-acls.sh` calls it; ``operation``: by
    Kafka's name."""

    user: str
    resource: str
    name: str
    operation: str
    prefixed: bool = False
    """Whether all names that begin so are meant."""


def create_acls(connection: Connection, acls: Sequence[Acl]) -> None:
    """One that is there already is no error. Raises ProtocolError, and Rejected for the first refusal."""
    creations = tuple(
        AclCreation(
            resource_type=i8(_RESOURCES[one.resource]),
            resource_name=one.name,
            resource_pattern_type=i8(_PREFIXED if one.prefixed else _LITERAL),
            principal=f"User:{one.user}",
            host="*",
            operation=i8(_OPERATIONS[one.operation]),
            permission_type=i8(_ALLOW),
        )
        for one in acls
    )
    answer = connection.request(CreateAclsRequest(creations=creations), CreateAclsResponse)
    for result in answer.results:
        if result.error_code is not ErrorCode.none:
            raise Rejected(f"CreateAcls to {connection.address}", result.error_code, result.error_message)


# --- passwords ----------------------------------------------------------------------------------------------

_SCRAM = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
ITERATIONS = 4_096


def alter_scram_password(connection: Connection, user: str, mechanism: str, password: str) -> None:
    """Raises ProtocolError."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, ITERATIONS)
    upsertion = ScramCredentialUpsertion(
        name=user,
        mechanism=i8(_SCRAM[mechanism]),
        iterations=i32(ITERATIONS),
        salt=salt,
        salted_password=salted,
    )
    request = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))
    answer = connection.request(request, AlterUserScramCredentialsResponse)
    for result in answer.results:
        if result.error_code is not ErrorCode.none:
            what = f"AlterUserScramCredentials to {connection.address}"
            raise Rejected(what, result.error_code, result.error_message)


# --- quotas -------------------------------------------------------------------------------------------------

_CLIENT_ID, _DEFAULT = "client-id", 1
_NO_TOPIC = "wrackline-no-such-topic"
"""Nothing is written to it or read from it: no broker has it."""
_ENTRY_BYTES = 16
"""Of one partition in a request; its place in the answer is somewhat larger."""


def client_quotas(connection: Connection) -> dict[str, float]:
    """Returns the quotas of every client that has none of its own, as this broker knows them. Raises
    ProtocolError."""
    component = ComponentData(entity_type=_CLIENT_ID, match_type=i8(_DEFAULT), match=None)
    request = DescribeClientQuotasRequest(components=(component,), strict=True)
    answer = connection.request(request, DescribeClientQuotasResponse)
    if answer.error_code is not ErrorCode.none:
        what = f"DescribeClientQuotas to {connection.address}"
        raise Rejected(what, answer.error_code, answer.error_message)
    return {value.key: float(value.value) for entry in answer.entries or () for value in entry.values}


def alter_client_quotas(connection: Connection, values: Mapping[str, float | None]) -> None:
    """Gives quotas to every client that has none of its own; None takes one away. Raises ProtocolError."""
    entity = quotas_request.EntityData(entity_type=_CLIENT_ID, entity_name=None)
    changes = tuple(
        quotas_request.OpData(key=name, value=f64(value or 0.0), remove=value is None)
        for name, value in values.items()
    )
    entry = quotas_request.EntryData(entity=(entity,), ops=changes)
    request = quotas_request.AlterClientQuotasRequest(entries=(entry,), validate_only=False)
    answer = connection.request(request, AlterClientQuotasResponse)
    for result in answer.entries:
        if result.error_code is not ErrorCode.none:
            what = f"AlterClientQuotas to {connection.address}"
            raise Rejected(what, result.error_code, result.error_message)


def throttle_ms(connection: Connection, quota: str, size: int) -> int:
    """Returns for how long the broker throttles a request that counts for a quota: a Produce or a Fetch of
    ``size`` bytes, about a topic that there is not. Raises ProtocolError."""
    if quota == "producer_byte_rate":
        topic = TopicProduceData(
            name=TopicName(_NO_TOPIC),
            partition_data=(PartitionProduceData(index=i32(0), records=Records(_batch(size))),),
        )
        produce = ProduceRequest(acks=i16(1), timeout=duration(1.0), topic_data=(topic,))
        answer = connection.request(produce, ProduceResponse)
        return round(answer.throttle_time.total_seconds() * 1e3)
    partitions = tuple(
        FetchPartition(partition=i32(number), fetch_offset=i64(0), partition_max_bytes=i32(1))
        for number in range(size // _ENTRY_BYTES)
    )
    fetch = FetchRequest(
        max_wait=duration(0.0),
        min_bytes=i32(0),
        topics=(FetchTopic(topic=TopicName(_NO_TOPIC), partitions=partitions),),
    )
    fetched = connection.request(fetch, FetchResponse)
    return round(fetched.throttle_time.total_seconds() * 1e3)


def _batch(size: int) -> bytes:
    """The frame of a batch of records (magic 2), and as many bytes as are asked for: a broker looks at no
    more of it while it has no such topic."""
    head = struct.pack(">qiibIhiqqqhii", 0, 49 + size, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1)
    return head + bytes(size)
