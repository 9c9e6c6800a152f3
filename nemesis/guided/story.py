"""One partition that a schedule is about, and the steps in its terms."""

from __future__ import annotations

from collections.abc import Callable

from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.shapes import Direction, Shape
from wrackline.nemesis.faults.steps import Fault
from wrackline.nemesis.guided.steps import Aim, Await, GuidedError, Inject
from wrackline.systems.base import PartitionState

NOBODY = -1
CUT_FROM_BROKERS = Partition(Shape.ISOLATE, controllers=False)
"""From the other brokers; the controller, ZooKeeper and the clients are still reached."""
DEAF = Partition(Shape.LINK, direction=Direction.IN)
"""The first host hears nothing of the second."""
NO_CLIENTS = Partition(Shape.CLIENTS)
TO_BE_FOUND_S = 10.0
"""So long clients are given to find a leader that may refuse all that they send."""


class Story:
    """A healthy partition in a cluster whose controllers, where it has any, are on hosts of their own."""

    def __init__(self, aim: Aim, replicas: int) -> None:
        """Raises GuidedError unless the partition has so many replicas, all in the ISR."""
        self.aim = aim
        self.chosen = aim.healthy(replicas=replicas)
        shared = [node.host.name for node in aim.nodes.values() if node.is_broker and node.is_controller]
        if shared:
            raise GuidedError(
                f"this schedule needs the controller on a host of its own; {', '.join(shared)} are both: "
                "fleet.combined must be false"
            )
        self.name = f"{aim.topic}-{aim.partition}"
        self.preferred = self.chosen.replicas[0]
        self.leader = self.chosen.leader
        self.followers = tuple(one for one in self.chosen.replicas if one != self.leader)

    def inject(self, fault_id: str, fault: Fault, *nodes: int, role: str) -> Inject:
        hosts = tuple(self.aim.host(node) for node in nodes)
        return Inject(fault_id, fault, hosts, f"{role} of {self.name}")

    def until(
        self, what: str, met: Callable[[PartitionState], bool], patience_s: float | None = None
    ) -> Await:
        return Await(f"{what} ({self.name})", self.aim.topic, (self.aim.partition,), met, patience_s)

    def led_by(self, *nodes: int, patience_s: float | None = None) -> Await:
        names = " or ".join("nobody" if node == NOBODY else f"node {node}" for node in nodes)
        return self.until(f"{names} leads", lambda state: state.leader in nodes, patience_s)

    def isr_is(self, *nodes: int) -> Await:
        return self.until(f"ISR {sorted(nodes)}", lambda state: set(state.isr) == set(nodes))

    def full_isr(self) -> Await:
        return self.until("the full ISR", lambda state: state.full_isr)
