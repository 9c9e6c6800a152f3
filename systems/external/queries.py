"""What is asked of a cluster that others use too: about our own topic, never about all there are.

The versions of the requests are ones that Apache Kafka from 1.1 to 4.x and Redpanda both speak.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from kio.schema.delete_topics.v1.request import DeleteTopicsRequest
from kio.schema.delete_topics.v1.response import DeleteTopicsResponse
from kio.schema.describe_configs.v1.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v1.response import DescribeConfigsResponse
from kio.schema.describe_quorum.v0.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v0.response import DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, i32Timedelta

from wrackline.systems.base import ClusterState
from wrackline.systems.metadata import Member
from wrackline.systems.protocol import Connection, ProtocolError

DESCRIBE_TOPIC_PARTITIONS = 75
DESCRIBE_QUORUM = 55
NEEDED = {19: ("CreateTopics", 2), 20: ("DeleteTopics", 1), 32: ("DescribeConfigs", 1)}
"""API key -> its name, and the version that is asked for."""
TOPIC = 2
"""The resource type of DescribeConfigs that stands for a topic."""


def members(connection: Connection) -> tuple[Member, ...]:
    """The brokers that are there now. Raises ProtocolError."""
    return connection.metadata(()).brokers


def state_of(connection: Connection, topics: tuple[str, ...]) -> ClusterState:
    """Brokers and the partitions of these topics; the controller as Metadata names it, which is any broker
    where there is a quorum (`quorum_leader` knows). Raises ProtocolError."""
    seen = connection.metadata(topics)
    partitions = [one for topic in seen.topics for one in topic.partitions]
    if partitions and DESCRIBE_TOPIC_PARTITIONS in connection.api_versions():
        partitions = connection.describe_partitions(topics)
    return ClusterState(
        controller=seen.controller,
        brokers=tuple(sorted(broker.node_id for broker in seen.brokers)),
        partitions=tuple(sorted(partitions, key=lambda state: (state.topic, state.partition))),
    )


def too_old(connection: Connection) -> str:
    """Which request the brokers do not know, in a few words; empty when they know all. Raises
    ProtocolError."""
    for key, (name, version) in NEEDED.items():
        if (newest := connection.api_versions().get(key, (0, -1))[1]) < version:
            return f"{name} {version} is needed, and the newest there is {newest if newest >= 0 else 'none'}"
    return ""


def has_quorum(connection: Connection) -> bool:
    """Whether controllers elect one of themselves: KRaft. Raises ProtocolError."""
    return DESCRIBE_QUORUM in connection.api_versions()


def quorum_leader(connection: Connection) -> ClusterState:
    """The active controller, and nothing else. A broker asks the controllers for it, so it may be silent when
    they are. Raises ProtocolError."""
    log = TopicData(
        topic_name=TopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),)
    )
    answer = connection.request(DescribeQuorumRequest(topics=(log,)), DescribeQuorumResponse)
    _check(connection, "DescribeQuorum", answer.error_code, None)
    leader = next((int(one.leader_id) for topic in answer.topics for one in topic.partitions), -1)
    return ClusterState(leader, (), ())


def settings_of(connection: Connection, topic: str) -> Mapping[str, str]:
    """What a topic has, by name; without what the cluster keeps to itself. Raises ProtocolError."""
    asked = DescribeConfigsResource(resource_type=i8(TOPIC), resource_name=topic, configuration_keys=None)
    answer = connection.request(DescribeConfigsRequest(resources=(asked,)), DescribeConfigsResponse)
    for result in answer.results:
        _check(connection, f"DescribeConfigs of {topic}", result.error_code, result.error_message)
        return {one.name: one.value for one in result.configs if one.value is not None}
    raise ProtocolError(f"DescribeConfigs to {connection.address}: the answer does not speak of {topic}")


def delete_topic(connection: Connection, topic: str, timeout_s: float) -> None:
    """One that is not there is as good as deleted. Raises ProtocolError."""
    timeout = i32Timedelta.parse(timedelta(seconds=timeout_s))
    request = DeleteTopicsRequest(topic_names=(TopicName(topic),), timeout=timeout)
    for result in connection.request(request, DeleteTopicsResponse).responses:
        if result.error_code is not ErrorCode.unknown_topic_or_partition:
            _check(connection, f"DeleteTopics of {topic}", result.error_code, None)


def _check(connection: Connection, what: str, error: ErrorCode, message: str | None) -> None:
    if error is not ErrorCode.none:
        said = f" ({message})" if message else ""
        raise ProtocolError(f"{what} to {connection.address}: {error.name}{said}")
