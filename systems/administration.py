"""What an administrator does to a running cluster, over the Kafka protocol: elections, settings, topics, and
brokers that are gone for good. The versions of the requests are ones that our broker and Apache Kafka from
2.8 to 4.x both speak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import IntEnum
from typing import TypeVar

from kio.schema.delete_topics.v1 import request as delete_request
from kio.schema.delete_topics.v1 import response as delete_response
from kio.schema.describe_configs.v1 import request as describe_request
from kio.schema.describe_configs.v1 import response as describe_response
from kio.schema.elect_leaders.v2 import request as elect_request
from kio.schema.elect_leaders.v2 import response as elect_response
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v0 import request as alter_request
from kio.schema.incremental_alter_configs.v0 import response as alter_response
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0 import request as unregister_request
from kio.schema.unregister_broker.v0 import response as unregister_response
from kio.static.primitive import i8, i32, i32Timedelta

from wrackline.kafka_client.connection import Connection
from wrackline.systems.base import Node, Place, TopicSpec
from wrackline.systems.retry import ASK_S, check, insist

_PREFERRED, _UNCLEAN = 0, 1
_SET, _DELETE = 0, 1
_OWN_SOURCES = (1, 2, 3)
"""Of a setting: given to the topic, to the broker, or to all brokers, while the cluster ran."""
_NO_ELECTION = (ErrorCode.election_not_needed, ErrorCode.preferred_leader_not_available)

T = TypeVar("T")


class Resource(IntEnum):
    """What a setting belongs to, as the protocol numbers it."""

    TOPIC = 2
    BROKER = 4
    """With the empty name: all brokers."""


class Administrator:
    """Asks any broker that answers. Every error is a DeployError. Safe to use from several threads."""

    def __init__(self, brokers: Sequence[Node], connect: Callable[[Node, float], Connection]) -> None:
        self._brokers = tuple(brokers)
        self._connect = connect

    def elect_preferred(self, places: Sequence[Place], *, timeout_s: float) -> None:
        """Each partition's first replica shall lead. One that cannot, or does already, is no error."""
        if places:
            self._ask("elect preferred leaders", lambda one: _elect(one, places, _PREFERRED), timeout_s)

    def elect_uncleanly(self, places: Sequence[Place], *, timeout_s: float) -> None:
        """Somebody shall lead, whoever is there, at the price of records. One that has a leader is no
        error."""
        self._ask("elect uncleanly", lambda one: _elect(one, places, _UNCLEAN), timeout_s)

    def topic_settings(self, topic: str, *, timeout_s: float) -> dict[str, str]:
        """Those that it has been given; a setting that is not here has its default."""
        return self._ask(f"settings of {topic}", lambda one: _given(one, Resource.TOPIC, topic), timeout_s)

    def change_topic(self, topic: str, values: Mapping[str, str | None], *, timeout_s: float) -> None:
        """None: the default shall hold again."""
        what = f"change {', '.join(values)} of {topic}"
        self._ask(what, lambda one: _alter(one, Resource.TOPIC, topic, values), timeout_s)

    def cluster_settings(self, *, timeout_s: float) -> dict[str, str]:
        """Those that all brokers have been given while they ran."""
        return self._ask("settings of all brokers", lambda one: _given(one, Resource.BROKER, ""), timeout_s)

    def change_cluster(self, values: Mapping[str, str | None], *, timeout_s: float) -> None:
        """None: the default shall hold again."""
        what = f"change {', '.join(values)} of all brokers"
        self._ask(what, lambda one: _alter(one, Resource.BROKER, "", values), timeout_s)

    def create_topic(self, topic: TopicSpec, *, timeout_s: float) -> None:
        """One that is there already is no error."""

        def create(connection: Connection) -> None:
            done = connection.create_topic(topic, timeout_s=ASK_S)
            if done.error is not ErrorCode.topic_already_exists:
                check(f"create {topic.name}", done.error, done.message)

        self._ask(f"create {topic.name}", create, timeout_s)

    def delete_topic(self, topic: str, *, timeout_s: float) -> None:
        """One that is not there is no error."""

        def delete(connection: Connection) -> None:
            request = delete_request.DeleteTopicsRequest(topic_names=(TopicName(topic),), timeout=_timeout())
            for one in connection.request(request, delete_response.DeleteTopicsResponse).responses:
                if one.error_code is not ErrorCode.unknown_topic_or_partition:
                    check(f"delete {topic}", one.error_code, None)

        self._ask(f"delete {topic}", delete, timeout_s)

    def topic_id(self, topic: str, *, timeout_s: float) -> str | None:
        """The id that this life of the topic has; None when there is no such topic."""

        def look(connection: Connection) -> str | None:
            for one in connection.metadata([topic]).topics:
                if one.error is ErrorCode.none and one.topic_id is not None:
                    return str(one.topic_id)
            return None

        return self._ask(f"look for {topic}", look, timeout_s)

    def unregister(self, node_id: int, *, timeout_s: float) -> None:
        """The cluster forgets a broker that was stopped. One that it does not know is no error."""

        def forget(connection: Connection) -> None:
            request = unregister_request.UnregisterBrokerRequest(broker_id=BrokerId(node_id))
            done = connection.request(request, unregister_response.UnregisterBrokerResponse)
            if done.error_code is not ErrorCode.broker_id_not_registered:
                check(f"unregister broker {node_id}", done.error_code, done.error_message)

        self._ask(f"unregister broker {node_id}", forget, timeout_s)

    def _ask(self, what: str, question: Callable[[Connection], T], timeout_s: float) -> T:
        return insist(what, self._brokers, self._connect, question, timeout_s)


