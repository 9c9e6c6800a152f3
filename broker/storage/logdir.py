"""The data directory: every log of a node, its checkpoints, its identity and its lock
(docs/protocol.md 2.14).

``<data_dir>/<topic>-<partition>/`` holds one log each; beside them lie meta.properties, the checkpoints and,
only while the node is down after a controlled shutdown, the clean-shutdown file.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.types import (
    METADATA,
    EpochEntry,
    LogSlice,
    QuorumState,
    RecoveredLog,
    SnapshotId,
    SnapshotSlice,
    StoredSnapshot,
    TopicPartition,
)
from wrackline.broker.storage import checkpoint, identity, names, snapshots
from wrackline.broker.storage.aside import KEPT_ASIDE, AsideLimits, limit_aside
from wrackline.broker.storage.backlog import Backlog, DirectoryQueue
from wrackline.broker.storage.files import fsync_dir, sync_filesystem
from wrackline.broker.storage.logs import recovery
from wrackline.broker.storage.logs.damage import SUFFIX
from wrackline.broker.storage.logs.log import LogFailed, LogSettings, PartitionLog, create
from wrackline.broker.storage.offsets import OffsetCheckpoints

_LOG = logging.getLogger("broker.storage")


class DataDirError(Exception):
    """The data directory cannot be used: which, why, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The content of the directory at start: the material of the event Boot."""

    logs: Mapping[TopicPartition, RecoveredLog]
    metadata: tuple[bytes, ...]
    previous_broker_epoch: int
    quorum_state: QuorumState | None = None
    directory_id: UUID = UUID(int=0)
    snapshots: tuple[StoredSnapshot, ...] = ()
    offline: tuple[TopicPartition, ...] = ()
    """There are records, but nobody can tell of which topic."""


def _make_directory(directory: Path, topic_id: UUID) -> Iterable[Path]:
    """Makes the directory of a log. Raises OSError."""
    directory.mkdir()
    checkpoint.write_topic_id(directory, topic_id, durable=False)
    return directory / checkpoint.PARTITION_METADATA_FILE, directory.parent


class LogDir:
    """All logs of one node. One process at a time: the directory is locked for as long as this lives."""

    def __init__(
        self,
        path: Path,
        settings: LogSettings,
        *,
        node_id: int,
        cluster_id: str,
        voter: bool = False,
        aside: AsideLimits = KEPT_ASIDE,
    ) -> None:
        """``voter``: of a controller, whose votes and acknowledgements count. Raises DataDirError when the
        directory cannot be made, is in use, or is another node's."""
        self.path = path
        self._settings = settings
        self._voter = voter
        self._aside_limits = aside
        self._aside: set[Path] = set()
        """What was put aside since the start."""
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._names: dict[UUID, str] = {}
        self._kept: Counter[UUID] = Counter()
        """Logs by topic."""
        self._checkpoints = OffsetCheckpoints(path)
        self._backlog = Backlog(path)
        self._leaving: dict[TopicPartition, DirectoryQueue] = {}
        """Of logs that were deleted: another log of the name is made after they have made way."""
        self._unknown: dict[TopicPartition, Path] = {}
        """Whose directories are left alone: their topic's id cannot be read."""
        self.owes = False
        """``settle`` is due."""
        self.offline: str | None = None
        """Why, once the disk has refused something."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as failure:
            raise DataDirError(
                f"data_dir {path}: {failure.strerror}; it must be a writable directory"
            ) from failure
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as failure:
            os.close(self._lock)
            raise DataDirError(
                f"data_dir {path} is in use by another process; stop it or choose another"
            ) from failure
        try:
            identity.check(path, node_id, cluster_id)
        except (OSError, checkpoint.CheckpointError) as failure:
            os.close(self._lock)
            raise DataDirError(f"data_dir {path}: {failure}") from failure

    # --- start and stop --------------------------------------------------------------------------------

    def open(self) -> Found:
        """Recover every log. The clean-shutdown file is taken away first. Raises DataDirError."""
        try:
            return self._open()
        except (recovery.RecoveryError, checkpoint.CheckpointError) as error:
            raise DataDirError(str(error)) from error
        except OSError as failure:
            raise DataDirError(
                f"data_dir {self.path}: {failure}; mend the disk or choose another"
            ) from failure

    def _open(self) -> Found:
        epoch = checkpoint.take_clean_shutdown(self.path)
        readable = [self._read_checkpoint(kind, epoch is not None) for kind in checkpoint.CHECKPOINT_FILES]
        quorum_state = checkpoint.read_quorum_state(self.path)
        voter = self._voter or quorum_state is not None
        logs: dict[TopicPartition, RecoveredLog] = {}
        trusted, unsynced = all(readable), False
        for tp, directory in self._directories():
            try:
                result = self._recover(tp, directory, clean=epoch is not None, voter=voter)
            except recovery.TopicUnknown as wrong:
                _LOG.error("log %s is offline, registering as after an unclean stop: %s", tp, wrong)
                self._unknown[tp] = directory
                trusted = False
                continue
            trusted = trusted and not result.damaged
            unsynced = unsynced or result.unsynced
            self._add(result.log)
            logs[tp] = recovery.as_recovered(result, self._checkpoints[Checkpoint.HIGH_WATERMARK].get(tp, 0))
        if unsynced:
            sync_filesystem(self.path)
        self._forget_gone(logs)
        stored = snapshots.find(self._metadata_directory)
        if voter:
            self._check_votes(quorum_state, logs.get(METADATA), stored)
        limit_aside(self.path, self._aside_limits, self._aside)
        metadata = tuple(self._logs[METADATA].batches()) if METADATA in self._logs else ()
        return Found(
            logs,
            metadata,
            epoch if epoch is not None and trusted else -1,
            quorum_state,
            identity.directory_id(self.path),
            stored,
            tuple(self._unknown),
        )

    def _forget_gone(self, logs: Mapping[TopicPartition, RecoveredLog]) -> None:
        """What the checkpoints say of logs that are gone must not be said of others of their names. Raises
        OSError."""
        named = {tp for kind in Checkpoint for tp in self._checkpoints[kind]}
        if gone := named - logs.keys() - self._unknown.keys() - {METADATA}:
            for tp in gone:
                self._checkpoints.forget(tp)
            self._checkpoints.write_due()

    def _check_votes(
        self, state: QuorumState | None, log: RecoveredLog | None, stored: Sequence[StoredSnapshot]
    ) -> None:
        """A controller votes before it acknowledges records, and what it had flushed when it was last closed
        is there. Raises RecoveryError, CheckpointError."""
        if log is None and self._checkpoints[Checkpoint.RECOVERY_POINT].get(METADATA, 0) > 0:
            raise recovery.RecoveryError(
                f"{self._metadata_directory} is missing or empty, and what was on disk of it counts: "
                f"{checkpoint.empty_controller(self.path)}"
            )
        if state is None and (stored or (log is not None and log.leo > 0)):
            missing = self.path / checkpoint.QUORUM_FILE
            raise checkpoint.CheckpointError(f"{missing} is missing: {checkpoint.unknown_vote(self.path)}")

    def _recover(
        self, tp: TopicPartition, directory: Path, *, clean: bool, voter: bool
    ) -> recovery.Recovered:
        result = recovery.recover(
            directory,
            tp,
            self._settings,
            recovery_point=self._checkpoints[Checkpoint.RECOVERY_POINT].get(tp, 0),
            log_start=self._checkpoints[Checkpoint.LOG_START].get(tp, 0),
            clean=clean,
            high_watermark=self._checkpoints[Checkpoint.HIGH_WATERMARK].get(tp, 0),
            irreplaceable=voter and tp == METADATA,
        )
        self._aside.update(result.aside)
        if result.damaged:
            _LOG.error(
                "DAMAGED log %s: %s. It ends at offset %d now, and the broker registers as after "
                "an unclean stop. What lay behind is in: %s",
                tp,
                result.cut,
                result.log.leo,
                ", ".join(map(str, result.aside)) or "no file, there was nothing",
            )
        elif result.cut is not None:
            _LOG.warning("log %s cut to end offset %d: %s", tp, result.log.leo, result.cut)
        return result

    @property
    def _metadata_directory(self) -> Path:
        return self.path / str(METADATA)

    def _read_checkpoint(self, kind: Checkpoint, clean: bool) -> bool:
        """False when it cannot be read, or is missing after a ``clean`` stop, which writes it."""
        path = self.path / checkpoint.CHECKPOINT_FILES[kind]
        try:
            if clean and not path.exists():
                raise checkpoint.CheckpointError(f"{path} is missing after a clean stop")
            self._checkpoints.read(kind)
        except checkpoint.CheckpointError as wrong:
            _LOG.error("%s; going on without it, registering as after an unclean stop", wrong)
            return False
        return True

    def _directories(self) -> list[tuple[TopicPartition, Path]]:
        result = []
        for entry in sorted(self.path.iterdir()):
            if entry.name.endswith(".tmp"):
                entry.unlink()
            elif entry.is_dir() and entry.name.endswith(names.DOOMED):
                shutil.rmtree(entry)
            elif entry.is_dir() and (tp := names.log_of(entry.name)) is not None:
                if self._half_created(entry):
                    shutil.rmtree(entry)
                    continue
                result.append((tp, entry))
        return result

    @staticmethod
    def _half_created(directory: Path) -> bool:
        """A log is created in the order directory, partition.metadata, first segment: without the second
        nothing can have been appended, and nothing deleted from its beginning. After a power cut the second
        may be empty: nothing was flushed, or it would be whole."""
        metadata = directory / checkpoint.PARTITION_METADATA_FILE
        if metadata.exists() and metadata.stat().st_size:
            return False
        return not any(path.stat().st_size or path.stem.strip("0") for path in directory.glob("*.log"))

    def close_cleanly(
        self, broker_epoch: int, high_watermarks: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Flush everything, write all checkpoints, then the clean-shutdown file (R09); the recovery points.

        In any thread, while nobody writes and no flush is under way. Raises OSError, and then there is no
        clean-shutdown file.
        """
        self._online()
        if (left := self.behind()) is not None:
            left()
        for log in self._logs.values():
            log.flush_at_rest()
        points = {tp: log.leo for tp, log in self._logs.items()}
        self.write_checkpoint(
            Checkpoint.HIGH_WATERMARK, {**self._checkpoints[Checkpoint.HIGH_WATERMARK], **high_watermarks}
        )
        self.write_checkpoint(Checkpoint.RECOVERY_POINT, points)
        self.write_checkpoint(Checkpoint.LOG_START, {tp: log.log_start for tp, log in self._logs.items()})
        checkpoint.write_clean_shutdown(self.path, broker_epoch)
        return points

    def close(self) -> None:
        self._backlog.close()
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        os.close(self._lock)

    # --- logs ------------------------------------------------------------------------------------------

    def _add(self, log: PartitionLog) -> None:
        self._logs[log.tp] = log
        self._names[log.topic_id] = log.tp.topic
        self._kept[log.topic_id] += 1

    def get(self, tp: TopicPartition) -> PartitionLog | None:
        return self._logs.get(tp)

    def __getitem__(self, tp: TopicPartition) -> PartitionLog:
        return self._logs[tp]

    def all(self) -> list[PartitionLog]:
        return list(self._logs.values())

    def topic_name(self, topic_id: UUID) -> str | None:
        """The topic of a log kept here."""
        return self._names.get(topic_id)

    def create(self, tp: TopicPartition, topic_id: UUID, start_offset: int) -> None:
        """A log, which ``behind`` puts on the disk. One that is there already with the same topic id stays;
        one whose topic nobody knows is put aside. Raises OSError."""
        self._online()
        if tp in self._unknown:
            self._put_aside(tp)
        known = self._logs.get(tp)
        if known is not None and known.topic_id == topic_id:
            return
        if known is not None:
            self.delete(tp)
        directory, former = self.path / str(tp), self._leaving.pop(tp, None)
        queue = DirectoryQueue() if former is None else former

        def make() -> Iterable[Path]:
            if former is not None:
                self._checkpoints.write_due()  # what is known of the former log is not said of this one
            return _make_directory(directory, topic_id)

        self._backlog.add(queue, make)
        self._add(create(tp, topic_id, directory, self._settings, start_offset, queue))

    def _put_aside(self, tp: TopicPartition) -> None:
        """The name is free for another log, and nothing is known of it any more."""
        directory = self._unknown.pop(tp)
        self._checkpoints.forget(tp)
        self._checkpoints.write_due()  # before another log has the name
        aside = directory.rename(self.path / names.unused(tp, SUFFIX))
        fsync_dir(self.path)
        self._aside.add(aside)
        _LOG.error(
            "DAMAGED log %s is given up: the cluster has its records, or wants none. It is in: %s", tp, aside
        )
        limit_aside(self.path, self._aside_limits, self._aside)

    def delete(self, tp: TopicPartition) -> None:
        """Raises OSError. The log is gone for good once ``behind`` has given its directory another name; one
        whose topic nobody knows is put aside."""
        self._online()
        if tp in self._unknown:
            self._put_aside(tp)
        log = self._logs.pop(tp, None)
        if log is None:
            return
        self._kept[log.topic_id] -= 1
        if not self._kept[log.topic_id]:
            del self._kept[log.topic_id], self._names[log.topic_id]
        self._checkpoints.forget(tp)
        log.close()
        self._backlog.remove(log.queue, log.directory, self.path / names.unused(tp, names.DOOMED))
        self._leaving[tp] = log.queue

    def behind(self) -> Callable[[], None] | None:
        """Returns what is to be done in a thread, durable when it returns; None when there is nothing, or the
        directory is offline. It raises OSError. One at a time, and in the order in which they were handed
        out."""
        if self.offline is not None:
            return None
        batch = self._backlog.batch()
        self._leaving = {tp: queue for tp, queue in self._leaving.items() if queue}
        if batch is None and not self._checkpoints.is_due:
            return None

        def run() -> None:
            self._checkpoints.write_due()
            if batch is not None:
                batch.run()

        return run

    def take_offline(self, reason: str) -> bool:
        """Takes the directory offline: no log of it takes a write any more (KAFKA-10778). False when writing
        goes on after errors (the defect of B57)."""
        if self._settings.continue_after_error:
            return False
        self.offline = self.offline or reason
        for log in self._logs.values():
            log.fail(reason)
        return True

    def _online(self) -> None:
        if self.offline is not None:
            raise LogFailed(f"log directory {self.path} is offline since: {self.offline}")

    def truncate(self, tp: TopicPartition, to_offset: int) -> int:
        """Raises OSError. A recovery point past the cut goes first: recovery must look at what is written
        anew."""
        log = self._logs[tp]
        self._lower_recovery_point(tp, log.end_of_cut(to_offset))
        return log.truncate(to_offset)

    def move_log_start(self, tp: TopicPartition, to_offset: int) -> None:
        """Moves the log start in memory, and behind; ``settle`` is due before anybody is told of it. Raises
        OSError."""
        if to_offset > self._logs[tp].log_start:
            self._move_log_start(tp, to_offset)
            self.owes = True

    def settle(self) -> None:
        """Makes the log starts durable: no log begins before where it was told to, whatever comes. Raises
        OSError."""
        self.owes = False
        self._online()
        self._checkpoints.write_due()

    def _move_log_start(self, tp: TopicPartition, to_offset: int) -> None:
        """The checkpoint goes first: what was deleted does not come back, but for whole segments."""
        log = self._logs[tp]
        gone = log.move_start(to_offset)
        self._checkpoints.put(Checkpoint.LOG_START, tp, to_offset)

        def remove() -> Iterable[Path]:
            self._checkpoints.write_due()
            return log.remove(gone)

        if gone:
            self._backlog.add(log.queue, remove)

    def retain(self, tp: TopicPartition, limits: tuple[int, int], upto: int, now_ms: float) -> int | None:
        """The new log start when whole old segments are to be removed, which is done behind. Raises
        OSError."""
        start = self._logs[tp].old_before(*limits, upto, now_ms)
        if start <= self._logs[tp].log_start:
            return None
        self._move_log_start(tp, start)
        return start

    def reset(self, tp: TopicPartition, start_offset: int) -> None:
        self._lower_recovery_point(tp, 0)
        self._logs[tp].reset(start_offset)

    def _lower_recovery_point(self, tp: TopicPartition, to_offset: int) -> None:
        points = self._checkpoints[Checkpoint.RECOVERY_POINT]
        if points.get(tp, 0) > to_offset:
            self.write_checkpoint(Checkpoint.RECOVERY_POINT, {**points, tp: to_offset})

    def write_epochs(self, tp: TopicPartition, entries: Sequence[EpochEntry]) -> None:
        """Writes the leader epochs before the log's next write, and on the disk before its next flush. Raises
        OSError."""
        self._online()
        log = self._logs[tp]
        self._backlog.add(log.queue, partial(log.write_epochs, entries))

    def write_quorum_state(self, state: QuorumState) -> None:
        """Writes the quorum state, in any thread; durable on return. Raises OSError."""
        checkpoint.write_quorum_state(self.path, state)

    def snapshot_writer(self, snapshot: SnapshotId, data: bytes) -> Callable[[], None]:
        """To be called in any thread; durable when it returns. It raises OSError; so does this."""
        self._online()
        queue = self._logs[METADATA].queue
        queue.work()
        small = queue.unsynced()

        def write() -> None:
            queue.sync(small)  # a snapshot in a directory that a power cut takes back is none
            snapshots.write(self._metadata_directory, snapshot, data)

        return write

    def delete_snapshot(self, snapshot: SnapshotId) -> None:
        """Raises OSError."""
        self._online()
        snapshots.delete(self._metadata_directory, snapshot)

    def read_snapshot(self, part: SnapshotSlice) -> bytes:
        """b"" when there is no such snapshot any more. Raises OSError."""
        return snapshots.read(self._metadata_directory, part.id, part.position, part.max_bytes)

    def write_checkpoint(self, kind: Checkpoint, offsets: Mapping[TopicPartition, int]) -> None:
        """Durable on return. Raises OSError."""
        self._checkpoints.write(kind, self._true_offsets(kind, offsets))

    def write_checkpoint_later(self, kind: Checkpoint, offsets: Mapping[TopicPartition, int]) -> None:
        """``behind`` does it. Raises OSError."""
        self._checkpoints.write_later(kind, self._true_offsets(kind, offsets))

    def _true_offsets(
        self, kind: Checkpoint, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        """A recovery point never goes past what was flushed, whatever is asked."""
        self._online()
        kept = dict(offsets)
        if kind == Checkpoint.RECOVERY_POINT:
            kept = {tp: min(at, self._logs[tp].flushed_upto) for tp, at in kept.items() if tp in self._logs}
        # Of a log that is left alone the core knows nothing: what was known before stays.
        before = self._checkpoints[kind]
        kept = {tp: at for tp, at in kept.items() if tp not in self._unknown}
        return kept | {tp: before[tp] for tp in self._unknown if tp in before}

    def read(self, part: LogSlice) -> bytes:
        """b"" when the log is not here (deleted between the core's answer and now). Raises OSError."""
        log = self._logs.get(part.tp)
        return log.read(part) if log is not None else b""
