"""The metadata log of one controller: what is appended, what is safe on the disk, what is committed.

The quorum (raft.py) says when the high watermark moves; whoever applies the log takes what that commits, in
order (protocol.md K02, 2.12). Records are decoded once, when they come in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from kio.schema.errors import ErrorCode

from broker.core import batch
from broker.core.effects import CreateLog, Effect, WriteEpochs
from broker.core.epochs import EpochCache
from broker.core.log import PartitionLog
from broker.core.messages import EpochEndOffset, FetchPartition, FetchResult, LeaderIdAndEpoch
from broker.core.records import MetadataRecord, decode, encode_all
from broker.core.types import (
    METADATA,
    METADATA_TOPIC_ID,
    NO_EPOCH,
    EpochEntry,
    LogSlice,
    RecoveredLog,
)

Entry = tuple[int, MetadataRecord]
"""(offset, record)."""


class MetadataLog:
    """Methods that write append their effects to ``out``."""

    def __init__(self) -> None:
        self._log = PartitionLog(METADATA, RecoveredLog(METADATA_TOPIC_ID, 0, 0, 0, 0))
        self._uncommitted: deque[Entry] = deque()
        self.high_watermark = 0
        """Everything below is committed. 0 after a start, until a leader has said or found out."""

    @property
    def leo(self) -> int:
        return self._log.leo

    @property
    def flushed_to(self) -> int:
        """Everything below outlives a power cut."""
        return self._log.flushed

    @property
    def last_epoch(self) -> int:
        """Of the last record; -1 when there is none."""
        return self._log.epochs.epoch_at(self.leo - 1)

    @property
    def latest_epoch(self) -> int:
        return self._log.epochs.latest

    @property
    def epochs(self) -> tuple[EpochEntry, ...]:
        return self._log.epochs.entries

    def restore(self, recovered: RecoveredLog | None, batches: Sequence[bytes], out: list[Effect]) -> None:
        """What was found on disk. Raises ValueError where it is not one gapless log from offset 0."""
        leo, epochs = 0, EpochCache()
        try:
            for data in batches:
                for header, whole in batch.split(data):
                    if header.base_offset != leo:
                        raise ValueError(f"batch at offset {header.base_offset}, expected {leo}")
                    if header.leader_epoch < max(epochs.latest, 0):
                        raise ValueError(f"epoch {header.leader_epoch} after epoch {epochs.latest}")
                    epochs = epochs.assign(header.leader_epoch, header.base_offset)
                    self._uncommitted.extend(_entries(header, whole))
                    leo = header.last_offset + 1
            if recovered is not None and recovered.leo != leo:
                raise ValueError(f"batches end at offset {leo}, the log at {recovered.leo}")
        except ValueError as wrong:
            raise ValueError(f"the metadata log cannot be read after offset {leo}: {wrong}") from wrong
        if recovered is None:
            out.append(CreateLog(METADATA, METADATA_TOPIC_ID))
            return
        found = RecoveredLog(METADATA_TOPIC_ID, 0, leo, recovered.flushed, 0, epochs.entries)
        self._log = PartitionLog(METADATA, found)
        if recovered.epochs != epochs.entries:
            out.append(WriteEpochs(METADATA, epochs.entries))
        self._log.flush(out)

    # --- writing -------------------------------------------------------------------------------------------

    def append(self, records: Sequence[MetadataRecord], epoch: int, now_ms: float, out: list[Effect]) -> None:
        """As the leader. One batch: the records take effect together or not at all."""
        base = self.leo
        data = batch.build(encode_all(records), base, epoch, int(now_ms))
        self._uncommitted.extend(enumerate(records, base))
        self._log.append([(batch.parse_header(data), data)], out)
        self._log.flush(out)

    def take(self, data: bytes, out: list[Effect]) -> int:
        """As a follower: whole batches that continue the log; how many. Raises ValueError (also
        CorruptBatch) where they do not."""
        taken: list[tuple[batch.BatchHeader, bytes]] = []
        entries: list[Entry] = []
        leo = self.leo
        for header, whole in batch.split(data):
            if not batch.crc_is_right(header, whole):
                raise batch.CorruptBatch(f"the checksum of the batch at {header.base_offset} is wrong")
            if header.base_offset != leo:
                raise ValueError(f"batch at offset {header.base_offset}, expected {leo}")
            taken.append((header, bytes(whole)))
            entries += _entries(header, whole)
            leo = header.last_offset + 1
        if taken:
            self._uncommitted.extend(entries)
            self._log.append(taken, out)
            self._log.flush(out)
        return len(taken)

    def truncate(self, to_offset: int, out: list[Effect]) -> None:
        """The caller sees to it that nothing committed is cut."""
        self._log.truncate(to_offset, out)
        while self._uncommitted and self._uncommitted[-1][0] >= to_offset:
            self._uncommitted.pop()

    def flushed(self, upto: int, out: list[Effect]) -> bool:
        """True when ``flushed_to`` moved."""
        moved = self._log.on_flushed(upto)
        self._log.flush(out)
        return moved

    def advance(self, high_watermark: int) -> list[Entry]:
        """The records this commits, in order."""
        if high_watermark <= self.high_watermark:
            return []
        self.high_watermark = high_watermark
        committed = []
        while self._uncommitted and self._uncommitted[0][0] < high_watermark:
            committed.append(self._uncommitted.popleft())
        return committed

    # --- reading -------------------------------------------------------------------------------------------

    def end_of(self, epoch: int) -> EpochEndOffset | None:
        return self._log.epochs.end_offset(epoch, self.leo)

    def read(
        self, asked: FetchPartition, leader: LeaderIdAndEpoch, limit: int, max_bytes: int
    ) -> FetchResult:
        """As the leader (2.2, 2.12.4): records below ``limit``, or where the asker's log parts from this."""
        error = _check_epoch(asked.current_leader_epoch, leader.leader_epoch)
        if error is not ErrorCode.none:
            return FetchResult(asked.tp, error, current_leader=leader, topic_id=asked.topic_id)
        high_watermark = self.high_watermark or -1
        result = FetchResult(
            asked.tp,
            high_watermark=high_watermark,
            last_stable_offset=high_watermark,
            log_start=0,
            current_leader=leader,
            topic_id=asked.topic_id,
        )
        diverging = self._diverging(asked, result)
        if diverging is not None or asked.fetch_offset >= limit:
            return diverging or result
        size = min(asked.max_bytes, max_bytes)
        return replace(result, records=LogSlice(METADATA, asked.fetch_offset, limit, size))

    def _diverging(self, asked: FetchPartition, result: FetchResult) -> FetchResult | None:
        if asked.last_fetched_epoch != NO_EPOCH:
            end = self.end_of(asked.last_fetched_epoch)
            if end is None:
                return replace(result, error=ErrorCode.offset_out_of_range)
            if end.epoch < asked.last_fetched_epoch or end.end_offset < asked.fetch_offset:
                return replace(result, diverging=end)
        if not 0 <= asked.fetch_offset <= self.leo:
            return replace(result, error=ErrorCode.offset_out_of_range)
        return None


def _check_epoch(asked: int, own: int) -> ErrorCode:
    if asked in (NO_EPOCH, own):
        return ErrorCode.none
    return ErrorCode.fenced_leader_epoch if asked < own else ErrorCode.unknown_leader_epoch


def _entries(header: batch.BatchHeader, whole: bytes | memoryview) -> list[Entry]:
    return [(offset, decode(value)) for offset, value in batch.values_of(header, whole)]
