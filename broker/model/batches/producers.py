"""State of idempotent producers in a log: the last five batches of each (docs/protocol.md 2.1.3, K30).

Every replica keeps it from the batches it appends, so that a new leader knows a retry when it sees one.

A truncation takes batches away, and then the five before those are needed: so more are kept, back to what is
committed, below which nothing is cut off except after an unclean election.

A producer that has not written for long is forgotten (``producer.id.expiration.ms``), or every producer there
ever was would take memory on every replica. Its age is counted in looks, not by a clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from wrackline.broker.model.batches.batch import BatchHeader
from wrackline.broker.model.types import NO_PRODUCER, ProducerBatch, ProducerSnapshot

KEPT_BATCHES = 5
_MOST_BATCHES = 1_000
"""Of one producer, however far the high watermark lags."""
_CONTROL = 0x20


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: list[ProducerBatch]
    looks: int = 0
    """Of ``expire``, since its last batch."""


class ProducerTable:
    """Producer id -> what is known of it. Feed it every batch header of a log, in order."""

    __slots__ = ("_known", "committed")

    def __init__(self, recovered: Mapping[int, ProducerSnapshot] | None = None, committed: int = 0) -> None:
        self._known = {
            producer_id: _Producer(known.producer_epoch, list(known.batches))
            for producer_id, known in (recovered or {}).items()
        }
        self.committed = committed
        """The high watermark."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, producer_id: int) -> ProducerSnapshot | None:
        """Returns the producer's state, with its last five batches."""
        known = self._known.get(producer_id)
        if known is None:
            return None
        return ProducerSnapshot(producer_id, known.epoch, tuple(known.batches[-KEPT_BATCHES:]))

    def snapshots(self) -> dict[int, ProducerSnapshot]:
        """Returns the state of all producers, for a log that is to be opened again."""
        return {
            producer_id: ProducerSnapshot(producer_id, known.epoch, tuple(known.batches))
            for producer_id, known in self._known.items()
        }

    def appended(self, header: BatchHeader) -> None:
        """A batch went into the log, with its final offsets."""
        if header.producer_id <= NO_PRODUCER or header.base_sequence < 0 or header.attributes & _CONTROL:
            return
        known = self._known.get(header.producer_id)
        if known is None or known.epoch != header.producer_epoch:
            known = self._known[header.producer_id] = _Producer(header.producer_epoch, [])
        known.looks = 0
        known.batches.append(
            ProducerBatch(header.base_sequence, header.last_sequence, header.base_offset, header.last_offset)
        )
        if len(known.batches) > 2 * KEPT_BATCHES:
            self._forget_old(known.batches)

    def _forget_old(self, batches: list[ProducerBatch]) -> None:
        safe = bisect_left(batches, self.committed, key=lambda batch: batch.last_offset)
        drop = max(safe - KEPT_BATCHES, len(batches) - _MOST_BATCHES)
        if drop > 0:
            del batches[:drop]

    def expire(self, looks: int) -> None:
        """One more look: forget who has not written for so many of them, unless its last batch may still be
        cut off and be sent again. A producer that comes back may then begin anywhere, as in Kafka."""
        for producer_id, known in list(self._known.items()):
            if known.looks >= looks and known.batches[-1].last_offset < self.committed:
                del self._known[producer_id]
            known.looks += 1

    def truncated(self, to_offset: int) -> None:
        """Forget batches that are no longer in the log.

        A producer whose remembered batches are all gone is forgotten: it may then begin anywhere, which is
        what Kafka does with a producer id it does not know.
        """
        for producer_id, known in list(self._known.items()):
            del known.batches[bisect_left(known.batches, to_offset, key=lambda batch: batch.last_offset) :]
            if not known.batches:
                del self._known[producer_id]

    def clear(self) -> None:
        self._known.clear()
