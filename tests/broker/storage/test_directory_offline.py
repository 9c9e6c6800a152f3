"""Disk errors take the whole log directory offline; nothing is written past a hole (KAFKA-10778, B57)."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.storage.batches import batch, run_of
from wrackline.broker.model.batches.batch import split
from wrackline.broker.model.types import LogSlice, TopicPartition
from wrackline.broker.storage import files
from wrackline.broker.storage.logdir import DataDirError, LogDir
from wrackline.broker.storage.logs import log, segment
from wrackline.broker.storage.logs.log import LogFailed, LogSettings

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Disk:
    """Stands in front of the writes of segments: lets ``room`` bytes through, then fails once, or for
    good."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.code = errno.EIO
        self.sync_fails = False
        monkeypatch.setattr(segment, "write_whole", self._write)
        monkeypatch.setattr(log.os, "fdatasync", self._sync)
        self._real_sync = os.fsync

    def _write(self, fd: int, buffers: Sequence[bytes], position: int) -> int:
        if self.room is None:
            return files.write_whole(fd, buffers, position)
        whole = b"".join(buffers)
        torn, self.room = whole[: self.room], None
        files.write_whole(fd, [torn], position)
        raise OSError(self.code, os.strerror(self.code))

    def _sync(self, fd: int) -> None:
        if self.sync_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._real_sync(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def open_dir(path: Path, **settings: bool) -> LogDir:
    made = LogDir(path, LogSettings(**settings), node_id=1, cluster_id="c")
    made.open()
    return made


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDir]:
    made = open_dir(tmp_path)
    for number, tp in enumerate((A, B)):
        made.create(tp, UUID(int=number + 1), 0)
        made[tp].append(run_of(3))
    yield made
    made.close()


def whole(logs: LogDir, tp: TopicPartition) -> list[int]:
    """The base offsets a reader finds."""
    return [header.base_offset for header, _ in split(logs.read(LogSlice(tp, 0, 1_000, 1 << 20)))]


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("room", [0, 30, 100, 150])
def test_a_torn_append_leaves_the_log_as_it_was_and_closes_the_directory(
    logs: LogDir, disk: Disk, code: int, room: int
) -> None:
    size = (logs[A].directory / "00000000000000000000.log").stat().st_size
    disk.room, disk.code = room, code
    with pytest.raises(OSError, match=os.strerror(code)):
        logs[A].append(run_of(2, start=3))
    assert logs.take_offline("append failed")
    assert whole(logs, A) == [0, 1, 2]
    assert (logs[A].directory / "00000000000000000000.log").stat().st_size == size, "cut back"
    for tp in (A, B):
        with pytest.raises(LogFailed):
            logs[tp].append(run_of(1, start=3))
        with pytest.raises(LogFailed):
            logs.truncate(tp, 1)
        with pytest.raises(LogFailed):
            logs[tp].flush()
    with pytest.raises(LogFailed):
        logs.create(TopicPartition("c", 0), UUID(int=9), 0)
    with pytest.raises(LogFailed):
        logs.write_checkpoint("high-watermark", {A: 1})
    with pytest.raises(LogFailed):
        logs.close_cleanly(5, {})
    assert not (logs.path / ".kafka_cleanshutdown").exists()


def test_a_failed_flush_is_not_tried_again(logs: LogDir, disk: Disk) -> None:
    """After a failed fsync the kernel may have dropped the pages: a second one that succeeds proves
    nothing."""
    disk.sync_fails = True
    with pytest.raises(OSError, match="Input/output"):
        logs[A].flush()
    disk.sync_fails = False
    with pytest.raises(LogFailed):
        logs[A].flush()
    assert logs[A].flushed_upto == 0


def test_the_next_start_finds_what_was_whole(logs: LogDir, disk: Disk, tmp_path: Path) -> None:
    disk.room = 100
    with pytest.raises(OSError):
        logs[A].append(run_of(2, start=3))
    logs.close()
    again = LogDir(tmp_path, LogSettings(), node_id=1, cluster_id="c")
    found = again.open()
    assert {tp: (log.log_start, log.leo) for tp, log in found.logs.items()} == {A: (0, 3), B: (0, 3)}
    assert found.previous_broker_epoch == -1
    again.close()
    logs._lock = os.open(tmp_path, os.O_RDONLY)  # the fixture closes it once more


def test_with_the_defect_a_hole_is_written_past(tmp_path: Path, disk: Disk) -> None:
    """B57: the leader believes 3 and 4 are in its log; what follows them goes where they should be."""
    logs = open_dir(tmp_path, continue_after_error=True)
    logs.create(A, UUID(int=1), 0)
    logs[A].append(run_of(3))
    disk.room = 40
    with pytest.raises(OSError, match="Input/output"):
        logs[A].append(run_of(2, start=3))
    assert not logs.take_offline("append failed")
    logs[A].append([batch(5)])
    assert whole(logs, A) == [0, 1, 2, 5], "a hole where 3 and 4 were acknowledged"
    logs.close()


def test_a_full_disk_at_start_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = open_dir(tmp_path)
    logs.close_cleanly(3, {})
    logs.close()

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("wrackline.broker.storage.checkpoint.fsync_dir", full)
    with pytest.raises(DataDirError, match="No space left"):
        open_dir(tmp_path)
