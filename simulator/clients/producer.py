"""A client that writes."""

from __future__ import annotations

from dataclasses import dataclass

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
from wrackline.simulator.clients.client import RETRY_MS, Client, Surroundings

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
    """A producer, which tries a record once (as the harness's workload does it), or with idempotence until
    the delivery time-out, always the same batch under the same sequence."""

    def __init__(self, number: int, run: Surroundings, options: ProducerOptions) -> None:
        super().__init__(number, run)
        self.options = options
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
                self._after("next", RETRY_MS, self._next)

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
            self._after("try", RETRY_MS, lambda: self._refresh(self._try))
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
            self._after("try", RETRY_MS, lambda: self._refresh(self._try))
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
