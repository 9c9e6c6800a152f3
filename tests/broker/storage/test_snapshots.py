"""A snapshot of the metadata log is on disk whole or not at all, under Kafka's names (KIP-630)."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.storage.batches import batch
from wrackline.broker.model.types import (
    METADATA,
    METADATA_TOPIC_ID,
    SnapshotId,
    SnapshotSlice,
    StoredSnapshot,
)
from wrackline.broker.storage import files, snapshots
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.storage.logs.log import LogFailed, LogSettings

OLD, NEW = SnapshotId(100, 1), SnapshotId(250, 3)


def open_dir(path: Path) -> LogDir:
    return LogDir(path, LogSettings(segment_bytes=1_024), node_id=1, cluster_id="c")


@pytest.fixture
def logs(tmp_path: Path) -> LogDir:
    made = open_dir(tmp_path)
    made.open()
    made.create(METADATA, METADATA_TOPIC_ID, 0)
    return made


def test_a_snapshot_is_found_again_and_read_in_pieces(logs: LogDir) -> None:
    logs.snapshot_writer(NEW, b"new" * 100)()
    logs.snapshot_writer(OLD, b"old" * 100)()
    folder = logs.path / "__cluster_metadata-0"
    assert {path.name for path in folder.glob("*.checkpoint*")} == {
        "00000000000000000100-0000000001.checkpoint",
        "00000000000000000250-0000000003.checkpoint",
    }
    pieces = [logs.read_snapshot(SnapshotSlice(NEW, at, 128)) for at in range(0, 300, 128)]
    assert b"".join(pieces) == b"new" * 100
    assert logs.read_snapshot(SnapshotSlice(NEW, 300, 128)) == b""
    logs.close()
    again = open_dir(logs.path)
    assert again.open().snapshots == (StoredSnapshot(OLD, b"old" * 100), StoredSnapshot(NEW, b"new" * 100))
    again.delete_snapshot(OLD)
    again.delete_snapshot(OLD)
    assert again.read_snapshot(SnapshotSlice(OLD, 0, 10)) == b""
    again.close()


def test_what_a_crash_left_of_one_in_the_making_is_no_snapshot(logs: LogDir) -> None:
    logs.snapshot_writer(OLD, b"old")()
    folder = logs.path / "__cluster_metadata-0"
    part = folder / (snapshots.file_name(NEW) + ".part")
    part.write_bytes(b"ne")
    logs.close()
    again = open_dir(logs.path)
    assert again.open().snapshots == (StoredSnapshot(OLD, b"old"),)
    assert not part.exists()
    again.close()


@pytest.mark.parametrize("at", ["write", "fsync"])
def test_a_disk_that_refuses_leaves_the_older_one_and_no_new_name(
    logs: LogDir, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    logs.snapshot_writer(OLD, b"old")()

    def full(fd: int, buffers: Sequence[bytes], position: int) -> int:
        files.write_whole(fd, [b"".join(buffers)[:2]], position)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def broken(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    if at == "write":
        monkeypatch.setattr(snapshots, "write_whole", full)
    else:
        monkeypatch.setattr(snapshots.os, "fsync", broken)
    with pytest.raises(OSError, match=r"No space|Input/output"):
        logs.snapshot_writer(NEW, b"new")()
    monkeypatch.undo()
    logs.take_offline("the disk refused")
    with pytest.raises(LogFailed):
        logs.snapshot_writer(NEW, b"new")
    logs.close()
    again = open_dir(logs.path)
    assert [stored.id for stored in again.open().snapshots] == [OLD]
    again.close()


def test_whole_segments_below_the_log_start_leave_the_disk_and_it_survives_a_restart(logs: LogDir) -> None:
    log = logs[METADATA]
    for base in range(0, 60, 3):
        log.append([batch(base, 3, size=150)])
    log.flush()
    logs.snapshot_writer(SnapshotId(30, 0), b"state")()
    before = len(log.segments)
    logs.move_log_start(METADATA, 30)
    assert len(log.segments) < before
    logs.settle()
    logs.close()
    again = open_dir(logs.path)
    found = again.open()
    assert found.logs[METADATA].log_start == 30
    assert found.logs[METADATA].leo == 60
    assert found.logs[METADATA].topic_id == METADATA_TOPIC_ID != UUID(int=0)
    again.close()
