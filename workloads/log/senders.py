"""Senders: logical producers, one operation at a time each, and the clients that carry their records.

A client may carry many logical producers. A partition without a leader keeps an operation under way for
seconds; a client that waited for it would put no load on the others, and a cluster that falls silent would be
asked almost nothing. With enough operations under way the asked rate goes on whatever the cluster does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from wrackline.history.model import TOMBSTONE, UNKNOWN, Record, Type, value_of
from wrackline.history.values import dataclass
from wrackline.workloads.clients import outcomes
from wrackline.workloads.clients.base import Outgoing, Producer
from wrackline.workloads.clients.outcomes import Outcome
from wrackline.workloads.log.processes import Context, Place, Process, close_in_background
from wrackline.workloads.pace import Due, Slot
from wrackline.workloads.payload import encode

SERVE_S = 0.2
"""How long a client waits for delivery reports before it looks whether it shall end."""
TURN_S = 0.001
"""A client with operations under way looks no more often than this for what has fallen due, unless a delivery
report comes."""
_PARTS = 1_000
"""Shares are drawn in thousandths."""
FORMER_S = 0.02
"""How long it waits for reports of one client while another may have some too."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A send that is on record as invoked."""

    place: Place
    values: tuple[int, ...]
    outgoing: tuple[Outgoing, ...]
    begin_ns: int


class LogicalProducer:
    """One logical process after another: after an unknown outcome it goes on as process ``old + stride``."""

    def __init__(self, context: Context, process: int) -> None:
        self.context = context
        self.process = process
        self._counter = 0
        self._keyed = context.spec.compacted

    def invoke(self, place: Place, count: int, *, attempt: int = 0) -> Operation:
        """Make ``count`` records and write their invocation down. ``attempt`` becomes part of the values
        (history.model.value_of)."""
        context, (topic, partition) = self.context, place
        values = tuple(value_of(self.process, self._counter + n, attempt) for n in range(count))
        self._counter += count
        now_ms = time.time_ns() // 1_000_000
        outgoing = tuple(
            Outgoing(
                partition,
                context.spec.key_of(partition, value),
                encode(context.tag, value, topic, partition, now_ms, context.spec.record_bytes),
                now_ms,
                is_tombstone=attempt == TOMBSTONE,
            )
            for value in values
        )
        asked = tuple(Record(partition, UNKNOWN, value, -1, now_ms) for value in values)
        key = self._key(outgoing)
        context.record(
            self.process, Type.INVOKE, "send", topic=topic, partition=partition, key=key, records=asked
        )
        return Operation(place, values, outgoing, time.monotonic_ns())

    def complete(self, operation: Operation, found: list[Outcome]) -> Type:
        """Write down what became of it."""
        latency = time.monotonic_ns() - operation.begin_ns
        kind = outcomes.type_of(found)
        records = tuple(
            Record(operation.place[1], outcome.offset, value, -1, outcome.timestamp_ms)
            for value, outcome in zip(operation.values, found, strict=True)
        )
        self.context.record(
            self.process,
            kind,
            "send",
            topic=operation.place[0],
            partition=operation.place[1],
            key=self._key(operation.outgoing),
            records=records,
            error=outcomes.error_of(found),
            latency_ns=latency,
        )
        if kind is Type.INFO:
            self.retire()
        return kind

    def _key(self, outgoing: tuple[Outgoing, ...]) -> str | None:
        return outgoing[0].key.decode() if self._keyed else None

    def retire(self) -> None:
        self.process += self.context.stride
        self._counter = 0


class Sending:
    """A logical producer with a client of its own, that waits for each operation. After an unknown outcome
    the client is another one too."""

    def __init__(self, context: Context, process: int) -> None:
        self._producer = LogicalProducer(context, process)
        self._client: Producer | None = None

    def send(self, place: Place, count: int = 1, *, attempt: int = 0) -> list[Outcome]:
        """One operation, from its invocation to its outcome."""
        context = self._producer.context
        if self._client is None:
            self._client = context.library.producer(context.bootstrap, context.spec)
        operation = self._producer.invoke(place, count, attempt=attempt)
        result = self._client.send(place[0], operation.outgoing)
        kind = self._producer.complete(operation, result)
        if self._client.broken and kind is not Type.INFO:
            self._producer.retire()
        if self._client.broken or kind is Type.INFO:
            self.drop_client()
        return result

    def drop_client(self) -> None:
        if self._client is not None:
            close_in_background(self._client)
            self._client = None


