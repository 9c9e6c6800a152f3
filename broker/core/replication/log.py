"""A partition's log as the core knows it: offsets, epochs, producers, sizes; never the records themselves.

The core stays the authority on what the log holds: it asks for appends and truncations by effects, which the
shell carries out in order, and only a flush takes time. docs/protocol.md 2.0, 2.3, R01-R04.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from uuid import UUID

from wrackline.broker.model.batches.batch import BatchHeader
from wrackline.broker.model.batches.producers import ProducerTable
from wrackline.broker.model.effects import (
    Append,
    Effect,
    Flush,
    MoveLogStart,
    ResetLog,
    Truncate,
    WriteEpochs,
)
from wrackline.broker.model.epochs import EpochCache
from wrackline.broker.model.types import EVERY_WRITE, FlushMode, RecoveredLog, TopicPartition

PLENTY_BYTES = 1 << 30
"""What ``bytes_between`` says of offsets older than the tail index: enough for any min_bytes."""
_TAIL_BATCHES = 2_048


class PartitionLog:
    """Appends effects to ``out``, the list of the event being handled."""

    __slots__ = (
        "_ceiling",
        "_ends",
        "_flush_asked",
        "_positions",
        "_tail_start",
        "epochs",
        "flushed",
        "leo",
        "log_start",
        "producers",
        "topic_id",
        "tp",
        "unflushed_batches",
    )

    def __init__(self, tp: TopicPartition, recovered: RecoveredLog) -> None:
        self.tp = tp
        self.topic_id: UUID = recovered.topic_id
        self.log_start = recovered.log_start
        self.leo = recovered.leo
        self.flushed = recovered.flushed
        self.epochs = EpochCache(recovered.epochs).truncate_from_end(recovered.leo + 1)
        self.producers = ProducerTable(recovered.producers, recovered.high_watermark)
        self.unflushed_batches = 0
        self._flush_asked: int | None = None
        self._ceiling: int | None = None
        self._clear_tail()

    # --- writing -------------------------------------------------------------------------------------------

    def append(self, batches: Sequence[tuple[BatchHeader, bytes]], out: list[Effect]) -> int:
        """Batches whose headers carry their final offsets and epochs, the first at ``leo``; the new end."""
        base = self.leo
        for header, _ in batches:
            self._assign_epoch(header.leader_epoch, header.base_offset, out)
            self.producers.appended(header)
            self.leo = header.last_offset + 1
            self._ends.append(self.leo)
            self._positions.append(self._positions[-1] + header.size_bytes)
        self.unflushed_batches += len(batches)
        out.append(Append(self.tp, tuple(batch for _, batch in batches), base, self.leo))
        if len(self._ends) > 2 * _TAIL_BATCHES:
            self._shorten_tail()
        return self.leo

    def assign_epoch(self, epoch: int, out: list[Effect]) -> None:
        """The next record will be of ``epoch``: a new leader says so before it has written (KAFKA-7415)."""
        self._assign_epoch(epoch, self.leo, out)

    def _assign_epoch(self, epoch: int, offset: int, out: list[Effect]) -> None:
        self._epochs_become(self.epochs.assign(epoch, offset), out)

    def _epochs_become(self, cache: EpochCache, out: list[Effect]) -> None:
        if cache is not self.epochs:
            self.epochs = cache
            out.append(WriteEpochs(self.tp, cache.entries))

    def truncate(self, to_offset: int, out: list[Effect]) -> None:
        """Drop [to_offset, leo). With nothing to drop the epoch cache is cut all the same (KAFKA-10706)."""
        if to_offset < self.leo:
            out.append(Truncate(self.tp, to_offset))
            self.leo = to_offset
            self.producers.truncated(to_offset)
            self._cut_tail(to_offset)
            self._lower_flushed(to_offset)
        self._epochs_become(self.epochs.truncate_from_end(to_offset), out)

    def move_start(self, to_offset: int, out: list[Effect]) -> None:
        """Records below ``to_offset``, at most ``leo``, are asked for by nobody any more."""
        if to_offset > self.log_start:
            out.append(MoveLogStart(self.tp, to_offset))
            self.start_moved(to_offset, out)

    def start_moved(self, to_offset: int, out: list[Effect]) -> None:
        """They are gone already."""
        self.log_start = max(self.log_start, to_offset)
        self._epochs_become(self.epochs.truncate_from_start(self.log_start), out)

    def reset(self, start_offset: int, out: list[Effect]) -> None:
        """Drop everything and begin again at ``start_offset``, at or past the end."""
        out.append(ResetLog(self.tp, start_offset))
        self.log_start = self.leo = start_offset
        self.producers.clear()
        self._clear_tail()
        self._lower_flushed(start_offset)
        self.flushed = start_offset
        self._epochs_become(EpochCache(), out)

    # --- flushing ------------------------------------------------------------------------------------------

    def flush_if_due(self, mode: FlushMode, every_batches: int, out: list[Effect]) -> None:
        """Flushes after appends as the flush mode asks for (R01, R02; R03 is a timer, R04 the shell's)."""
        if mode is EVERY_WRITE or (
            mode is FlushMode.EVERY_N_BATCHES and self.unflushed_batches >= every_batches
        ):
            self.flush(out)

    def flush(self, out: list[Effect]) -> None:
        """Asks for everything to be flushed, unless it is, or a flush is under way (its end asks again)."""
        if self._flush_asked is None and self.flushed < self.leo:
            self._flush_asked = self.leo
            self.unflushed_batches = 0
            out.append(Flush(self.tp, self.leo))

    def on_flushed(self, upto: int) -> bool:
        """Notes that everything below ``upto`` is on disk; True when ``flushed`` moved.

        A flush that was under way when the log was cut tells nothing about what was appended after the cut,
        so until it is answered no flush counts beyond the place of the cut.
        """
        safe = min(upto, self.leo) if self._ceiling is None else min(upto, self.leo, self._ceiling)
        if self._flush_asked is not None:
            awaited = self._flush_asked if self._ceiling is None else min(self._flush_asked, self._ceiling)
            if upto >= awaited:
                self._flush_asked = self._ceiling = None
        if safe <= self.flushed:
            return False
        self.flushed = safe
        return True

    def _lower_flushed(self, to_offset: int) -> None:
        self.flushed = min(self.flushed, to_offset)
        if self._flush_asked is not None:
            self._ceiling = to_offset if self._ceiling is None else min(self._ceiling, to_offset)

    # --- sizes ---------------------------------------------------------------------------------------------

    def bytes_between(self, start: int, end: int) -> int:
        """Size of the batches that hold [start, end); PLENTY_BYTES when older than what is remembered."""
        if start >= end:
            return 0
        if start < self._tail_start:
            return PLENTY_BYTES
        first = bisect_right(self._ends, start)
        last = bisect_right(self._ends, end)
        return self._positions[last] - self._positions[first]

    def _clear_tail(self) -> None:
        self._tail_start = self.leo
        self._ends: list[int] = []
        self._positions: list[int] = [0]
        """``_positions[i]`` bytes lie before the i-th remembered batch, which ends at ``_ends[i]``."""

    def _cut_tail(self, to_offset: int) -> None:
        if to_offset < self._tail_start:
            self._clear_tail()
            return
        kept = bisect_right(self._ends, to_offset)
        del self._ends[kept:], self._positions[kept + 1 :]

    def _shorten_tail(self) -> None:
        drop = len(self._ends) - _TAIL_BATCHES
        self._tail_start = self._ends[drop - 1]
        del self._ends[:drop], self._positions[:drop]
