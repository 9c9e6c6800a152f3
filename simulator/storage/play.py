"""A play of the broker's storage: what its shell asks of it, drawn, until a crash; then a recovery, checked.

One thread plays all of the shell's: a flush, and the work behind the loop, begin at one step, run at another,
and are answered at a third. The contract (docs/simulator.md, "Storage"):

- what was flushed is there, and equal; what there is beyond it is a prefix of what was appended;
- a log begins where it was told to, and has no hole; what was cut off or deleted for good stays away;
- leader epochs are those of the batches, no recovery point lies past what was flushed, and snapshots, votes
  and the mark of a clean stop are as they were answered;
- recovery never raises, what it says survives another crash, and a second one changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import UUID

from wrackline.broker.model.batches.batch import build, parse_header
from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.epochs import EpochCache
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, QuorumState, SnapshotId, TopicPartition
from wrackline.broker.storage import checkpoint
from wrackline.broker.storage.logdir import DataDirError, Found, LogDir
from wrackline.broker.storage.logs.log import FlushJob, LogSettings, PartitionLog
from wrackline.simulator.storage.disk import Disk, PowerCut

_SETTINGS = LogSettings(segment_bytes=4_096, index_interval_bytes=400)
_LIVES = 4
_MOST_STEPS = 120
_MOST_CALLS = 400
"""Of a life, before the power goes."""
_TOPICS = tuple(TopicPartition(topic, 0) for topic in ("a", "b", "c"))


class Broken(Exception):
    """The storage does not keep its contract."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A line: the life of the node (from 0), and what is not so."""

    life: int
    text: str


@dataclass(slots=True)
class Content:
    """One state that a log may be in."""

    batches: list[bytes] = field(default_factory=list)
    base: int = 0
    """Where the first batch begins, or would."""

    @property
    def end(self) -> int:
        return parse_header(self.batches[-1]).last_offset + 1 if self.batches else self.base

    def upto(self, offset: int) -> Content:
        """Without the batches that hold the offset or later ones."""
        return Content([one for one in self.batches if parse_header(one).last_offset < offset], self.base)


@dataclass(slots=True, eq=False)
class Log:
    """What the asker knows of a log."""

    tp: TopicPartition
    topic_id: UUID
    states: list[Content]
    """The one that it has; while it is cut or reset, that before it, too."""
    flushed: int = 0
    """Below it everything has been promised."""
    start: int = 0
    """Promised."""
    moved_to: int = 0
    """Asked for."""
    durable: bool = False
    """A flush of it was answered."""
    doomed: bool = False
    """Its deletion was asked for."""
    gone: bool = False
    """It is on the disk."""
    epochs: EpochCache = field(default_factory=EpochCache)

    @property
    def now(self) -> Content:
        return self.states[-1]


