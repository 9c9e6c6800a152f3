"""One node's metadata log: what is appended, what is safe on the disk, what is committed, what a snapshot
replaces.

Who leads and, at a controller, the quorum (`voter`) say when the high watermark moves; whoever applies the
log takes what that commits, in order (docs/protocol.md K02, 2.12). Records are decoded once, when they come
in. A log that was there before begins at the oldest snapshot kept, or at 0; the newest snapshot is committed,
whatever else is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.snapshots import Snapshots
from wrackline.broker.core.replication.log import PartitionLog
from wrackline.broker.model.batches import batch
from wrackline.broker.model.config import NodeConfig
from wrackline.broker.model.effects import ConfigureLog, CreateLog, Effect, Trace, WriteEpochs
from wrackline.broker.model.epochs import EpochCache
from wrackline.broker.model.messages.requests import (
    EpochEndOffset,
    FetchPartition,
    FetchResult,
    LeaderIdAndEpoch,
)
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.metadata.records import MetadataRecord, decode, encode_all
from wrackline.broker.model.types import (
    METADATA,
    METADATA_TOPIC_ID,
    NO_EPOCH,
    EpochEntry,
    LogOverrides,
    LogSlice,
    RecoveredLog,
    SnapshotId,
    StoredSnapshot,
)
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.placement.snapshots import SnapshotRules
from wrackline.broker.rules.replication.epoch_end import end_of_epoch

Entry = tuple[int, MetadataRecord]
"""(offset, record)."""


class MetadataLog:
    """Methods that write append their effects to ``out``."""

    def __init__(self, config: NodeConfig, rules: SnapshotRules) -> None:
        self.partition_log = PartitionLog(METADATA, RecoveredLog(METADATA_TOPIC_ID, 0, 0, 0, 0))
        self.snapshots = Snapshots(config, rules)
        self.high_watermark = 0
        """Everything below is committed. At a start the end of the newest snapshot, until a leader has said
        or found out."""
        self._rules = rules
        self._overrides = LogOverrides(segment_bytes=config.metadata_log_segment_bytes)
        self._uncommitted: deque[Entry] = deque()
        self._sizes: deque[tuple[int, int]] = deque()
        """(end, bytes) of each batch that is not committed."""
        self._base_epoch = NO_EPOCH
        """Of the record before the start of the log."""

    @property
    def leo(self) -> int:
        return self.partition_log.leo

    @property
    def log_start(self) -> int:
        return self.partition_log.log_start

    @property
    def flushed_to(self) -> int:
        """Returns the offset below which everything outlives a power cut."""
        return self.partition_log.flushed

    @property
    def last_epoch(self) -> int:
        """Returns the epoch of the last record, be it in a snapshot only; -1 when there is none."""
        return self.epoch_before(self.leo)

    def epoch_before(self, offset: int) -> int:
        """Returns the epoch of the record before ``offset``, which is not below the start of the log."""
        at_start = offset <= self.log_start
        return self._base_epoch if at_start else self.partition_log.epochs.epoch_at(offset - 1)

    @property
    def latest_epoch(self) -> int:
        return max(self.partition_log.epochs.latest, self._base_epoch)

    @property
    def epochs(self) -> tuple[EpochEntry, ...]:
        return self.partition_log.epochs.entries

    # --- start ----------------------------------------------------------------------------------------------

    def restore(
        self,
        recovered: RecoveredLog | None,
        batches: Sequence[bytes],
        found: Sequence[StoredSnapshot],
        now_ms: float,
        out: list[Effect],
    ) -> ClusterImage | None:
        """Restores what was found on disk: the image of the newest snapshot, if there is one, and after it a
        log. Raises ValueError where the two do not make one gapless history."""
        loaded = self.snapshots.restore(found, now_ms, out)
        if recovered is None:
            out += [CreateLog(METADATA, METADATA_TOPIC_ID), ConfigureLog(METADATA, self._overrides)]
        else:
            out.append(ConfigureLog(METADATA, self._overrides))
            self._restore_log(recovered, batches, out)
        if loaded is None and self.log_start > 0:
            raise ValueError(
                f"the metadata log begins at offset {self.log_start} "
                "and no snapshot of what was before it can be read"
            )
        if loaded is None:
            return None
        snapshot, image = loaded
        if snapshot.end_offset < self.log_start:
            raise ValueError(
                f"the newest snapshot that can be read ends at {snapshot.end_offset}, the log begins at "
                f"{self.log_start}"
            )
        self._base_epoch = self.snapshots.epoch_before(self.log_start)
        # A snapshot that was fetched is on the disk before the log it replaces is gone: what the log has is
        # older.
        if (snapshot.epoch, snapshot.end_offset) > (self.last_epoch, self.leo):
            self.load(snapshot, now_ms, out)
        elif self.epoch_before(snapshot.end_offset) != snapshot.epoch:
            raise ValueError(f"the log and the snapshot {snapshot} are of two histories")
        self.advance(snapshot.end_offset)
        self.snapshots.reset(now_ms)
        return image

    def _restore_log(self, recovered: RecoveredLog, batches: Sequence[bytes], out: list[Effect]) -> None:
        leo, epochs = recovered.log_start, EpochCache()
        try:
            for data in batches:
                for header, whole in batch.split(data):
                    if header.last_offset < recovered.log_start:
                        continue  # in the first segment, below the snapshot
                    if header.base_offset != leo:
                        raise ValueError(f"batch at offset {header.base_offset}, expected {leo}")
                    if header.leader_epoch < max(epochs.latest, 0):
                        raise ValueError(f"epoch {header.leader_epoch} after epoch {epochs.latest}")
                    epochs = epochs.assign(header.leader_epoch, header.base_offset)
                    self._uncommitted.extend(_entries(header, whole))
                    leo = header.last_offset + 1
                    self._sizes.append((leo, header.size_bytes))
            if recovered.leo != leo:
                raise ValueError(f"batches end at offset {leo}, the log at {recovered.leo}")
        except ValueError as error:
            raise ValueError(f"the metadata log cannot be read after offset {leo}: {error}") from error
        start = recovered.log_start
        result = RecoveredLog(METADATA_TOPIC_ID, start, leo, recovered.flushed, start, epochs.entries)
        self.partition_log = PartitionLog(METADATA, result)
        if recovered.epochs != epochs.entries:
            out.append(WriteEpochs(METADATA, epochs.entries))
        self.partition_log.flush(out)

    # --- snapshots ------------------------------------------------------------------------------------------

    def load(self, snapshot: SnapshotId, now_ms: float, out: list[Effect]) -> None:
        """The log is empty and goes on after a snapshot that the disk has."""
        fields = {**snapshot._asdict(), "log_start": self.log_start, "leo": self.leo}
        out.append(Trace("snapshot_load", fields))
        self._uncommitted.clear()
        self._sizes.clear()
        self.partition_log.reset(snapshot.end_offset, out)
        self._base_epoch = snapshot.epoch
        self.high_watermark = snapshot.end_offset
        self.snapshots.reset(now_ms)
        self.snapshots.drop_below(self.log_start, out)

    def make_snapshot(self, image: ClusterImage, now_ms: float, out: list[Effect]) -> None:
        """When one is due. ``image``: everything that is committed."""
        end = image.metadata_offset + 1
        if end == self.high_watermark and self.snapshots.is_due(now_ms):
            self.snapshots.make(SnapshotId(end, self.epoch_before(end)), image, now_ms, out)

    def snapshot_written(self, snapshot: SnapshotId, out: list[Effect]) -> None:
        """The log before the oldest one that is kept is of no more use, nor is what is older."""
        self.snapshots.written(snapshot)
        start = min(self.snapshots.log_start(self.high_watermark), self.high_watermark)
        if start > self.log_start:
            self._base_epoch = self.epoch_before(start)
            self.partition_log.move_start(start, out)
        self.snapshots.drop_below(self.log_start, out)

    # --- writing -------------------------------------------------------------------------------------------

    def append(self, records: Sequence[MetadataRecord], epoch: int, now_ms: float, out: list[Effect]) -> None:
        """Appends records as the leader. One batch: the records take effect together or not at all."""
        base = self.leo
        data = batch.build(encode_all(records), base, epoch, int(now_ms))
        self._uncommitted.extend(enumerate(records, base))
        self._sizes.append((base + len(records), len(data)))
        self.partition_log.append([(batch.parse_header(data), data)], out)
        self.partition_log.flush(out)

    def take(self, data: bytes, out: list[Effect]) -> int:
        """Appends, as a follower, whole batches that continue the log, and returns how many. Raises
        ValueError (also CorruptBatch) where they do not."""
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
            self._sizes.extend((header.last_offset + 1, header.size_bytes) for header, _ in taken)
            self.partition_log.append(taken, out)
            self.partition_log.flush(out)
        return len(taken)

    def truncate(self, to_offset: int, out: list[Effect]) -> None:
        """The caller sees to it that nothing committed is cut."""
        self.partition_log.truncate(to_offset, out)
        while self._uncommitted and self._uncommitted[-1][0] >= to_offset:
            self._uncommitted.pop()
        while self._sizes and self._sizes[-1][0] > to_offset:
            self._sizes.pop()

    def flushed(self, upto: int, out: list[Effect]) -> bool:
        """True when ``flushed_to`` moved."""
        moved = self.partition_log.on_flushed(upto)
        self.partition_log.flush(out)
        return moved

    def advance(self, high_watermark: int) -> list[Entry]:
        """The records this commits, in order."""
        if high_watermark <= self.high_watermark:
            return []
        self.high_watermark = high_watermark
        committed = []
        while self._uncommitted and self._uncommitted[0][0] < high_watermark:
            committed.append(self._uncommitted.popleft())
        size_bytes = 0
        while self._sizes and self._sizes[0][0] <= high_watermark:
            size_bytes += self._sizes.popleft()[1]
        self.snapshots.grew(len(committed), size_bytes)
        return committed

    # --- reading -------------------------------------------------------------------------------------------

    def end_of(self, epoch: int) -> EpochEndOffset | None:
        return end_of_epoch(self.partition_log.epochs, epoch, self.leo)

    def read(
        self, asked: FetchPartition, leader: LeaderIdAndEpoch, limit: int, max_bytes: int
    ) -> FetchResult:
        """Reads as the leader (docs/protocol.md 2.2, 2.12.4): records below ``limit``, or where the asker's
        log parts from this."""
        error = check_epoch(asked.current_leader_epoch, leader.leader_epoch)
        if error is not NO_ERROR:
            return FetchResult(METADATA, error, current_leader=leader, topic_id=asked.topic_id)
        high_watermark = self.high_watermark or -1
        result = FetchResult(
            METADATA,
            high_watermark=high_watermark,
            last_stable_offset=high_watermark,
            log_start=self.log_start,
            current_leader=leader,
            topic_id=asked.topic_id,
        )
        diverging = self._diverging(asked, result)
        if diverging is not None or asked.fetch_offset >= limit:
            return diverging or result
        size = min(asked.max_bytes, max_bytes)
        return result.with_records(LogSlice(METADATA, asked.fetch_offset, limit, size))

    def _diverging(self, asked: FetchPartition, result: FetchResult) -> FetchResult | None:
        start = SnapshotId(self.log_start, self._base_epoch)
        if self._rules.must_load(asked.fetch_offset, asked.last_fetched_epoch, start):
            return replace(result, snapshot=self.snapshots.newest)
        if asked.fetch_offset == start.end_offset and asked.last_fetched_epoch == start.epoch:
            return None
        if asked.last_fetched_epoch != NO_EPOCH:
            end = self.end_of(asked.last_fetched_epoch)
            if end is None:
                return replace(result, error=ErrorCode.offset_out_of_range)
            if end.epoch < asked.last_fetched_epoch or end.end_offset < asked.fetch_offset:
                return replace(result, diverging=end)
        if not 0 <= asked.fetch_offset <= self.leo:
            return replace(result, error=ErrorCode.offset_out_of_range)
        return None


def check_epoch(asked: int, own: int) -> ErrorCode:
    if asked in (NO_EPOCH, own):
        return NO_ERROR
    return ErrorCode.fenced_leader_epoch if asked < own else ErrorCode.unknown_leader_epoch


def _entries(header: batch.BatchHeader, whole: bytes | memoryview) -> list[Entry]:
    return [(offset, decode(value)) for offset, value in batch.values_of(header, whole)]
