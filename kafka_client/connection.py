"""A connection to one broker, each request and answer typed by kio's dataclasses.

Metadata is asked for in the newest version that the broker speaks, the others in versions that our broker and
Apache Kafka to 4.x both speak (docs/protocol.md 5.1): topics, offsets and coordinators since Kafka 0.11,
settings since 1.1, what else an administrator does since 2.8.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from kio.schema.add_raft_voter.v0.request import AddRaftVoterRequest, Listener
from kio.schema.add_raft_voter.v0.response import AddRaftVoterResponse
from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v0.response import AlterPartitionReassignmentsResponse
from kio.schema.api_versions import v0 as api_versions
from kio.schema.api_versions.v3 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
from kio.schema.create_topics.v2.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.create_topics.v2.response import CreateTopicsResponse
from kio.schema.delete_groups.v1 import DeleteGroupsRequest, DeleteGroupsResponse
from kio.schema.delete_topics.v1 import DeleteTopicsRequest, DeleteTopicsResponse
from kio.schema.describe_cluster import v1 as describe_controllers
from kio.schema.describe_cluster.v0 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.describe_configs.v1.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v1.response import DescribeConfigsResponse
from kio.schema.describe_quorum.v2 import DescribeQuorumResponse
from kio.schema.describe_quorum.v2 import request as quorum_request
from kio.schema.describe_topic_partitions.v0 import DescribeTopicPartitionsResponse
from kio.schema.describe_topic_partitions.v0.request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponseTopic
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator import v6 as share_coordinator
from kio.schema.find_coordinator.v1 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.incremental_alter_configs.v0.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v0.response import IncrementalAlterConfigsResponse
from kio.schema.init_producer_id.v3 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.list_offsets.v2 import request as offsets_request
from kio.schema.list_offsets.v2 import response as offsets_response
from kio.schema.list_offsets.v5 import request as epoch_offsets_request
from kio.schema.list_offsets.v5 import response as epoch_offsets_response
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.offset_fetch.v7.request import OffsetFetchRequest, OffsetFetchRequestTopic
from kio.schema.offset_fetch.v7.response import OffsetFetchResponse
from kio.schema.remove_raft_voter.v0 import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kio.schema.types import BrokerId, GroupId, TopicName, TransactionalId
from kio.schema.unregister_broker.v0 import UnregisterBrokerRequest, UnregisterBrokerResponse
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v1.response import UpdateFeaturesResponse
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64, u16
from kio.static.protocol import RequestPayload

from wrackline.kafka_client import metadata
from wrackline.kafka_client.model import (
    ClusterState,
    Metadata,
    Outcome,
    PartitionState,
    Place,
    Quorum,
    Reassignment,
    ResourceType,
    Setting,
    TopicMetadata,
    TopicSpec,
    Voter,
    directory_text,
    directory_uuid,
)
from wrackline.kafka_client.transport import HungUp, ProtocolError, Rejected, Response, Transport

LATEST = -1
EARLIEST = -2
PREFERRED, UNCLEAN = 0, 1
"""Kinds of elections."""
_DESCRIBE_TOPIC_PARTITIONS = 75
_CONTROLLERS = 2
"""The endpoint type of DescribeCluster that stands for controllers (KIP-919)."""
_SET, _DELETE = 0, 1
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_METADATA_TOPIC = TopicName("__cluster_metadata")
_KEY_TYPES = {"group": 0, "transaction": 1, "share": 2}

Result = TypeVar("Result")
T = TypeVar("T")


class Connection(Transport):
    """A connection to one broker.

    Every operation raises ProtocolError, and Rejected, which is one, for an error code that concerns all that
    was asked. ``timeout_s``: how long the cluster may take over what is asked.
    """

    _apis: dict[int, tuple[int, int]] | None = None

    # --- the broker ---------------------------------------------------------------------------------------

    def api_versions(self) -> dict[int, tuple[int, int]]:
        """Returns API key -> (lowest, highest) version, asked once per connection. Empty: a broker that is
        older than this question, which hangs up when it hears it, as Kafka 0.8 does. Raises ProtocolError,
        also for one that stays silent, as Kafka 0.9 does."""
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
        """Returns the newest version of a request that the broker and we (up to ``upto``) speak; 0 where the
        broker does not say."""
        return min(self.api_versions().get(key, (0, 0))[1], upto)

    def features(self) -> ApiVersionsResponse:
        """Returns the levels of features that the broker supports, and those that the cluster has."""
        name = self.client_id
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        return self._ask(request, ApiVersionsResponse)

    def update_feature(
        self, feature: str, level: int, *, timeout_s: float, kind: int = UPGRADE, validate_only: bool = False
    ) -> None:
        """Gives the cluster another level of a feature (KIP-584)."""
        update = FeatureUpdateKey(feature=feature, max_version_level=i16(level), upgrade_type=i8(kind))
        request = UpdateFeaturesRequest(
            timeout=duration(timeout_s), feature_updates=(update,), validate_only=validate_only
        )
        for result in self._ask(request, UpdateFeaturesResponse).results:
            self._check("UpdateFeatures", result)

    # --- the cluster --------------------------------------------------------------------------------------

    def metadata(self, topics: Sequence[str] | None = None) -> Metadata:
        """Returns the metadata of these topics, and of the brokers. ``topics`` None: all."""
        version = self.newest(metadata.KEY, metadata.NEWEST)
        request, answer = metadata.request_for(version, topics)
        return metadata.metadata_of(self.request(request, answer), topics)

    def describe_cluster(self) -> DescribeClusterResponse:
        """Returns the brokers that are unfenced."""
        request = DescribeClusterRequest(include_cluster_authorized_operations=False)
        return self._ask(request, DescribeClusterResponse)

    def named_controller(self) -> int:
        """Returns the active controller as one of our own knows it. -1: it knows none."""
        return int(self.describe_cluster().controller_id)

    def active_controller(self) -> int:
        """Returns the active controller as one of Apache Kafka's knows it: at its port DescribeCluster must
        name the endpoints of controllers. -1: it knows none."""
        request = describe_controllers.DescribeClusterRequest(
            include_cluster_authorized_operations=False, endpoint_type=i8(_CONTROLLERS)
        )
        return int(self._ask(request, describe_controllers.DescribeClusterResponse).controller_id)

    def find_coordinator(self, kind: str, name: str) -> int:
        """Returns the node that coordinates a ``group`` or, by its transactional id, a ``transaction``.
        Rejected also when there is none now."""
        request = FindCoordinatorRequest(key=name, key_type=i8(_KEY_TYPES[kind]))
        answer = self.request(request, FindCoordinatorResponse)
        self._check(f"FindCoordinator({name})", answer)
        return int(answer.node_id)

    def init_producer_id(self, transactional_id: str, *, transaction_timeout_s: float) -> tuple[int, int]:
        """Returns the id and the epoch of the next producer of this transactional id, asked of its
        coordinator. Whoever was its producer until now is fenced."""
        request = InitProducerIdRequest(
            transactional_id=TransactionalId(transactional_id),
            transaction_timeout=duration(transaction_timeout_s),
        )
        answer = self.request(request, InitProducerIdResponse)
        self._check(f"InitProducerId({transactional_id})", answer)
        return int(answer.producer_id), int(answer.producer_epoch)

    def committed_offsets(
        self, group: str, topic: str, partitions: Iterable[int], *, require_stable: bool
    ) -> dict[int, int]:
        """Returns partition -> committed offset of a group (-1: none), as the broker that is asked knows it.
        Rejected by one that does not take itself for the group's coordinator. ``require_stable``: an answer
        waits for what is not committed to the coordinator's own log yet (KIP-447)."""
        places = OffsetFetchRequestTopic(name=TopicName(topic), partition_indexes=tuple(map(i32, partitions)))
        request = OffsetFetchRequest(group_id=GroupId(group), topics=(places,), require_stable=require_stable)
        what, result = f"OffsetFetch({group})", {}
        for of_topic in self._ask(request, OffsetFetchResponse).topics:
            for one in of_topic.partitions:
                self._check(what, one)
                result[int(one.partition_index)] = int(one.committed_offset)
        return result

    def find_share_coordinator(self, group: str, topic: str, partition: int) -> int:
        """Returns the node that keeps the state of a share group in one partition (KIP-932): its key has the
        topic's id. Rejected also when there is none now."""
        [described] = self.metadata([topic]).topics
        topic_id = base64.urlsafe_b64encode((described.topic_id or UUID(int=0)).bytes).decode().rstrip("=")
        request = share_coordinator.FindCoordinatorRequest(
            key_type=i8(_KEY_TYPES["share"]), coordinator_keys=(f"{group}:{topic_id}:{partition}",)
        )
        [answer] = self.request(request, share_coordinator.FindCoordinatorResponse).coordinators
        self._check(f"FindCoordinator({group}:{topic}:{partition})", answer)
        return int(answer.node_id)

    def describe_topics(self, topics: Iterable[str] = ()) -> list[TopicMetadata]:
        """Describes topics by DescribeTopicPartitions, the only API that has the ELR, page by page: a topic
        may come in pieces. ``topics`` empty: all."""
        names = tuple(TopicRequest(name=TopicName(name)) for name in sorted(topics))
        cursor: Cursor | None = None
        described: list[TopicMetadata] = []
        while True:
            request = DescribeTopicPartitionsRequest(topics=names, cursor=cursor)
            answer = self.request(request, DescribeTopicPartitionsResponse)
            described += map(_topic, answer.topics)
            if (after := answer.next_cursor) is None:
                return described
            cursor = Cursor(topic_name=after.topic_name, partition_index=after.partition_index)

    def cluster_state(
        self, topics: Sequence[str] | None = None, internal: Collection[str] = ()
    ) -> ClusterState:
        """Returns brokers, controller and the partitions of these topics, as this broker knows them.
        ``topics`` None: all, of the internal ones those in ``internal``. The controller is any broker where
        there is a quorum."""
        cluster = self.metadata(topics)
        reported = [
            topic
            for topic in cluster.topics
            if topics is not None or not topic.is_internal or topic.name in internal
        ]
        if any(topic.partitions for topic in reported) and _DESCRIBE_TOPIC_PARTITIONS in self.api_versions():
            reported = self.describe_topics(topic.name for topic in reported)
        partitions = [one for topic in reported for one in topic.partitions]
        return ClusterState(
            controller=cluster.controller,
            brokers=tuple(sorted(broker.node_id for broker in cluster.brokers)),
            partitions=tuple(sorted(partitions, key=lambda state: state.place)),
        )

    def unregister_broker(self, node_id: int) -> None:
        """Makes the cluster forget a broker that was stopped."""
        self._ask(UnregisterBrokerRequest(broker_id=BrokerId(node_id)), UnregisterBrokerResponse)

    # --- the controller quorum ----------------------------------------------------------------------------

    def describe_quorum(self) -> Quorum:
        """Returns the quorum's voters and observers with the ids of their disks' folders (KIP-853)."""
        place = quorum_request.TopicData(
            topic_name=_METADATA_TOPIC,
            partitions=(quorum_request.PartitionData(partition_index=i32(0)),),
        )
        answer = self._ask(quorum_request.DescribeQuorumRequest(topics=(place,)), DescribeQuorumResponse)
        quorum = self._first("DescribeQuorum", [one for topic in answer.topics for one in topic.partitions])

        def voters(replicas: Iterable[Any]) -> tuple[Voter, ...]:
            ids = ((int(one.replica_id), one.replica_directory_id) for one in replicas)
            return tuple(sorted(Voter(node_id, directory_text(folder)) for node_id, folder in ids))

        return Quorum(
            int(quorum.leader_id),
            int(quorum.leader_epoch),
            voters(quorum.current_voters),
            voters(quorum.observers),
        )

    def add_voter(self, voter: Voter, listener: tuple[str, str, int], *, timeout_s: float) -> None:
        """Asks for one more voter, which must run. ``listener``: name, address and port of its own."""
        name, host, port = listener
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout=duration(timeout_s),
            voter_id=i32(voter.node_id),
            voter_directory_id=directory_uuid(voter.directory),
            listeners=(Listener(name=name, host=host, port=u16(port)),),
        )
        self._ask(request, AddRaftVoterResponse, f"add voter {voter}")

    def remove_voter(self, voter: Voter) -> None:
        request = RemoveRaftVoterRequest(
            cluster_id=None,
            voter_id=i32(voter.node_id),
            voter_directory_id=directory_uuid(voter.directory),
        )
        self._ask(request, RemoveRaftVoterResponse, f"remove voter {voter}")

    # --- topics -------------------------------------------------------------------------------------------

    def create_topic(self, topic: TopicSpec, *, timeout_s: float) -> None:
        spec = CreatableTopic(
            name=TopicName(topic.name),
            num_partitions=i32(topic.partitions),
            replication_factor=i16(topic.replication_factor),
            assignments=(),
            configs=tuple(
                CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
            ),
        )
        request = CreateTopicsRequest(topics=(spec,), timeout=duration(timeout_s))
        self._first("CreateTopics", self.request(request, CreateTopicsResponse).topics)

    def create_partitions(self, topic: str, count: int, *, timeout_s: float) -> None:
        """Gives a topic more partitions. ``count``: how many there shall be in all."""
        spec = CreatePartitionsTopic(name=TopicName(topic), count=i32(count), assignments=None)
        request = CreatePartitionsRequest(topics=(spec,), timeout=duration(timeout_s), validate_only=False)
        self._first("CreatePartitions", self.request(request, CreatePartitionsResponse).results)

    def delete_topic(self, topic: str, *, timeout_s: float) -> None:
        request = DeleteTopicsRequest(topic_names=(TopicName(topic),), timeout=duration(timeout_s))
        self._first(f"DeleteTopics of {topic}", self.request(request, DeleteTopicsResponse).responses)

    def delete_group(self, group: str) -> None:
        """Deletes a group that has no members; asked of its coordinator."""
        answer = self.request(DeleteGroupsRequest(groups_names=(GroupId(group),)), DeleteGroupsResponse)
        self._first(f"DeleteGroups of {group}", answer.results)

    def list_offset(
        self, topic: str, partition: int, timestamp: int = LATEST, *, leader_epoch: int = -1
    ) -> int:
        """Returns one offset as a consumer gets it. ``leader_epoch``: that it knows; -1: it knows none, which
        also brokers before 2.1 understand."""
        schema = epoch_offsets_request if leader_epoch >= 0 else offsets_request
        answer_schema = epoch_offsets_response if leader_epoch >= 0 else offsets_response
        epoch = {"current_leader_epoch": i32(leader_epoch)} if leader_epoch >= 0 else {}
        one = schema.ListOffsetsPartition(partition_index=i32(partition), timestamp=i64(timestamp), **epoch)
        topics = (schema.ListOffsetsTopic(name=TopicName(topic), partitions=(one,)),)
        request = schema.ListOffsetsRequest(replica_id=BrokerId(-1), isolation_level=i8(0), topics=topics)
        answer = self.request(request, answer_schema.ListOffsetsResponse)
        results = [result for topic in answer.topics for result in topic.partitions]
        return int(self._first(f"ListOffsets({topic}-{partition})", results).offset)

    # --- settings -----------------------------------------------------------------------------------------

    def describe_configs(self, kind: ResourceType, name: str) -> list[Setting]:
        """Returns all settings of a topic or, by its id, of the broker that is asked; of all brokers: ""."""
        resource = DescribeConfigsResource(
            resource_type=i8(kind), resource_name=name, configuration_keys=None
        )
        answer = self.request(DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse)
        configs = self._first(f"DescribeConfigs({name})", answer.results).configs
        return [Setting(one.name, one.value, int(one.config_source), one.read_only) for one in configs]

    def alter_configs(self, kind: ResourceType, name: str, values: Mapping[str, str | None]) -> None:
        """Changes settings; None restores a default."""
        changes = tuple(
            AlterableConfig(name=key, config_operation=i8(_DELETE if value is None else _SET), value=value)
            for key, value in values.items()
        )
        resource = AlterConfigsResource(resource_type=i8(kind), resource_name=name, configs=changes)
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        answer = self.request(request, IncrementalAlterConfigsResponse)
        self._first("IncrementalAlterConfigs", answer.responses, f"change {', '.join(values)}")

    # --- leaders and replicas -----------------------------------------------------------------------------

    def elect_leaders(
        self, kind: int, places: Collection[Place] | None, *, timeout_s: float
    ) -> list[Outcome]:
        """Elects leaders. ``kind``: PREFERRED or UNCLEAN. ``places`` None: wherever there is something to
        do."""
        topics = None
        if places is not None:
            topics = tuple(
                TopicPartitions(topic=TopicName(topic), partitions=tuple(map(i32, partitions)))
                for topic, partitions in by_topic((place, place[1]) for place in places)
            )
        timeout = duration(timeout_s)
        return self.elect(
            ElectLeadersRequest(election_type=i8(kind), topic_partitions=topics, timeout=timeout)
        )

    def elect(self, request: RequestPayload) -> list[Outcome]:
        """Elects leaders by an ElectLeaders of another version, whose answer is that of version 2."""
        return [
            Outcome((str(topic.topic), int(one.partition_id)), one.error_code, one.error_message)
            for topic in self._ask(request, ElectLeadersResponse, "the election").replica_election_results
            for one in topic.partition_result
        ]

    def alter_reassignments(
        self, targets: Mapping[Place, Sequence[int] | None], *, timeout_s: float
    ) -> list[Outcome]:
        """Begins to move partitions to these replicas (KIP-455); None cancels. Asking twice for the same
        replicas is asking once."""
        partitions = (
            (
                place,
                ReassignablePartition(
                    partition_index=i32(place[1]),
                    replicas=None if replicas is None else tuple(map(BrokerId, replicas)),
                ),
            )
            for place, replicas in sorted(targets.items())
        )
        topics = tuple(
            ReassignableTopic(name=TopicName(topic), partitions=tuple(of_topic))
            for topic, of_topic in by_topic(partitions)
        )
        request = AlterPartitionReassignmentsRequest(timeout=duration(timeout_s), topics=topics)
        return [
            Outcome((str(topic.name), int(one.partition_index)), one.error_code, one.error_message)
            for topic in self._ask(request, AlterPartitionReassignmentsResponse, "the request").responses
            for one in topic.partitions
        ]

    def list_reassignments(self, *, timeout_s: float) -> list[Reassignment]:
        request = ListPartitionReassignmentsRequest(timeout=duration(timeout_s), topics=None)
        return [
            Reassignment(
                (str(topic.name), int(one.partition_index)),
                _ids(one.replicas),
                _ids(one.adding_replicas),
                _ids(one.removing_replicas),
            )
            for topic in self._ask(request, ListPartitionReassignmentsResponse, "the request").topics
            for one in topic.partitions
        ]

    # --- answers ------------------------------------------------------------------------------------------

    def _ask(self, request: RequestPayload, answer: type[Response], about: str = "") -> Response:
        """Returns an answer that has an error code of its own, which is none."""
        response = self.request(request, answer)
        self._check(type(request).__name__.removesuffix("Request"), response, about)
        return response

    def _first(self, request: str, results: Sequence[Result], about: str = "") -> Result:
        """Returns the result of the one thing that was asked for."""
        for result in results:
            self._check(request, result, about)
            return result
        raise ProtocolError(f"{request} to {self.address}: the answer does not speak of it")

    def _check(self, request: str, result: Any, about: str = "") -> None:
        """Raises Rejected for an error code. ``result``: has one, and in some versions a message."""
        if result.error_code is not ErrorCode.none:
            message = getattr(result, "error_message", None)
            raise Rejected(f"{request} to {self.address}", result.error_code, message, about)


def by_topic(items: Iterable[tuple[Place, T]]) -> Iterable[tuple[str, list[T]]]:
    """Groups items by the topic of their partitions, both in the order in which they come."""
    topics: dict[str, list[T]] = {}
    for (topic, _), item in items:
        topics.setdefault(topic, []).append(item)
    return topics.items()


def duration(seconds: float) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(seconds=seconds))


def _ids(nodes: Iterable[int] | None) -> tuple[int, ...]:
    return tuple(map(int, nodes or ()))


def _topic(topic: DescribeTopicPartitionsResponseTopic) -> TopicMetadata:
    name = str(topic.name)
    partitions = tuple(
        PartitionState(
            topic=name,
            partition=int(one.partition_index),
            leader=int(one.leader_id),
            leader_epoch=int(one.leader_epoch),
            replicas=_ids(one.replica_nodes),
            isr=_ids(one.isr_nodes),
            elr=_ids(one.eligible_leader_replicas),
            last_known_elr=_ids(one.last_known_elr),
        )
        for one in topic.partitions
    )
    return TopicMetadata(name, topic.error_code, topic.topic_id, topic.is_internal, partitions)
