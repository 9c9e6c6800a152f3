"""The ground of a drill: a cluster that is whole, one of its partitions, and what a drill does and asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import (
    ElectionType,
    ElectLeadersRequest,
)
from wrackline.broker.model.messages.controller import AlterPartitionItem
from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    Request,
)
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.history.model import UNKNOWN, Event, Record, Type, value_of
from wrackline.simulator.clients.batches import encode
from wrackline.simulator.clients.history import History
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.invariants.client_view import Violation
from wrackline.simulator.world.nodes import BROKER_DEFAULTS, CONTROLLER_DEFAULTS, Call
from wrackline.simulator.world.world import World

SLACK_MS = 400.0
"""For messages, flushes, and timers that look now and then."""
PROCESS = 950_000
ANSWER_MS = 5_000
_TRIES = 3


class Session(Protocol):
    """The run that the drills belong to."""

    setup: Setup
    world: World
    history: History
    found: list[Violation]
    failed: Drill | None
    """The drill that has found something, in this run or in the one before."""

    def go(self, enough: Callable[[], bool], end_ms: float) -> None: ...

    def find(self, violation: Violation) -> None: ...

    def is_whole(self) -> bool: ...


class Over(Exception):
    """Something was found: the rest of a drill has no meaning."""


@dataclass(eq=False)
class Ground:
    """The cluster that a drill is done on, and one of its partitions."""

    session: Session
    draw: Random
    name: str = ""
    deleted: dict[TopicPartition, int] = field(default_factory=dict)
    """The highest log start that was asked for."""
    tp: TopicPartition = field(init=False)
    _sent: int = 0

    def __post_init__(self) -> None:
        setup = self.session.setup
        self.tp = TopicPartition(setup.topic, 0)
        self.world = self.session.world
        self.broker: dict[str, Any] = {**BROKER_DEFAULTS, **dict(setup.broker)}
        self.controller: dict[str, Any] = {**CONTROLLER_DEFAULTS, **dict(setup.controller)}
        self.session_ms: float = self.controller["session_timeout_ms"]
        self.heartbeat_ms: float = self.broker["heartbeat_interval_ms"]
        self.lag_ms: float = self.broker["replica_lag_time_max_ms"]
        self.fetch_ms: float = (
            self.broker["replica_fetch_wait_max_ms"] + self.broker["replica_fetch_backoff_ms"]
        )
        self.rejoin_ms = 2_000 + 3 * self.heartbeat_ms + 3 * self.fetch_ms + self.lag_ms

    # --- what there is

    @property
    def image(self) -> PartitionImage:
        image = self.world.image.partition(self.tp)
        assert image is not None
        return image

    @property
    def partitions(self) -> list[PartitionImage]:
        return list(self.world.image.partitions())

    @property
    def min_isr(self) -> int:
        """An operator may have changed it, and changed it back only just now."""
        return self.world.image.min_isr(self.tp)

    def any_broker(self) -> NodeId:
        return self.draw.choice(sorted(self.world.brokers))

    def followers(self) -> list[NodeId]:
        return [node for node in self.image.replicas if node != self.image.leader]

    def replica(self, node: NodeId) -> Any:
        core = self.world.brokers[node].core
        return None if core is None else core.replica(self.tp)

    def fenced(self, node: NodeId) -> bool:
        return self.world.image.brokers[node].fenced

    # --- time

    def must(self, what: str, condition: Callable[[], bool], within_ms: float) -> float:
        """Runs until the condition holds, and returns how long that took. Raises Over when it does not."""
        world = self.world
        began_ms = world.now_ms
        self.session.go(condition, began_ms + within_ms)
        if self.session.found:
            raise Over
        if not condition():
            self.fail(f"{what}: not within {within_ms:.0f} ms")
        return world.now_ms - began_ms

    def rest(self, ms: float) -> None:
        self.session.go(lambda: False, self.world.now_ms + ms)
        if self.session.found:
            raise Over

    def fail(self, text: str) -> None:
        self.session.find(Violation("drill", f"{self.name}: {text}"))
        raise Over

    def expect(self, what: str, given: object, right: object) -> None:
        if given != right:
            self.fail(f"{what} is {given}, not {right}")

    def whole(self, within_ms: float | None = None) -> float:
        limit = self.rejoin_ms + 2 * self.session_ms if within_ms is None else within_ms
        return self.must("everybody back in every ISR, with every record", self._is_whole, limit)

    def _is_whole(self) -> bool:
        """The image may still speak of lives that are over, leaders may still not know its ISR, and the
        quorum may still choose a leader."""
        brokers, known = self.world.brokers, self.world.image.brokers
        return (
            self.session.is_whole()
            and self.world.active_controller() is not None
            and all(
                server.core is not None and server.core.broker_epoch == known[node].epoch
                for node, server in brokers.items()
            )
            and all(map(self._leader_agrees, self.world.image.partitions()))
        )

    def _leader_agrees(self, image: PartitionImage) -> bool:
        server = self.world.brokers.get(image.leader)
        replica = None if server is None or server.core is None else server.core.replica(image.tp)
        return replica is not None and replica.leader is not None and replica.leader.isr == set(image.isr)

    def settle(self) -> None:
        """Preferred replicas lead, so that no balancing moves a leader in the middle of a drill."""

        def preferred() -> bool:
            return all(image.leader == image.replicas[0] for image in self.partitions)

        world = self.world
        for _ in range(_TRIES):
            # A controller that is just back still fences brokers whose heartbeats went to its former life.
            self.whole()
            self.ask(min(world.brokers), ElectLeadersRequest(ElectionType.PREFERRED, None, ANSWER_MS))
            self.session.go(preferred, world.now_ms + 2_000)
            if self.session.found:
                raise Over
            if preferred():
                break
        self.must("preferred leaders", preferred, 1)
        self.whole()

    # --- questions

    def call(self, node: NodeId, request: Request) -> Call:
        return self.world.ask(node, request, ANSWER_MS)

    def ask(self, node: NodeId, request: Request) -> Any:
        call = self.call(node, request)
        self.must(
            f"an answer of node {node} to {type(request).__name__}", lambda: call.done, ANSWER_MS + 1_000
        )
        if call.failed:
            self.fail(f"{type(request).__name__} to node {node}: {call.failed}")
        return call.response

    def send(
        self, node: NodeId, acks: int = -1, timeout_ms: int = 3_000, count: int = 1
    ) -> Callable[[], Any]:
        """Sends records. The function that it returns has the broker's answer, None before there is one."""
        partition = self.tp.partition
        values = self.values(count)
        request = ProduceRequest(
            acks, timeout_ms, (ProducePartition(self.tp, encode(values, int(self.world.now_ms))),)
        )
        self.record(Type.INVOKE, tuple(Record(partition, UNKNOWN, value) for value in values))
        call = self.world.ask(node, request, timeout_ms + 2_000)
        answered: list[ProduceResult] = []

        def answer() -> ProduceResult | None:
            if call.done and not answered:
                response = call.response
                if isinstance(response, ProduceResponse):
                    answered.append(response.partitions[0])
                else:
                    answered.append(ProduceResult(self.tp, ErrorCode.unknown_server_error))
                self.answered(answered[0], values, acks)
            return answered[0] if answered else None

        return answer

    def values(self, count: int) -> tuple[int, ...]:
        self._sent += count
        return tuple(value_of(PROCESS, self._sent - count + at) for at in range(count))

    def answered(self, result: ProduceResult, values: Sequence[int], acks: int) -> None:
        partition = self.tp.partition
        good = result.error is ErrorCode.none
        at = [
            result.base_offset + number if good and acks == -1 else UNKNOWN for number in range(len(values))
        ]
        records = tuple(Record(partition, offset, value) for offset, value in zip(at, values, strict=True))
        self.record(Type.OK if good and acks == -1 else Type.INFO, records)

    def record(self, kind: Type, records: tuple[Record, ...]) -> None:
        event = Event(PROCESS, kind, "send", self.tp.topic, self.tp.partition, records=records)
        self.session.history.record(self.world.now_ms, event)

    def sent(self, node: NodeId, acks: int = -1, within_ms: float = 1_500, count: int = 1) -> ProduceResult:
        answer = self.send(node, acks, count=count)
        self.must(
            f"records at node {node} acknowledged with acks={acks}", lambda: answer() is not None, within_ms
        )
        result: ProduceResult = answer()
        return result

    def fetch(
        self, node: NodeId, offset: int, epoch: int = -1, replica: int = -1, **more: Any
    ) -> FetchResult:
        # As nodes do, whose versions name topics by id alone.
        topic_id = self.image.topic_id if replica >= 0 else None
        part = FetchPartition(self.tp, offset, 100_000, epoch, topic_id=topic_id)
        answer = self.ask(node, FetchRequest(0, 1, 200_000, (part,), replica, **more))
        if not isinstance(answer, FetchResponse) or not answer.partitions:
            self.fail(f"a fetch of node {node} was answered {answer}")
        result: FetchResult = answer.partitions[0]
        return result

    def offset(self, node: NodeId, which: int) -> int:
        answer = self.ask(node, ListOffsetsRequest((ListOffsetsPartition(self.tp, which),)))
        self.expect("the error of ListOffsets", answer.partitions[0].error, ErrorCode.none)
        return int(answer.partitions[0].offset)


Drill = Callable[[Ground], None]


def add_to(drills: list[Drill]) -> Callable[[Drill], Drill]:
    """Makes a decorator that adds drills to the list."""

    def add(drill: Drill) -> Drill:
        drills.append(drill)
        return drill

    return add


def isr_change(now: PartitionImage, *isr: tuple[NodeId, int], **changes: Any) -> AlterPartitionItem:
    """Returns the proposal of an ISR for a partition as it stands, (broker, its epoch) each."""
    item = AlterPartitionItem(now.tp, now.topic_id, now.leader_epoch, now.partition_epoch, isr)
    return replace(item, **changes)
