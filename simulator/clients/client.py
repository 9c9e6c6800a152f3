"""The base of all clients: state machines that speak the core's messages to brokers.

They have the contract of any core (``handle(event, now_ms) -> effects``), so the world treats them as nodes:
what they send can be delayed, cut and held like everything else. Each acts one operation at a time and writes
it to the history; after an operation whose outcome it does not know it goes on under a new process number, as
the history's rules ask. Their random choices come from a generator of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, get_args

from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.events import Event as CoreEvent
from wrackline.broker.model.messages.metadata import MetadataRequest, MetadataResponse
from wrackline.broker.model.messages.requests import (
    FetchResponse,
    FetchResult,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    Request,
    Response,
)
from wrackline.broker.model.types import NO_LEADER, NodeId, TopicPartition
from wrackline.history.model import Event, Type
from wrackline.simulator.clients.history import History

PROCESS_STRIDE = 1_000
"""Process numbers a client may use up."""
RETRY_MS = 100.0
_TIMEOUT_MS = 3_000

Load = Literal["batches", "bursts", "pipeline", "sessions", "times", "wrap", "retention", "edges"]
"""What clients may do or meet beside the plain thing: batches of many sizes and small limits of fetches;
bursts between idle seconds; several sends of one producer under way; consumers that read all partitions in a
fetch session; records with wrong times; producers whose sequences and epochs are about to begin anew; a topic
that keeps its newest records alone; a client that reads at the ends of a log and beyond, of any epoch."""
LOADS: tuple[Load, ...] = get_args(Load)
Answered = Callable[[Response | None], None]
OffsetAnswered = Callable[[ListOffsetsResult | None], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all clients of a run have in common."""

    topic: str
    partitions: int
    brokers: tuple[NodeId, ...]
    seed: int | str
    history: History


class Client:
    """The common part of all clients: requests with continuations, timers, metadata, a process number."""

    def __init__(self, number: int, run: Surroundings) -> None:
        self.number = number
        self.topic = run.topic
        self.partitions = run.partitions
        self.brokers = run.brokers
        self.history = run.history
        self.random = Random(f"{run.seed}/client/{number}")
        self.now_ms = 0.0
        self.process = number * PROCESS_STRIDE
        self.stopping = False
        self.leaders: dict[int, NodeId] = {}
        """Partition -> leader, by the latest metadata response."""
        self._out: list[Effect] = []
        self._correlation = 0
        self._waiting: dict[int, Answered] = {}
        self._timers: dict[str, Callable[[], None]] = {}
        self._asking_metadata: list[Callable[[], None]] = []

    # --- the contract of a core ----------------------------------------------------------------------------

    def handle(self, event: CoreEvent, now_ms: float) -> list[Effect]:
        self._out = []
        self.now_ms = now_ms
        match event:
            case ev.Boot():
                self.begin()
            case ev.ResponseReceived():
                self._answered(event.correlation, event.response)
            case ev.SendFailed():
                self._answered(event.correlation, None)
            case ev.TimerFired():
                fire = self._timers.pop(event.key, None)
                if fire is not None:
                    fire()
            case _:
                pass
        return self._out

    def begin(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """Begin nothing new; what is under way comes to its end."""
        self.stopping = True

    @property
    def writing(self) -> bool:
        """A write is under way: it may still be appended, and acknowledged."""
        return False

    # --- tools ---------------------------------------------------------------------------------------------

    def _answered(self, correlation: int, response: Response | None) -> None:
        answered = self._waiting.pop(correlation, None)
        if answered is not None:
            answered(response)

    def _send(
        self, node: NodeId, request: Request, answered: Answered, timeout_ms: int = _TIMEOUT_MS
    ) -> None:
        self._correlation += 1
        self._waiting[self._correlation] = answered
        self._out.append(fx.Send(self._correlation, node, "main", request, timeout_ms))

    def _after(self, key: str, ms: float, fire: Callable[[], None]) -> None:
        self._timers[key] = fire
        self._out.append(fx.SetTimer(key, self.now_ms + ms))

    def _record(self, type_: Type, f: str, *, process: int | None = None, **fields: Any) -> None:
        """``process``: None is the client's own."""
        history, now_ms = self.history, self.now_ms
        index, time_ns = len(history.events), int(now_ms * 1_000_000)
        event = Event(
            self.process if process is None else process,
            type_,
            f,
            self.topic,
            index=index,
            time_ns=time_ns,
            **fields,
        )
        history.record(now_ms, event)

    def _refresh(self, then: Callable[[], None]) -> None:
        """Asks any broker who leads; ``then`` is called when it has answered or failed to."""
        self._asking_metadata.append(then)
        if len(self._asking_metadata) > 1:
            return

        def answered(response: Response | None) -> None:
            if isinstance(response, MetadataResponse):
                for topic in response.topics:
                    if topic.name == self.topic:
                        self.leaders = {part.partition: part.leader_id for part in topic.partitions}
            waiting, self._asking_metadata = self._asking_metadata, []
            for go_on in waiting:
                go_on()

        self._send(self.random.choice(self.brokers), MetadataRequest((self.topic,)), answered, 1_000)

    def _leader_of(self, partition: int) -> NodeId | None:
        leader = self.leaders.get(partition, NO_LEADER)
        return None if leader == NO_LEADER else leader

    def _ask_offset(self, leader: NodeId, partition: int, which: int, answered: OffsetAnswered) -> None:
        """Asks where a partition begins or ends; ``answered`` is called with the result, None: no answer."""
        asked = ListOffsetsPartition(TopicPartition(self.topic, partition), which)

        def done(response: Response | None) -> None:
            answered(response.partitions[0] if isinstance(response, ListOffsetsResponse) else None)

        self._send(leader, ListOffsetsRequest((asked,)), done)


def fetched(response: Response | None) -> FetchResult | None:
    """The result of a fetch of one partition; None: no answer."""
    return response.partitions[0] if isinstance(response, FetchResponse) and response.partitions else None
