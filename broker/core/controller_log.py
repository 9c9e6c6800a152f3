"""The metadata log as its leader sees it: what is appended, what is committed, what observers may read.

A quorum of one: a record is committed once it is on this disk (protocol.md K02, 2.12; flush before commit is
KAFKA-10533). The state machine knows only this interface: records go in by ``append`` and come out of
``flushed`` when they are committed. A Raft quorum replaces how the high watermark moves, not what is built
on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from kio.schema.errors import ErrorCode

from broker.core import batch
from broker.core.effects import Append, CreateLog, Effect, Flush, WriteEpochs
from broker.core.epochs import EpochCache
from broker.core.messages import FetchPartition, FetchResult, LeaderIdAndEpoch
from broker.core.records import MetadataRecord, decode, encode_all
from broker.core.types import (
    METADATA,
    METADATA_TOPIC_ID,
    NO_EPOCH,
    EpochEntry,
    LogSlice,
    NodeId,
    RecoveredLog,
)

Entry = tuple[int, MetadataRecord]
"""(offset, record)."""


class MetadataLog:
    def __init__(self, node_id: NodeId) -> None:
        self._node_id = node_id
        self._epochs = EpochCache()
        self._uncommitted: deque[Entry] = deque()
        self._flushing_to = 0
        """The end of the flush in flight; only one is, so that appends in the meantime share the next."""
        self._epoch_start = 0
        self.epoch = NO_EPOCH
        self.leo = 0
        self.high_watermark = 0
        """Everything below is committed. Stands at 0 after a start until a record of the own epoch is
        committed (2.12.5)."""

    def restore(self, recovered: RecoveredLog | None, batches: Sequence[bytes]) -> list[Entry]:
        """All records found on disk. Raises ValueError where they are not one gapless log from offset 0."""
        entries: list[Entry] = []
        for data in batches:
            for header, whole in batch.split(data):
                if header.base_offset != self.leo:
                    raise ValueError(f"batch at offset {header.base_offset}, expected {self.leo}")
                if header.leader_epoch < max(self._epochs.latest, 0):
                    raise ValueError(f"epoch {header.leader_epoch} after epoch {self._epochs.latest}")
                self._epochs = self._epochs.assign(header.leader_epoch, header.base_offset)
                for offset, value in batch.values_of(header, whole):
                    entries.append((offset, decode(value)))
                self.leo = header.last_offset + 1
        if recovered is not None and recovered.leo != self.leo:
            raise ValueError(f"batches end at offset {self.leo}, the log at {recovered.leo}")
        self._uncommitted.extend(entries)
        return entries

    def lead(self, exists: bool) -> list[Effect]:
        """Begin a new epoch. ``exists``: there is a log on disk."""
        self.epoch = self._epochs.latest + 1
        self._epoch_start = self.leo
        self._epochs = self._epochs.assign(self.epoch, self.leo)
        created: list[Effect] = [] if exists else [CreateLog(METADATA, METADATA_TOPIC_ID)]
        return [*created, WriteEpochs(METADATA, self.epochs)]

    @property
    def epochs(self) -> tuple[EpochEntry, ...]:
        return self._epochs.entries

    def append(self, records: Sequence[MetadataRecord], now_ms: float) -> list[Effect]:
        """One batch: the records take effect together or not at all."""
        base, end = self.leo, self.leo + len(records)
        data = batch.build(encode_all(records), base, self.epoch, int(now_ms))
        self._uncommitted.extend(zip(range(base, end), records, strict=True))
        self.leo = end
        return [Append(METADATA, (data,), base, end), *self._flush()]

    def _flush(self) -> list[Effect]:
        if self._flushing_to > self.high_watermark or self.leo <= self.high_watermark:
            return []
        self._flushing_to = self.leo
        return [Flush(METADATA, self.leo)]

    def flushed(self, upto: int) -> tuple[list[Entry], list[Effect]]:
        """The records this commits, in order, and the next flush if more came in meanwhile."""
        if min(upto, self.leo) <= max(self.high_watermark, self._epoch_start):
            return [], []
        self.high_watermark = min(upto, self.leo)
        self._flushing_to = self.high_watermark if upto >= self._flushing_to else self._flushing_to
        committed = []
        while self._uncommitted and self._uncommitted[0][0] < self.high_watermark:
            committed.append(self._uncommitted.popleft())
        return committed, self._flush()

    def read(self, asked: FetchPartition, max_bytes: int) -> FetchResult:
        """What an observer gets (2.2, 2.12.4): committed records, or where its log parts from this one."""
        leader = LeaderIdAndEpoch(self._node_id, self.epoch)
        error = self._check_epoch(asked)
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
        return self._diverging(asked, result) or self._records(asked, max_bytes, result)

    def _check_epoch(self, asked: FetchPartition) -> ErrorCode:
        if asked.current_leader_epoch in (NO_EPOCH, self.epoch):
            return ErrorCode.none
        if asked.current_leader_epoch < self.epoch:
            return ErrorCode.fenced_leader_epoch
        return ErrorCode.unknown_leader_epoch

    def _diverging(self, asked: FetchPartition, result: FetchResult) -> FetchResult | None:
        if asked.last_fetched_epoch != NO_EPOCH:
            end = self._epochs.end_offset(asked.last_fetched_epoch, self.leo)
            if end is None:
                return replace(result, error=ErrorCode.offset_out_of_range)
            if end.epoch < asked.last_fetched_epoch or end.end_offset < asked.fetch_offset:
                return replace(result, diverging=end)
        if not 0 <= asked.fetch_offset <= self.leo:
            return replace(result, error=ErrorCode.offset_out_of_range)
        return None

    def _records(self, asked: FetchPartition, max_bytes: int, result: FetchResult) -> FetchResult:
        if asked.fetch_offset >= self.high_watermark:
            return result
        size = min(asked.max_bytes, max_bytes)
        return replace(result, records=LogSlice(METADATA, asked.fetch_offset, self.high_watermark, size))
