"""A healthy partition with three replicas, and the steps of guided schedules in its terms.

L leads, F1 is the follower that comes first in replica order (so it is elected first), F2 the last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from wrackline.nemesis.faults.network.kafka_apis import Api
from wrackline.nemesis.faults.network.messages import Act, Messages, What
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.shapes import Direction, Shape
from wrackline.nemesis.faults.steps import Fault
from wrackline.nemesis.guided.steps import (
    Aim,
    Await,
    AwaitBroker,
    GuidedError,
    GuidedStep,
    Heal,
    Inject,
)
from wrackline.systems.base import PartitionState

NOBODY = -1
APART = Partition(Shape.ISOLATE, controllers=False)
"""From the other brokers; controllers and clients are still reached."""
ALONE = Partition(Shape.ISOLATE)
"""From every other host; only clients get through."""
NO_CONTROLLER = Partition(Shape.LINK)
ONE_WAY_IN = Partition(Shape.LINK, direction=Direction.IN)
"""What the first host sends arrives, what the second answers does not."""


@dataclass(frozen=True, slots=True)
class Trio:
    """A healthy partition with three replicas, and the steps in its terms."""

    aim: Aim
    leader: int
    first: int
    last: int
    partitions: tuple[int, ...]

    @classmethod
    def of(cls, aim: Aim) -> Trio:
        """Raises GuidedError."""
        chosen = aim.healthy(replicas=3)
        shared = [node.host.name for node in aim.nodes.values() if node.is_broker and node.is_controller]
        if shared:
            raise GuidedError(
                f"this schedule takes two brokers at once and needs the controllers on hosts of their own; "
                f"{', '.join(shared)} are both: fleet.combined must be false"
            )
        first, last = [node for node in chosen.replicas if node != chosen.leader][:2]
        return cls(aim, chosen.leader, first, last, aim.like(chosen))

    @property
    def name(self) -> str:
        return f"{self.aim.topic}-{self.aim.partition}"

    @property
    def controller(self) -> str:
        """The host of the only controller. Raises GuidedError."""
        hosts = [node.host.name for node in self.aim.nodes.values() if node.is_controller]
        if len(hosts) != 1:
            raise GuidedError(
                f"this schedule cuts the leader of {self.name} from the controller: it needs exactly one, "
                f"there are {', '.join(hosts) or 'none'}: fleet.controllers must be 1"
            )
        return hosts[0]

    def inject(self, fault_id: str, fault: Fault, *nodes: int, role: str) -> Inject:
        return Inject(fault_id, fault, tuple(self.aim.host(node) for node in nodes), f"{role} of {self.name}")

    def cut_link(self, fault_id: str, fault: Partition) -> Inject:
        """Between L and the controller."""
        hosts = (self.aim.host(self.leader), self.controller)
        return Inject(fault_id, fault, hosts, f"leader of {self.name}, controller")

    def holding(
        self, fault_id: str, api: Api, what: What, *, at: str, of: int, delay_s: float = 0.0
    ) -> Inject:
        """A proxy on the host ``at`` holds each of these messages of the node ``of`` for so long; 0: until it
        is undone."""
        fault = Messages((api,), what, Act.HOLD, (self.aim.host(of),), delay_s)
        return Inject(fault_id, fault, (at,), f"{api} {what}s of {self.aim.host(of)}")

    def until(
        self, what: str, met: Callable[[PartitionState], bool], patience_s: float | None = None
    ) -> Await:
        return Await(f"{what} ({self.name})", self.aim.topic, self.partitions, met, patience_s)

    def led_by(self, *nodes: int) -> Await:
        names = " or ".join("nobody" if node == NOBODY else f"node {node}" for node in nodes)
        return self.until(f"{names} leads", lambda state: state.leader in nodes)

    def isr_is(self, *nodes: int, patience_s: float | None = None) -> Await:
        return self.until(f"ISR {sorted(nodes)}", lambda state: set(state.isr) == set(nodes), patience_s)

    def fenced(self, node: int) -> AwaitBroker:
        return AwaitBroker(f"node {node} fenced", node, alive=False)

    def alive(self, node: int) -> AwaitBroker:
        return AwaitBroker(f"node {node} registered again", node, alive=True)

    def healed(self, ids: Collection[str]) -> tuple[GuidedStep, ...]:
        """Undo what is left, and wait until all is well."""
        return Heal(tuple(ids)), self.until("the full ISR", lambda state: state.full_isr)
