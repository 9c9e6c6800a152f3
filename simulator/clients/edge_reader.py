"""A client that reads where a log begins and ends, and beyond, of any epoch."""

from __future__ import annotations

from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    FetchPartition,
    FetchRequest,
    FetchResult,
    ListOffsetsPartition,
    ListOffsetsRequest,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    Request,
    Response,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.simulator.clients.client import Client, Surroundings

_EVERY_MS = 120.0
_STRANGER = 77
_LOOKS_UP = 0.5
"""Share of refusals after which it asks who leads."""
_BEYOND = 3
"""So far past the end of a log it asks."""


class EdgeReader(Client):
    """Asks for what may be refused. It tells the history nothing: what the answer should be, the broker that
    gives it knows (``invariants.reads``)."""

    def __init__(self, number: int, run: Surroundings) -> None:
        super().__init__(number, run)
        self._start = self._end = self._epoch = 0
        """Of the log, as far as it has been told."""

    def begin(self) -> None:
        self._refresh(self._pause)

    def _pause(self) -> None:
        if not self.stopping:
            self._after("next", self.random.expovariate(1 / _EVERY_MS), self._ask)

    def _ask(self) -> None:
        if self.stopping:
            return
        draw = self.random
        partition = draw.randrange(self.partitions)
        leader = self._leader_of(partition)
        if leader is None or draw.random() < 0.1:
            leader = draw.choice(self.brokers)
        self._send(leader, self._request(TopicPartition(self.topic, partition)), self._take)

    def _request(self, tp: TopicPartition) -> Request:
        draw = self.random
        own = draw.choice((-1, -1, self._epoch, draw.randint(0, self._epoch + 1)))
        epoch = draw.randint(0, self._epoch + 1)
        kind = draw.random()
        if kind < 0.2:
            return ListOffsetsRequest((ListOffsetsPartition(tp, draw.choice((EARLIEST, LATEST)), own),))
        if kind < 0.4:
            return OffsetForLeaderEpochRequest((OffsetForLeaderEpochPartition(tp, epoch, own),))
        edge = draw.choice((self._start, self._end))
        offset = max(0, draw.choice((edge, draw.randint(edge - _BEYOND, edge + _BEYOND))))
        last = draw.choice((-1, epoch))
        part = FetchPartition(tp, offset, draw.choice((1, 10_000)), own, last)
        replica = _STRANGER if draw.random() < 0.1 else -1
        return FetchRequest(draw.choice((0, 100)), 1, 20_000, (part,), replica)

    def _take(self, response: Response | None) -> None:
        refused = response is None
        for result in getattr(response, "partitions", ()):
            refused = refused or result.error is not NO_ERROR
            if isinstance(result, FetchResult):
                self._start = max(self._start, result.log_start)
                self._end = max(self._end, result.high_watermark)
            else:
                self._epoch = max(self._epoch, result.leader_epoch)
        if refused and self.random.random() < _LOOKS_UP:
            self._refresh(self._pause)
        else:
            self._pause()
