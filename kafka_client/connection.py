"""What one broker is asked, each request and answer typed by kio's dataclasses.

Metadata is asked for in the newest version that the broker speaks, the others in versions that our broker and
Apache Kafka to 4.x both speak (docs/protocol.md 5.1): topics, offsets and coordinators since Kafka 0.11,
settings since 1.1, what else an administrator does since 2.8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from kio.schema.alter_partition_reassignments.v0 import request as reassign_request
from kio.schema.alter_partition_reassignments.v0 import response as reassign_response
from kio.schema.api_versions import v0 as api_versions
from kio.schema.api_versions import v3 as features
from kio.schema.create_partitions.v3 import request as partitions_request
from kio.schema.create_partitions.v3 import response as partitions_response
from kio.schema.create_topics.v2 import request as create_request
from kio.schema.create_topics.v2 import response as create_response
from kio.schema.delete_topics import v1 as delete_topics
from kio.schema.describe_cluster import v0 as describe_cluster
from kio.schema.describe_cluster import v1 as describe_controllers
from kio.schema.describe_configs.v1 import request as configs_request
from kio.schema.describe_configs.v1 import response as configs_response
from kio.schema.describe_topic_partitions.v0 import request as topics_request
from kio.schema.describe_topic_partitions.v0 import response as topics_response
from kio.schema.elect_leaders.v2 import request as elect_request
from kio.schema.elect_leaders.v2 import response as elect_response
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator import v1 as find_coordinator
from kio.schema.incremental_alter_configs.v0 import request as alter_request
from kio.schema.incremental_alter_configs.v0 import response as alter_response
from kio.schema.list_offsets.v2 import request as offsets_request
from kio.schema.list_offsets.v2 import response as offsets_response
from kio.schema.list_offsets.v5 import request as epoch_offsets_request
from kio.schema.list_offsets.v5 import response as epoch_offsets_response
from kio.schema.list_partition_reassignments import v0 as list_reassignments
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker import v0 as unregister_broker
from kio.schema.update_features.v1 import request as update_request
from kio.schema.update_features.v1 import response as update_response
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload

from wrackline.kafka_client import metadata
from wrackline.kafka_client.model import (
    ClusterState,
    Metadata,
    Outcome,
    PartitionState,
    Place,
    Reassignment,
    ResourceType,
    Setting,
    TopicMetadata,
    TopicSpec,
)
from wrackline.kafka_client.transport import HungUp, ProtocolError, Rejected, Transport

LATEST = -1
EARLIEST = -2
PREFERRED, UNCLEAN = 0, 1
"""Kinds of elections."""
_DESCRIBE_TOPIC_PARTITIONS = 75
_CONTROLLERS = 2
"""The endpoint type of DescribeCluster that stands for controllers (KIP-919)."""
_SET, _DELETE = 0, 1
_UPGRADE = 1
_KEY_TYPES = {"group": 0, "transaction": 1}


class Connection(Transport):
    """A connection to one broker.

    Every operation raises ProtocolError, and Rejected, which is one, for an error code that concerns all that
    was asked. ``timeout_s``: how long the cluster may take over what is asked.
    """

    _apis: dict[int, tuple[int, int]] | None = None

    # --- the broker ---------------------------------------------------------------------------------------

    def api_versions(self) -> dict[int, tuple[int, int]]:
        """API key -> (lowest, highest) version, asked once per connection. Empty: a broker that is older than
        this question, which hangs up when it hears it, as Kafka 0.8 does. Raises ProtocolError, also for one
        that stays silent, as Kafka 0.9 does."""
        if self._apis is None:
            try:
                answer = self.request(api_versions.ApiVersionsRequest(), api_versions.ApiVersionsResponse)
            except HungUp:
                # A broker that is about to end hangs up as well, but does not let us in again.
                self._open()
                self._apis = {}
            else:
                self._apis = {
                    int(api.api_key): (int(api.min_version), int(api.max_version)) for api in answer.api_keys
                }
        return self._apis

    def newest(self, key: int, upto: int) -> int:
        """The newest version of a request that the broker and we (up to ``upto``) speak; 0 where the broker
        does not tell."""
        return min(self.api_versions().get(key, (0, 0))[1], upto)

    def features(self) -> features.ApiVersionsResponse:
        """The levels of features that the broker supports, and those that the cluster has."""
        request = features.ApiVersionsRequest(
            client_software_name=self.client_id, client_software_version="1"
        )
        answer = self.request(request, features.ApiVersionsResponse)
        self._check("ApiVersions", answer.error_code)
        return answer

    def update_feature(
        self, feature: str, level: int, *, timeout_s: float, kind: int = _UPGRADE, validate_only: bool = False
    ) -> None:
        """Give the cluster another level of a feature (KIP-584)."""
        update = update_request.FeatureUpdateKey(
            feature=feature, max_version_level=i16(level), upgrade_type=i8(kind)
        )
        request = update_request.UpdateFeaturesRequest(
            timeout=duration(timeout_s), feature_updates=(update,), validate_only=validate_only
        )
        answer = self.request(request, update_response.UpdateFeaturesResponse)
        self._check("UpdateFeatures", answer.error_code, answer.error_message)
        for one in answer.results:
            self._check("UpdateFeatures", one.error_code, one.error_message)

    # --- the cluster --------------------------------------------------------------------------------------

    def metadata(self, topics: Sequence[str] | None = None) -> Metadata:
        """``topics`` None: all."""
        version = self.newest(metadata.KEY, metadata.NEWEST)
        request, answer = metadata.request_for(version, topics)
        return metadata.metadata_of(self.request(request, answer), topics)

    def describe_cluster(self) -> describe_cluster.DescribeClusterResponse:
        """The brokers that are unfenced, and the controller as our own nodes name it."""
        request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=False)
        answer = self.request(request, describe_cluster.DescribeClusterResponse)
        self._check("DescribeCluster", answer.error_code, answer.error_message)
        return answer

    def active_controller(self) -> int:
        """The active one, as a KRaft controller of Apache Kafka knows it: at its port DescribeCluster must
        name the endpoints of controllers. -1: it knows none."""
        request = describe_controllers.DescribeClusterRequest(
            include_cluster_authorized_operations=False, endpoint_type=i8(_CONTROLLERS)
        )
        answer = self.request(request, describe_controllers.DescribeClusterResponse)
        self._check("DescribeCluster", answer.error_code, answer.error_message)
        return int(answer.controller_id)

    def find_coordinator(self, kind: str, name: str) -> int:
        """The node that coordinates a ``group`` or, by its transactional id, a ``transaction``. Rejected also
        when there is none now."""
        request = find_coordinator.FindCoordinatorRequest(key=name, key_type=i8(_KEY_TYPES[kind]))
        answer = self.request(request, find_coordinator.FindCoordinatorResponse)
        self._check(f"FindCoordinator({name})", answer.error_code)
        return int(answer.node_id)

    def describe_topics(self, topics: Iterable[str] = ()) -> list[TopicMetadata]:
        """DescribeTopicPartitions, the only API that shows ELR, page by page: a topic may come in pieces.
        ``topics`` empty: all."""
        names = tuple(topics_request.TopicRequest(name=TopicName(name)) for name in sorted(topics))
        cursor: topics_request.Cursor | None = None
        found: list[TopicMetadata] = []
        while True:
            answer = self.request(
                topics_request.DescribeTopicPartitionsRequest(topics=names, cursor=cursor),
                topics_response.DescribeTopicPartitionsResponse,
            )
            found += map(_topic, answer.topics)
            if (after := answer.next_cursor) is None:
                return found
            cursor = topics_request.Cursor(topic_name=after.topic_name, partition_index=after.partition_index)

    def cluster_state(self, topics: Sequence[str] | None = None) -> ClusterState:
        """Brokers, controller and the partitions of these topics, as this broker knows them. ``topics`` None:
        of all but the internal ones. The controller is any broker where there is a quorum."""
        seen = self.metadata(topics)
        there = [topic for topic in seen.topics if topics is not None or not topic.is_internal]
        if any(topic.partitions for topic in there) and _DESCRIBE_TOPIC_PARTITIONS in self.api_versions():
            there = self.describe_topics(topic.name for topic in there)
        partitions = [one for topic in there for one in topic.partitions]
        return ClusterState(
            controller=seen.controller,
            brokers=tuple(sorted(broker.node_id for broker in seen.brokers)),
            partitions=tuple(sorted(partitions, key=lambda state: state.place)),
        )

    def unregister_broker(self, node_id: int) -> None:
        """The cluster forgets a broker that was stopped."""
        request = unregister_broker.UnregisterBrokerRequest(broker_id=BrokerId(node_id))
        answer = self.request(request, unregister_broker.UnregisterBrokerResponse)
        self._check("UnregisterBroker", answer.error_code, answer.error_message)

    # --- topics -------------------------------------------------------------------------------------------

    def create_topic(self, topic: TopicSpec, *, timeout_s: float) -> None:
        spec = create_request.CreatableTopic(
            name=TopicName(topic.name),
            num_partitions=i32(topic.partitions),
            replication_factor=i16(topic.replication_factor),
            assignments=(),
            configs=tuple(
                create_request.CreatableTopicConfig(name=name, value=value)
                for name, value in topic.configs.items()
            ),
        )
        answer = self.request(
            create_request.CreateTopicsRequest(topics=(spec,), timeout=duration(timeout_s)),
            create_response.CreateTopicsResponse,
        )
        for result in answer.topics:
            if result.name == topic.name:
                return self._check("CreateTopics", result.error_code, result.error_message)
        raise ProtocolError(f"CreateTopics to {self.address}: the answer does not speak of {topic.name}")

    def create_partitions(self, topic: str, count: int, *, timeout_s: float) -> None:
        """``count``: how many there shall be in all."""
        spec = partitions_request.CreatePartitionsTopic(
            name=TopicName(topic), count=i32(count), assignments=None
        )
        request = partitions_request.CreatePartitionsRequest(
            topics=(spec,), timeout=duration(timeout_s), validate_only=False
        )
        for result in self.request(request, partitions_response.CreatePartitionsResponse).results:
            self._check("CreatePartitions", result.error_code, result.error_message)

    def delete_topic(self, topic: str, *, timeout_s: float) -> None:
        request = delete_topics.DeleteTopicsRequest(
            topic_names=(TopicName(topic),), timeout=duration(timeout_s)
        )
        for result in self.request(request, delete_topics.DeleteTopicsResponse).responses:
            self._check(f"DeleteTopics of {topic}", result.error_code)

    def list_offset(
        self, topic: str, partition: int, timestamp: int = LATEST, *, leader_epoch: int = -1
    ) -> int:
        """One offset, as a consumer sees it. ``leader_epoch``: that it knows; -1: it knows none, which also
        brokers before 2.1 understand."""
        asking = epoch_offsets_request if leader_epoch >= 0 else offsets_request
        answering = epoch_offsets_response if leader_epoch >= 0 else offsets_response
        known = {"current_leader_epoch": i32(leader_epoch)} if leader_epoch >= 0 else {}
        where = asking.ListOffsetsPartition(partition_index=i32(partition), timestamp=i64(timestamp), **known)
        asked = asking.ListOffsetsTopic(name=TopicName(topic), partitions=(where,))
        answer = self.request(
            asking.ListOffsetsRequest(replica_id=BrokerId(-1), isolation_level=i8(0), topics=(asked,)),
            answering.ListOffsetsResponse,
        )
        for result in (found for one in answer.topics for found in one.partitions):
            self._check(f"ListOffsets({topic}-{partition})", result.error_code)
            return int(result.offset)
        raise ProtocolError(f"ListOffsets to {self.address}: the answer does not speak of {topic}")

    # --- settings -----------------------------------------------------------------------------------------

    def describe_configs(self, resource: ResourceType, name: str) -> list[Setting]:
        """All settings of a topic or, by its id, of the broker that is asked; of all brokers: ""."""
        asked = configs_request.DescribeConfigsResource(
            resource_type=i8(resource), resource_name=name, configuration_keys=None
        )
        request = configs_request.DescribeConfigsRequest(resources=(asked,))
        answer = self.request(request, configs_response.DescribeConfigsResponse)
        for result in answer.results:
            self._check(f"DescribeConfigs({name})", result.error_code, result.error_message)
            return [
                Setting(one.name, one.value, int(one.config_source), one.read_only) for one in result.configs
            ]
        raise ProtocolError(f"DescribeConfigs to {self.address}: the answer does not speak of {name}")

    def alter_configs(self, resource: ResourceType, name: str, values: Mapping[str, str | None]) -> None:
        """None: the default shall hold again."""
        changes = tuple(
            alter_request.AlterableConfig(
                name=key, config_operation=i8(_DELETE if value is None else _SET), value=value
            )
            for key, value in values.items()
        )
        asked = alter_request.AlterConfigsResource(
            resource_type=i8(resource), resource_name=name, configs=changes
        )
        request = alter_request.IncrementalAlterConfigsRequest(resources=(asked,), validate_only=False)
        what = f"change {', '.join(values)}"
        for result in self.request(request, alter_response.IncrementalAlterConfigsResponse).responses:
            self._check("IncrementalAlterConfigs", result.error_code, result.error_message, what)

    # --- leaders and replicas -----------------------------------------------------------------------------

    def elect_leaders(
        self, kind: int, places: Collection[Place] | None, *, timeout_s: float
    ) -> list[Outcome]:
        """``kind``: PREFERRED or UNCLEAN. ``places`` None: wherever there is something to do."""
        topics = (
            None
            if places is None
            else tuple(
                elect_request.TopicPartitions(topic=TopicName(topic), partitions=tuple(map(i32, partitions)))
                for topic, partitions in by_topic(places).items()
            )
        )
        return self.elect(
            elect_request.ElectLeadersRequest(
                election_type=i8(kind), topic_partitions=topics, timeout=duration(timeout_s)
            )
        )

    def elect(self, request: RequestPayload) -> list[Outcome]:
        """``request``: ElectLeaders of a version whose answer is that of version 2."""
        answer = self.request(request, elect_response.ElectLeadersResponse)
        self._check("ElectLeaders", answer.error_code, about="the election")
        return [
            Outcome((str(topic.topic), int(one.partition_id)), one.error_code, one.error_message)
            for topic in answer.replica_election_results
            for one in topic.partition_result
        ]

    def alter_reassignments(
        self, targets: Mapping[Place, Sequence[int] | None], *, timeout_s: float
    ) -> list[Outcome]:
        """Begin to move partitions to these replicas (KIP-455); None cancels. Asking twice for the same
        replicas is asking once."""
        topics: dict[str, list[reassign_request.ReassignablePartition]] = {}
        for (topic, partition), replicas in sorted(targets.items()):
            topics.setdefault(topic, []).append(
                reassign_request.ReassignablePartition(
                    partition_index=i32(partition),
                    replicas=None if replicas is None else tuple(map(BrokerId, replicas)),
                )
            )
        request = reassign_request.AlterPartitionReassignmentsRequest(
            timeout=duration(timeout_s),
            topics=tuple(
                reassign_request.ReassignableTopic(name=TopicName(topic), partitions=tuple(partitions))
                for topic, partitions in topics.items()
            ),
        )
        answer = self.request(request, reassign_response.AlterPartitionReassignmentsResponse)
        self._check("AlterPartitionReassignments", answer.error_code, answer.error_message, "the request")
        return [
            Outcome((str(topic.name), int(one.partition_index)), one.error_code, one.error_message)
            for topic in answer.responses
            for one in topic.partitions
        ]

    def list_reassignments(self, *, timeout_s: float) -> list[Reassignment]:
        request = list_reassignments.ListPartitionReassignmentsRequest(
            timeout=duration(timeout_s), topics=None
        )
        answer = self.request(request, list_reassignments.ListPartitionReassignmentsResponse)
        self._check("ListPartitionReassignments", answer.error_code, answer.error_message, "the request")
        return [
            Reassignment(
                (str(topic.name), int(one.partition_index)),
                *(tuple(map(int, ids)) for ids in (one.replicas, one.adding_replicas, one.removing_replicas)),
            )
            for topic in answer.topics
            for one in topic.partitions
        ]

    def _check(self, request: str, error: ErrorCode, message: str | None = None, about: str = "") -> None:
        """Raises Rejected for an error."""
        if error is not ErrorCode.none:
            raise Rejected(f"{request} to {self.address}", error, message, about)


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """Topic -> its partitions, both in the order in which they come."""
    found: dict[str, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return found


def duration(seconds: float) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(seconds=seconds))


def _topic(topic: topics_response.DescribeTopicPartitionsResponseTopic) -> TopicMetadata:
    name = str(topic.name)

    def ids(nodes: Iterable[int] | None) -> tuple[int, ...]:
        return tuple(map(int, nodes or ()))

    return TopicMetadata(
        name,
        topic.error_code,
        topic.topic_id,
        topic.is_internal,
        tuple(
            PartitionState(
                topic=name,
                partition=int(one.partition_index),
                leader=int(one.leader_id),
                leader_epoch=int(one.leader_epoch),
                replicas=ids(one.replica_nodes),
                isr=ids(one.isr_nodes),
                elr=ids(one.eligible_leader_replicas),
                last_known_elr=ids(one.last_known_elr),
            )
            for one in topic.partitions
        ),
    )
