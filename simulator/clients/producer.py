"""A client that writes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    Response,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.history.model import FAILED, UNKNOWN, Record, Type, value_of
from wrackline.simulator.clients.batches import encode
from wrackline.simulator.clients.client import PROCESS_STRIDE, RETRY_MS, Client, Load, Surroundings

CERTAIN = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.message_too_large,
        ErrorCode.not_enough_replicas,
        ErrorCode.invalid_required_acks,
        ErrorCode.invalid_record,
        ErrorCode.unknown_topic_id,
        ErrorCode.invalid_timestamp,
    }
)
"""A broker's answers to a first try that prove it appended nothing."""
_FINAL = frozenset(
    {
        ErrorCode.message_too_large,
        ErrorCode.invalid_record,
        ErrorCode.invalid_timestamp,
        ErrorCode.out_of_order_sequence_number,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.unknown_producer_id,
    }
)
"""With these an idempotent producer gives up: the same batch will never be taken."""
_LANE_STRIDE = 200
"""Process numbers of one of the sends that may be under way."""
_SEQUENCES = 2**31
"""Sequences begin again at 0."""
_LAST_EPOCH = 2**15 - 1
_LONG_DUE_MS = 1_000.0
_HOUR_MS = 3_600_000
_OFF_MS = (-40 * _HOUR_MS, -1_000, 2_000, _HOUR_MS // 2, 30 * _HOUR_MS)
"""A client's clock against its broker's; the last one is more than a broker takes (KIP-1030)."""


@dataclass(slots=True)
class Lanes:
    """The operations under way of all clients of one kind, by partition: each has its share of the clients,
    so that a partition without a leader does not keep all of them waiting."""

    clients: int
    busy: list[int]

    def take(self, draw: Random) -> int:
        """Returns a partition for a client that has nothing under way."""
        share = max(1, self.clients // len(self.busy))
        idle, kept = self.clients - sum(self.busy), sum(max(0, share - busy) for busy in self.busy)
        room = [partition for partition, busy in enumerate(self.busy) if busy < share or idle > kept]
        partition = draw.choice(room)
        self.busy[partition] += 1
        return partition


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    acks: int = -1
    idempotent: bool = False
    every_ms: float = 100.0
    """Mean pause between two operations."""
    batch: int = 2
    """At most so many records in one."""
    size: int = 8
    """Bytes of a record's value."""
    delivery_timeout_ms: float = 8_000.0
    timeouts_ms: tuple[int, ...] = (600, 1_500, 2_500, 5_000)
    """One of them for each try: while one producer waits for a leader another has gone on to the next."""
    weak: bool = False
    """What is acknowledged counts as unknown: the run's contract is about stronger acknowledgements."""
    load: frozenset[Load] = frozenset()
    lanes: Lanes | None = None
    """Of those that keep up a rate, as clients on hosts do: operations fall due however long the ones before
    took, and those that are long due are left out. None: there is a pause between two operations."""


@dataclass(slots=True)
class _Sending:
    lane: int
    """Which of the sends under way it is; each is of a process of its own."""
    partition: int
    values: tuple[int, ...]
    began_ms: float
    data: bytes = b""
    tries: int = 0
    off_ms: int = 0
    """How far the time of its records is from the producer's."""


class Producer(Client):
    """A producer, which tries a record once (as the harness's workload does it), or with idempotence until
    the delivery time-out, always the same batch under the same sequence."""

    def __init__(self, number: int, run: Surroundings, options: ProducerOptions) -> None:
        super().__init__(number, run)
        self.options = options
        load = options.load
        self._batch = 12 if "batches" in load else options.batch
        self._lanes = [self.process + lane * _LANE_STRIDE for lane in range(5 if "pipeline" in load else 1)]
        """Process number of each send that may be under way."""
        self._counters = [0] * len(self._lanes)
        self._sendings: dict[int, _Sending] = {}
        """By lane, in the order in which they began."""
        self._producer_id = -1
        self._producer_epoch = -1
        self._sequences: dict[int, int] = {}
        self._ends = False
        """The producer id, or its epoch, is given up when nothing is under way."""
        self._taken: int | None = None
        """The partition of the operation under way, where there are lanes."""
        self._due_ms = 0.0
        """When the latest operation fell due, or will."""
        self._burst = 0
        """Operations left of a burst."""

    def begin(self) -> None:
        self._due_ms = self.now_ms
        self._refresh(self._pause)

    @property
    def writing(self) -> bool:
        return bool(self._sendings)

    def _pause(self) -> None:
        if self.options.lanes is not None and self._taken is not None:
            self.options.lanes.busy[self._taken] -= 1
            self._taken = None
        if not self.stopping:
            self._after("next", self._pause_ms(), self._next)

    def _pause_ms(self) -> float:
        every_ms = self.options.every_ms
        if self.options.lanes is not None:
            due_ms = self._due_ms + self.random.uniform(0.5, 1.5) * every_ms
            self._due_ms = max(due_ms, self.now_ms - _LONG_DUE_MS)
            return max(0.0, self._due_ms - self.now_ms)
        if "bursts" in self.options.load:
            self._burst -= 1
            if self._burst < -1:
                self._burst = self.random.randint(10, 60)
                return self.random.uniform(500, 5_000)
            every_ms /= 8
        return self.random.expovariate(1 / every_ms)

    def _next(self) -> None:
        if self.stopping:
            return
        if self._ends and self._sendings:
            return  # whoever ends last goes on
        if self.options.idempotent and (self._producer_id < 0 or self._ends):
            self._initialise()
            return
        self._operate()

    def _operate(self) -> None:
        """Begins an operation; there is a producer id, where one is needed."""
        lane = next(lane for lane in range(len(self._lanes)) if lane not in self._sendings)
        partition = self._take_partition()
        self._begin_send(lane, partition, self.random.randint(1, self._batch))
        if len(self._sendings) < len(self._lanes):
            self._pause()

    def _take_partition(self) -> int:
        lanes = self.options.lanes
        if lanes is None:
            return self.random.randrange(self.partitions)
        self._taken = lanes.take(self.random)
        return self._taken

    def _begin_send(self, lane: int, partition: int, count: int, attempt: int = 0) -> None:
        first, self._counters[lane] = self._counters[lane], self._counters[lane] + count
        values = tuple(value_of(self._lanes[lane], first + at, attempt) for at in range(count))
        sending = self._sendings[lane] = _Sending(lane, partition, values, self.now_ms)
        records = tuple(Record(partition, UNKNOWN, value) for value in values)
        self._record(Type.INVOKE, "send", process=self._lanes[lane], partition=partition, records=records)
        sending.data = self._encoded(sending)
        self._try(sending)

    def _encoded(self, sending: _Sending) -> bytes:
        producer, count = (-1, -1, -1), len(sending.values)
        if self.options.idempotent:
            sequence = self._sequences.setdefault(sending.partition, self._first_sequence())
            producer = (self._producer_id, self._producer_epoch, sequence)
            self._sequences[sending.partition] = (sequence + count) % _SEQUENCES
        if "times" in self.options.load and self.random.random() < 0.3:
            sending.off_ms = self.random.choice(_OFF_MS)
        size = self.random.choice((8, 8, 60, 400)) if "batches" in self.options.load else self.options.size
        return encode(sending.values, int(self.now_ms) + sending.off_ms, producer, size)

    def _first_sequence(self) -> int:
        return _SEQUENCES - self.random.randint(1, 30) if "wrap" in self.options.load else 0

    def _initialise(self) -> None:
        """Asks for a producer id; one that has an epoch left goes on with the next one, as clients do."""
        self._sequences, self._ends = {}, False
        if "wrap" in self.options.load and 0 <= self._producer_epoch < _LAST_EPOCH:
            self._producer_epoch += 1
            self._next()
            return

        def answered(response: Response | None) -> None:
            if isinstance(response, InitProducerIdResponse) and response.error is NO_ERROR:
                self._producer_id, self._producer_epoch = response.producer_id, response.producer_epoch
                if "wrap" in self.options.load:
                    self._producer_epoch = _LAST_EPOCH - self.random.randint(0, 3)
                self._next()
            else:
                self._after("next", RETRY_MS, self._next)

        self._producer_id = -1
        self._send(self.random.choice(self.brokers), InitProducerIdRequest(), answered)

    # --- one batch -----------------------------------------------------------------------------------------

    def _try(self, sending: _Sending) -> None:
        if self.now_ms - sending.began_ms > self.options.delivery_timeout_ms:
            self._finish(sending, None, "delivery timed out")
            return
        leader = self._leader_of(sending.partition)
        if leader is None:
            self._again(sending)
            return
        sending.tries += 1
        part = ProducePartition(TopicPartition(self.topic, sending.partition), sending.data)
        patience_ms = self.random.choice(self.options.timeouts_ms)
        request = ProduceRequest(self.options.acks, patience_ms, (part,))
        if self.options.acks == 0:
            self._send(leader, request, lambda _: None)
            self._finish(sending, None, "acks=0")
            return
        self._send(leader, request, lambda response: self._tried(sending, response), patience_ms + 500)

    def _again(self, sending: _Sending) -> None:
        key = "try" if sending.lane == 0 else f"try-{sending.lane}"
        self._after(key, RETRY_MS, lambda: self._refresh(lambda: self._try(sending)))

    def _tried(self, sending: _Sending, response: Response | None) -> None:
        result = response.partitions[0] if isinstance(response, ProduceResponse) else None
        if result is not None and result.error is NO_ERROR:
            self._finish(sending, result, None)
            return
        error = "no answer" if result is None else result.error.name
        if self.options.idempotent and (result is None or not self._is_final(sending, result.error)):
            self._again(sending)
            return
        self._finish(sending, result, error)
        self._refresh(lambda: None)

    def _is_final(self, sending: _Sending, error: ErrorCode) -> bool:
        """A batch that overtook an earlier one is out of order until that one is there."""
        if error is ErrorCode.out_of_order_sequence_number:
            before = list(self._sendings.values())
            earlier = before[: before.index(sending)]
            return all(other.partition != sending.partition for other in earlier)
        return error in _FINAL

    def _finish(self, sending: _Sending, result: ProduceResult | None, error: str | None) -> None:
        """Write down what became of it: ok, fail (certainly not appended) or info."""
        full = len(self._sendings) == len(self._lanes)
        del self._sendings[sending.lane]
        partition, process = sending.partition, self._lanes[sending.lane]
        extra = {"time_off_ms": sending.off_ms} if sending.off_ms else None
        if error is None and self.options.weak:
            error = "acknowledged by the leader alone"
        if error is None and result is not None:
            records = tuple(
                Record(partition, result.base_offset + at, value) for at, value in enumerate(sending.values)
            )
            self._record(Type.OK, "send", process=process, partition=partition, records=records, extra=extra)
        else:
            first = sending.tries <= 1
            certain = sending.tries == 0 or (result is not None and first and result.error in CERTAIN)
            outcome = FAILED if certain else UNKNOWN
            records = tuple(Record(partition, outcome, value) for value in sending.values)
            kind = Type.FAIL if certain else Type.INFO
            self._record(
                kind, "send", process=process, partition=partition, records=records, error=error, extra=extra
            )
            self._ends = self.options.idempotent
            if not certain:
                self._next_process(sending.lane)
        if full or (self._ends and not self._sendings):
            self._sent(result.base_offset if error is None and result is not None else None, error)

    def _sent(self, offset: int | None, error: str | None) -> None:  # noqa: ARG002
        """A send has ended, and another operation may begin. ``offset``: None unless it was acknowledged."""
        self._pause()

    def _next_process(self, lane: int) -> None:
        """Takes a new process number after an operation that ended in ``info``."""
        self._lanes[lane] += 1
        stride = _LANE_STRIDE if len(self._lanes) > 1 else PROCESS_STRIDE
        if self._lanes[lane] % stride == stride - 1:
            self.stopping = True
