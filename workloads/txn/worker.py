"""The worker of transactions: one producer kept for many of them, one consumer of the same topic.

A worker reads what is committed, writes to several partitions, sends the offsets of what it read, and ends
the transaction: consume, transform, produce. After an abort its consumer goes back to where the transaction
began, unless the specification leaves it where it is. Where nobody knows how a transaction ended, producer
and consumer are given up: the next producer of the same transactional id ends what is left open, and the next
consumer begins at what is committed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wrackline.history.model import FAILED, UNKNOWN, Record, Type, value_of
from wrackline.workloads.clients.base import ClientError, Consumer, Outgoing, TransactionalProducer
from wrackline.workloads.clients.outcomes import Outcome
from wrackline.workloads.log.processes import (
    Context,
    Process,
    close_in_background,
    committed_offsets,
    inside_the_log,
    positions_of,
    read_records,
)
from wrackline.workloads.pace import Slot
from wrackline.workloads.payload import encode
from wrackline.workloads.txn.drawing import Drawn, draw
from wrackline.workloads.txn.ending import CRASHED, Ended, end
from wrackline.workloads.txn.spec import TxnSpec

READY_S = 5.0
"""So long a worker tries to get a producer and a consumer before it gives a transaction up that it has not
begun."""
AGAIN_S = 0.2
SERVE_S = 0.05


@dataclass
class _Open:
    """A transaction that is under way."""

    drawn: Drawn
    outgoing: tuple[Outgoing, ...]
    asked: tuple[Record, ...]
    begin_ns: int
    told: dict[int, Outcome] = field(default_factory=dict)
    """Place of a record -> what its delivery report said."""
    read: list[Record] = field(default_factory=list)
    corrupt: list[dict[str, Any]] = field(default_factory=list)
    read_error: str | None = None
    offsets: dict[int, int] = field(default_factory=dict)
    """What was sent of offsets."""
    gave_up: str | None = None
    """What went wrong: the transaction can only be aborted."""


class Worker(Process):
    f = "send"

    def __init__(self, context: Context, slot: int, spec: TxnSpec) -> None:
        super().__init__(context, slot)
        self._spec = spec
        name = f"wrackline-{context.tag.hex()}-{slot}"
        self.transactional_id = self.group = self._member = name
        self.source = list(context.topics)[slot % len(context.topics)]
        """The topic that it reads, and commits offsets of."""
        self._consuming = slot + spec.workers
        self._committing = slot + 2 * spec.workers
        self._counter = 0
        self._producer: TransactionalProducer | None = None
        self._consumer: Consumer | None = None
        self._positions: dict[int, int] = {}
        """Next offset of every partition."""
        self._lost = False
        """The consumer stands outside of the log."""
        self._left_open = False
        """A transaction of this worker may be open still."""

    # --- one transaction

    def operate(self, slot: Slot) -> None:
        clients = self._ready()
        if clients is None:
            return
        producer, consumer = clients
        drawn = draw(slot, self._spec, self.context.topics)
        txn = self._invoke(drawn)
        before = dict(self._positions)
        if consumer is not None:
            self._consume(txn, consumer)
        self._produce(txn, producer)
        self._flush(txn, producer)
        if consumer is not None:
            self._send_offsets(txn, producer, consumer)
        self._hold(txn, producer, drawn.holds_s[-1])
        self._complete(txn, ended := CRASHED if drawn.crashes else self._end(txn, producer))
        self._go_on(ended, before)

    def _end(self, txn: _Open, producer: TransactionalProducer) -> Ended:
        return end(
            producer,
            txn.drawn.end,
            txn.gave_up,
            now_ns=self.context.recorder.now_ns,
            timeout_s=self._spec.transaction_timeout_ms / 1e3,
        )

    def _consume(self, txn: _Open, consumer: Consumer) -> None:
        for _ in range(txn.drawn.polls):
            polled = consumer.poll()
            records, corrupt = read_records(polled.records, self.context)
            txn.read += records
            txn.corrupt += corrupt
            txn.read_error = txn.read_error or polled.error
            self._lost = self._lost or polled.position_lost
            for record in records:
                self._positions[record.partition] = record.offset + 1

    def _produce(self, txn: _Open, producer: TransactionalProducer) -> None:
        for place, outgoing in enumerate(txn.outgoing):
            if place:
                self._hold(txn, producer, txn.drawn.holds_s[place - 1])
            if self._failure(txn, producer) is not None:
                return

            def finished(found: list[Outcome], place: int = place) -> None:
                txn.told[place] = found[0]

            producer.begin(txn.drawn.topic, [outgoing], finished)

    def _flush(self, txn: _Open, producer: TransactionalProducer) -> None:
        """Waits until it is known of every record whether it was delivered; the message timeout bounds it."""
        while len(txn.told) < len(txn.outgoing) and self._failure(txn, producer) is None:
            producer.serve(SERVE_S)

    def _send_offsets(self, txn: _Open, producer: TransactionalProducer, consumer: Consumer) -> None:
        if not (txn.drawn.sends_offsets and txn.read):
            return
        self._hold(txn, producer, txn.drawn.holds_s[-2])
        if self._failure(txn, producer) is not None:
            return
        partitions = sorted({record.partition for record in txn.read})
        txn.offsets = {partition: self._positions[partition] for partition in partitions}
        self._commit_row(Type.INVOKE, txn, {})
        timeout_s = self._spec.transaction_timeout_ms / 1e3
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                producer.send_offsets(self.source, txn.offsets, consumer, timeout_s)
            except ClientError as refused:
                if refused.again and time.monotonic() < deadline:
                    producer.serve(AGAIN_S)
                    continue
                txn.gave_up = refused.name
            return

    def _hold(self, txn: _Open, producer: TransactionalProducer, seconds: float) -> None:
        """Lets the transaction stay open; delivery reports are taken meanwhile."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and txn.gave_up is None:
            producer.serve(left)

    def _failure(self, txn: _Open, producer: TransactionalProducer) -> str | None:
        """Returns what a delivery report said of a record that is not in the log."""
        if txn.gave_up is None:
            failed = (outcome for outcome in txn.told.values() if outcome.error is not None)
            txn.gave_up = next((outcome.error for outcome in failed), None)
        if txn.gave_up is None and producer.broken:
            txn.gave_up = "_FATAL"
        return txn.gave_up

    # --- what is written down

    def _of_source(self, process: int, kind: Type, f: str, **columns: Any) -> None:
        self.record(process, kind, f, topic=self.source, **columns)

    def _invoke(self, drawn: Drawn) -> _Open:
        context = self.context
        now_ms = time.time_ns() // 1_000_000
        outgoing, asked = [], []
        for partition in drawn.partitions:
            value = value_of(self.process, self._counter)
            self._counter += 1
            payload = encode(context.tag, value, drawn.topic, partition, now_ms, context.spec.record_bytes)
            outgoing.append(Outgoing(partition, context.spec.key_of(partition, value), payload, now_ms))
            asked.append(Record(partition, UNKNOWN, value, -1, now_ms))
        extra = {"txn": drawn.number, "transactional_id": self.transactional_id}
        self.record(
            self.process,
            Type.INVOKE,
            "send",
            topic=drawn.topic,
            key=self._key(outgoing),
            records=tuple(asked),
            extra=extra,
        )
        if drawn.polls:
            self._of_source(self._consuming, Type.INVOKE, "poll", extra={"txn": drawn.number})
        return _Open(drawn, tuple(outgoing), tuple(asked), time.monotonic_ns())

    def _key(self, outgoing: Sequence[Outgoing]) -> str | None:
        """The key that all records of the transaction have in their partitions."""
        _, _, key = outgoing[0].key.decode(errors="replace").partition("-")
        return key if self._spec.compacted else None

    def _complete(self, txn: _Open, ended: Ended) -> None:
        latency = time.monotonic_ns() - txn.begin_ns
        extra = {"txn": txn.drawn.number, **ended.said}
        if txn.offsets:
            self._commit_row(ended.kind, txn, ended.said, ended.error)
        if txn.drawn.polls:
            self._complete_poll(txn, ended, extra, latency)
        self.record(
            self.process,
            ended.kind,
            "send",
            topic=txn.drawn.topic,
            key=self._key(txn.outgoing),
            records=tuple(self._outcome(txn, place, ended.kind) for place in range(len(txn.asked))),
            error=ended.error,
            extra=extra,
            latency_ns=latency,
        )

    def _complete_poll(self, txn: _Open, ended: Ended, extra: Mapping[str, Any], latency: int) -> None:
        said = {**extra, "positions": positions_of(self._positions)}
        if ended.kind is not Type.OK:
            said["aborted"] = str(ended.kind)
        if txn.corrupt:
            said["corrupt"] = txn.corrupt
        if txn.read_error:
            said["error"] = txn.read_error
        self._of_source(
            self._consuming, Type.OK, "poll", records=tuple(txn.read), extra=said, latency_ns=latency
        )

    @staticmethod
    def _outcome(txn: _Open, place: int, kind: Type) -> Record:
        asked, told = txn.asked[place], txn.told.get(place)
        if kind is Type.FAIL:
            return asked._replace(offset=FAILED)
        if kind is Type.INFO or told is None:
            return asked
        return asked._replace(offset=told.offset, timestamp=told.timestamp_ms)

    def _commit_row(self, kind: Type, txn: _Open, said: Mapping[str, Any], error: str | None = None) -> None:
        extra = {
            "offsets": positions_of(txn.offsets),
            "group": self.group,
            "member": self._member,
            "txn": txn.drawn.number,
            **said,
        }
        self._of_source(self._committing, kind, "commit", error=error, extra=extra)

    # --- going on

    def _go_on(self, ended: Ended, before: Mapping[int, int]) -> None:
        undone = ended.kind is Type.FAIL and self._positions != before
        if undone and self._spec.rewinds and self._consumer is not None:
            self._assign(self._consumer, before)
        if ended.kind is Type.INFO:
            self._left_open = True
            self.retire()
        elif self._producer is not None and self._producer.broken:
            self._drop_producer()
        elif self._consumer is not None and self._consumer.broken:
            self._drop_consumer()
            self._consuming += self.context.stride

    def retire(self) -> None:
        """All three processes end; what the worker holds is another's from now on."""
        super().retire()
        self._counter = 0
        self._consuming += self.context.stride
        self._committing += self.context.stride

    def drop_client(self) -> None:
        self._drop_producer()
        self._drop_consumer()

    def _drop_producer(self) -> None:
        if self._producer is not None:
            close_in_background(self._producer)
            self._producer = None

    def _drop_consumer(self) -> None:
        if self._consumer is not None:
            close_in_background(self._consumer)
            self._consumer = None

    def work(self) -> None:
        super().work()
        if self._left_open:  # it would hide from the final read what others committed after it
            deadline = time.monotonic() + self._spec.transaction_timeout_ms / 1e3
            while self._left_open and time.monotonic() < deadline:
                self._end_what_is_left_open(deadline)
            self.drop_client()

    def _end_what_is_left_open(self, deadline: float) -> None:
        try:
            self._producer_ready(deadline)
        except ClientError:
            time.sleep(AGAIN_S)

    # --- producer and consumer

    def _ready(self) -> tuple[TransactionalProducer, Consumer | None] | None:
        """A producer in a transaction that has just begun, and a consumer that stands somewhere, if
        transactions poll; None when they cannot be had for now."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            try:
                producer = self._producer_ready(deadline)
                consumer = self._consumer_ready() if self._spec.polls_per_txn else None
                producer.begin_transaction()
            except ClientError as refused:
                if refused.fatal or not refused.again:
                    self._drop_producer()
                time.sleep(AGAIN_S)
            else:
                return producer, consumer
        return None

    def _producer_ready(self, deadline: float) -> TransactionalProducer:
        if self._producer is None:
            context, timeout_ms = self.context, self._spec.transaction_timeout_ms
            producer = context.library.transactional(
                context.bootstrap, context.spec, self.transactional_id, timeout_ms
            )
            try:
                producer.init_transactions(max(AGAIN_S, deadline - time.monotonic()))
            except ClientError:
                close_in_background(producer)
                raise
            self._producer = producer
            self._left_open = False
        return self._producer

    def _consumer_ready(self) -> Consumer:
        """A new one begins at what its group has committed."""
        context = self.context
        if self._consumer is None:
            self._consumer = context.library.consumer(context.bootstrap, context.spec, group=self.group)
            self._positions = {}
        if not self._positions:
            committed = committed_offsets(context, self._consumer, self._consuming, self.group, self.source)
            self._assign(self._consumer, {p: max(0, offset) for p, offset in committed.items()})
        if self._lost:
            self._assign(self._consumer, inside_the_log(self._consumer, self.source, self._positions))
        return self._consumer

    def _assign(self, consumer: Consumer, positions: Mapping[int, int]) -> None:
        self._positions, self._lost = dict(positions), False
        extra = {"positions": positions_of(positions), "group": self.group, "member": self._member}
        self._of_source(self._consuming, Type.INVOKE, "assign", extra=extra)
        consumer.assign(self.source, positions)
        self._of_source(self._consuming, Type.OK, "assign", extra=extra)
