"""May a batch be appended, and when is it acknowledged (docs/protocol.md 2.1, K27-K30, C5, C6)."""

from __future__ import annotations

from enum import Enum

from kio.schema.errors import ErrorCode

from wrackline.broker.model.types import Acks, ProducerBatch, ProducerSnapshot
from wrackline.broker.model.values import NO_ERROR, dataclass

MAX_SEQUENCE = 0x7FFFFFFF


class Sequence(Enum):
    NEXT = "next"
    DUPLICATE = "duplicate"
    OUT_OF_ORDER = "out of order"
    OLD_EPOCH = "old epoch"


@dataclass(frozen=True, slots=True)
class SequenceVerdict:
    sequence: Sequence
    original: ProducerBatch | None = None
    """The batch that is already in the log, when this is its duplicate."""


_NEXT = SequenceVerdict(Sequence.NEXT)
_OUT_OF_ORDER = SequenceVerdict(Sequence.OUT_OF_ORDER)
_OLD_EPOCH = SequenceVerdict(Sequence.OLD_EPOCH)


class ProduceRules:
    """Profile kip966."""

    def refusal(self, acks: int, isr_size: int, min_isr: int) -> ErrorCode:
        """Returns the error before the append: acks=all needs MinISR members, acks 0 and 1 do not (K28,
        K29)."""
        if acks == Acks.ALL and isr_size < min_isr:
            return ErrorCode.not_enough_replicas
        return NO_ERROR

    def sequence(self, known: ProducerSnapshot | None, epoch: int, first: int, last: int) -> SequenceVerdict:
        """Idempotent producers (docs/protocol.md 2.1.3). An unknown producer may begin anywhere."""
        if known is None or not known.batches:
            return _NEXT
        if epoch < known.producer_epoch:
            return _OLD_EPOCH
        if epoch > known.producer_epoch:
            return _NEXT if first == 0 else _OUT_OF_ORDER
        for batch in known.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return SequenceVerdict(Sequence.DUPLICATE, batch)
        return _NEXT if first == (known.batches[-1].last_sequence + 1) & MAX_SEQUENCE else _OUT_OF_ORDER

    def on_commit(self, maximal_size: int, min_isr: int) -> ErrorCode:
        """The answer once the high watermark has passed the batch (docs/protocol.md 2.1.8)."""
        return NO_ERROR if maximal_size >= min_isr else ErrorCode.not_enough_replicas_after_append

    def fails_at_once(self, isr_size: int, min_isr: int, pending_on_shrink: str) -> bool:
        """Are waiting acks=all requests refused when the ISR falls below MinISR, or left to time out (C5)?"""
        return isr_size < min_isr and pending_on_shrink == "fail_fast"
