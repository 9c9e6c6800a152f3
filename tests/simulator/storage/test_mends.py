"""Defects of the storage that its play has shown: each scene, crashed in many ways, keeps what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from wrackline.broker.model.batches.batch import build
from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, EpochEntry, SnapshotId, TopicPartition
from wrackline.broker.storage.logdir import Found, LogDir
from wrackline.broker.storage.logs.log import LogSettings
from wrackline.simulator.storage.disk import Disk

TP = TopicPartition("a", 0)
ONE, OTHER = UUID(int=1), UUID(int=2)
CRASHES = 300
SNAPSHOT = SnapshotId(4, 1)


def _open(path: Path) -> tuple[LogDir, Found]:
    logs = LogDir(path, LogSettings(segment_bytes=200), node_id=1, cluster_id="c")
    return logs, logs.open()


def _append(logs: LogDir, count: int = 1, records: int = 1) -> None:
    for _ in range(count):
        end = logs[TP].leo
        if end == 0:
            logs.write_epochs(TP, (EpochEntry(1, 0),))
        logs[TP].append([build([b"v" * 60] * records, end, 1, 1_000)])


def _work(logs: LogDir) -> None:
    while (job := logs.behind()) is not None:
        job()


def _new_log(logs: LogDir) -> None:
    """A log that was never flushed rolls."""
    logs.create(TP, ONE, 0)
    _append(logs, 4)


def _is_a_beginning(found: Found) -> None:
    if TP in found.logs:
        assert found.logs[TP].log_start == 0


def _name_again(logs: LogDir) -> None:
    """A log takes the name of one that was deleted, and is flushed before the work behind is done."""
    logs.create(TP, ONE, 0)
    _append(logs, 4)
    logs[TP].flush()
    logs.move_log_start(TP, 3)
    logs.settle()
    _work(logs)
    logs.delete(TP)
    logs.create(TP, OTHER, 0)
    _append(logs)
    logs[TP].flush()


def _has_its_own_start(found: Found) -> None:
    assert (found.logs[TP].topic_id, found.logs[TP].log_start, found.logs[TP].leo) == (OTHER, 0, 1)


def _all_too_old(logs: LogDir) -> None:
    """Everything that was flushed is removed, and the log goes on in an empty segment."""
    logs.create(TP, ONE, 0)
    _append(logs, 6)
    logs[TP].flush()
    logs.retain(TP, (-1, 0), 6, 9_000.0)
    logs[TP].queue.work()


def _is_as_long(found: Found) -> None:
    assert found.logs[TP].leo == 6


def _some_too_old(logs: LogDir) -> None:
    """Segments below the log start are removed, and nothing syncs the directory."""
    logs.create(TP, ONE, 0)
    _append(logs, 6)
    logs[TP].flush()
    logs.move_log_start(TP, 4)
    logs.settle()
    logs[TP].queue.work()


def _snapshot(logs: LogDir) -> None:
    """A snapshot is written into the directory of a log that is new."""
    logs.create(METADATA, METADATA_TOPIC_ID, 0)
    logs.snapshot_writer(SNAPSHOT, b"state")()


def _has_the_snapshot(found: Found) -> None:
    assert [one.id for one in found.snapshots] == [SNAPSHOT]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("play", "check"),
    [
        (_new_log, _is_a_beginning),
        (_name_again, _has_its_own_start),
        (_all_too_old, _is_as_long),
        (_some_too_old, _is_as_long),
        (_snapshot, _has_the_snapshot),
    ],
)
def test_it_holds_whatever_the_crash(
    play: Callable[[LogDir], None], check: Callable[[Found], None], root: Path, tmp_path: Path
) -> None:
    disk = Disk(root, Random(1))
    with disk.installed():
        logs, _ = _open(root)
        play(logs)
        for number in range(CRASHES):
            disk.after_crash(tmp_path / str(number))
        logs.close()
    for number in range(CRASHES):
        logs, found = _open(tmp_path / str(number))
        logs.close()
        check(found)


def test_a_recovery_point_is_never_in_the_middle_of_a_batch_that_was_cut(root: Path) -> None:
    """A controller would not start: what was on disk of its log counts, and is not there."""
    logs, _ = _open(root)
    logs.create(TP, ONE, 0)
    _append(logs)
    _append(logs, records=3)
    logs[TP].flush()
    logs.write_checkpoint(Checkpoint.RECOVERY_POINT, {TP: 4})
    assert logs.truncate(TP, 2) == 1
    point = (root / "recovery-point-offset-checkpoint").read_text().splitlines()[2]
    assert point == "a 0 1"
    logs.close()


def test_what_is_known_of_a_log_that_is_gone_is_forgotten_at_the_start(root: Path) -> None:
    logs, _ = _open(root)
    logs.write_checkpoint(Checkpoint.LOG_START, {TP: 9, METADATA: 2})
    logs.close()
    logs, _ = _open(root)
    logs.close()
    assert (root / "log-start-offset-checkpoint").read_text().splitlines()[2:-1] == ["__cluster_metadata 0 2"]
