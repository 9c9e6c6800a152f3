"""A blocking client of the administration APIs, over kio's messages (docs/protocol.md 5.1).

One connection at a time, to the first of the given brokers that answers; brokers pass on to the controller
what is the controller's. Whoever calls gets plain values or an AdminError of one line.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.metadata.features import Levels
from wrackline.broker.model.types import METADATA, Endpoint, NodeId, TopicPartition
from wrackline.broker.wire.apis import API_VERSIONS, BY_REQUEST
from wrackline.broker.wire.codec import Codec
from wrackline.broker.wire.schema import WireError, request_schema, response_schema

_HEADER = struct.Struct(">hhih")
_INT = struct.Struct(">i")
_NAME = b"wrackline-admin"
_MAX_FRAME_BYTES = 100_000_000
Address = tuple[str, int]


class AdminError(Exception):
    """One line: what was asked, what the cluster said."""


@dataclass(frozen=True, slots=True)
class Partition:
    tp: TopicPartition
    leader: NodeId
    leader_epoch: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...]
    last_known_elr: tuple[NodeId, ...]


class AdminClient:
    """``with AdminClient([("h", 9092)]) as client:``; every call may raise AdminError."""

    def __init__(self, bootstrap: Sequence[Address], timeout_s: float = 10.0) -> None:
        self._bootstrap = list(bootstrap)
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._peer = ""
        self._correlation = 0
        self._codec = Codec(names=lambda _: None)

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # --- what there is -------------------------------------------------------------------------------------

    def brokers(self) -> list[Endpoint]:
        """Those that are unfenced, by id."""
        entity = self._raw(60, 1, "DescribeClusterRequest", include_cluster_authorized_operations=False)
        _raise_for("describe the cluster", entity.error_code, entity.error_message)
        return sorted(
            (Endpoint(b.broker_id, b.host, b.port, b.rack) for b in entity.brokers), key=lambda b: b.node_id
        )

    def partitions(self, topics: Iterable[str] = ()) -> list[Partition]:
        """Of these topics, or of all."""
        names = sorted(topics)
        found: list[Partition] = []
        cursor = None
        while True:
            entity = self._raw(
                75,
                0,
                "DescribeTopicPartitionsRequest",
                topics=names,
                response_partition_limit=2_000,
                cursor=cursor,
            )
            for topic in entity.topics:
                _raise_for(f"describe topic {topic.name}", topic.error_code)
                found += [_partition(topic.name, item) for item in topic.partitions]
            if entity.next_cursor is None:
                return found
            cursor = entity.next_cursor.topic_name, entity.next_cursor.partition_index

    def quorum(self) -> a.DescribeQuorumResponse:
        response: a.DescribeQuorumResponse = self._ask(a.DescribeQuorumRequest((METADATA,)))
        _raise_for("describe the quorum", response.error, response.message)
        return response

    # --- what can be done ----------------------------------------------------------------------------------

    def create(self, topic: NewTopic) -> None:
        response = self._ask(CreateTopicsRequest((topic,), self._timeout_ms))
        for made in response.topics:
            _raise_for(f"create topic {made.name}", made.error, made.message)

    def delete(self, topics: Sequence[str]) -> None:
        response = self._ask(DeleteTopicsRequest(tuple(topics), self._timeout_ms))
        for gone in response.topics:
            _raise_for(f"delete topic {gone.name}", gone.error, gone.message)

    def create_partitions(self, topic: str, count: int) -> None:
        wanted = a.NewPartitions(topic, count)
        response = self._ask(a.CreatePartitionsRequest((wanted,), self._timeout_ms))
        for made in response.topics:
            _raise_for(f"give topic {made.topic} {count} partitions", made.error, made.message)

    def reassign(self, targets: Mapping[TopicPartition, tuple[NodeId, ...] | None]) -> None:
        """None cancels."""
        wanted = tuple(a.Reassignment(tp, target) for tp, target in sorted(targets.items()))
        response = self._ask(a.AlterPartitionReassignmentsRequest(wanted, self._timeout_ms))
        _raise_for("reassign", response.error, response.message)
        for done in response.partitions:
            target = targets[done.tp]
            what = "cancel the reassignment of" if target is None else f"reassign to {list(target)}"
            _raise_for(f"{what} {done.tp}", done.error, done.message)

    def reassignments(self) -> list[a.OngoingReassignment]:
        response = self._ask(a.ListPartitionReassignmentsRequest(None, self._timeout_ms))
        _raise_for("list reassignments", response.error, response.message)
        return list(response.partitions)

    def elect(
        self, election: a.ElectionType, partitions: Sequence[TopicPartition] | None = None
    ) -> list[a.PartitionOutcome]:
        """What came of it, partition by partition; for None those where there was something to do."""
        chosen = None if partitions is None else tuple(partitions)
        return self._elect(a.ElectLeadersRequest(int(election), chosen, self._timeout_ms))

    def name_leader(self, leaders: Mapping[TopicPartition, NodeId]) -> list[a.PartitionOutcome]:
        """Where the strategy is manual and nobody leads: what came of it, partition by partition."""
        kind, timeout_ms = int(a.ElectionType.DESIGNATED), self._timeout_ms
        return self._elect(a.ElectLeadersRequest(kind, tuple(leaders), timeout_ms, tuple(leaders.values())))

    def _elect(self, request: a.ElectLeadersRequest) -> list[a.PartitionOutcome]:
        response = self._ask(request)
        _raise_for("elect leaders", response.error)
        return list(response.partitions)

    def alter_config(self, resource: a.Resource, changes: Mapping[str, str | None]) -> None:
        """None deletes."""
        listed = tuple(
            a.ConfigChange(name, a.AlterOp.DELETE if value is None else a.AlterOp.SET, value)
            for name, value in changes.items()
        )
        response = self._ask(a.IncrementalAlterConfigsRequest((a.AlteredResource(resource, listed),)))
        for done in response.resources:
            _raise_for(f"change settings of {resource.name or 'the cluster'}", done.error, done.message)

    def config(self, resource: a.Resource) -> list[a.Setting]:
        item = request_schema(32, 4).make(
            "DescribeConfigsResource",
            resource_type=resource.kind,
            resource_name=resource.name,
            configuration_keys=None,
        )
        entity = self._raw(
            32,
            4,
            "DescribeConfigsRequest",
            resources=(item,),
            include_synonyms=False,
            include_documentation=False,
        )
        found = entity.results[0]
        _raise_for(f"describe settings of {resource.name}", found.error_code, found.error_message)
        return [
            a.Setting(each.name, each.value, a.Source(each.config_source), each.read_only)
            for each in found.configs
        ]

    def unregister(self, broker: NodeId) -> None:
        response = self._ask(a.UnregisterBrokerRequest(broker))
        _raise_for(f"unregister broker {broker}", response.error, response.message)

    # --- features ------------------------------------------------------------------------------------------

    def levels(self) -> dict[str, tuple[Levels, int | None]]:
        """Of each feature what the broker that answers supports, and the level that the cluster has."""
        entity = self._raw(
            API_VERSIONS,
            3,
            "ApiVersionsRequest",
            client_software_name="wrackline-admin",
            client_software_version="1",
        )
        _raise_for("ask for the features", entity.error_code)
        finalized = {one.name: one.max_version_level for one in entity.finalized_features}
        return {
            one.name: (Levels(one.min_version, one.max_version), finalized.get(one.name))
            for one in entity.supported_features
        }

    def update_feature(self, update: a.FeatureUpdate, *, validate_only: bool = False) -> None:
        response = self._ask(a.UpdateFeaturesRequest((update,), self._timeout_ms, validate_only))
        _raise_for(f"give {update.name} the level {update.level}", response.error, response.message)

    # --- the wire ------------------------------------------------------------------------------------------

    @property
    def _timeout_ms(self) -> int:
        return int(self._timeout_s * 1000)

    def _ask(self, request: Any) -> Any:
        """A request that nodes send each other too: the core's own classes, both ways."""
        self._correlation += 1
        frame = self._codec.encode_request(self._correlation, _NAME.decode(), request)
        try:
            return self._codec.decode_response(self._exchange(BY_REQUEST[type(request)].name, frame), request)
        except WireError as wrong:
            raise AdminError(f"{self._peer}: {wrong}") from wrong

    def _raw(self, key: int, version: int, kind: str, **values: object) -> Any:
        """A request of clients only, as kio's entities."""
        schema = request_schema(key, version)
        if kind == "DescribeTopicPartitionsRequest":
            values = _describe_values(schema, values)
        self._correlation += 1
        head = _HEADER.pack(key, version, self._correlation, len(_NAME)) + _NAME
        head += b"\x00" if schema.flexible else b""
        body = schema.write(schema.make(kind, **values))
        answer = self._exchange(kind, _INT.pack(len(head) + len(body)) + head + body)
        reader = response_schema(key, version)
        tags = 1 if reader.flexible and key != API_VERSIONS else 0  # its header never has any (KIP-511)
        try:
            return reader.read(answer, _INT.size + tags)
        except WireError as wrong:
            raise AdminError(f"{self._peer}: {wrong}") from wrong

    def _exchange(self, what: str, frame: bytes) -> bytes:
        """The answer's frame without its size."""
        deadline = time.monotonic() + self._timeout_s + 5
        connection = self._connected()
        try:
            connection.sendall(frame)
            size = _INT.unpack(_read(connection, _INT.size, deadline))[0]
            if not _INT.size <= size <= _MAX_FRAME_BYTES:
                raise AdminError(f"{self._peer} answers {what} with {size} bytes: is it a broker?")
            answer = _read(connection, size, deadline)
        except OSError as failure:
            self.close()
            raise AdminError(f"{self._peer} did not answer {what}: {failure}") from failure
        if _INT.unpack_from(answer)[0] != self._correlation:
            self.close()
            raise AdminError(f"{self._peer} answered another request than {what}")
        return answer

    def _connected(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        reasons = []
        for host, port in self._bootstrap:
            try:
                self._socket = socket.create_connection((host, port), timeout=self._timeout_s)
            except OSError as failure:
                reasons.append(f"{host}:{port}: {failure}")
            else:
                self._peer = f"{host}:{port}"
                return self._socket
        raise AdminError(f"no broker can be reached ({'; '.join(reasons)}); name another with --bootstrap")


def _read(connection: socket.socket, count: int, deadline: float) -> bytes:
    parts = []
    while count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        connection.settimeout(left)
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("the connection was closed")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _describe_values(schema: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    cursor = values["cursor"]
    return {
        **values,
        "topics": tuple(schema.make("TopicRequest", name=name) for name in values["topics"]),
        "cursor": cursor and schema.make("Cursor", topic_name=cursor[0], partition_index=cursor[1]),
    }


def _partition(topic: str, item: Any) -> Partition:
    return Partition(
        TopicPartition(topic, item.partition_index),
        item.leader_id,
        item.leader_epoch,
        tuple(item.replica_nodes),
        tuple(item.isr_nodes),
        tuple(item.eligible_leader_replicas or ()),
        tuple(item.last_known_elr or ()),
    )


def _raise_for(what: str, error: ErrorCode, message: str | None = None) -> None:
    if error is not ErrorCode.none:
        raise AdminError(f"cannot {what}: {error.name}" + (f" ({message})" if message else ""))
