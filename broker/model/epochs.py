"""The leader epoch cache of a log: where each epoch starts (KIP-101; docs/protocol.md 2.3, H13). Where one
ends is a rule: ``broker/rules/replication/epoch_end.py``.

Immutable. A change returns a new cache, and the very same object when there is nothing to change, so the
caller knows by ``is`` whether the checkpoint file must be written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from wrackline.broker.model.types import NO_EPOCH, EpochEntry
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class EpochCache:
    entries: tuple[EpochEntry, ...] = ()
    """Strictly increasing in epoch and in start offset (invariant I15)."""

    @classmethod
    def of(cls, entries: Iterable[tuple[int, int]]) -> EpochCache:
        """Raises ValueError when epochs or offsets do not increase strictly."""
        cache = cls(tuple(EpochEntry(*entry) for entry in entries))
        for first, second in zip(cache.entries, cache.entries[1:], strict=False):
            if second.epoch <= first.epoch or second.start_offset <= first.start_offset:
                raise ValueError(f"epoch {second.epoch} at {second.start_offset} cannot follow {first}")
        return cache

    @property
    def latest(self) -> int:
        """The newest epoch, -1 when there is none."""
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def epoch_at(self, offset: int) -> int:
        """The epoch whose records lie at ``offset``, -1 when that is before the first entry."""
        at = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[at - 1].epoch if at else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> EpochCache:
        """Records from ``start_offset`` on are of ``epoch``. Entries that contradict this go."""
        if epoch < 0:
            raise ValueError(f"leader epoch {epoch} cannot be assigned at offset {start_offset}")
        if self.entries and epoch == self.latest and start_offset >= self.entries[-1].start_offset:
            return self
        kept = tuple(e for e in self.entries if e.epoch < epoch and e.start_offset < start_offset)
        return EpochCache((*kept, EpochEntry(epoch, start_offset)))

    def truncate_from_end(self, end_offset: int) -> EpochCache:
        """Drop epochs that start at or past ``end_offset``.

        To be called also when the log itself is already that short: the cache may hold an epoch in which
        nothing was written (KAFKA-10706).
        """
        kept = tuple(entry for entry in self.entries if entry.start_offset < end_offset)
        return self if len(kept) == len(self.entries) else EpochCache(kept)

    def truncate_from_start(self, start_offset: int) -> EpochCache:
        """The log now starts at ``start_offset``: the epoch in force there stays, moved to it."""
        at = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if at == 0 or (at == 1 and self.entries[0].start_offset == start_offset):
            return self
        return EpochCache((EpochEntry(self.entries[at - 1].epoch, start_offset), *self.entries[at:]))
