"""Produce requests at the leader (docs/protocol.md 2.1)."""

from __future__ import annotations

from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication import leader
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching import validation
from wrackline.broker.core.replication.partitions import Partitions
from wrackline.broker.core.replication.purgatory import ProducePurgatory, trace_acks
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.batches.batch_checks import Limits, Refusal
from wrackline.broker.model.effects import NoReply
from wrackline.broker.model.messages.requests import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
)
from wrackline.broker.model.types import Acks
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.replication.produce import Sequence

_SEQUENCE_ERRORS = {
    Sequence.OUT_OF_ORDER: ErrorCode.out_of_order_sequence_number,
    Sequence.OLD_EPOCH: ErrorCode.invalid_producer_epoch,
}


PIECE_BYTES = 1 << 20
"""Of records that are looked at in one go. What hands in requests keeps back those behind a larger one: they
must not overtake what is left of it."""


@dataclass(slots=True)
class _Taken:
    """A request, and how far it has come."""

    request_id: int
    request: ProduceRequest
    results: list[ProduceResult] = field(default_factory=list)
    waits: list[tuple[int, Replica, int]] = field(default_factory=list)


class ProduceHandler:
    def __init__(self, ctx: Context, partitions: Partitions, purgatory: ProducePurgatory) -> None:
        self._ctx = ctx
        self._partitions = partitions
        self._purgatory = purgatory
        self._unfinished: dict[int, _Taken] = {}

    def handle(self, request_id: int, request: ProduceRequest) -> None:
        self._take(_Taken(request_id, request))

    def cancel(self, request_id: int) -> None:
        """Nobody waits for the rest of it."""
        self._unfinished.pop(request_id, None)

    def _take(self, taken: _Taken) -> None:
        """Partition by partition. Looking at records takes time: after so many bytes others have their
        turn."""
        request, results, waits = taken.request, taken.results, taken.waits
        acks, size = request.acks, 0
        for part in request.partitions[len(results) :]:
            if size > PIECE_BYTES:
                self._later(taken)
                return
            size += len(part.records)
            if acks not in (Acks.ALL, Acks.LEADER, Acks.NONE):
                results.append(_refused(part, ErrorCode.invalid_required_acks))
                continue
            result, required = self._partition(request, part)
            replica = self._partitions.get(part.tp)
            if acks == Acks.ALL and result.error is NO_ERROR and replica is not None:
                waits.append((len(results), replica, required))
            results.append(result)
        request_id = taken.request_id
        if waits:
            self._purgatory.park(request_id, results, waits, request.timeout_ms)
            return
        trace_acks(self._ctx, request_id, results, acks)
        if acks == Acks.NONE:
            failed = any(result.error is not NO_ERROR for result in results)
            self._ctx.out.append(NoReply(request_id, close=failed))
        else:
            self._ctx.reply(request_id, ProduceResponse(tuple(results)))

    def _later(self, taken: _Taken) -> None:
        self._unfinished[taken.request_id] = taken

        def go_on() -> None:
            if self._unfinished.pop(taken.request_id, None) is taken:
                self._take(taken)

        self._ctx.set_timer(f"produce-{taken.request_id}", self._ctx.now_ms, go_on)

    def _partition(self, request: ProduceRequest, part: ProducePartition) -> tuple[ProduceResult, int]:
        """The result so far, and the offset the high watermark must reach for acks=all."""
        ctx, replica = self._ctx, self._partitions.get(part.tp)
        if replica is None or (part.topic_id is not None and part.topic_id != replica.topic_id):
            return self._elsewhere(part), -1
        if replica.failed:
            return _refused(part, ErrorCode.kafka_storage_error), -1
        if replica.leader is None or not replica.leader.open:
            return self._elsewhere(part), -1
        error = ctx.rules.produce.refusal(request.acks, len(replica.leader.isr), replica.min_isr)
        if error is not NO_ERROR:
            message = f"{len(replica.leader.isr)} in-sync replicas, {replica.min_isr} needed"
            return _refused(part, error, message), -1
        try:
            header, batch = validation.produced(part.records, self._limits(request, replica))
        except Refusal as refusal:
            return _refused(part, refusal.error, refusal.message), -1
        log = replica.log
        if header.producer_id >= 0:
            known = log.producers.get(header.producer_id)
            verdict = ctx.rules.produce.sequence(
                known, header.producer_epoch, header.base_sequence, header.last_sequence
            )
            if verdict.original is not None:
                original = verdict.original
                return self._appended(part, replica, original.base_offset), original.last_offset + 1
            if verdict.sequence is not Sequence.NEXT:
                return _refused(part, _SEQUENCE_ERRORS[verdict.sequence]), -1
        base = log.leo
        replica.append([validation.stamped(header, batch, base, replica.leader_epoch)], request.acks)
        leader.advance(replica)
        return self._appended(part, replica, base), log.leo

    def _limits(self, request: ProduceRequest, replica: Replica) -> Limits:
        clock_ms, config = self._ctx.clock_ms, self._ctx.config
        if clock_ms is None:
            return Limits(replica.max_message_bytes, zstd=request.zstd)
        return Limits(
            replica.max_message_bytes,
            clock_ms - config.message_timestamp_before_max_ms,
            clock_ms + config.message_timestamp_after_max_ms,
            request.zstd,
        )

    def _appended(self, part: ProducePartition, replica: Replica, base_offset: int) -> ProduceResult:
        return ProduceResult(
            part.tp, base_offset=base_offset, log_start=replica.log.log_start, topic_id=part.topic_id
        )

    def _elsewhere(self, part: ProducePartition) -> ProduceResult:
        error, leader = self._ctx.refuse_leadership(part.tp, part.topic_id)
        return ProduceResult(part.tp, error, current_leader=leader, topic_id=part.topic_id)


def _refused(part: ProducePartition, error: ErrorCode, message: str | None = None) -> ProduceResult:
    return ProduceResult(part.tp, error, message=message, topic_id=part.topic_id)
