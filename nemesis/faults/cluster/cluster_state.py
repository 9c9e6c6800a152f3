"""The cluster's own metadata when a fault described it: leaders, orders of replicas, the active controller. A
fault of the cluster is proved by these, never by the word of its step."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from wrackline.nemesis.faults.admin_steps import DescribeCluster
from wrackline.nemesis.faults.outputs import carried_out
from wrackline.nemesis.faults.steps import StepResult
from wrackline.systems.base import ClusterState, PartitionState, Place


def say_cluster(state: ClusterState, topics: Collection[str]) -> str:
    """The output of a `DescribeCluster`."""
    partitions = [asdict(one) for one in state.partitions if one.topic in topics]
    return json.dumps(
        {"controller": state.controller, "brokers": list(state.brokers), "partitions": partitions}
    )


def cluster_seen(dones: Sequence[StepResult]) -> ClusterState | None:
    """Returns the last description of the cluster among these steps; None when there was none."""
    said = [done.output for done in carried_out(dones, DescribeCluster)]
    if not said or not said[-1]:
        return None
    result = json.loads(said[-1])
    partitions = tuple(PartitionState(**_with_tuples(one)) for one in result["partitions"])
    return ClusterState(result["controller"], tuple(result["brokers"]), partitions)


def _with_tuples(said: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows lists alone."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}


def by_place(state: ClusterState | None) -> Mapping[Place, PartitionState]:
    """The partitions of a look, those of none without one."""
    return {(one.topic, one.partition): one for one in (state.partitions if state else ())}
