"""A small Kafka-protocol client on raw sockets, for what the harness itself asks of a cluster.

Clients under test are real ones (confluent-kafka and others). The harness asks beside them, with as little
between it and the broker as can be: no retries, no caches, no background threads. Metadata is asked for in
the newest version that the broker speaks; the others in ones that Apache Kafka to 4.x and our broker both
speak (docs/protocol.md 5.1), since 0.11 where topics and offsets are concerned.
"""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from kio.schema.api_versions.v0 import request as api_versions_request
from kio.schema.api_versions.v0 import response as api_versions_response
from kio.schema.create_topics.v2 import request as create_request
from kio.schema.create_topics.v2 import response as create_response
from kio.schema.describe_cluster.v0 import request as cluster_request
from kio.schema.describe_cluster.v0 import response as cluster_response
from kio.schema.describe_cluster.v1 import request as quorum_request
from kio.schema.describe_cluster.v1 import response as quorum_response
from kio.schema.describe_topic_partitions.v0 import request as partitions_request
from kio.schema.describe_topic_partitions.v0 import response as partitions_response
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v2 import request as offsets_request
from kio.schema.list_offsets.v2 import response as offsets_response
from kio.schema.list_offsets.v5 import request as epoch_offsets_request
from kio.schema.list_offsets.v5 import response as epoch_offsets_response
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from wrackline.kafka_client import metadata
from wrackline.kafka_client.model import ClusterState, PartitionState, TopicSpec

LATEST = -1
EARLIEST = -2
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_DESCRIBE_TOPIC_PARTITIONS = 75
_CONTROLLERS = 2
"""The endpoint type of DescribeCluster that stands for controllers (KIP-919)."""

Response = TypeVar("Response", bound=ResponsePayload)


class ProtocolError(Exception):
    """A broker did not answer, or not as the protocol says. The message names address and request."""


class HungUp(ProtocolError):
    """The broker closed the connection instead of an answer."""


@dataclass(frozen=True, slots=True)
class TopicCreated:
    error: ErrorCode
    message: str | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """What DescribeCluster says."""

    cluster_id: str
    controller: int
    brokers: Mapping[int, tuple[str, int]]


