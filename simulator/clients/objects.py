"""Clients that use a partition as a register or a queue, with the rows of the workloads of these names.

docs/linearizability.md says what they do: who reads sends a *marker*, a record of its own, and reads the log
before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import (
    LATEST,
    FetchPartition,
    FetchRequest,
    ListOffsetsResult,
    Response,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.history.model import MARKER, Record, Type, is_marker
from wrackline.simulator.clients.batches import decode
from wrackline.simulator.clients.client import RETRY_MS, Surroundings, fetched
from wrackline.simulator.clients.producer import Producer, ProducerOptions

_WINDOW, _WIDER = 16, 8
"""A read looks at so many records before the end; where all are markers, at so many times more before it."""
_EMPTY_MS = 20.0
"""Between an answer without records and the next fetch."""
_TURN_MS = 10.0
"""Between two looks at a head that another dequeuer holds."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How reads are done. ``marking``: how markers are sent, and the mean pause between two operations."""

    marking: ProducerOptions
    deadline_ms: float
    """How long a read goes on once it has its marker, or a dequeue once it has the head."""
    wait_ms: int = 100
    """How long a broker waits for records before it answers that there are none."""
    by_marker: bool = True
    """False: the leader is asked for the end offset."""


class _Marking(Producer):
    """One operation at a time of process ``number``000; what it sends is of the processes behind it."""

    f = ""

    def __init__(self, number: int, run: Surroundings, options: ReadOptions) -> None:
        super().__init__(number, run, options.marking)
        self._lanes = [self.process + 1]
        self.reading = options
        self._partition = 0
        self._open = False
        self._ends_ms = 0.0
        """When it is given up."""

    @property
    def writing(self) -> bool:
        """An operation is under way."""
        return self._open

    def _operate(self) -> None:
        self._open = True
        self._partition = self._take_partition()
        self._record(Type.INVOKE, self.f, partition=self._partition)
        self._ends_ms = self.now_ms + self.reading.deadline_ms
        self._go()

    def _go(self) -> None:
        raise NotImplementedError

    def _marked(self, offset: int) -> None:
        """The marker is in the log."""
        raise NotImplementedError

    def _mark(self) -> None:
        self._begin_send(0, self._partition, 1, MARKER)

    def _sent(self, offset: int | None, error: str | None) -> None:
        if offset is None:
            self._failed(error or "")
        else:
            self._marked(offset)

    def _answer(self, record: Record | None, end: int | None = None) -> None:
        """Answers with the record, None: there is none for certain. ``end``: what this rests on."""
        records = () if record is None else (record,)
        self._over(Type.OK, records=records, high_watermark=end)

    def _failed(self, error: str) -> None:
        self._over(Type.FAIL, error=error)

    def _over(self, kind: Type, **fields: Any) -> None:
        self._record(kind, self.f, partition=self._partition, **fields)
        self._open = False
        self._pause()

    def _fetch(self, position: int, then: Callable[[list[Record]], None]) -> None:
        """Asks for the records from a position on, again and again as a consumer does, until time is over;
        ``then`` gets none where none came, or where the leader's log does not have the position."""
        leader = self._leader_of(self._partition)
        if self.now_ms >= self._ends_ms:
            self._failed("_TIMED_OUT")
            return

        def again() -> None:
            self._after("fetch", RETRY_MS, lambda: self._refresh(lambda: self._fetch(position, then)))

        def answered(response: Response | None) -> None:
            result = fetched(response)
            if result is not None and result.error is NO_ERROR and isinstance(result.records, bytes):
                records = decode(result.records, self._partition, position)
            elif result is not None and result.error is ErrorCode.offset_out_of_range:
                records = []
            else:
                again()
                return
            if records:
                then(records)
            else:
                self._after("fetch", _EMPTY_MS, lambda: then([]))

        if leader is None:
            again()
            return
        part = FetchPartition(TopicPartition(self.topic, self._partition), position, 10_000)
        wait_ms, rest_ms = self.reading.wait_ms, int(self._ends_ms - self.now_ms)
        self._send(leader, FetchRequest(wait_ms, 1, 20_000, (part,)), answered, rest_ms + wait_ms)


