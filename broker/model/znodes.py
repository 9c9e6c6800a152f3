"""The paths of profile zk08 in ZooKeeper, and what their nodes hold (docs/protocol.md Z33 to Z38).

    /brokers                                             ids of the cluster's brokers       an administrator
    /brokers/ids/[id]                                    host:port, ephemeral               the broker
    /brokers/topics/[topic]                              the topic's settings               an administrator
    /brokers/topics/[topic]/[p]/replicas                 ids, the preferred one first       an administrator
    /brokers/topics/[topic]/[p]/leader                   id, ephemeral                      the leader
    /brokers/topics/[topic]/[p]/ISR                      ids                                the leader
    /brokers/topics/[topic]/[p]/CUR                      ids                                the leader
    /brokers/topics/[topic]/[p]/state/[id]/request-N     a request to change a state        the leader
    /brokers/partitions_reassigned/[topic]/[p]           ids of the target                  an administrator

The document does not say where CUR, a topic's settings and the list of the cluster's brokers lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from wrackline.broker.model.types import NodeId, TopicPartition

BROKERS = "/brokers"
IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
REASSIGNED = "/brokers/partitions_reassigned"


class StateRequest(StrEnum):
    """What a leader asks of a replica on its state path (Z44)."""

    BECOME_FOLLOWER = "become-follower"
    REPLICA_ASSIGNED = "replica-assigned"
    REPLICA_UNASSIGNED = "replica-unassigned"
    DELETE_REPLICA = "delete-replica"


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


def of_address(host: str, port: int) -> bytes:
    return f"{host}:{port}".encode()


def to_address(data: bytes) -> tuple[str, int]:
    host, _, port = data.decode().rpartition(":")
    return host, int(port)
