"""Producers, consumers and askers of end offsets: state machines that speak the core's messages to brokers.

They have the contract of any core (``handle(event, now_ms) -> effects``), so the world treats them as nodes:
what they send can be delayed, cut and held like everything else. Each acts one operation at a time and writes
it to the history; after an operation whose outcome it does not know it goes on under a new process number, as
the history's rules ask. Their random choices come from a generator of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

from crc32c import crc32c
from kio.schema.errors import ErrorCode

from wrackline.broker.model import batch
from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.events import Event as CoreEvent
from wrackline.broker.model.messages import (
    EARLIEST,
    LATEST,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    Request,
    Response,
)
from wrackline.broker.model.metadata_messages import MetadataRequest, MetadataResponse
from wrackline.broker.model.types import NO_LEADER, NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.history.model import FAILED, UNKNOWN, Event, Record, Type, value_of
from wrackline.simulator.world.history import History

PROCESS_STRIDE = 1_000
"""Process numbers a client may use up."""
CERTAIN = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.message_too_large,
        ErrorCode.not_enough_replicas,
        ErrorCode.invalid_required_acks,
        ErrorCode.invalid_record,
        ErrorCode.unknown_topic_id,
    }
)
"""A broker's answers to a first try that prove it appended nothing."""
_RETRY_MS = 100.0
_TIMEOUT_MS = 3_000
_BATCH_HEAD = struct.Struct(">qiibI")
_BATCH_TAIL = struct.Struct(">hiqqqhii")

Answered = Callable[[Response | None], None]


def encode(values: Sequence[int], timestamp_ms: int, producer: tuple[int, int, int] = (-1, -1, -1)) -> bytes:
    """One batch, a record per value (8 bytes). ``producer``: id, epoch, first sequence."""
    plain = batch.build([value.to_bytes(8, "big") for value in values], 0, -1, timestamp_ms)
    if producer[0] < 0:
        return plain
    tail = (
        _BATCH_TAIL.pack(0, len(values) - 1, timestamp_ms, timestamp_ms, *producer, len(values))
        + plain[batch.HEADER_BYTES :]
    )
    return _BATCH_HEAD.pack(0, 9 + len(tail), -1, 2, crc32c(tail)) + tail


def decode(records: bytes, partition: int, from_offset: int = 0) -> list[Record]:
    """The records at or past an offset."""
    found: list[Record] = []
    at = 0
    while at < len(records):
        size = batch.LENGTH_OFFSET + int.from_bytes(records[at + 8 : at + 12], "big")
        found += _decoded(records[at : at + size], partition)
        at += size
    if found and found[0].offset < from_offset:
        return [record for record in found if record.offset >= from_offset]
    return found


@lru_cache(maxsize=4_096)
def _decoded(data: bytes, partition: int) -> tuple[Record, ...]:
    """One batch; every replica and every reader meets the same bytes. Raises CorruptBatch."""
    header = batch.parse_header(data)
    return tuple(
        Record(partition, offset, int.from_bytes(value, "big"), header.leader_epoch, header.base_timestamp)
        for offset, value in batch.values_of(header, data)
    )


class Client:
    """What all of them have: requests with continuations, timers, metadata, a process number."""

    kind = "client"

    def __init__(
        self,
        number: int,
        topic: str,
        partitions: int,
        brokers: Sequence[NodeId],
        seed: int | str,
        history: History,
    ) -> None:
        self.number = number
        self.topic = topic
        self.partitions = partitions
        self.brokers = tuple(brokers)
        self.history = history
        self.random = Random(f"{seed}/client/{number}")
        self.now_ms = 0.0
        self.process = number * PROCESS_STRIDE
        self.stopping = False
        self.leaders: dict[int, NodeId] = {}
        """Partition -> leader, as last heard."""
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

    def _record(self, type_: Type, f: str, **fields: Any) -> None:
        history, now_ms = self.history, self.now_ms
        index, time_ns = len(history.events), int(now_ms * 1_000_000)
        event = Event(self.process, type_, f, self.topic, index=index, time_ns=time_ns, **fields)
        history.record(now_ms, event)

    def _new_process(self) -> None:
        """After an operation that ended in ``info``."""
        if self.process % PROCESS_STRIDE == PROCESS_STRIDE - 1:
            self.stopping = True
            return
        self.process += 1

    def _refresh(self, then: Callable[[], None]) -> None:
        """Ask any broker who leads; ``then`` is called when it has answered or failed to."""
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


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    acks: int = -1
    idempotent: bool = False
    every_ms: float = 100.0
    """Mean pause between two operations."""
    batch: int = 2
    """At most so many records in one."""
    delivery_timeout_ms: float = 8_000.0
    timeouts_ms: tuple[int, ...] = (600, 1_500, 2_500, 5_000)
    """One of them for each try: while one producer waits for a leader another has gone on to the next."""
    weak: bool = False
    """What is acknowledged counts as unknown: the run's contract is about stronger acknowledgements."""


