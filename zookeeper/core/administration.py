"""The writes of an administrator into ZooKeeper: clusters, topics, reassignments (docs/protocol.md Z02,
Z03, Z38).

Each function is a list of operations, to be carried out in this order by whoever has a session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from wrackline.broker.model.coordination import Create, Operation, Set
from wrackline.broker.model.metadata.features import WITH_EPOCHS, Levels
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.zookeeper.core import znodes


def create_cluster(brokers: Sequence[NodeId], level: int = znodes.FIRST_LEVEL) -> list[Operation]:
    """``create cluster with brokers``: a broker that is not in the list does not register. ``level``: that
    of a new cluster whose brokers all support it."""
    return [
        *([] if level == znodes.FIRST_LEVEL else raise_level(level)),
        Create(znodes.BROKERS, znodes.of_ids(sorted(brokers))),
        Create(znodes.IDS),
        Create(znodes.TOPICS),
        Create(znodes.REASSIGNED),
    ]


def create_topic(
    name: str, assignment: Mapping[int, Sequence[NodeId]], settings: Mapping[str, str]
) -> list[Operation]:
    """``assignment``: partition -> replicas, the preferred one first. There is no ISR yet, so that any
    replica may lead (Z32)."""
    operations: list[Operation] = [Create(znodes.topic(name), znodes.of_settings(settings))]
    for number in sorted(assignment):
        tp = TopicPartition(name, number)
        operations += [
            Create(znodes.partition(tp)),
            Create(znodes.states(tp)),
            Create(znodes.replicas(tp), znodes.of_ids(assignment[number])),
        ]
    return operations


def reassign(tp: TopicPartition, target: Sequence[NodeId]) -> list[Operation]:
    """The leader sees it, and removes the node when the partition has moved."""
    return [
        Create(f"{znodes.REASSIGNED}/{tp.topic}"),
        Create(znodes.reassigned(tp), znodes.of_ids(target)),
    ]


def lacks_level(members: Iterable[NodeId], supported: Mapping[NodeId, Levels], level: int) -> str:
    """Returns why the cluster may not have this level; empty: it may. ``members``: all that were ever
    added, since who is down comes back; ``supported``: what those say that are there."""
    for node in sorted(members):
        if node not in supported:
            return f"Broker {node} has not said which versions it supports."
        if level not in supported[node]:
            return f"Broker {node} only supports versions {supported[node]}."
    return ""


def cannot_hand_over(
    level: int,
    *,
    controller: bool,
    moving: Collection[TopicPartition],
    without_epoch: Collection[TopicPartition],
) -> str:
    """Returns why a controller may not take over the cluster, which has this level, all brokers supporting
    it; empty: it may. ``controller``: one has said that it is there; ``without_epoch``: partitions none of
    whose leaders has taken an epoch."""
    if level < WITH_EPOCHS:
        return f"The level is {level}: raise it to {WITH_EPOCHS} first, so that leaders have epochs."
    if not controller:
        return "No controller has said that it is there to take over."
    if moving:
        return f"{min(moving)} is being reassigned: wait until it has moved."
    if without_epoch:
        return f"No leader of {min(without_epoch)} has taken an epoch yet."
    return ""


def raise_level(level: int) -> list[Operation]:
    """One of the two does it: the node is there, or it is not."""
    data = znodes.of_level(level)
    return [Create(znodes.FEATURE, data), Set(znodes.FEATURE, data)]
