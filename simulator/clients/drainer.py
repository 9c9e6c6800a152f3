"""The final read, at the end of a run."""

from __future__ import annotations

from collections.abc import Callable

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


class Drainer(Client):
    """The final read: every partition from its start to its end as asked now, chunk by chunk. ``done`` when
    all are read; ``found`` has what was read, ``ends`` (log start, end) of each partition."""

    def __init__(self, number: int, run: Surroundings) -> None:
        super().__init__(number, run)
        self.found: dict[int, list[Record]] = {partition: [] for partition in range(self.partitions)}
        self.ends: dict[int, tuple[int, int]] = {}
        self.done = False
        self._at = 0
        self._position = 0

    def begin(self) -> None:
        self._partition()

    def _partition(self) -> None:
        if self._at == self.partitions:
            self.done = True
            return
        self._refresh(
            lambda: self._ask(EARLIEST, lambda start: self._ask(LATEST, lambda end: self._go(start, end)))
        )

    def _ask(self, which: int, answered_with: Callable[[int], None]) -> None:
        leader = self._leader_of(self._at)
        if leader is None:
            self._after("again", RETRY_MS, self._partition)
            return

        def answered(result: ListOffsetsResult | None) -> None:
            if result is None or result.error is not NO_ERROR:
                self._after("again", RETRY_MS, self._partition)
            else:
                answered_with(result.offset)

        self._ask_offset(leader, self._at, which, answered)

    def _go(self, start: int, end: int) -> None:
        self.ends[self._at] = start, end
        self.found[self._at] = []
        self._position = start
        self._read()

    def _read(self) -> None:
        start, end = self.ends[self._at]
        leader = self._leader_of(self._at)
        if leader is None:
            self._after("again", RETRY_MS, self._partition)
            return
        if self._position >= end and self.found[self._at]:
            self._at += 1
            self._partition()
            return
        self._record(Type.INVOKE, "drain", partition=self._at)
        if start == end:
            self._chunk([], complete=True)
            self._at += 1
            self._partition()
            return
        part = FetchPartition(TopicPartition(self.topic, self._at), self._position, 100_000)
        self._send(leader, FetchRequest(500, 1, 200_000, (part,)), self._answer)

    def _read_on(self) -> None:
        self._refresh(self._read)

    def _answer(self, response: Response | None) -> None:
        result = fetched(response)
        if result is None or result.error is not NO_ERROR or not isinstance(result.records, bytes):
            error = "no answer" if result is None else result.error.name
            self._record(Type.FAIL, "drain", partition=self._at, error=error)
            # Where messages are lost a read from the start would never come to its end.
            again = self._read_on if result is None else self._partition
            self._after("again", RETRY_MS, again)
            return
        end = self.ends[self._at][1]
        found = decode(result.records, self._at, self._position)
        found = [record for record in found if record.offset < end]
        if found:
            self._position = found[-1].offset + 1
        self.found[self._at] += found
        self._chunk(found, complete=self._position >= end)
        self._read()

    def _chunk(self, found: list[Record], *, complete: bool) -> None:
        start, end = self.ends[self._at]
        self._record(
            Type.OK,
            "drain",
            partition=self._at,
            offset=start,
            high_watermark=end,
            records=tuple(found),
            extra={"complete": True} if complete else {},
        )