def _timeout() -> i32Timedelta:
    return i32Timedelta.parse(timedelta(seconds=ASK_S))


def _elect(connection: Connection, places: Sequence[Place], kind: int) -> None:
    topics: dict[str, list[i32]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(i32(partition))
    answer = connection.request(
        elect_request.ElectLeadersRequest(
            election_type=i8(kind),
            topic_partitions=tuple(
                elect_request.TopicPartitions(topic=TopicName(topic), partitions=tuple(partitions))
                for topic, partitions in topics.items()
            ),
            timeout=_timeout(),
        ),
        elect_response.ElectLeadersResponse,
    )
    check("the election", answer.error_code, None)
    for topic_result in answer.replica_election_results:
        for one in topic_result.partition_result:
            if one.error_code not in _NO_ELECTION:
                check(f"{topic_result.topic}-{one.partition_id}", one.error_code, one.error_message)


def _given(connection: Connection, resource: Resource, name: str) -> dict[str, str]:
    asked = describe_request.DescribeConfigsResource(
        resource_type=i8(resource), resource_name=name, configuration_keys=None
    )
    answer = connection.request(
        describe_request.DescribeConfigsRequest(resources=(asked,)),
        describe_response.DescribeConfigsResponse,
    )
    found: dict[str, str] = {}
    for result in answer.results:
        check(f"settings of {name or 'all brokers'}", result.error_code, result.error_message)
        found |= {
            one.name: one.value
            for one in result.configs
            if int(one.config_source) in _OWN_SOURCES and one.value is not None
        }
    return found


def _alter(connection: Connection, resource: Resource, name: str, values: Mapping[str, str | None]) -> None:
    changes = tuple(
        alter_request.AlterableConfig(
            name=key, config_operation=i8(_DELETE if value is None else _SET), value=value
        )
        for key, value in values.items()
    )
    asked = alter_request.AlterConfigsResource(
        resource_type=i8(resource), resource_name=name, configs=changes
    )
    answer = connection.request(
        alter_request.IncrementalAlterConfigsRequest(resources=(asked,), validate_only=False),
        alter_response.IncrementalAlterConfigsResponse,
    )
    for one in answer.responses:
        check(f"change {', '.join(values)}", one.error_code, one.error_message)
