"""Clients that read on and on: records, or where a partition ends."""

from __future__ import annotations

from collections.abc import Mapping

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
from wrackline.history.model import Record, Type
from wrackline.simulator.clients.batches import decode
from wrackline.simulator.clients.client import RETRY_MS, Client, Surroundings, fetched


class Reader(Client):
    """Polls on and on; starts anew at the log's beginning when its offset is out of the log's range."""

    positions: dict[int, int]
    """Partition -> the offset that is due next."""

    def begin(self) -> None:
        self._assign({})
        self._refresh(self._poll)

    def _poll(self) -> None:
        raise NotImplementedError

    @property
    def _told(self) -> dict[str, dict[str, int]]:
        """The positions, as a row has them."""
        return {"positions": {str(partition): offset for partition, offset in self.positions.items()}}

    def _assign(self, positions: Mapping[int, int]) -> None:
        self.positions.update(positions)
        self._record(Type.INVOKE, "assign", extra=self._told)
        self._record(Type.OK, "assign", extra=self._told)

    def _again(self) -> None:
        if not self.stopping:
            self._after("again", RETRY_MS, lambda: self._refresh(self._poll))

    def _go_on(self, *, brought: bool) -> None:
        """Polls again: at once where there may be more."""
        if brought:
            self._poll()
        elif not self.stopping:
            self._after("again", 20, self._poll)

    def _taken(self, partition: int, records: bytes) -> list[Record]:
        """The records that are due; the position moves past them."""
        result = decode(records, partition, self.positions[partition])
        if result:
            self.positions[partition] = result[-1].offset + 1
        return result

    def _refused(self, partition: int, error: ErrorCode | None) -> None:
        """None: no answer."""
        leader = self._leader_of(partition)
        if error is not ErrorCode.offset_out_of_range or leader is None:
            self._again()
            return

        def answered(start: ListOffsetsResult | None) -> None:
            if start is not None and start.error is NO_ERROR:
                self._assign({partition: start.offset})
            self._again()

        self._ask_offset(leader, partition, EARLIEST, answered)


class Consumer(Reader):
    """Reads one partition."""

    def __init__(self, number: int, run: Surroundings, partition: int | None = None) -> None:
        super().__init__(number, run)
        self.partition = self.random.randrange(self.partitions) if partition is None else partition
        self.positions = {self.partition: 0}

    def _poll(self) -> None:
        if self.stopping:
            return
        leader = self._leader_of(self.partition)
        if leader is None:
            self._again()
            return
        position = self.positions[self.partition]
        part = FetchPartition(TopicPartition(self.topic, self.partition), position, 10_000)
        self._record(Type.INVOKE, "poll")
        self._send(leader, FetchRequest(500, 1, 20_000, (part,)), self._polled)

    def _polled(self, response: Response | None) -> None:
        result = fetched(response)
        if result is not None and result.error is NO_ERROR and isinstance(result.records, bytes):
            records = tuple(self._taken(self.partition, result.records))
            self._record(Type.OK, "poll", records=records, extra=self._told)
            self._go_on(brought=bool(records))
            return
        error = "no answer" if result is None else result.error.name
        self._record(Type.FAIL, "poll", error=error)
        self._refused(self.partition, None if result is None else result.error)


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
