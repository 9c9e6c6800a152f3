"""What a log remembers of idempotent producers: the last five batches of each (protocol.md 2.1.3, K30).

Every replica keeps it from the batches it appends, so that a new leader knows a retry when it sees one.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.core.batch import BatchHeader
from broker.core.types import NO_PRODUCER, ProducerBatch, ProducerSnapshot

KEPT_BATCHES = 5


class ProducerTable:
    """Producer id -> ProducerSnapshot."""

    __slots__ = ("_known",)

    def __init__(self, recovered: Mapping[int, ProducerSnapshot]) -> None:
        self._known = dict(recovered)

    def get(self, producer_id: int) -> ProducerSnapshot | None:
        return self._known.get(producer_id)

    def appended(self, header: BatchHeader) -> None:
        """A batch went into the log, with its final offsets."""
        if header.producer_id == NO_PRODUCER or header.base_sequence < 0:
            return
        known = self._known.get(header.producer_id)
        kept = known.batches if known is not None and known.producer_epoch == header.producer_epoch else ()
        batch = ProducerBatch(
            header.base_sequence, header.last_sequence, header.base_offset, header.last_offset
        )
        self._known[header.producer_id] = ProducerSnapshot(
            header.producer_id, header.producer_epoch, (*kept, batch)[-KEPT_BATCHES:]
        )

    def truncated(self, to_offset: int) -> None:
        """Forget batches that are no longer in the log.

        A producer whose remembered batches are all gone is forgotten: it may then begin anywhere, which is
        what Kafka does with a producer id it does not know.
        """
        for producer_id, known in list(self._known.items()):
            if known.batches and known.batches[-1].last_offset < to_offset:
                continue
            kept = tuple(batch for batch in known.batches if batch.last_offset < to_offset)
            if kept:
                self._known[producer_id] = ProducerSnapshot(producer_id, known.producer_epoch, kept)
            else:
                del self._known[producer_id]

    def clear(self) -> None:
        self._known.clear()