@dataclass(slots=True)
class _Sending:
    partition: int
    values: tuple[int, ...]
    began_ms: float
    data: bytes = b""
    tries: int = 0


class Producer(Client):
    """Without idempotence a record is tried once (as the harness's workload does it), with it until the
    delivery time-out, always the same batch under the same sequence."""

    kind = "producer"

    def __init__(
        self,
        number: int,
        topic: str,
        partitions: int,
        brokers: Sequence[NodeId],
        seed: int | str,
        history: History,
        options: ProducerOptions | None = None,
    ) -> None:
        super().__init__(number, topic, partitions, brokers, seed, history)
        self.options = options or ProducerOptions()
        self._counter = 0
        self._sending: _Sending | None = None
        self._producer_id = -1
        self._producer_epoch = -1
        self._sequences: dict[int, int] = {}

    def begin(self) -> None:
        self._refresh(self._pause)

    @property
    def writing(self) -> bool:
        return self._sending is not None

    def _pause(self) -> None:
        if not self.stopping:
            self._after("next", self.random.expovariate(1 / self.options.every_ms), self._next)

    def _next(self) -> None:
        if self.stopping:
            return
        if self.options.idempotent and self._producer_id < 0:
            self._initialise()
            return
        partition = self.random.randrange(self.partitions)
        count = self.random.randint(1, self.options.batch)
        values = tuple(value_of(self.process, self._counter + at) for at in range(count))
        self._counter += count
        self._sending = sending = _Sending(partition, values, self.now_ms)
        records = tuple(Record(partition, UNKNOWN, value) for value in values)
        self._record(Type.INVOKE, "send", partition=partition, records=records)
        producer = (-1, -1, -1)
        if self.options.idempotent:
            producer = (self._producer_id, self._producer_epoch, self._sequences.get(partition, 0))
        sending.data = encode(values, int(self.now_ms), producer)
        self._try()

    def _initialise(self) -> None:
        def answered(response: Response | None) -> None:
            if isinstance(response, InitProducerIdResponse) and response.error is NO_ERROR:
                self._producer_id, self._producer_epoch = response.producer_id, response.producer_epoch
                self._sequences = {}
                self._next()
            else:
                self._after("next", _RETRY_MS, self._next)

        self._send(self.random.choice(self.brokers), InitProducerIdRequest(), answered)

    # --- one batch -----------------------------------------------------------------------------------------

    def _try(self) -> None:
        sending = self._sending
        assert sending is not None
        if self.now_ms - sending.began_ms > self.options.delivery_timeout_ms:
            self._finish(None, "delivery timed out")
            return
        leader = self._leader_of(sending.partition)
        if leader is None:
            self._after("try", _RETRY_MS, lambda: self._refresh(self._try))
            return
        sending.tries += 1
        part = ProducePartition(TopicPartition(self.topic, sending.partition), sending.data)
        patience_ms = self.random.choice(self.options.timeouts_ms)
        request = ProduceRequest(self.options.acks, patience_ms, (part,))
        if self.options.acks == 0:
            self._send(leader, request, lambda _: None)
            self._finish(None, "acks=0")
            return
        self._send(leader, request, self._tried, patience_ms + 500)

    def _tried(self, response: Response | None) -> None:
        result = response.partitions[0] if isinstance(response, ProduceResponse) else None
        if result is not None and result.error is NO_ERROR:
            self._finish(result, None)
            return
        error = "no answer" if result is None else result.error.name
        if self.options.idempotent and (result is None or result.error not in _FINAL):
            self._after("try", _RETRY_MS, lambda: self._refresh(self._try))
            return
        self._finish(result, error)
        self._refresh(lambda: None)

    def _finish(self, result: ProduceResult | None, error: str | None) -> None:
        """Write down what became of it: ok, fail (certainly not appended) or info."""
        sending, self._sending = self._sending, None
        assert sending is not None
        partition, count = sending.partition, len(sending.values)
        if error is None and self.options.weak:
            error = "acknowledged by the leader alone"
        if error is None and result is not None:
            records = tuple(
                Record(partition, result.base_offset + at, value) for at, value in enumerate(sending.values)
            )
            self._sequences[partition] = self._sequences.get(partition, 0) + count
            self._record(Type.OK, "send", partition=partition, records=records)
        else:
            first = sending.tries <= 1
            certain = sending.tries == 0 or (result is not None and first and result.error in CERTAIN)
            outcome = FAILED if certain else UNKNOWN
            records = tuple(Record(partition, outcome, value) for value in sending.values)
            kind = Type.FAIL if certain else Type.INFO
            self._record(kind, "send", partition=partition, records=records, error=error)
            self._producer_id = -1
            if not certain:
                self._new_process()
        self._pause()


