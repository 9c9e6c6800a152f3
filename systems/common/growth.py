"""A plan for a broker that has just joined: which replicas of a topic move to it. For systems that cannot be
asked for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from wrackline.systems.base import ClusterState, DeployError, Place


def share_of(state: ClusterState, node_id: int, topic: str) -> dict[Place, tuple[int, ...]]:
    """The replicas of the partitions that change so that the broker has its share of the topic: as many
    replicas as there are for each live broker, rounded down, but one at least. Each comes from the broker
    that has the most then, and takes its place in the order of replicas, leaders among them. No other replica
    moves.

    Raises DeployError for a topic or a broker that the cluster does not know.
    """
    replicas = {(one.topic, one.partition): one.replicas for one in state.partitions if one.topic == topic}
    if not replicas or node_id not in state.brokers:
        raise DeployError(
            f"no share of {topic} for node {node_id}: the cluster knows {len(replicas)} partitions of it, "
            f"and the brokers {list(state.brokers)}"
        )
    load = Counter(dict.fromkeys(state.brokers, 0))
    load.update(node for nodes in replicas.values() for node in nodes)
    fair = max(1, sum(load.values()) // len(state.brokers))
    plan: dict[Place, tuple[int, ...]] = {}
    for place in sorted(replicas):
        nodes = replicas[place]
        if load[node_id] >= fair:
            break
        if node_id in nodes:
            continue
        donor = _donor(nodes, load, len(plan))
        if load[donor] <= load[node_id]:
            continue
        load[donor] -= 1
        load[node_id] += 1
        plan[place] = tuple(node_id if one == donor else one for one in nodes)
    return plan


def _donor(nodes: tuple[int, ...], load: Mapping[int, int], turn: int) -> int:
    """Returns the node that has the most replicas; of several, each place in the order of replicas has its
    turn."""
    most = max(load[node] for node in nodes)
    among = [node for node in nodes if load[node] == most]
    return among[turn % len(among)]