class RegisterReader(_Marking):
    """Reads the last record that was written to a partition."""

    f = "read"

    def __init__(self, number: int, run: Surroundings, options: ReadOptions) -> None:
        super().__init__(number, run, options)
        self._end = 0
        self._upto = 0
        """Behind the last record that is looked at now."""
        self._window = _WINDOW
        self._last: Record | None = None

    def _go(self) -> None:
        if self.reading.by_marker:
            self._mark()
        else:
            self._refresh(self._ask_end)

    def _ask_end(self) -> None:
        leader = self._leader_of(self._partition)
        if leader is None:
            self._failed("leader_not_available")
            return

        def answered(result: ListOffsetsResult | None) -> None:
            if result is not None and result.error is NO_ERROR:
                self._marked(result.offset)
            else:
                self._failed("no answer" if result is None else result.error.name)

        self._ask_offset(leader, self._partition, LATEST, answered)

    def _marked(self, offset: int) -> None:
        self._end, self._ends_ms = offset, self.now_ms + self.reading.deadline_ms
        self._look(offset, _WINDOW)

    def _look(self, upto: int, window: int) -> None:
        """Looks at so many records before an offset."""
        self._upto, self._window, self._last = upto, window, None
        if upto <= 0:
            self._answer(None, self._end)
        else:
            self._read_on(max(0, upto - window))

    def _read_on(self, position: int) -> None:
        if position < self._upto:
            self._fetch(position, lambda records: self._looked(position, records))
        elif self._last is None:
            self._look(max(0, self._upto - self._window), self._window * _WIDER)
        else:
            self._answer(self._last, self._end)

    def _looked(self, position: int, records: list[Record]) -> None:
        for record in records:
            position = record.offset + 1
            if record.offset < self._upto and not is_marker(record.value):
                self._last = record
        self._read_on(position)


@dataclass(slots=True)
class Head:
    """The head of one queue, which all dequeuers share: the offset of the next record to take."""

    offset: int = 0
    holder: int | None = None
    """The client that looks at it now, and may move it."""


class Dequeuer(_Marking):
    """Takes the record at the head of a queue. ``heads``: of each partition."""

    f = "dequeue"

    def __init__(self, number: int, run: Surroundings, options: ReadOptions, heads: list[Head]) -> None:
        super().__init__(number, run, options)
        self._heads = heads
        self._marker: int | None = None

    @property
    def _head(self) -> Head:
        return self._heads[self._partition]

    def _go(self) -> None:
        head = self._head
        if head.holder is None:
            head.holder, self._marker = self.number, None
            self._ends_ms = self.now_ms + self.reading.deadline_ms
            self._take()
        elif self.now_ms >= self._ends_ms:
            self._failed("_BUSY")
        else:
            self._after("head", _TURN_MS, self._go)

    def _marked(self, offset: int) -> None:
        self._marker = offset
        self._take()

    @property
    def _is_empty(self) -> bool:
        """Everything before the marker has been looked at."""
        return self._marker is not None and self._head.offset > self._marker

    def _take(self) -> None:
        if self._is_empty:
            self._answer(None)
        else:
            self._fetch(self._head.offset, self._fetched)

    def _fetched(self, records: list[Record]) -> None:
        for record in records:
            self._head.offset = record.offset + 1
            if not is_marker(record.value):
                self._answer(record)
                return
            if self._is_empty:
                break
        if not records and self._marker is None:
            self._mark()
        else:
            self._take()

    def _over(self, kind: Type, **fields: Any) -> None:
        """The answer is on record before the head is free: nobody is given this record earlier."""
        super()._over(kind, **fields)
        if self._head.holder == self.number:
            self._head.holder = None