class Connection:
    """One TCP connection: one request at a time, each with the connection's deadline.

    Open it inside ``fleet.entered()``: a socket stays in the network it was made in. Not thread-safe.
    """

    def __init__(self, host: str, port: int, *, timeout_s: float = 5.0) -> None:
        """Raises ProtocolError when nobody listens or nothing comes back in ``timeout_s``."""
        self.address = f"{host}:{port}"
        self._place = (host, port)
        self._timeout_s = timeout_s
        self._correlation = 0
        self._apis: dict[int, tuple[int, int]] | None = None
        self._socket = self._connected()

    def _connected(self) -> socket.socket:
        """Raises ProtocolError."""
        try:
            plain = socket.create_connection(self._place, timeout=self._timeout_s)
            made = self._secured(plain, self._place[0])
        except OSError as wrong:
            raise ProtocolError(f"cannot connect to {self.address}: {wrong}") from wrong
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _secured(self, plain: socket.socket, host: str) -> socket.socket:
        """What requests go through: a subclass may speak TLS here. Raises OSError."""
        del host
        return plain

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def request(self, payload: RequestPayload, answer: type[Response]) -> Response:
        """Send one request and read its answer. The connection is of no use after an error."""
        self._correlation += 1
        name = type(payload).__name__
        try:
            self._socket.sendall(self._frame(payload))
            body = self._read_frame()
        except OSError as wrong:
            self.close()
            kind = HungUp if isinstance(wrong, ConnectionError) else ProtocolError
            raise kind(f"{name} to {self.address}: {wrong}") from wrong
        try:
            header, at = entity_reader(answer.__header_schema__)(body, 0)
            if header.correlation_id != self._correlation:
                raise ProtocolError(f"{name} to {self.address}: the answer belongs to another request")
            response, _ = entity_reader(answer)(body, at)
        except (SerialError, ValueError, KeyError, IndexError, OverflowError) as wrong:
            self.close()
            raise ProtocolError(f"{name} to {self.address}: malformed answer: {wrong}") from wrong
        return response

    def _frame(self, payload: RequestPayload) -> bytes:
        out = io.BytesIO()
        header = payload.__header_schema__(
            request_api_key=payload.__api_key__,
            request_api_version=payload.__version__,
            correlation_id=i32(self._correlation),
            client_id="wrackline",
        )
        entity_writer(type(header))(out, header)
        entity_writer(type(payload))(out, payload)
        frame = out.getvalue()
        return struct.pack(">i", len(frame)) + frame

    def _read_frame(self) -> bytes:
        (length,) = struct.unpack(">i", self._read_exactly(4))
        if not 4 <= length <= MAX_RESPONSE_BYTES:
            raise ProtocolError(f"{self.address} announced an answer of {length} bytes")
        return self._read_exactly(length)

    def _read_exactly(self, count: int) -> bytes:
        out = bytearray()
        while len(out) < count:
            chunk = self._socket.recv(count - len(out))
            if not chunk:
                raise ConnectionError("the broker hung up")
            out += chunk
        return bytes(out)

    def api_versions(self) -> dict[int, tuple[int, int]]:
        """API key -> (lowest, highest) version, asked once per connection. Empty: a broker that is older than
        this question, which hangs up when it hears it, as Kafka 0.8 does. Raises ProtocolError, also for one
        that stays silent, as Kafka 0.9 does."""
        if self._apis is None:
            request = api_versions_request.ApiVersionsRequest()
            try:
                answer = self.request(request, api_versions_response.ApiVersionsResponse)
            except HungUp:
                # A broker that is about to end hangs up as well, but does not let us in again.
                self._socket = self._connected()
                self._apis = {}
            else:
                self._apis = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        return self._apis

    def newest(self, key: int, upto: int) -> int:
        """The newest version of a request that the broker and we (up to ``upto``) speak; 0 where the broker
        does not tell. Raises ProtocolError."""
        return min(self.api_versions().get(key, (0, 0))[1], upto)

    def metadata(self, topics: Sequence[str] | None = None) -> metadata.Metadata:
        """``topics`` None: all. Raises ProtocolError."""
        version = self.newest(metadata.KEY, metadata.NEWEST)
        request, answer = metadata.question(version, topics)
        return metadata.told(self.request(request, answer), topics)

    def describe_cluster(self) -> Cluster:
        answer = self.request(
            cluster_request.DescribeClusterRequest(include_cluster_authorized_operations=False),
            cluster_response.DescribeClusterResponse,
        )
        if answer.error_code is not ErrorCode.none:
            raise ProtocolError(f"DescribeCluster to {self.address}: {answer.error_code.name}")
        brokers = {int(broker.broker_id): (broker.host, int(broker.port)) for broker in answer.brokers}
        return Cluster(answer.cluster_id, int(answer.controller_id), brokers)

    def active_controller(self) -> int:
        """The active one, as a KRaft controller of Apache Kafka knows it: at its port DescribeCluster must
        name the endpoints of controllers. -1: it knows none."""
        answer = self.request(
            quorum_request.DescribeClusterRequest(
                include_cluster_authorized_operations=False, endpoint_type=i8(_CONTROLLERS)
            ),
            quorum_response.DescribeClusterResponse,
        )
        if answer.error_code is not ErrorCode.none:
            raise ProtocolError(f"DescribeCluster to {self.address}: {answer.error_code.name}")
        return int(answer.controller_id)

    def describe_partitions(self, topics: Sequence[str]) -> list[PartitionState]:
        """DescribeTopicPartitions, the only API that shows ELR; follows its cursor to the end."""
        asked = tuple(partitions_request.TopicRequest(name=TopicName(name)) for name in sorted(topics))
        cursor: partitions_request.Cursor | None = None
        states: list[PartitionState] = []
        while True:
            answer = self.request(
                partitions_request.DescribeTopicPartitionsRequest(topics=asked, cursor=cursor),
                partitions_response.DescribeTopicPartitionsResponse,
            )
            states += _partition_states(answer)
            after = answer.next_cursor
            if after is None:
                return states
            cursor = partitions_request.Cursor(
                topic_name=after.topic_name, partition_index=after.partition_index
            )

    def cluster_state(self) -> ClusterState:
        """Brokers, controller and every partition, as this broker knows them."""
        seen = self.metadata()
        topics = [topic for topic in seen.topics if not topic.is_internal]
        if topics and _DESCRIBE_TOPIC_PARTITIONS in self.api_versions():
            partitions = self.describe_partitions([topic.name for topic in topics])
        else:
            partitions = [one for topic in topics for one in topic.partitions]
        return ClusterState(
            controller=seen.controller,
            brokers=tuple(sorted(broker.node_id for broker in seen.brokers)),
            partitions=tuple(sorted(partitions, key=lambda state: (state.topic, state.partition))),
        )

    def create_topic(self, topic: TopicSpec, *, timeout_s: float) -> TopicCreated:
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
            create_request.CreateTopicsRequest(
                topics=(spec,), timeout=i32Timedelta.parse(timedelta(seconds=timeout_s))
            ),
            create_response.CreateTopicsResponse,
        )
        for result in answer.topics:
            if result.name == topic.name:
                return TopicCreated(result.error_code, result.error_message)
        raise ProtocolError(f"CreateTopics to {self.address}: the answer does not speak of {topic.name}")

    def list_offset(
        self, topic: str, partition: int, timestamp: int = LATEST, *, leader_epoch: int = -1
    ) -> int:
        """One offset, as a consumer sees it. ``leader_epoch``: that it knows; -1: it knows none, which also
        brokers before 2.1 understand. Raises ProtocolError with the broker's error name."""
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
            if result.error_code is not ErrorCode.none:
                raise ProtocolError(
                    f"ListOffsets({topic}-{partition}) to {self.address}: {result.error_code.name}"
                )
            return int(result.offset)
        raise ProtocolError(f"ListOffsets to {self.address}: the answer does not speak of {topic}")


def _ids(nodes: Iterable[int] | None) -> tuple[int, ...]:
    return tuple(int(node) for node in nodes or ())


def _partition_states(
    answer: partitions_response.DescribeTopicPartitionsResponse,
) -> list[PartitionState]:
    return [
        PartitionState(
            topic=str(topic.name),
            partition=int(found.partition_index),
            leader=int(found.leader_id),
            leader_epoch=int(found.leader_epoch),
            replicas=_ids(found.replica_nodes),
            isr=_ids(found.isr_nodes),
            elr=_ids(found.eligible_leader_replicas),
            last_known_elr=_ids(found.last_known_elr),
        )
        for topic in answer.topics
        for found in topic.partitions
    ]