class Sender(Process):
    """A client and the logical producers that it carries: ``width`` operations may be under way at a time.

    One thread does it all: it hands over what has fallen due, then waits for delivery reports, which come
    several at a time when there is much to do. A thread of its own for the reports would take turns with this
    one for Python's interpreter lock, twice for each operation.

    A client that broke is left to what it still has under way, and another takes its place. So is one that
    had an unknown outcome, as soon as it has nothing under way."""

    f = "send"

    def __init__(self, context: Context, slot: int, width: int = 1) -> None:
        """``slot``: the first of ``width`` process ids."""
        super().__init__(context, slot)
        self._most = context.spec.records_per_send
        self._idle = deque(LogicalProducer(context, slot + n) for n in reversed(range(width)))
        """On top who was used last: a few have long sequences while all is well, which says more about
        order."""
        self._client: _Client | None = None
        self._former: list[_Client] = []
        """Clients that begin nothing more and still have operations under way."""
        self._over: list[Slot] = []
        """Slots of operations that ended since the generator was last asked."""

    def work(self) -> None:
        """The message timeout bounds how long it goes on after the stream has been stopped."""
        going_on = True
        while going_on or self._under_way:
            wait_s = SERVE_S
            if going_on and self._idle:
                due = self._take()
                going_on = due is not None
                wait_s = SERVE_S if due is None else min(SERVE_S, max(TURN_S, due.next_s))
                for slot in due.slots if due is not None else ():
                    self.operate(slot)
            self._serve(wait_s)
        self.drop_client()

    def _take(self) -> Due | None:
        """Takes the operation that is due now; where nothing is under way, the one that falls due next."""
        generator = self.context.generator
        generator.done(*self._over)
        self._over.clear()
        if self._under_way:
            return generator.take_due(self.f, len(self._idle))
        slot = generator.take(self.f)
        return Due([slot], 0.0) if slot is not None else None

    @property
    def _under_way(self) -> bool:
        return bool(self._former or (self._client is not None and self._client.under_way))

    def operate(self, slot: Slot) -> None:
        """Begin one operation, with a producer that is idle."""
        producer = self._idle.pop()
        client = self._client
        if client is None or client.worn_out:
            self.drop_client()
            client = self._client = _Client(self.context)
        count, deletes = 1 + slot.choice(self._most, salt=1), self.context.spec.tombstones * _PARTS
        attempt = TOMBSTONE if deletes and slot.choice(_PARTS, salt=2) < deletes else 0
        operation = producer.invoke(self.context.places[slot.lane], count, attempt=attempt)

        def finished(found: list[Outcome]) -> None:
            unknown = producer.complete(operation, found) is Type.INFO
            client.over(unknown=unknown)
            # Below all others when it was retired, so that all are retired in turn and no id grows large.
            (self._idle.appendleft if unknown else self._idle.append)(producer)
            self._over.append(slot)

        client.begin(operation, finished)

    def _serve(self, wait_s: float) -> None:
        """Wait so long for delivery reports, or less where one comes."""
        for client in self._former:
            client.producer.serve(0)
            if not client.under_way:
                close_in_background(client.producer)
        self._former = [client for client in self._former if client.under_way]
        if self._client is not None and self._under_way:
            self._client.producer.serve(min(wait_s, FORMER_S) if self._former else wait_s)
        elif self._former:
            self._former[0].producer.serve(FORMER_S)

    def drop_client(self) -> None:
        if self._client is not None:
            self._former.append(self._client)
            self._client = None
        self._serve(0)


class _Client:
    """A client, and what it has under way."""

    def __init__(self, context: Context) -> None:
        self.producer = context.library.producer(context.bootstrap, context.spec)
        self.under_way = 0
        self._had_unknown = False

    @property
    def worn_out(self) -> bool:
        """Tells whether another shall take its place."""
        return self.producer.broken or (self._had_unknown and not self.under_way)

    def begin(self, operation: Operation, finished: Callable[[list[Outcome]], None]) -> None:
        self.under_way += 1
        self.producer.begin(operation.place[0], operation.outgoing, finished)

    def over(self, *, unknown: bool) -> None:
        self.under_way -= 1
        self._had_unknown = self._had_unknown or unknown
