"""Who sends: logical producers, one operation at a time each, and the clients that carry their records.

A client may carry many logical producers. A partition without a leader keeps an operation under way for
seconds; a client that waited for it would put no load on the others, and a cluster that falls silent would be
asked almost nothing. With enough operations under way the asked rate goes on whatever the cluster does.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from wrackline.history.model import UNKNOWN, Event, Record, Type, value_of
from wrackline.workloads.log import outcomes
from wrackline.workloads.log.clients import LogProducer, Outgoing
from wrackline.workloads.log.outcomes import Outcome
from wrackline.workloads.log.processes import Context, Process, close_in_background, supervised
from wrackline.workloads.log.spec import LogSpec
from wrackline.workloads.pace import Slot
from wrackline.workloads.payload import encode, key_of

SERVE_S = 0.2
"""How long a client waits for delivery reports before it looks whether it shall end."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A send that is on record as invoked."""

    partition: int
    values: tuple[int, ...]
    outgoing: tuple[Outgoing, ...]
    begin_ns: int


class LogicalProducer:
    """One logical process after another: after an unknown outcome it goes on as process ``old + stride``."""

    def __init__(self, context: Context, process: int) -> None:
        self.context = context
        self.process = process
        self._counter = 0

    def invoke(self, partition: int, count: int, *, attempt: int = 0) -> Operation:
        """Make ``count`` records and write their invocation down. ``attempt`` becomes part of the values
        (history.model.value_of)."""
        context = self.context
        values = tuple(value_of(self.process, self._counter + n, attempt) for n in range(count))
        self._counter += count
        now_ms = time.time_ns() // 1_000_000
        outgoing = tuple(
            Outgoing(
                partition,
                key_of(value),
                encode(context.tag, value, context.topic, partition, now_ms, context.spec.record_bytes),
                now_ms,
            )
            for value in values
        )
        asked = tuple(Record(partition, UNKNOWN, value, -1, now_ms) for value in values)
        self._record(Type.INVOKE, partition, asked)
        return Operation(partition, values, outgoing, time.monotonic_ns())

    def complete(self, operation: Operation, found: list[Outcome]) -> Type:
        """Write down what became of it."""
        latency = time.monotonic_ns() - operation.begin_ns
        kind = outcomes.type_of(found)
        records = tuple(
            Record(operation.partition, outcome.offset, value, -1, outcome.timestamp_ms)
            for value, outcome in zip(operation.values, found, strict=True)
        )
        self._record(kind, operation.partition, records, outcomes.error_of(found), latency)
        if kind is Type.INFO:
            self.retire()
        return kind

    def retire(self) -> None:
        self.process += self.context.stride
        self._counter = 0

    def _record(
        self,
        kind: Type,
        partition: int,
        records: tuple[Record, ...],
        error: str | None = None,
        latency_ns: int | None = None,
    ) -> None:
        event = Event(
            self.process,
            kind,
            "send",
            topic=self.context.topic,
            partition=partition,
            records=records,
            error=error,
            latency_ns=latency_ns,
        )
        self.context.tally.count(self.context.recorder.record(event))


class Sending:
    """A logical producer with a client of its own, that waits for each operation. After an unknown outcome
    the client is another one too."""

    def __init__(self, context: Context, process: int) -> None:
        self._producer = LogicalProducer(context, process)
        self._client: LogProducer | None = None

    def send(self, partition: int, count: int = 1, *, attempt: int = 0) -> list[Outcome]:
        """One operation, from its invocation to its outcome."""
        context = self._producer.context
        if self._client is None:
            self._client = LogProducer(context.bootstrap, context.spec)
        operation = self._producer.invoke(partition, count, attempt=attempt)
        found = self._client.send(context.topic, operation.outgoing)
        kind = self._producer.complete(operation, found)
        if self._client.broken and kind is not Type.INFO:
            self._producer.retire()
        if self._client.broken or kind is Type.INFO:
            self.drop_client()
        return found

    def drop_client(self) -> None:
        if self._client is not None:
            close_in_background(self._client)
            self._client = None


class Sender(Process):
    """A client and the logical producers that it carries: ``width`` operations may be under way at a time.

    A client that broke is left to what it still has under way, and another takes its place. So is one that
    had an unknown outcome, as soon as it has nothing under way."""

    f = "send"

    def __init__(self, context: Context, slot: int, width: int = 1) -> None:
        """``slot``: the first of ``width`` process ids."""
        super().__init__(context, slot)
        self._most = context.spec.records_per_op if isinstance(context.spec, LogSpec) else 1
        self._width = width
        self._idle = deque(LogicalProducer(context, slot + n) for n in reversed(range(width)))
        """On top who was used last: a few have long sequences while all is well, which says more about
        order."""
        self._changed = threading.Condition()
        self._client: _Served | None = None

    def work(self) -> None:
        generator = self.context.generator
        while self._wait_for_idle(1) and (slot := generator.take(self.f)) is not None:
            self.operate(slot)
        self._wait_for_idle(self._width)  # the message timeout bounds it
        self.drop_client()

    def _wait_for_idle(self, producers: int) -> bool:
        """Until so many logical producers are idle; False when the client's thread failed meanwhile."""
        with self._changed:
            while len(self._idle) < producers and not (self._client and self._client.failed):
                self._changed.wait(SERVE_S)
            return len(self._idle) >= producers

    def operate(self, slot: Slot) -> None:
        with self._changed:
            producer = self._idle.pop()
        client = self._client
        if client is None or client.broken or (client.had_unknown and not client.under_way):
            self.drop_client()
            client = self._client = _Served(self.context, f"reports-{self.name}")
        operation = producer.invoke(slot.lane, 1 + slot.choice(self._most, salt=1))

        def finished(found: list[Outcome]) -> None:
            unknown = producer.complete(operation, found) is Type.INFO
            client.over(unknown=unknown)
            with self._changed:
                # Below all others when it was retired, so that all are retired in turn and no id grows large.
                (self._idle.appendleft if unknown else self._idle.append)(producer)
                self._changed.notify()
            self.context.generator.done(slot)

        client.begin(operation, finished)

    def drop_client(self) -> None:
        if self._client is not None:
            self._client.end()
            self._client = None


class _Served:
    """A client whose delivery reports are served by a thread of its own, until it shall end and has nothing
    under way."""

    def __init__(self, context: Context, name: str) -> None:
        self.had_unknown = False
        self.failed = False
        self._context = context
        self._client = LogProducer(context.bootstrap, context.spec)
        self._lock = threading.Lock()
        self._under_way = 0
        self._ending = False
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    @property
    def broken(self) -> bool:
        return self._client.broken

    @property
    def under_way(self) -> int:
        return self._under_way

    def begin(self, operation: Operation, finished: Callable[[list[Outcome]], None]) -> None:
        with self._lock:
            self._under_way += 1
        self._client.begin(self._context.topic, operation.outgoing, finished)

    def over(self, *, unknown: bool) -> None:
        with self._lock:
            self._under_way -= 1
            self.had_unknown = self.had_unknown or unknown

    def end(self) -> None:
        """Nothing more is begun."""
        self._ending = True

    def _serve(self) -> None:
        served = False
        try:
            with supervised(self._context, "delivery reports"):
                while not self._ending or self._under_way:
                    self._client.serve(SERVE_S)
                served = True
                self._client.close()
        finally:
            self.failed = not served
