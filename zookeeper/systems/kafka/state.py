"""The state that Kafka keeps in ZooKeeper, read: brokers, controller, replicas, leaders, ISR. The paths
and their JSON are the same from 0.8.2 to 2.8."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from wrackline.systems.base import ClusterState, DeployError, PartitionState
from wrackline.systems.metadata_changes import Change, Chronicle
from wrackline.zookeeper.systems.servers.session import Asking
from wrackline.zookeeper.systems.servers.transactions import SOURCE, Written, change, gaps, states

IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
NOBODY = -1
_STATE = re.compile(rf"{TOPICS}/[^/]+/partitions/(\d+)/state")


def broker_path(node_id: int) -> str:
    return f"{IDS}/{node_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def parsed(path: str, data: bytes) -> Any:
    """Raises DeployError for what is no JSON."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DeployError(f"ZooKeeper: {path} holds no JSON: {data[:80]!r}") from error


def cluster_state(asking: Asking) -> ClusterState:
    """Raises DeployError, and what kazoo raises."""
    names = [name for name in asking.children(TOPICS) if not name.startswith("__")]
    ids = sorted(int(one) for one in asking.children(IDS))
    controller, *topics = asking.all_of([CONTROLLER, *map(topic_path, names)])
    replicas = {
        (name, int(number)): tuple(int(one) for one in nodes)
        for name, data in zip(names, topics, strict=True)
        if data
        for number, nodes in parsed(topic_path(name), data)["partitions"].items()
    }
    places = sorted(replicas)
    states = asking.all_of([state_path(*place) for place in places])
    return ClusterState(
        controller=int(parsed(CONTROLLER, controller)["brokerid"]) if controller else NOBODY,
        brokers=tuple(ids),
        partitions=tuple(
            partition_state(topic, number, replicas[topic, number], data)
            for (topic, number), data in zip(places, states, strict=True)
        ),
    )


def partition_state(topic: str, number: int, replicas: Iterable[int], data: bytes | None) -> PartitionState:
    """``data``: of the partition's node ``state``; None before the controller has chosen a first leader."""
    said = parsed(state_path(topic, number), data) if data else {}
    return PartitionState(
        topic=topic,
        partition=number,
        leader=int(said.get("leader", NOBODY)),
        leader_epoch=int(said.get("leader_epoch", NOBODY)),
        replicas=tuple(replicas),
        isr=tuple(int(one) for one in said.get("isr", ())),
    )


def chronicle(all_written: Sequence[Written], host: str, topic: str) -> Chronicle:
    """Every state of the topic's partitions. ``host``: of the server whose clock it is."""
    changes: list[Change] = []
    for one, nodes in states(all_written, topic_path(topic)):
        match = _STATE.fullmatch(one.path)
        if match is None or one.data is None:
            continue
        partition = int(match[1])
        assigned = nodes.get(topic_path(topic))
        replicas = (
            parsed(topic_path(topic), assigned.data)["partitions"] if assigned and assigned.data else {}
        )
        state = partition_state(topic, partition, map(int, replicas.get(str(partition), ())), one.data)
        changes.append(change(one, host, state, one.version))
    return Chronicle(SOURCE, tuple(changes), missing=tuple(gaps(all_written, topic_path(topic))))
