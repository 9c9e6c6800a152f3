"""Clients that read on and on: records, or where a partition ends."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    FetchPartition,
    FetchRequest,
    ListOffsetsResult,
    Response,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.history.model import Type
from wrackline.simulator.clients.batches import decode
from wrackline.simulator.clients.client import RETRY_MS, Client, Surroundings, fetched


class Consumer(Client):
    """Reads one partition on and on; starts anew at the log's end range when its offset is out of it."""

    def __init__(self, number: int, run: Surroundings, partition: int | None = None) -> None:
        super().__init__(number, run)
        self.partition = self.random.randrange(self.partitions) if partition is None else partition
        self.position = 0

    def begin(self) -> None:
        self._assign(0)
        self._refresh(self._poll)

    def _assign(self, offset: int) -> None:
        self.position = offset
        positions = {"positions": {str(self.partition): offset}}
        self._record(Type.INVOKE, "assign", extra=positions)
        self._record(Type.OK, "assign", extra=positions)

    def _again(self) -> None:
        if not self.stopping:
            self._after("again", RETRY_MS, lambda: self._refresh(self._poll))

    def _poll(self) -> None:
        if self.stopping:
            return
        leader = self._leader_of(self.partition)
        if leader is None:
            self._again()
            return
        part = FetchPartition(TopicPartition(self.topic, self.partition), self.position, 10_000)
        self._record(Type.INVOKE, "poll")
        self._send(leader, FetchRequest(500, 1, 20_000, (part,)), self._polled)

    def _polled(self, response: Response | None) -> None:
        result = fetched(response)
        if result is not None and result.error is NO_ERROR and isinstance(result.records, bytes):
            found = decode(result.records, self.partition, self.position)
            if found:
                self.position = found[-1].offset + 1
            records = tuple(found)
            extra = {"positions": {str(self.partition): self.position}}
            self._record(Type.OK, "poll", records=records, extra=extra)
            if found:
                self._poll()
            elif not self.stopping:
                self._after("again", 20, self._poll)
            return
        error = "no answer" if result is None else result.error.name
        self._record(Type.FAIL, "poll", error=error)
        if result is not None and result.error is ErrorCode.offset_out_of_range:
            self._reset()
        else:
            self._again()

    def _reset(self) -> None:
        leader = self._leader_of(self.partition)
        if leader is None:
            self._again()
            return

        def answered(result: ListOffsetsResult | None) -> None:
            if result is not None and result.error is NO_ERROR:
                self._assign(result.offset)
            self._again()

        self._ask_offset(leader, self.partition, EARLIEST, answered)


class EndAsker(Client):
    """Asks now and then where a partition ends."""

    def __init__(self, number: int, run: Surroundings, every_ms: float = 400.0) -> None:
        super().__init__(number, run)
        self.every_ms = every_ms

    def begin(self) -> None:
        self._refresh(self._pause)

    def _pause(self) -> None:
        if not self.stopping:
            self._after("next", self.random.expovariate(1 / self.every_ms), self._ask)

    def _ask(self) -> None:
        if self.stopping:
            return
        partition = self.random.randrange(self.partitions)
        leader = self._leader_of(partition)
        if leader is None:
            self._refresh(self._pause)
            return
        self._record(Type.INVOKE, "end", partition=partition)

        def answered(result: ListOffsetsResult | None) -> None:
            if result is not None and result.error is NO_ERROR:
                self._record(Type.OK, "end", partition=partition, high_watermark=result.offset)
                self._pause()
                return
            error = "no answer" if result is None else result.error.name
            self._record(Type.FAIL, "end", partition=partition, error=error)
            self._refresh(self._pause)

        self._ask_offset(leader, partition, LATEST, answered)
