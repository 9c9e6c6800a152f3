"""Queries to a cluster that others use too: about our own topic, never about all there are.

The versions of the requests are ones that Apache Kafka from 1.1 to 4.x and Redpanda both speak.
"""

from __future__ import annotations

from kio.schema.describe_quorum.v0.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v0.response import DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.model import ClusterState
from wrackline.kafka_client.transport import Rejected

DESCRIBE_QUORUM = 55
DELETE_GROUPS = 42
NEEDED = {19: ("CreateTopics", 2), 20: ("DeleteTopics", 1), 32: ("DescribeConfigs", 1)}
"""API key -> its name, and the version that is asked for."""


def too_old(connection: Connection) -> str:
    """Returns which request the brokers do not know, in a few words; empty when they know all. Raises
    ProtocolError."""
    for key, (name, version) in NEEDED.items():
        if (newest := connection.api_versions().get(key, (0, -1))[1]) < version:
            return f"{name} {version} is needed, and the newest there is {newest if newest >= 0 else 'none'}"
    return ""


def has_quorum(connection: Connection) -> bool:
    """Tells whether controllers elect one of themselves: KRaft. Raises ProtocolError."""
    return DESCRIBE_QUORUM in connection.api_versions()


def deletes_groups(connection: Connection) -> bool:
    """Tells whether the brokers know DeleteGroups. Raises ProtocolError."""
    return DELETE_GROUPS in connection.api_versions()


def quorum_leader(connection: Connection) -> ClusterState:
    """Returns the active controller, and nothing else. A broker asks the controllers for it, so it may be
    silent when they are. Raises ProtocolError."""
    log = TopicData(
        topic_name=TopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),)
    )
    answer = connection.request(DescribeQuorumRequest(topics=(log,)), DescribeQuorumResponse)
    if answer.error_code is not ErrorCode.none:
        raise Rejected(f"DescribeQuorum to {connection.address}", answer.error_code)
    leader = next((int(one.leader_id) for topic in answer.topics for one in topic.partitions), -1)
    return ClusterState(leader, (), ())
