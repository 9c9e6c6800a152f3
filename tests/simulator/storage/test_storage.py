"""The storage keeps its contract whatever a crash leaves, and one that skips a step is noticed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.storage import checkpoint, files, snapshots
from wrackline.broker.storage.backlog import Batch, DirectoryQueue
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.storage.logs import log, recovery
from wrackline.broker.storage.logs.log import FlushJob, PartitionLog
from wrackline.simulator.cli import simulate
from wrackline.simulator.storage.command import play_seed
from wrackline.simulator.storage.disk import SECTOR, Disk, PowerCut
from wrackline.simulator.storage.play import Play

CLEAN = 60


def _first(seeds: range) -> str | None:
    """What the first of the seeds with a violation says."""
    violations = (play_seed(seed)[1] for seed in seeds)
    return next((violation.text for violation in violations if violation is not None), None)


# --- the disk -----------------------------------------------------------------------------------------------


def _images(root: Path, folder: Path, prepare: Callable[[Path], None]) -> set[tuple[tuple[str, bytes], ...]]:
    """All that 200 crashes leave of what ``prepare`` does."""
    disk = Disk(root, Random(1))
    with disk.installed():
        prepare(root)
    result = set()
    for number in range(200):
        disk.after_crash(folder / str(number))
        paths = sorted(path for path in (folder / str(number)).rglob("*") if path.is_file())
        result.add(tuple((path.name, path.read_bytes()) for path in paths))
    return result


def _write(path: Path, data: bytes, *, at: int = 0, sync: bool = False) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.pwritev(fd, [data], at)
    if sync:
        os.fsync(fd)
    os.close(fd)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    (path / "old").write_bytes(b"a" * SECTOR)
    return path


def test_an_unsynced_name_is_there_or_not_and_its_sectors_one_by_one(root: Path, tmp_path: Path) -> None:
    images = _images(root, tmp_path, lambda path: _write(path / "new", b"x" * SECTOR + b"y" * SECTOR))
    new = {dict(image).get("new") for image in images}
    zero = bytes(SECTOR)
    assert {None, b"", zero + zero, zero + b"y" * SECTOR, b"x" * SECTOR + b"y" * SECTOR} <= new
    torn = [data for data in new if data and 0 < data.count(b"x") < SECTOR]
    assert torn
    assert all(dict(image)["old"] == b"a" * SECTOR for image in images)


def test_what_was_synced_stays_whatever_the_crash(root: Path, tmp_path: Path) -> None:
    def prepare(path: Path) -> None:
        _write(path / "old", b"b" * 10, sync=True)
        _write(path / "new", b"n", sync=True)
        files.fsync_dir(path)
        _write(path / "unnamed", b"u", sync=True)

    images = _images(root, tmp_path, prepare)
    kept = (("new", b"n"), ("old", b"b" * 10 + b"a" * (SECTOR - 10)))
    assert images == {kept, (*kept, ("unnamed", b"u"))}


def test_a_renaming_is_one_change_and_does_not_wait_for_the_data(root: Path, tmp_path: Path) -> None:
    def prepare(path: Path) -> None:
        _write(path / "new", b"n" * 9)
        (path / "new").replace(path / "old")

    olds = {tuple(sorted(dict(image).items())) for image in _images(root, tmp_path, prepare)}
    assert (("old", b""),) in olds, "the name without the data"
    assert (("old", b"n" * 9),) in olds
    assert (("new", b"n" * 9), ("old", b"a" * SECTOR)) in olds
    assert all("old" in dict(image) for image in olds)


def test_a_failed_fsync_drops_what_it_was_to_write(root: Path, tmp_path: Path) -> None:
    disk = Disk(root, Random(1))
    with disk.installed():
        disk.failing = "fsync"
        fd = os.open(root / "old", os.O_RDWR)
        os.pwritev(fd, [b"b" * SECTOR], 0)
        with pytest.raises(OSError, match="Input/output error"):
            os.fsync(fd)
        os.fsync(fd)
        os.close(fd)
    images = set()
    for number in range(20):
        disk.after_crash(tmp_path / str(number))
        images.add((tmp_path / str(number) / "old").read_bytes())
    assert len(images) == 1, "it is decided when the fsync fails; the second one writes nothing"


def test_the_power_goes_before_the_call_that_was_drawn(root: Path) -> None:
    disk = Disk(root, Random(1))
    disk.cut_at = 2
    with disk.installed(), pytest.raises(PowerCut):
        _write(root / "new", b"n")
    assert disk.calls == 2


# --- the storage --------------------------------------------------------------------------------------------


def test_the_storage_is_clean_for_many_seeds() -> None:
    assert _first(range(CLEAN)) is None


def test_the_same_seed_is_the_same_play(tmp_path: Path) -> None:
    plays = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        play = Play(7, tmp_path / name)
        play.run()
        last = max((tmp_path / name).iterdir(), key=lambda path: path.name)
        content = {
            str(path.relative_to(last)): path.read_bytes() for path in last.rglob("*") if path.is_file()
        }
        plays.append((play.steps, play.calls, content))
    assert plays[0] == plays[1]
    assert plays[0][1] > 100


Patch = Callable[[pytest.MonkeyPatch], None]


def _no_data_sync(patch: pytest.MonkeyPatch) -> None:
    real = FlushJob.run

    def run(job: FlushJob) -> None:
        kept, job.files = job.files, []
        try:
            real(job)
        finally:
            for _, _, fd in kept:
                os.close(fd)
            job.files = kept

    patch.setattr(FlushJob, "run", run)


def _nothing(*_: object, **__: object) -> None: ...


def _rename_first(path: Path, content: bytes, *, durable: bool = True) -> None:
    temporary = path.with_name(path.name + ".tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        files.write_whole(fd, (content,), 0)
        temporary.replace(path)
        if durable:
            files.fsync_dir(path.parent)
            os.fsync(fd)
    finally:
        os.close(fd)


def _never_sync(path: Path, content: bytes, **_: object) -> None:
    files.replace_file(path, content, durable=False)


def _checkpoint_ahead(
    logs: LogDir, _: Checkpoint, offsets: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int]:
    return {tp: at for tp, at in offsets.items() if logs.get(tp) is not None}


def _snapshot_in_place(directory: Path, snapshot: Any, data: bytes) -> None:
    _write(directory / snapshots.file_name(snapshot), data, sync=True)
    files.fsync_dir(directory)


def _cut_without_sync(patch: pytest.MonkeyPatch) -> None:
    real = PartitionLog.truncate

    def truncate(self: PartitionLog, to_offset: int) -> int:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(os, "fdatasync", _nothing)
            inner.setattr(log, "fsync_dir", _nothing)
            return real(self, to_offset)

    patch.setattr(PartitionLog, "truncate", truncate)


def _newest_first(patch: pytest.MonkeyPatch) -> None:
    real = PartitionLog.remove
    patch.setattr(PartitionLog, "remove", lambda self, segments: real(self, list(reversed(segments))))
    patch.setattr(recovery, "pairwise", lambda _: ())


def _unsynced_doom(self: Batch, paths: Collection[Path]) -> None:
    for path in paths:
        if path != self.directory and path.exists():
            files.fsync_path(path)


DEVIATIONS: tuple[tuple[str, int, Patch], ...] = (
    ("a flush does not sync the segments", 0, _no_data_sync),
    ("a flush does not sync the directory", 0, lambda patch: patch.setattr(log, "fsync_dir", _nothing)),
    ("a flush does not sync the small files", 32, lambda p: p.setattr(DirectoryQueue, "sync", _nothing)),
    (
        "a small file is renamed, then synced",
        131,
        lambda p: p.setattr(checkpoint, "replace_file", _rename_first),
    ),
    ("a small file is never synced", 0, lambda p: p.setattr(checkpoint, "replace_file", _never_sync)),
    ("a cut is not synced", 46, _cut_without_sync),
    ("recovery trusts a length", 2, lambda p: p.setattr(recovery, "crc_is_right", lambda *_: True)),
    ("recovery syncs nothing", 86, lambda patch: patch.setattr(Disk, "_sync_all", _nothing)),
    ("a recovery point ahead of the log", 5, lambda p: p.setattr(LogDir, "_true_offsets", _checkpoint_ahead)),
    ("a snapshot is written in its place", 152, lambda p: p.setattr(snapshots, "write", _snapshot_in_place)),
    ("a removal of a snapshot is not synced", 9, lambda p: p.setattr(snapshots, "fsync_dir", _nothing)),
    ("the mark of a clean stop comes back", 62, lambda p: p.setattr(checkpoint, "fsync_dir", _nothing)),
    ("a deletion is not synced", 18, lambda patch: patch.setattr(Batch, "_sync", _unsynced_doom)),
    ("segments go from the newest on", 59, _newest_first),
    ("retired segments are part of the log", 59, lambda p: p.setattr(recovery, "pairwise", lambda _: ())),
    (
        "a recovery point inside a batch",
        51,
        lambda p: p.setattr(PartitionLog, "end_of_cut", lambda _, to: to),
    ),
    ("a log has what was known of another", 1544, lambda p: p.setattr(LogDir, "_forget_gone", _nothing)),
)
"""(what is wrong, the first seed that notices it, how). A search from 0 plays them all; here, for the time it
takes, only the last one. Where the draws change, ``simulate storage`` with the patch says the new one."""


@pytest.mark.parametrize(
    ("seed", "deviate"), [row[1:] for row in DEVIATIONS], ids=[name for name, _, _ in DEVIATIONS]
)
def test_a_storage_that_skips_a_step_is_noticed(
    seed: int, deviate: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _first(range(seed, seed + 1)) is None
    deviate(monkeypatch)
    assert _first(range(seed, seed + 1)) is not None


# --- the command --------------------------------------------------------------------------------------------


def test_the_command_says_one_line_and_the_command_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = CliRunner().invoke(simulate, ["storage", "--search", "3"])
    assert (clean.exit_code, clean.output.splitlines()[-1][:24]) == (0, "0 violations in 3 seeds:")
    _no_data_sync(monkeypatch)
    result = CliRunner().invoke(simulate, ["storage", "--search", "50"])
    assert result.exit_code == 1
    said, again, total = result.output.splitlines()
    assert "VIOLATION in life" in said
    assert total.startswith("1 violation in")
    seed = again.split()[-1]
    assert again == f"  again: wrackline simulate storage --seed {seed}"
    once_more = CliRunner().invoke(simulate, again.split()[3:])
    assert once_more.output.splitlines()[0] == said
