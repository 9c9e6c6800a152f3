"""One log on a disk: a list of whole batches, and a mark below which they are synced."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from wrackline.broker.model.batches import batch
from wrackline.broker.model.batches.batch import BatchHeader
from wrackline.broker.model.batches.producers import ProducerTable
from wrackline.broker.model.types import EpochEntry, ProducerSnapshot
from wrackline.broker.model.values import mypyc_attr
from wrackline.simulator.world.errors import SimulationError

_header_of = lru_cache(maxsize=256)(batch.parse_header)
"""It is cached, since every replica writes the same bytes."""


class Stored(NamedTuple):
    """One batch in a log."""

    header: BatchHeader
    data: bytes

    @property
    def end(self) -> int:
        return self.header.last_offset + 1


class Row(NamedTuple):
    """One record of a log."""

    offset: int
    epoch: int
    value: bytes


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(slots=True)
class SimLog:
    """A log from ``start`` to ``leo``, which is exclusive. Batches below ``synced`` survive a power cut."""

    topic_id: UUID
    start: int = 0
    leo: int = 0
    synced: int = 0
    batches: list[Stored] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """The end offset of each batch, exclusive: it is bisected."""
    epochs: tuple[EpochEntry, ...] = ()
    """The leader-epoch checkpoint."""
    former_epochs: tuple[EpochEntry, ...] = ()
    """The leader-epoch checkpoint before it was last written. A power cut leaves this one when the last one
    was not synced."""
    lost_epochs: bool = False
    """There was a power cut since the leader-epoch checkpoint was last written."""
    torn: bytes = b""
    """The bytes that a power cut left of the write after the last whole batch. The next start removes
    them."""
    flushing: int | None = None
    """A flush is under way that makes everything below this offset durable. Truncations lower it."""
    flush_again: bool = False
    segment_bytes: int = 0
    """How much was written to the active segment."""

    def append(self, data: bytes) -> None:
        header = _header_of(data)
        if header.base_offset != self.leo:
            raise SimulationError(f"a batch at {header.base_offset}, the log ends at {self.leo}")
        self.batches.append(Stored(header, data))
        self.leo = header.last_offset + 1
        self.ends.append(self.leo)
        self.segment_bytes += len(data)

    def cut(self, to_offset: int) -> None:
        """Keep the batches that end at or before ``to_offset``."""
        kept = bisect_right(self.ends, to_offset)
        del self.batches[kept:], self.ends[kept:]
        self.leo = self.ends[-1] if self.ends else self.start
        self.synced = min(self.synced, self.leo)
        if self.flushing is not None:
            self.flushing = min(self.flushing, self.leo)

    def index_of(self, offset: int) -> int:
        """The index of the batch that holds ``offset``."""
        return bisect_right(self.ends, offset)

    def rows(self, start: int = 0, end: int | None = None) -> list[Row]:
        """The records in [start, end)."""
        stop = self.leo if end is None else end
        result = []
        for at in range(self.index_of(start), len(self.batches)):
            header, data = self.batches[at]
            if header.base_offset >= stop:
                break
            result += [
                Row(offset, header.leader_epoch, value)
                for offset, value in batch.values_of(header, data)
                if start <= offset < stop
            ]
        return result

    def copy(self) -> SimLog:
        return replace(
            self,
            batches=list(self.batches),
            ends=list(self.ends),
            flushing=None,
            flush_again=False,
        )

    def producers(self) -> dict[int, ProducerSnapshot]:
        """The producers that recovery finds when it goes through the headers."""
        table = ProducerTable()
        for header, _ in self.batches:
            table.appended(header)
        return table.snapshots()

    def start_at(self, offset: int) -> None:
        """Drop the batches that lie wholly below ``offset``. A log that begins later already, since retention
        came first, stays as it is."""
        gone = bisect_right(self.ends, offset)
        del self.batches[:gone], self.ends[:gone]
        self.start = max(self.start, offset)
