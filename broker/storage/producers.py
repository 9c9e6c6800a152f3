"""Producer state of a log, read back from its batch headers (protocol.md 2.2: the last five batches each)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from broker.core.batch import BatchHeader
from broker.core.types import NO_PRODUCER, ProducerBatch, ProducerSnapshot

BATCHES_KEPT = 5
_CONTROL = 0x20


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[ProducerBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))


class ProducerScan:
    """Feed it every header of the log in order."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def add(self, header: BatchHeader) -> None:
        if header.producer_id == NO_PRODUCER or header.attributes & _CONTROL or header.base_sequence < 0:
            return
        known = self._producers.get(header.producer_id)
        if known is None or known.epoch != header.producer_epoch:
            known = self._producers[header.producer_id] = _Producer(header.producer_epoch)
        known.batches.append(
            ProducerBatch(header.base_sequence, header.last_sequence, header.base_offset, header.last_offset)
        )

    def snapshots(self) -> dict[int, ProducerSnapshot]:
        return {
            producer_id: ProducerSnapshot(producer_id, producer.epoch, tuple(producer.batches))
            for producer_id, producer in self._producers.items()
        }
