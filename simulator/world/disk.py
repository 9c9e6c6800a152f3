"""A node's disk that knows what a crash would leave of it (docs/protocol.md 2.14).

Each log (``disk_log``) is a list of whole batches and a mark below which they are synced. ``kill`` keeps
everything that was written. ``power`` keeps, of each log apart, a random prefix of the unsynced batches, the
write after it perhaps torn: its first bytes are there, and the next start finds them and cuts them off, as
the real recovery does. Checkpoints, epoch files and truncations are synced when they are written, as the real
storage does it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple
from uuid import UUID

from wrackline.broker.model.batches import batch
from wrackline.broker.model.batches.batch import CorruptBatch
from wrackline.broker.model.effects import (
    Append,
    CloseLogs,
    CreateLog,
    DeleteLog,
    DeleteSnapshot,
    MoveLogStart,
    ResetLog,
    Retain,
    Truncate,
    WriteCheckpoint,
    WriteEpochs,
    WriteQuorumState,
    WriteSnapshot,
)
from wrackline.broker.model.messages.requests import LookupByTime
from wrackline.broker.model.types import (
    METADATA,
    EpochEntry,
    LogOverrides,
    LogSlice,
    QuorumState,
    RecoveredLog,
    SnapshotId,
    SnapshotSlice,
    StoredSnapshot,
    TopicPartition,
)
from wrackline.simulator.world.disk_log import SimLog
from wrackline.simulator.world.errors import DiskRefused, SimulationError


class Lost(NamedTuple):
    """Records of one log that a power cut took."""

    tp: TopicPartition
    from_offset: int
    to_offset: int
    torn: bool
    size_bytes: int


@dataclass(slots=True)
class Found:
    """The content of a disk at a start (the arguments of the event Boot)."""

    logs: dict[TopicPartition, RecoveredLog]
    metadata: tuple[bytes, ...]
    previous_broker_epoch: int
    snapshots: tuple[StoredSnapshot, ...] = ()


class Disk:
    """Public: ``logs``, ``checkpoints`` (kind -> offsets), ``clean_epoch`` (-1: no clean-shutdown file),
    ``directory_id``."""

    def __init__(self, directory_id: UUID, segment_bytes: int = 1 << 20) -> None:
        self.directory_id = directory_id
        self.logs: dict[TopicPartition, SimLog] = {}
        self.checkpoints: dict[str, dict[TopicPartition, int]] = {}
        self.clean_epoch = -1
        self.quorum_state: QuorumState | None = None
        """A controller's epoch and vote."""
        self.snapshots: dict[SnapshotId, bytes] = {}
        """Of the metadata log: whole and durable."""
        self.unfinished: dict[SnapshotId, bytes] = {}
        """Being written, under another name. Nothing survives of one but, by chance, the whole."""
        self.notes: dict[str, bytes] = {}
        """Other small files of the node, each replaced as a whole and synced, by name."""
        self.layouts: dict[TopicPartition, LogOverrides] = {}
        """How each log was to be laid out, as far as this life of the node said. It is not carried out."""
        self.refuses: Callable[[TopicPartition], str] | None = None
        """Asked before each append; a reason: nothing of it is written."""
        self.flush_fails = ""
        """Why the next flush of a log fails, once."""
        self.slow_ms = 0.0
        """Every flush takes so much longer: a disk that works and is slow."""
        self.offline = ""
        """Why nothing is written any more until the next start (KAFKA-10778)."""
        self.unusable: set[TopicPartition] = set()
        """Logs that cannot be opened: their records are there, and nobody knows of which topic they are."""
        self._segment_bytes = segment_bytes

    # --- what the core asks for ----------------------------------------------------------------------------

    def append(self, effect: Append) -> bool:
        """True when a segment was rolled: the shell then flushes (R04)."""
        log = self._log(effect.tp)
        if self.refuses is not None and (reason := self.refuses(effect.tp)):
            raise DiskRefused(effect.tp, reason)
        if effect.base_offset != log.leo:
            raise SimulationError(
                f"{effect.tp}: an append at {effect.base_offset}, the log ends at {log.leo}"
            )
        rolled = False
        for data in effect.batches:
            if log.segment_bytes and log.segment_bytes + len(data) > self._segment_bytes:
                log.segment_bytes, rolled = 0, True
            log.append(data)
        if log.leo != effect.end_offset:
            raise SimulationError(f"{effect.tp}: the append ends at {log.leo}, it says {effect.end_offset}")
        return rolled

    def create(self, effect: CreateLog) -> None:
        self._online(effect.tp)
        known = self.logs.get(effect.tp)
        if known is None or known.topic_id != effect.topic_id:
            start = effect.start_offset
            self.logs[effect.tp] = SimLog(effect.topic_id, start, start, start)
            self.unusable.discard(effect.tp)  # put aside

    def delete(self, effect: DeleteLog) -> None:
        self.logs.pop(effect.tp, None)
        self.unusable.discard(effect.tp)
        self.layouts.pop(effect.tp, None)
        for offsets in self.checkpoints.values():
            offsets.pop(effect.tp, None)

    def truncate(self, effect: Truncate) -> int:
        """Truncates a log and returns its end: before the offset where that lies inside a batch, which goes
        whole."""
        log = self._log(effect.tp)
        self._lower_recovery_point(effect.tp, effect.to_offset)
        log.cut(effect.to_offset)
        log.synced = log.leo
        return log.leo

    def reset(self, effect: ResetLog) -> None:
        log = self._log(effect.tp)
        self._lower_recovery_point(effect.tp, 0)
        start = effect.start_offset
        self.logs[effect.tp] = SimLog(log.topic_id, start, start, start)

    def move_log_start(self, effect: MoveLogStart) -> None:
        """Durable on return, as the effect promises."""
        self._log(effect.tp).start_at(effect.to_offset)

    def retain(self, effect: Retain, wall_ms: float) -> int | None:
        """Returns the new start of a log whose oldest batches are over its limits; None: none is. As in the
        real storage the newest segment stays, and here each batch is one."""
        log = self._log(effect.tp)
        size = sum(len(stored.data) for stored in log.batches)
        start = log.start
        for stored in log.batches[:-1]:
            too_many = 0 <= effect.retention_bytes <= size - len(stored.data)
            too_old = 0 <= effect.retention_ms < wall_ms - stored.header.max_timestamp
            if stored.end > effect.upto or not (too_many or too_old):
                break
            start, size = stored.end, size - len(stored.data)
        if start == log.start:
            return None
        log.start_at(start)
        return start

    def write_epochs(self, effect: WriteEpochs) -> None:
        log = self._log(effect.tp)
        log.former_epochs, log.epochs, log.lost_epochs = log.epochs, effect.entries, False

    def write_checkpoint(self, effect: WriteCheckpoint) -> None:
        self._checkpoint(effect.kind, effect.offsets)

    def write_quorum_state(self, effect: WriteQuorumState) -> None:
        """Durable at once, as the effect promises."""
        self.quorum_state = effect.state

    def begin_snapshot(self, effect: WriteSnapshot) -> None:
        self.unfinished[effect.id] = effect.data

    def end_snapshot(self, snapshot: SnapshotId) -> str:
        """Renamed, the directory synced: durable. Else why the disk would not have it, and nothing is left of
        it."""
        data = self.unfinished.pop(snapshot)
        reason = "" if self.refuses is None else self.refuses(METADATA)
        if not reason:
            self.snapshots[snapshot] = data
        return reason

    def delete_snapshot(self, effect: DeleteSnapshot) -> None:
        self.snapshots.pop(effect.id, None)

    def read_snapshot(self, part: SnapshotSlice) -> bytes:
        """b"" when it is gone."""
        return self.snapshots.get(part.id, b"")[part.position : part.position + part.max_bytes]

    def abandon_snapshots(self, random: Random) -> None:
        """The process is gone in the middle of writing: the rename has been, or it has not."""
        for snapshot in list(self.unfinished):
            if random.random() < 0.5:
                self.end_snapshot(snapshot)
        self.unfinished.clear()

    def close_cleanly(self, effect: CloseLogs) -> dict[TopicPartition, int]:
        """The recovery points. Everything is durable on return, the clean-shutdown file last."""
        self._online(METADATA)
        for log in self.logs.values():
            log.synced = log.leo
        points = {tp: log.leo for tp, log in self.logs.items()}
        self._checkpoint(
            "high-watermark", {**self.checkpoints.get("high-watermark", {}), **effect.high_watermarks}
        )
        self._checkpoint("recovery-point", points)
        self._checkpoint("log-start", {tp: log.start for tp, log in self.logs.items()})
        self.clean_epoch = effect.broker_epoch
        return points

    def _online(self, tp: TopicPartition) -> None:
        if self.offline:
            raise DiskRefused(tp, self.offline)

    def _log(self, tp: TopicPartition) -> SimLog:
        self._online(tp)
        try:
            return self.logs[tp]
        except KeyError:
            raise SimulationError(f"there is no log of {tp} here") from None

    def _checkpoint(self, kind: str, offsets: Mapping[TopicPartition, int]) -> None:
        kept = dict(offsets)
        if kind == "recovery-point":
            kept = {tp: min(at, self.logs[tp].synced) for tp, at in kept.items() if tp in self.logs}
        self.checkpoints[kind] = kept

    def _lower_recovery_point(self, tp: TopicPartition, to_offset: int) -> None:
        points = self.checkpoints.get("recovery-point", {})
        if points.get(tp, 0) > to_offset:
            points[tp] = to_offset

    # --- flushing ------------------------------------------------------------------------------------------

    def begin_flush(self, tp: TopicPartition) -> bool:
        """True when one begins now; otherwise one is under way and the next begins at its end."""
        log = self.logs.get(tp)
        if log is None:
            return False
        if log.flushing is not None:
            log.flush_again = True
            return False
        log.flushing = log.leo
        return True

    def end_flush(self, log: SimLog) -> tuple[int, bool]:
        """Returns (everything below is durable, another one is wanted)."""
        upto = log.leo if log.flushing is None else min(log.flushing, log.leo)
        log.synced = max(log.synced, upto)
        again, log.flushing, log.flush_again = log.flush_again, None, False
        return upto, again

    # --- reading -------------------------------------------------------------------------------------------

    def read(self, part: LogSlice) -> bytes:
        log = self.logs.get(part.tp)
        if log is None:
            return b""
        out: list[bytes] = []
        size = 0
        for at in range(log.index_of(part.start_offset), len(log.batches)):
            header, data = log.batches[at]
            if header.base_offset >= part.end_offset or log.ends[at] > part.end_offset:
                break
            if size + len(data) > part.max_bytes and (out or not part.at_least_one):
                break
            out.append(data)
            size += len(data)
        return out[0] if len(out) == 1 else b"".join(out)

    def find(self, wanted: LookupByTime) -> tuple[int, int, int]:
        """(timestamp, offset, epoch) of the first batch at or after a time; (-1, -1, -1) when there is
        none."""
        for header, _ in self.logs[wanted.tp].batches:
            if header.base_offset < wanted.end_offset and header.max_timestamp >= wanted.timestamp:
                return header.max_timestamp, header.base_offset, header.leader_epoch
        return -1, -1, -1

    # --- crashes -------------------------------------------------------------------------------------------

    def stopped(self) -> None:
        """The process is gone, however: flushes under way are forgotten (they may or may not have worked)."""
        for log in self.logs.values():
            log.flushing, log.flush_again = None, False

    def lose_power(self, random: Random, keep: Mapping[TopicPartition, int] | None = None) -> list[Lost]:
        """Every log keeps what is synced and of the rest a random prefix, or the one up to the offset that
        ``keep`` says. Without ``random``'s help nothing is torn where ``keep`` rules."""
        lost = []
        for tp in sorted(self.logs):
            log = self.logs[tp]
            log.lost_epochs = True
            was, first = log.leo, log.index_of(log.synced)
            unsynced = len(log.batches) - first
            if unsynced <= 0:
                continue
            if keep is not None and tp in keep:
                kept, torn = bisect_right(log.ends, max(keep[tp], log.synced)), b""
            else:
                kept = first + random.randint(0, unsynced)
                torn = b""
                if kept < len(log.batches) and random.random() < 0.5:
                    data = log.batches[kept].data
                    torn = data[: random.randint(1, len(data) - 1)]
            if kept < len(log.batches):
                gone = sum(len(stored.data) for stored in log.batches[kept:]) - len(torn)
                log.cut(log.ends[kept - 1] if kept else log.start)
                log.torn = torn
                lost.append(Lost(tp, log.leo, was, bool(torn), gone))
        return lost

    def snapshot(self) -> Disk:
        """A copy to restore later (a stale backup, a cloned disk)."""
        other = Disk(self.directory_id, self._segment_bytes)
        other.logs = {tp: log.copy() for tp, log in self.logs.items()}
        other.checkpoints = {kind: dict(offsets) for kind, offsets in self.checkpoints.items()}
        other.clean_epoch = self.clean_epoch
        other.quorum_state = self.quorum_state
        other.snapshots = dict(self.snapshots)
        other.notes = dict(self.notes)
        return other

    # --- start ---------------------------------------------------------------------------------------------

    def recover(self, *, rebuild_epochs: bool = True) -> Found:
        """Returns what the next start finds: torn tails cut off, epochs as the log has them (else as an
        unsynced file says), everything synced, the clean-shutdown file taken away."""
        self.slow_ms = 0.0
        """Every flush takes so much longer: a disk that works and is slow."""
        self.offline = ""
        self.layouts.clear()
        previous, self.clean_epoch = self.clean_epoch, -1
        logs = {tp: self._recovered(tp, self.logs[tp], rebuild_epochs) for tp in sorted(self.logs)}
        metadata = tuple(stored.data for stored in self.logs[METADATA].batches) if METADATA in logs else ()
        snapshots = tuple(StoredSnapshot(*item) for item in sorted(self.snapshots.items()))
        return Found(logs, metadata, previous, snapshots)

    def _recovered(self, tp: TopicPartition, log: SimLog, rebuild_epochs: bool) -> RecoveredLog:
        if log.torn:
            _must_be_torn(log.torn)
            log.torn = b""
        log.start = min(log.start, log.leo)  # as broker/storage: the start is durable, its records may not be
        log.synced = log.leo
        scanned: list[EpochEntry] = []
        for header, _ in log.batches:
            if not scanned or header.leader_epoch != scanned[-1].epoch:
                scanned.append(EpochEntry(header.leader_epoch, header.base_offset))
        if rebuild_epochs or tp == METADATA:
            log.epochs = tuple(scanned)
        elif log.lost_epochs:
            log.epochs = log.former_epochs
        log.lost_epochs = False
        checkpoint = self.checkpoints.get("high-watermark", {}).get(tp, 0)
        return RecoveredLog(
            log.topic_id,
            log.start,
            log.leo,
            log.leo,
            max(log.start, min(checkpoint, log.leo)),
            log.epochs,
            log.producers(),
        )


def _must_be_torn(data: bytes) -> None:
    """The check of the real recovery: the piece is short, or its CRC is wrong."""
    try:
        header = batch.parse_header(data)
    except CorruptBatch:
        return
    if len(data) >= header.size_bytes and batch.crc_is_right(header, data):
        raise SimulationError("a whole batch was called torn")
