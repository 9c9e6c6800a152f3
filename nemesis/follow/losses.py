"""The replicas that may have lost what they had not synced, and whose partition has not been whole since.

With acks=all a record outlives MinISR - 1 such losses (docs/anomalies.md, lossy shutdowns): a run in which
more are open at once promises nothing, whatever else it shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from wrackline.systems.base import ClusterState, Place

NOTICED_S = 0.8
"""Whoever samples the metadata for the judge has noticed a replica that was out of the ISR for so long."""


@dataclass
class Losses:
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    open: dict[tuple[Place, int], float | None] = field(default_factory=dict)
    """(partition, node) -> since when the metadata has an ISR without the node; None: it has not had one."""

    def fit(self, state: ClusterState | None, nodes: Collection[int], most: int) -> bool:
        """Tells whether these nodes may lose bytes without any partition having more than ``most`` losses."""
        if state is None:
            return False
        for one in state.partitions:
            lost = {node for place, node in self.open if place == one.place}
            if len(lost | (set(nodes) & set(one.replicas))) > most:
                return False
        return True

    def spared(self, state: ClusterState, most: int) -> set[int]:
        """Returns the nodes none of which may lose bytes now."""
        nodes = {node for one in state.partitions for node in one.replicas}
        return {node for node in nodes if not self.fit(state, {node}, most)}

    def begin(self, state: ClusterState, nodes: Collection[int]) -> None:
        """These nodes lose bytes now."""
        for one in state.partitions:
            for node in set(nodes) & set(one.replicas):
                self.open[one.place, node] = None

    def see(self, state: ClusterState) -> None:
        """A loss is over when the ISR was without the replica, and then full."""
        for (place, node), out_since in list(self.open.items()):
            one = state.partition(*place)
            if one is None:
                continue
            if one.full_isr and out_since is not None and self.clock() - out_since >= NOTICED_S:
                del self.open[place, node]
            elif node not in one.isr and out_since is None:
                self.open[place, node] = self.clock()
