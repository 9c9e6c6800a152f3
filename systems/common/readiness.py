"""Waiting until a cluster is ready."""

from __future__ import annotations

import time
from collections.abc import Callable

from wrackline.fleets.folders import folders_of
from wrackline.systems.base import ClusterState, DeployError, Node
from wrackline.systems.cluster_client import ASK_TIMEOUT_S
from wrackline.systems.common.nodes import Nodes
from wrackline.systems.common.on_hosts import on_each

LOOK_EVERY_S = 1.0
"""How often the processes are looked at: a node that has died need not be waited for."""


def wait_ready(
    nodes: Nodes,
    describe: Callable[[float], ClusterState],
    assert_alive: Callable[[Node], None],
    timeout_s: float,
) -> None:
    """Waits until every broker is unfenced in the cluster's own metadata and every node's process lives.

    ``describe`` is given how long it may take. Raises DeployError: at once when a node has died, else at the
    deadline with what was seen last.
    """
    deadline = time.monotonic() + timeout_s
    expected = {node.node_id for node in nodes.brokers}
    look_at = time.monotonic() + LOOK_EVERY_S
    while True:
        try:
            state = describe(ASK_TIMEOUT_S)
            last = f"unfenced brokers {list(state.brokers)} of {sorted(expected)}"
            if expected <= set(state.brokers):
                on_each(nodes.started, assert_alive)
                return
        except DeployError as error:
            last = str(error)
        now = time.monotonic()
        if now >= look_at:
            on_each(nodes.started, assert_alive)
            look_at = now + LOOK_EVERY_S
        if now >= deadline:
            raise DeployError(
                f"the cluster was not ready after {timeout_s:g} s; last seen: {last}; "
                f"look at {folders_of(nodes.all[0].host).log} on the hosts, or wait longer"
            )
        time.sleep(0.05)