_FINAL = frozenset(
    {
        ErrorCode.message_too_large,
        ErrorCode.invalid_record,
        ErrorCode.out_of_order_sequence_number,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.unknown_producer_id,
    }
)
"""With these an idempotent producer gives up: the same batch will never be taken."""


class Consumer(Client):
    """Reads one partition on and on; starts anew at the log's end range when its offset is out of it."""

    kind = "consumer"

    def __init__(
        self,
        number: int,
        topic: str,
        partitions: int,
        brokers: Sequence[NodeId],
        seed: int | str,
        history: History,
        partition: int | None = None,
    ) -> None:
        super().__init__(number, topic, partitions, brokers, seed, history)
        self.partition = self.random.randrange(partitions) if partition is None else partition
        self.position = 0

    @property
    def _tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

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
            self._after("again", _RETRY_MS, lambda: self._refresh(self._poll))

    def _poll(self) -> None:
        if self.stopping:
            return
        leader = self._leader_of(self.partition)
        if leader is None:
            self._again()
            return
        part = FetchPartition(self._tp, self.position, 10_000)
        self._record(Type.INVOKE, "poll")
        self._send(leader, FetchRequest(500, 1, 20_000, (part,)), self._polled)

    def _polled(self, response: Response | None) -> None:
        result = (
            response.partitions[0] if isinstance(response, FetchResponse) and response.partitions else None
        )
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

        def answered(response: Response | None) -> None:
            if isinstance(response, ListOffsetsResponse):
                result = response.partitions[0]
                if result.error is NO_ERROR:
                    self._assign(result.offset)
            self._again()

        self._send(leader, ListOffsetsRequest((ListOffsetsPartition(self._tp, EARLIEST),)), answered)


class EndAsker(Client):
    """Asks now and then where a partition ends."""

    kind = "asker"

    def __init__(
        self,
        number: int,
        topic: str,
        partitions: int,
        brokers: Sequence[NodeId],
        seed: int | str,
        history: History,
        every_ms: float = 400.0,
    ) -> None:
        super().__init__(number, topic, partitions, brokers, seed, history)
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
        tp = TopicPartition(self.topic, partition)

        def answered(response: Response | None) -> None:
            result = response.partitions[0] if isinstance(response, ListOffsetsResponse) else None
            if result is not None and result.error is NO_ERROR:
                self._record(Type.OK, "end", partition=partition, high_watermark=result.offset)
                self._pause()
                return
            error = "no answer" if result is None else result.error.name
            self._record(Type.FAIL, "end", partition=partition, error=error)
            self._refresh(self._pause)

        self._send(leader, ListOffsetsRequest((ListOffsetsPartition(tp, LATEST),)), answered)


class Drainer(Client):
    """The final read: every partition from its start to its end as asked now, chunk by chunk. ``done`` when
    all are read; ``found`` has what was read, ``ends`` (log start, end) of each partition."""

    kind = "drainer"

    def __init__(
        self,
        number: int,
        topic: str,
        partitions: int,
        brokers: Sequence[NodeId],
        seed: int | str,
        history: History,
    ) -> None:
        super().__init__(number, topic, partitions, brokers, seed, history)
        self.found: dict[int, list[Record]] = {partition: [] for partition in range(partitions)}
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
            self._after("again", _RETRY_MS, self._partition)
            return

        def answered(response: Response | None) -> None:
            result = response.partitions[0] if isinstance(response, ListOffsetsResponse) else None
            if result is None or result.error is not NO_ERROR:
                self._after("again", _RETRY_MS, self._partition)
            else:
                answered_with(result.offset)

        tp = TopicPartition(self.topic, self._at)
        self._send(leader, ListOffsetsRequest((ListOffsetsPartition(tp, which),)), answered)

    def _go(self, start: int, end: int) -> None:
        self.ends[self._at] = start, end
        self.found[self._at] = []
        self._position = start
        self._read()

    def _read(self) -> None:
        start, end = self.ends[self._at]
        leader = self._leader_of(self._at)
        if leader is None:
            self._after("again", _RETRY_MS, self._partition)
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

    def _answer(self, response: Response | None) -> None:
        result = (
            response.partitions[0] if isinstance(response, FetchResponse) and response.partitions else None
        )
        if result is None or result.error is not NO_ERROR or not isinstance(result.records, bytes):
            error = "no answer" if result is None else result.error.name
            self._record(Type.FAIL, "drain", partition=self._at, error=error)
            self._after("again", _RETRY_MS, self._partition)
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