class Play:
    """The lives of one node, by a seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self._folder = folder
        self._draw = Random(f"{seed}/storage")
        self._voter = self._draw.random() < 0.4
        self._epoch = 0
        self._value = 0
        self._logs: dict[TopicPartition, Log] = {}
        self._former: list[Log] = []
        """That were deleted."""
        self._flushes: list[tuple[Log, PartitionLog, FlushJob, int]] = []
        self._behind: tuple[Callable[[], None], list[Log]] | None = None
        self._vote: list[QuorumState | None] = [None]
        """The ones that may be on the disk, the last one answered first."""
        self._snapshots: dict[SnapshotId, bytes] = {}
        self._maybe: dict[SnapshotId, bytes] = {}
        """Snapshots that are being written or removed."""
        self._stopping = False
        """A clean stop has begun: what it flushes, it does not answer one by one."""
        self._clean: tuple[int, ...] = (-1,)
        """Broker epochs that the next start may report."""
        self.steps = 0
        self.calls = 0
        self.lives = 0
        """That have begun."""

    def run(self) -> Violation | None:
        """Returns the first violation; None: all went well."""
        root = self._folder / "0"
        root.mkdir()
        logging.disable(logging.CRITICAL)  # a recovery has much to say
        try:
            for life in range(_LIVES):
                self.lives = life + 1
                try:
                    root = self._live(root, life)
                except Broken as broken:
                    return Violation(life, str(broken).replace(f"{self._folder}/", "").replace("\n", " "))
        finally:
            logging.disable(logging.NOTSET)
        return None

    # --- a life ----------------------------------------------------------------------------------------

    def _live(self, root: Path, life: int) -> Path:
        """A start, steps, and the end; the directory that the next one starts from."""
        draw, after = self._draw, self._folder / str(life + 1)
        self._twice(root, life)
        disk = Disk(root, Random(f"{self.seed}/disk/{life}"))
        if draw.random() < 0.8:
            disk.cut_at = draw.randrange(1, _MOST_CALLS)
        fails = draw.choice(("fsync", "write")) if draw.random() < 0.15 else None
        fails_at = draw.randrange(_MOST_STEPS)
        self._flushes, self._behind = [], None
        logs: LogDir | None = None
        ending = "power"
        with disk.installed():
            try:
                logs = self._open(root)
                expected, self._clean = self._clean, (-1, *self._clean)
                self._check(logs, self._recover(logs), expected)
                for step in range(draw.randrange(1, _MOST_STEPS)):
                    self.steps += 1
                    if step == fails_at:
                        disk.failing = fails
                    draw.choices(_STEPS, _WEIGHTS)[0](self, logs)
                ending = draw.choice(("power", "kill", "clean"))
                if ending == "clean":
                    self._stop(logs)
            except PowerCut:
                ending = "power"
            except OSError as failure:
                # The directory is offline and the process ends, by a kill at best.
                if not disk.failed:
                    raise Broken(f"an error of its own: {failure!r}") from failure
                ending = draw.choice(("power", "kill"))
            finally:
                disk.cut_at = None
                if logs is not None:
                    _close(logs)
            self.calls += disk.calls
            (disk.as_it_is if ending == "kill" else disk.after_crash)(after)
        return after

    def _open(self, root: Path) -> LogDir:
        try:
            return LogDir(root, _SETTINGS, node_id=1, cluster_id="c", voter=self._voter)
        except DataDirError as error:
            raise Broken(f"the directory is refused: {error}") from error

    def _recover(self, logs: LogDir) -> Found:
        try:
            return logs.open()
        except PowerCut:
            raise
        except Exception as error:
            raise Broken(f"recovery raises {type(error).__name__}: {error}") from error

    def _twice(self, root: Path, life: int) -> None:
        """Two starts of copies of the directory: the second one changes nothing, and what the first one said
        survives whatever a crash behind it leaves."""
        copies = [self._folder / f"{life}-{name}" for name in ("copy", "crashed")]
        Disk(root, Random()).as_it_is(copies[0])
        disk = Disk(copies[0], Random(f"{self.seed}/again/{life}"))
        with disk.installed():
            logs = self._open(copies[0])
            first = _summary(logs, self._recover(logs))
            logs.close()
            disk.after_crash(copies[1])
        for copy, what in zip(copies, ("a second recovery", "a recovery after another crash"), strict=True):
            logs = self._open(copy)
            second = _summary(logs, self._recover(logs))
            logs.close()
            for name, value in first.items():
                if second.get(name) != value:
                    raise Broken(f"{what} has for {name} {second.get(name)}, and the first had {value}")

    def _stop(self, logs: LogDir) -> None:
        self._end_behind(logs)
        while self._flushes:
            self._end_flush(logs)
        self._epoch += 1
        self._clean = (-1, self._epoch)
        self._stopping = True
        logs.close_cleanly(self._epoch, {})
        self._clean = (self._epoch,)
        for log in self._logs.values():
            log.flushed, log.durable = log.now.end, True

    # --- the contract ----------------------------------------------------------------------------------

    def _check(self, logs: LogDir, result: Found, epochs: tuple[int, ...]) -> None:
        """Of a start, which reports one of these broker epochs. From here on the logs are as they were
        recovered. Raises Broken."""
        if result.previous_broker_epoch not in ((-1, *epochs) if result.offline else epochs):
            raise Broken(f"previous broker epoch {result.previous_broker_epoch}, not one of {epochs}")
        stopped = result.previous_broker_epoch > 0
        self._clean = (-1,)
        for tp, one in self._logs.items():
            there = logs.get(tp)
            if one.durable and (there is None or there.topic_id != one.topic_id):
                raise Broken(f"{tp}: a log that was flushed is gone")
        before, self._logs, self._former = [*self._logs.values(), *self._former], {}, []
        try:
            points = checkpoint.read_offsets(
                logs.path / checkpoint.CHECKPOINT_FILES[Checkpoint.RECOVERY_POINT]
            )
        except checkpoint.CheckpointError as error:
            raise Broken(f"a checkpoint is not whole: {error}") from error
        for stored in logs.all():
            of_topic = (one for one in before if (one.tp, one.topic_id) == (stored.tp, stored.topic_id))
            if (log := next(of_topic, None)) is None or log.gone:
                raise Broken(f"{stored.tp}: a log of a topic that was deleted, or never made")
            if stopped:
                log.flushed = log.now.end
            self._check_log(log, stored, points.get(stored.tp, 0))
            recovered = result.logs[stored.tp]
            if recovered.epochs != log.epochs.entries:
                raise Broken(f"{stored.tp}: epochs {recovered.epochs}, the batches have {log.epochs.entries}")
            on_disk = checkpoint.read_epochs(stored.directory / checkpoint.EPOCHS_FILE)
            if on_disk != log.epochs.entries:
                raise Broken(f"{stored.tp}: epoch file {on_disk}, the batches have {log.epochs.entries}")
            self._logs[stored.tp] = log
        self._stopping = False
        self._check_small(result)

    def _check_log(self, log: Log, stored: PartitionLog, point: int) -> None:
        batches = stored.batches()
        end = stored.leo
        # Of one that was never flushed the directory may be there, and no file in it.
        states = log.states if log.durable else [*log.states, Content()]
        # A cut that was under way may have come to any batch; of a log that was to go nothing is promised.
        least = 0 if log.doomed else min(log.flushed, *(state.end for state in states))
        if not any(_is_part(batches, state, stored.log_start, end, least) for state in states):
            choices = ", or ".join(f"{state.base} to {state.end}" for state in states)
            first = parse_header(batches[0]).base_offset if batches else end
            raise Broken(
                f"{log.tp}: {first} to {end} with log start {stored.log_start} was recovered, of {choices}, "
                f"flushed to {least}"
            )
        low = 0 if log.doomed else min(log.start, end)
        high = max(low, log.moved_to, *(state.base for state in states))
        if not low <= stored.log_start <= high:
            raise Broken(f"{log.tp}: it begins at {stored.log_start}, it was to begin at {low} to {high}")
        # A clean stop flushes and answers nothing; a cut is under way, or not, where there are two states.
        between = self._stopping or len(log.states) > 1
        if point > max(log.flushed, *(state.end if between else state.base for state in states)):
            raise Broken(f"{log.tp}: recovery point {point}, and what was flushed ends at {log.flushed}")
        base = parse_header(batches[0]).base_offset if batches else end
        log.states = [Content(batches, base)]
        # What lies below a log start that was asked for once may go at any time.
        log.flushed, log.start, log.moved_to = end, stored.log_start, max(log.moved_to, stored.log_start)
        log.durable, log.doomed = True, False
        log.epochs = EpochCache()
        for one in batches:
            header = parse_header(one)
            log.epochs = log.epochs.assign(header.leader_epoch, header.base_offset)
            self._epoch = max(self._epoch, header.leader_epoch)

    def _check_small(self, result: Found) -> None:
        if result.quorum_state not in self._vote:
            raise Broken(f"quorum state {result.quorum_state}, not one of {self._vote}")
        self._vote = [result.quorum_state]
        stored = {one.id: one.data for one in result.snapshots}
        for snapshot, data in self._snapshots.items():
            if stored.get(snapshot) != data:
                raise Broken(f"snapshot {snapshot} is gone, or another one")
        for snapshot, data in stored.items():
            if snapshot not in self._snapshots and self._maybe.get(snapshot) != data:
                raise Broken(f"snapshot {snapshot} was removed, or is not whole")
        self._snapshots, self._maybe = stored, {}

    # --- steps -----------------------------------------------------------------------------------------

    def _any(self, logs: LogDir) -> tuple[Log, PartitionLog] | None:
        if not self._logs:
            return None
        log = self._draw.choice(sorted(self._logs.values(), key=lambda log: log.tp))
        return log, logs[log.tp]

    def _create(self, logs: LogDir) -> None:
        tp = self._draw.choice((*_TOPICS, METADATA) if self._voter else _TOPICS)
        if tp in self._logs:
            return
        if tp == METADATA and self._vote == [None]:
            self._decide(logs)  # a controller votes before it has records
        topic_id = METADATA_TOPIC_ID if tp == METADATA else UUID(int=self._draw.getrandbits(127) + 1)
        start = self._draw.choice((0, 0, 0, 7, 1_000)) if tp != METADATA else 0
        self._logs[tp] = Log(tp, topic_id, [Content([], start)], start, start, start)
        logs.create(tp, topic_id, start)

    def _delete(self, logs: LogDir) -> None:
        if (pair := self._any(logs)) is None or pair[0].tp == METADATA:
            return
        log = pair[0]
        log.doomed = True
        self._former.append(self._logs.pop(log.tp))
        logs.delete(log.tp)

    def _append(self, logs: LogDir) -> None:
        if (pair := self._any(logs)) is None:
            return
        log, stored = pair
        if self._draw.random() < 0.2 or not log.epochs.entries:
            self._epoch += 1
            log.epochs = log.epochs.assign(self._epoch, log.now.end)
            logs.write_epochs(log.tp, log.epochs.entries)
        new, at = [], log.now.end
        for _ in range(self._draw.randrange(1, 5)):
            size = self._draw.choice((1, 40, 300, 600, 1_500))
            values = [self._next_value(size) for _ in range(self._draw.randrange(1, 3))]
            new.append(build(values, at, log.epochs.latest, 1_000 + self.steps))
            at += len(values)
        log.now.batches += new
        if stored.append(new):
            self._begin_flush_of(log, stored)

    def _next_value(self, size: int) -> bytes:
        """Never the same one twice: what was cut off is told from what came after it."""
        self._value += 1
        return (b"%d," % self._value * size)[: size + 8]

    def _begin_flush(self, logs: LogDir) -> None:
        if (pair := self._any(logs)) is not None:
            self._begin_flush_of(*pair)

    def _begin_flush_of(self, log: Log, stored: PartitionLog) -> None:
        if all(log is not other for other, _, _, _ in self._flushes):
            self._flushes.append((log, stored, stored.prepare_flush(), 0))

    def _end_flush(self, _: LogDir) -> None:
        """Runs it, or answers it: steps may lie between."""
        if not self._flushes:
            return
        at = self._draw.randrange(len(self._flushes))
        log, stored, job, stage = self._flushes.pop(at)
        if log.doomed:
            if not job.done:
                with suppress(FileNotFoundError):  # the shell asks no more how it went
                    job.run()
            return
        if stage == 0:
            try:
                job.run()
            except FileNotFoundError:
                raise Broken(f"{log.tp}: a flush lacks its files") from None
            self._flushes.append((log, stored, job, 1))
            return
        upto = stored.flushed(job)
        log.flushed, log.durable = max(log.flushed, upto), True

    def _truncate(self, logs: LogDir) -> None:
        if (pair := self._any(logs)) is None or pair[0].now.end <= pair[0].start:
            return
        log, _ = pair
        stored = logs[log.tp]
        low = max(stored.log_start, log.now.base, log.flushed - 5 if log.tp != METADATA else log.flushed)
        to = self._draw.randrange(low, log.now.end + 1) if low < log.now.end else log.now.end
        log.states.append(log.now.upto(to))
        end = logs.truncate(log.tp, to)
        if end != log.now.end:
            raise Broken(f"{log.tp}: cut to {to} it ends at {end}, not {log.now.end}")
        del log.states[:-1]
        log.flushed = min(log.flushed, end)
        epochs = log.epochs.truncate_from_end(end)
        if epochs is not log.epochs:
            log.epochs = epochs
            logs.write_epochs(log.tp, epochs.entries)

    def _reset(self, logs: LogDir) -> None:
        if (pair := self._any(logs)) is None or pair[0].tp == METADATA:
            return
        log, _ = pair
        to = log.now.end + self._draw.randrange(1, 50)
        log.states.append(Content([], to))
        log.flushed, log.start, log.moved_to = 0, 0, to
        logs.reset(log.tp, to)
        del log.states[:-1]
        log.epochs, log.start, log.flushed = EpochCache(), to, to
        logs.write_epochs(log.tp, ())

    def _move_start(self, logs: LogDir) -> None:
        """DeleteRecords, which is answered when the log start is durable."""
        if (pair := self._any(logs)) is None or pair[0].flushed <= pair[0].start:
            return
        log, _ = pair
        log.moved_to = max(log.moved_to, self._draw.randrange(log.start, log.flushed + 1))
        logs.move_log_start(log.tp, log.moved_to)
        self._settle(logs)

    def _retain(self, logs: LogDir) -> None:
        if (pair := self._any(logs)) is None:
            return
        log, _ = pair
        log.moved_to, before = max(log.flushed, log.moved_to), log.moved_to
        size = self._draw.choice((0, 4_096, 12_000))
        moved = logs.retain(log.tp, (size, -1), log.flushed, 0.0)
        log.moved_to = max(before, moved or 0)

    def _settle(self, logs: LogDir) -> None:
        if logs.owes:
            logs.settle()
            for log in self._logs.values():
                log.start = max(log.start, logs[log.tp].log_start)

    def _checkpoint(self, logs: LogDir) -> None:
        kind = self._draw.choice((Checkpoint.RECOVERY_POINT, Checkpoint.HIGH_WATERMARK))
        logs.write_checkpoint_later(kind, {tp: logs[tp].leo for tp in self._logs})

    def _begin_behind(self, logs: LogDir) -> None:
        if self._behind is None and (job := logs.behind()) is not None:
            self._behind = job, [log for log in self._former if not log.gone]

    def _end_behind(self, logs: LogDir) -> None:
        self._begin_behind(logs)
        if self._behind is not None:
            job, doomed = self._behind
            self._behind = None
            job()
            for log in doomed:
                log.gone = True

    def _decide(self, logs: LogDir) -> None:
        """A vote, or another epoch."""
        if not self._voter:
            return
        self._epoch += 1
        state = QuorumState(self._epoch, -1, self._draw.randrange(1, 4), UUID(int=5), UUID(int=6))
        self._vote = [*self._vote, state]
        logs.write_quorum_state(state)
        self._vote = [state]

    def _write_snapshot(self, logs: LogDir) -> None:
        if (log := self._logs.get(METADATA)) is None:
            return
        snapshot = SnapshotId(log.flushed, max(log.epochs.latest, 0))
        if snapshot in self._snapshots:
            return
        data = self._next_value(self._draw.choice((10, 700, 3_000)))
        self._maybe[snapshot] = data
        logs.snapshot_writer(snapshot, data)()
        self._snapshots[snapshot] = self._maybe.pop(snapshot)

    def _delete_snapshot(self, logs: LogDir) -> None:
        if not self._snapshots:
            return
        snapshot = min(self._snapshots)
        self._maybe[snapshot] = self._snapshots.pop(snapshot)
        logs.delete_snapshot(snapshot)
        del self._maybe[snapshot]


_CHOICES: tuple[tuple[Callable[[Play, LogDir], None], int], ...] = (
    (Play._append, 30),
    (Play._begin_flush, 10),
    (Play._end_flush, 20),
    (Play._begin_behind, 6),
    (Play._end_behind, 10),
    (Play._create, 8),
    (Play._delete, 2),
    (Play._truncate, 5),
    (Play._reset, 1),
    (Play._move_start, 3),
    (Play._retain, 3),
    (Play._checkpoint, 6),
    (Play._decide, 2),
    (Play._write_snapshot, 6),
    (Play._delete_snapshot, 1),
)
_STEPS = tuple(step for step, _ in _CHOICES)
_WEIGHTS = tuple(weight for _, weight in _CHOICES)


def _close(logs: LogDir) -> None:
    """As the kernel does it for a process that is gone."""
    try:
        logs.close()
    except PowerCut:
        return


def _is_part(batches: Sequence[bytes], state: Content, start: int, end: int, flushed: int) -> bool:
    """The batches are those of a state, from the log start or before it on, as far as it was flushed or
    further."""
    if end < min(flushed, state.end) or (not batches and end not in (state.base, state.end, start)):
        return False
    if not batches:
        return flushed <= end or not state.batches or end == state.end
    if batches[0] not in state.batches:
        return False
    at = state.batches.index(batches[0])
    return parse_header(batches[0]).base_offset <= start and batches == state.batches[at : at + len(batches)]


def _summary(logs: LogDir, result: Found) -> dict[str, object]:
    """What a start says, by name."""
    return dict(_lines(logs, result))


def _lines(logs: LogDir, result: Found) -> Iterator[tuple[str, object]]:
    for tp, log in sorted(result.logs.items()):
        yield f"{tp}", (log.topic_id, log.log_start, log.leo, log.epochs)
        yield f"batches of {tp}", hash(tuple(logs[tp].batches()))
    yield "logs", sorted(result.logs)
    yield "quorum state", result.quorum_state
    yield "snapshots", tuple(one.id for one in result.snapshots)
