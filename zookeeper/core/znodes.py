"""The paths of profile zk08 in ZooKeeper, and what their nodes hold (docs/protocol.md Z33 to Z38).

    /brokers                                             ids of the cluster's brokers       an administrator
    /brokers/ids/[id]                                    host:port,port, ephemeral          the broker
    /brokers/topics/[topic]                              the topic's settings               an administrator
    /brokers/topics/[topic]/[p]/replicas                 ids, the preferred one first       an administrator
    /brokers/topics/[topic]/[p]/leader                   id, ephemeral                      the leader
    /brokers/topics/[topic]/[p]/ISR                      ids                                the leader
    /brokers/topics/[topic]/[p]/CUR                      ids                                the leader
    /brokers/topics/[topic]/[p]/epoch                    leader epoch and whose it is       the leader
    /brokers/topics/[topic]/[p]/state/[id]/request-N     a request to change a state        the leader
    /brokers/partitions_reassigned/[topic]/[p]           ids of the target                  an administrator
    /brokers/levels/[id]                                 levels it supports, ephemeral      the broker
    /feature                                             the cluster's level                an administrator
    /controller                                          id, ephemeral                      a controller

A broker's two ports are that of clients and that of other nodes; the document has one.
The document does not say where CUR, a topic's settings and the list of the cluster's brokers lie. It has no
epochs, no levels and no controller: those are of later profiles (docs/rolling-upgrades.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from wrackline.broker.model.metadata.features import Levels
from wrackline.broker.model.metadata.image import BrokerImage
from wrackline.broker.model.types import NodeId, TopicPartition

BROKERS = "/brokers"
IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
REASSIGNED = "/brokers/partitions_reassigned"
LEVELS = "/brokers/levels"
FEATURE = "/feature"
CONTROLLER = "/controller"
FIRST_LEVEL = 8
"""Where nobody has written another one: Kafka 0.8."""


_TOPIC_IDS = 0x08 << 96


class LeaderEpoch(NamedTuple):
    """The content of ``epoch``."""

    number: int
    leader: NodeId
    created: int
    """The transaction that created the leader's node: no other leader has the same."""


NO_LEADER_EPOCH = LeaderEpoch(0, -1, -1)
"""Of a partition none of whose leaders has had one; its records have the number 0, too."""


class StateRequest(StrEnum):
    """A leader's request to a replica on its state path (Z44)."""

    BECOME_FOLLOWER = "become-follower"
    REPLICA_ASSIGNED = "replica-assigned"
    REPLICA_UNASSIGNED = "replica-unassigned"
    DELETE_REPLICA = "delete-replica"


def topic_id_of(created: int) -> UUID:
    """The id of the topic whose node this transaction has created."""
    return UUID(int=_TOPIC_IDS | created)


def broker(node: NodeId) -> str:
    return f"{IDS}/{node}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def partition(tp: TopicPartition) -> str:
    return f"{TOPICS}/{tp.topic}/{tp.partition}"


def replicas(tp: TopicPartition) -> str:
    return f"{partition(tp)}/replicas"


def leader(tp: TopicPartition) -> str:
    return f"{partition(tp)}/leader"


def isr(tp: TopicPartition) -> str:
    return f"{partition(tp)}/ISR"


def cur(tp: TopicPartition) -> str:
    return f"{partition(tp)}/CUR"


def states(tp: TopicPartition) -> str:
    return f"{partition(tp)}/state"


def state(tp: TopicPartition, node: NodeId) -> str:
    return f"{partition(tp)}/state/{node}"


def epoch(tp: TopicPartition) -> str:
    return f"{partition(tp)}/epoch"


def levels(node: NodeId) -> str:
    return f"{LEVELS}/{node}"


def reassigned(tp: TopicPartition) -> str:
    return f"{REASSIGNED}/{tp.topic}/{tp.partition}"


def of_ids(nodes: Iterable[NodeId]) -> bytes:
    return ",".join(str(node) for node in nodes).encode()


def to_ids(data: bytes) -> tuple[NodeId, ...]:
    return tuple(int(part) for part in data.decode().split(",") if part)


def of_settings(settings: Mapping[str, str]) -> bytes:
    return "\n".join(f"{key}={settings[key]}" for key in sorted(settings)).encode()


def to_settings(data: bytes) -> dict[str, str]:
    pairs = (line.partition("=") for line in data.decode().splitlines())
    return {key: value for key, _, value in pairs if key}


class Address(NamedTuple):
    """The address of a broker: for clients, and for other nodes."""

    host: str
    port: int
    replication_port: int


def of_address(address: Address) -> bytes:
    return f"{address.host}:{address.port},{address.replication_port}".encode()


def to_address(data: bytes) -> Address:
    host, _, ports = data.decode().rpartition(":")
    port, _, replication_port = ports.partition(",")
    return Address(host, int(port), int(replication_port))


def broker_image(node: NodeId, created: int, data: bytes) -> BrokerImage:
    """The broker whose node holds this, as metadata have it: its epoch is the transaction that created it."""
    at = to_address(data)
    life = UUID(int=created)
    return BrokerImage(
        node,
        created,
        life,
        at.host,
        at.port,
        None,
        False,
        False,
        created,
        replication_port=at.replication_port,
    )


def of_epoch(epoch: LeaderEpoch) -> bytes:
    return " ".join(str(part) for part in epoch).encode()


def to_epoch(data: bytes) -> LeaderEpoch:
    return LeaderEpoch(*(int(part) for part in data.decode().split()))


def of_levels(supported: Levels) -> bytes:
    return f"{supported.lowest}-{supported.highest}".encode()


def to_levels(data: bytes) -> Levels:
    lowest, _, highest = data.decode().partition("-")
    return Levels(int(lowest), int(highest))


def of_level(level: int) -> bytes:
    return str(level).encode()


def to_level(data: bytes) -> int:
    return int(data) if data else FIRST_LEVEL
