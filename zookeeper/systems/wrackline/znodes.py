"""The nodes that brokers of profile zk08 keep in ZooKeeper (docs/protocol.md Z33 to Z38): a cluster made
there, and its state read there, as an administrator of the time would."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wrackline.systems.base import ClusterState, PartitionState, Place
from wrackline.systems.metadata_changes import Change, Chronicle
from wrackline.zookeeper.core.administration import lacks_level
from wrackline.zookeeper.core.znodes import (
    BROKERS,
    CONTROLLER,
    FEATURE,
    IDS,
    REASSIGNED,
    TOPICS,
    levels,
    of_ids,
    of_level,
    to_ids,
    to_level,
    to_levels,
)
from wrackline.zookeeper.systems.servers.session import Asking
from wrackline.zookeeper.systems.servers.transactions import SOURCE, Written, change, gaps, states

_NODE = re.compile(rf"{TOPICS}/[^/]+/(\d+)/(?:leader|ISR|replicas)")
BROKER_PROTOCOL = "inter.broker.protocol.version"
"""What has a level."""
WITH_EPOCHS, WITH_CONTROLLER = 11, 34
"""Levels from which on leaders have epochs, and from which on nobody leads by ZooKeeper."""
NOBODY = -1
NO_EPOCH = 0
"""In profile zk08 there are none; brokers say so to clients, too."""
_OF_A_PARTITION = ("leader", "ISR", "replicas", "epoch")


def create_cluster(asking: Asking, brokers: Sequence[int], level: int | None = None) -> None:
    """``create cluster with brokers`` (Z02): a broker that is not in the list does not register. A cluster
    that is there already is left alone. ``level``: that of a new one."""
    if level is not None and not asking.get(BROKERS):
        asking.create(FEATURE, of_level(level))
    for path in (IDS, TOPICS, REASSIGNED):
        asking.create(path, b"")
    # Its parent was made without the list: from now on the brokers register.
    if not asking.get(BROKERS):
        asking.put(BROKERS, of_ids(sorted(brokers)))


def add_broker(asking: Asking, broker: int) -> None:
    """``alter cluster add brokers``: from now on it may register. One that is in the list is no error."""
    there = to_ids(asking.get(BROKERS) or b"")
    if broker not in there:
        asking.put(BROKERS, of_ids(sorted((*there, broker))))


def reassign(asking: Asking, targets: Mapping[Place, tuple[int, ...]]) -> None:
    """The leader of each partition sees it (Z54), and removes the node when the partition has moved. One
    that is under way is given its new target."""
    for (topic, number), replicas in sorted(targets.items()):
        path = f"{REASSIGNED}/{topic}/{number}"
        asking.create(f"{REASSIGNED}/{topic}", b"")
        if not asking.create(path, of_ids(replicas)):
            asking.put(path, of_ids(replicas))


def reassignments(asking: Asking) -> frozenset[Place]:
    """Partitions that are moving."""
    return frozenset(
        (topic, int(number))
        for topic in asking.children(REASSIGNED)
        for number in asking.children(f"{REASSIGNED}/{topic}")
    )


def cluster_state(asking: Asking) -> ClusterState:
    """Raises what kazoo raises."""
    ids = sorted(int(one) for one in asking.children(IDS))
    places = [
        (topic, int(number))
        for topic in sorted(asking.children(TOPICS))
        for number in sorted(asking.children(f"{TOPICS}/{topic}"), key=int)
    ]
    paths = [f"{TOPICS}/{topic}/{number}" for topic, number in places]
    each = len(_OF_A_PARTITION)
    said = asking.all_of([f"{path}/{name}" for path in paths for name in _OF_A_PARTITION])
    return ClusterState(
        controller=NOBODY,
        brokers=tuple(ids),
        partitions=tuple(
            _partition(*place, *said[each * at : each * (at + 1)]) for at, place in enumerate(places)
        ),
    )


def level(asking: Asking) -> int:
    """Returns the level that the cluster has."""
    return to_level(asking.get(FEATURE) or b"")


def raise_level(asking: Asking, wanted: int) -> str:
    """Raises the level as an administrator does, who looks first at what each broker of the cluster says
    that it supports. Returns why it may not be; empty: it is done."""
    members = to_ids(asking.get(BROKERS) or b"")
    result = {node: asking.get(levels(node)) for node in members}
    supported = {node: to_levels(data) for node, data in result.items() if data is not None}
    refusal = lacks_level(members, supported, wanted)
    if not refusal and wanted >= WITH_CONTROLLER:
        refusal = _no_hand_over(asking)
    if not refusal:
        asking.put(FEATURE, of_level(wanted))
    return refusal


def _no_hand_over(asking: Asking) -> str:
    """Returns why a controller may not take over; empty: it may."""
    if (now := level(asking)) < WITH_EPOCHS:
        return f"The level is {now}: raise it to {WITH_EPOCHS} first, so that leaders have epochs."
    if asking.get(CONTROLLER) is None:
        return "No controller has said that it is there to take over."
    for topic, number in sorted(reassignments(asking)):
        return f"{topic}-{number} is being reassigned: wait until it has moved."
    for one in cluster_state(asking).partitions:
        if one.leader_epoch == NO_EPOCH:
            return f"No leader of {one.topic}-{one.partition} has taken an epoch yet."
    return ""


def _partition(
    topic: str,
    number: int,
    leader: bytes | None,
    isr: bytes | None,
    replicas: bytes | None,
    epoch: bytes | None,
) -> PartitionState:
    """``isr``: None, or empty, before the first leader has opened."""
    return PartitionState(
        topic=topic,
        partition=number,
        leader=NOBODY if leader is None else int(leader),
        leader_epoch=NO_EPOCH if epoch is None else int(epoch.split()[0]),
        replicas=to_ids(replicas or b""),
        isr=to_ids(isr or b""),
    )


def chronicle(all_written: Sequence[Written], host: str, topic: str) -> Chronicle:
    """Every state of the topic's partitions from the first that has replicas on.
    ``host``: of the server whose clock it is."""
    changes: list[Change] = []
    for one, nodes in states(all_written, f"{TOPICS}/{topic}"):
        match = _NODE.fullmatch(one.path)
        if match is None:
            continue
        partition = int(match[1])
        own = [nodes.get(f"{TOPICS}/{topic}/{partition}/{name}") for name in _OF_A_PARTITION]
        state = _partition(topic, partition, *(None if node is None else node.data for node in own))
        if state.replicas:
            changes.append(change(one, host, state, NOBODY))
    return Chronicle(SOURCE, tuple(changes), missing=tuple(gaps(all_written, f"{TOPICS}/{topic}")))
