"""A consumer that reads all partitions, those of one leader in a fetch session (KIP-227)."""

from __future__ import annotations

from dataclasses import dataclass, field

from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ForgottenPartition,
    Response,
)
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.history.model import Record, Type
from wrackline.simulator.clients.client import Surroundings
from wrackline.simulator.clients.consumer import Reader

_LIMITS = (1, 90, 400, 10_000)
"""Bytes that a fetch asks for of one partition, or of all."""


@dataclass(slots=True)
class _Session:
    id: int = 0
    epoch: int = 0
    """Of the next request."""
    sent: dict[int, int] = field(default_factory=dict)
    """Partition -> the position that the leader knows."""


class SessionConsumer(Reader):
    """Polls one leader after another, in a session with each."""

    def __init__(self, number: int, run: Surroundings) -> None:
        super().__init__(number, run)
        self.positions = dict.fromkeys(range(self.partitions), 0)
        self._sessions: dict[NodeId, _Session] = {}
        self._last: NodeId = -1

    def _poll(self) -> None:
        if self.stopping:
            return
        leaders = {partition: self._leader_of(partition) for partition in self.positions}
        nodes = sorted({node for node in leaders.values() if node is not None})
        if not nodes:
            self._again()
            return
        node = next((node for node in nodes if node > self._last), nodes[0])
        self._last = node
        session = self._sessions.setdefault(node, _Session())
        asked = {p: self.positions[p] for p, leader in leaders.items() if leader == node}
        changed = {p: at for p, at in asked.items() if session.sent.get(p) != at}
        gone = [p for p in session.sent if p not in asked]
        session.sent = asked
        limit = self.random.choice(_LIMITS)
        request = FetchRequest(
            200,
            1,
            self.random.choice((limit, 20_000)),
            tuple(FetchPartition(TopicPartition(self.topic, p), at, limit) for p, at in changed.items()),
            session_id=session.id,
            session_epoch=session.epoch,
            forgotten=tuple(ForgottenPartition(TopicPartition(self.topic, p)) for p in gone),
        )
        self._record(Type.INVOKE, "poll")
        self._send(node, request, lambda response: self._polled(node, response))

    def _polled(self, node: NodeId, response: Response | None) -> None:
        if not isinstance(response, FetchResponse) or response.error is not NO_ERROR:
            self._sessions.pop(node, None)
            error = response.error.name if isinstance(response, FetchResponse) else "no answer"
            self._record(Type.FAIL, "poll", error=error)
            self._again()
            return
        session = self._sessions.setdefault(node, _Session())
        session.id, session.epoch = response.session_id, session.epoch + 1 if response.session_id else 0
        if not session.id:
            session.sent = {}
        records = tuple(record for result in response.partitions for record in self._served(result))
        self._record(Type.OK, "poll", records=records, extra=self._told)
        refused = next((result for result in response.partitions if result.error is not NO_ERROR), None)
        if refused is not None:
            self._sessions.pop(node, None)
            self._refused(refused.tp.partition, refused.error)
        else:
            self._go_on(brought=bool(records))

    def _served(self, result: FetchResult) -> list[Record]:
        if result.error is not NO_ERROR or not isinstance(result.records, bytes):
            return []
        return self._taken(result.tp.partition, result.records)
