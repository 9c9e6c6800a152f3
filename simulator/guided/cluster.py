"""A cluster in virtual time as scenes and schedules act on it: its state, time, faults, administrators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import (
    AlterPartitionReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    Reassignment,
)
from wrackline.broker.model.messages.requests import Request
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.scenarios.language import Do
from wrackline.simulator.faults.operators import min_isr_request
from wrackline.simulator.world.errors import SimulationError
from wrackline.simulator.world.network import Hold, Matches, Message
from wrackline.simulator.world.world import World

_ANSWER_MS = 30_000


class Unmet(SimulationError):
    """What a scene waits for does not come to pass, or what it asks for is refused."""


class Cluster:
    """``partitions``: those that it is about, all with the same replicas in the same order."""

    def __init__(self, world: World, topic: str, partitions: Sequence[int]) -> None:
        self.world = world
        self.places = tuple(TopicPartition(topic, partition) for partition in partitions)
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(f"{self.world.now_ms:10.1f}  {line}")

    def begun(self, step: Do, nodes: Sequence[NodeId]) -> None:
        """Hears that a fault of a scene has begun."""

    def ended(self, id_: str) -> None:
        """Hears that it has ended."""

    # --- what there is -------------------------------------------------------------------------------------

    @property
    def image(self) -> PartitionImage | None:
        """The first of the partitions, as the controller has committed it."""
        return self.world.image.partition(self.places[0])

    @property
    def elected(self) -> NodeId:
        """The leader in the controller's metadata; -1 when there is none."""
        return self.world.leader(self.places[0])

    @property
    def isr(self) -> frozenset[NodeId]:
        return frozenset() if self.image is None else frozenset(self.image.isr)

    @property
    def elr(self) -> frozenset[NodeId]:
        return frozenset() if self.image is None else frozenset(self.image.elr)

    @property
    def replicas(self) -> frozenset[NodeId]:
        return frozenset() if self.image is None else frozenset(self.image.replicas)

    @property
    def clients(self) -> Collection[NodeId]:
        """Whom a broker does not reach when it is cut off from clients."""
        return self.world.clients

    def machine(self, node: NodeId) -> tuple[NodeId, ...]:
        """Returns the nodes that share this one's fate, itself first."""
        return (node,)

    def up(self, node: NodeId) -> bool:
        return self.world.server(node).core is not None

    def fenced(self, node: NodeId) -> bool:
        broker = self.world.image.brokers.get(node)
        return broker is None or broker.fenced

    def at_rest(self) -> bool:
        """Tells whether no reassignment is under way."""
        images = [self.world.image.partition(tp) for tp in self.places]
        return all(image is not None and not image.adding and not image.removing for image in images)

    # --- time ----------------------------------------------------------------------------------------------

    def run(self, ms: float) -> None:
        self.world.run(ms)

    def until(self, condition: Callable[[], bool], what: str, within_ms: float = 20_000) -> None:
        """Run until the condition holds. Raises SimulationError when it does not in time: the schedule cannot
        go on."""
        self.world.until(condition, within_ms, what)

    def must(
        self, condition: Callable[[], bool], what: str, within_ms: float = 10_000, oracle: str = "liveness"
    ) -> bool:
        """Run until the condition holds. ``oracle``: of the finding that it is when it does not in time."""
        raise NotImplementedError

    def within(self, condition: Callable[[], bool], ms: float) -> bool:
        """Run until the condition holds, or for so long."""
        try:
            self.until(condition, "", ms)
        except SimulationError:
            return False
        return True

    # --- faults --------------------------------------------------------------------------------------------

    def kill(self, *nodes: NodeId) -> None:
        for node in nodes:
            for part in self.machine(node):
                self.world.kill(part)
        self.say(f"kill {', '.join(map(str, nodes))}")

    def lose_power(self, node: NodeId) -> None:
        """Cut a broker's power; of the topic's logs only what is synced survives."""
        logs = self.world.brokers[node].disk.logs
        topic = self.places[0].topic
        keep = {tp: 0 if tp.topic == topic else log.leo for tp, log in logs.items()}
        for part in self.machine(node):
            self.world.power(part, keep)
        ends = [str(log.leo) for tp, log in logs.items() if tp in self.places]
        self.say(f"power cut at {node}: its log ends at {', '.join(ends) or 0}")

    def stop(self, node: NodeId) -> None:
        for part in self.machine(node):
            self.world.clean_stop(part)
        self.until(lambda: not self.up(node), f"{node} shut down")
        self.say(f"{node} shut down cleanly")

    def hold(
        self,
        name: str,
        *,
        source: NodeId | None = None,
        to: NodeId | None = None,
        limit: int | None = None,
        when: Matches | None = None,
    ) -> Hold:
        """Hold back messages of this name (``FetchResponse``, ...) on this way."""

        def matches(message: Message) -> bool:
            return (
                message.name == name
                and (source is None or message.source == source)
                and (to is None or message.destination == to)
                and (when is None or when(message))
            )

        self.say(f"hold {name} from {source or 'anyone'} to {to or 'anyone'}")
        return self.world.hold(matches, name, limit)

    # --- administration ------------------------------------------------------------------------------------

    def _answer_to(self, request: Request) -> Any:
        """Raises SimulationError when no answer comes."""
        active = self.world.active_controller()
        node = min(self.world.controllers) if active is None else active.id
        call = self.world.ask(node, request, _ANSWER_MS)
        self.until(lambda: call.done, f"an answer of node {node} to {request}", _ANSWER_MS + 1_000)
        if call.failed:
            raise Unmet(f"node {node} did not answer: {call.failed}")
        return call.response

    def administer(self, request: Request) -> None:
        """Raises Unmet when the controller refuses the request, or a part of it."""
        answer = self._answer_to(request)
        parts = (*getattr(answer, "partitions", ()), *getattr(answer, "resources", ()))
        refused = [part for part in parts if part.error is not ErrorCode.none]
        if refused or getattr(answer, "error", ErrorCode.none) is not ErrorCode.none:
            raise Unmet(f"refused: {answer}")

    def reassign(self, *target: NodeId) -> None:
        moves = tuple(Reassignment(tp, target) for tp in self.places)
        self.administer(AlterPartitionReassignmentsRequest(moves, 10_000))
        self.say(f"reassign to {target}")

    def set_min_isr(self, number: int) -> None:
        self.administer(min_isr_request(self.places[0].topic, number))
        self.say(f"MinISR {number}")

    def elect(self, kind: ElectionType) -> None:
        answer = self._answer_to(ElectLeadersRequest(kind, self.places, 10_000))
        self.say(f"elect ({kind.name}): {answer}")
