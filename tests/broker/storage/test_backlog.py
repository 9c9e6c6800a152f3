"""Logs are made, written to and deleted while a batch is under way, and the power goes, or the process, at
every step (``storage.backlog``).

A kill leaves everything that was asked for before the last write. A power cut leaves, at its worst, what was
synced: what a flush has answered for is there, and of the rest whole logs or none.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.storage.batches import run_of
from tests.broker.storage.conftest import Start
from tests.broker.storage.losing_disk import LosingDisk
from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.types import EpochEntry, TopicPartition
from wrackline.broker.storage import backlog, checkpoint
from wrackline.broker.storage.backlog import DirectoryQueue
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.storage.logs.log import LogSettings

SMALL = LogSettings(segment_bytes=600, index_interval_bytes=200)
PARTS = [TopicPartition("t", number) for number in range(4)]
OLD, NEW = UUID(int=5), UUID(int=6)
Left = dict[TopicPartition, tuple[UUID, list[bytes]]]
"""Of each log that a start finds its topic and its batches."""


class Directory:
    """``on_disk`` and ``on_page`` are what a start would find after a power cut, and after a kill."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / "data"
        self.logs = LogDir(self.root, SMALL, node_id=1, cluster_id="c")
        self.logs.open()
        self.disk = LosingDisk(self.root, monkeypatch)
        self.look: Callable[[Left, Left], None] = lambda *_: None
        self.disk.on_step = lambda: self.look(self.on_disk(), self.on_page())
        self._folder = folder
        self._copies = 0
        self._starts: dict[TopicPartition, int] = {}
        self.starts = self._starts
        """Of the logs after the last power cut."""

    def on_disk(self) -> Left:
        found = self._found(self.disk.after_power_cut)
        self.starts = self._starts
        return found

    def on_page(self) -> Left:
        return self._found(lambda where: shutil.copytree(self.root, where))

    def _found(self, copy: Callable[[Path], Path]) -> Left:
        self._copies += 1
        with self.disk.unseen():
            left = LogDir(copy(self._folder / f"copy-{self._copies}"), SMALL, node_id=1, cluster_id="c")
            try:
                found = left.open()
                assert not found.offline
                self._starts = {tp: log.log_start for tp, log in found.logs.items()}
                return {tp: (log.topic_id, left[tp].batches()) for tp, log in found.logs.items()}
            finally:
                left.close()

    def make(self, tp: TopicPartition, topic_id: UUID) -> None:
        self.logs.create(tp, topic_id, 0)
        self.logs.write_epochs(tp, (EpochEntry(0, 0),))

    def behind(self) -> None:
        job = self.logs.behind()
        assert job is not None
        job()


@pytest.fixture(params=[64, 0], ids=["one by one", "syncfs"])
def directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Directory]:
    monkeypatch.setattr(backlog, "_FEW", request.param)
    made = Directory(tmp_path, monkeypatch)
    yield made
    made.disk.close()
    made.logs.close()


def make_many(at: Directory) -> None:
    """Two are written to before the batch begins, and one of these is flushed."""
    batches = run_of(3)

    def look(on_disk: Left, on_page: Left) -> None:
        assert all(topic == OLD for topic, _ in (*on_disk.values(), *on_page.values()))
        assert flushed <= on_disk.keys(), "a log is gone that was flushed"
        assert all(on_disk[tp][1] == batches for tp in flushed), "records are gone that were flushed"
        assert all(on_page[tp][1] == batches for tp in written), "records are gone after a kill"

    written: set[TopicPartition] = set()
    flushed: set[TopicPartition] = set()
    at.look = look
    for tp in PARTS:
        at.make(tp, OLD)
    for tp in PARTS[:2]:
        at.logs[tp].append(batches)
        written.add(tp)
        assert at.on_page()[tp] == (OLD, batches)
        assert checkpoint.read_epochs(at.root / str(tp) / checkpoint.EPOCHS_FILE) == (EpochEntry(0, 0),)
    at.logs[PARTS[1]].flush()
    flushed.add(PARTS[1])
    look(at.on_disk(), at.on_page())
    at.behind()
    assert at.on_disk().keys() == at.on_page().keys() == set(PARTS)
    assert at.logs.behind() is None


def make_again(at: Directory) -> None:
    """Half of the logs are deleted, and half of these made anew under another topic's id."""
    old, new = run_of(9), run_of(2, epoch=3)
    for tp in PARTS:
        at.make(tp, OLD)
        at.logs[tp].append(old)
        at.logs[tp].flush()
    at.behind()
    again, gone, kept = PARTS[0], PARTS[1], PARTS[2:]

    def look(on_disk: Left, on_page: Left) -> None:
        for left in (on_disk, on_page):
            assert all(left.get(tp) == (OLD, old) for tp in kept), "records are gone that were flushed"
            assert left.get(gone, (OLD, old)) == (OLD, old), "half a log has come back"
            assert left.get(again, (OLD, old)) in ((OLD, old), (NEW, []), (NEW, new)), "half a log is there"
        if flushed:
            assert on_disk[again] == (NEW, new), "records are gone that were flushed"

    flushed = False
    at.look = look
    at.logs.delete(again)
    at.logs.delete(gone)
    at.make(again, NEW)
    at.logs[again].append(new)
    at.logs[again].flush()
    flushed = True
    look(at.on_disk(), at.on_page())
    at.behind()
    assert at.on_disk().keys() == at.on_page().keys() == {again, *kept}
    assert not [path for path in at.root.iterdir() if path.name.endswith("-delete")]


def move_starts(at: Directory) -> None:
    """Of all logs: by a client, who is told, and by retention, which removes whole segments."""
    batches = run_of(20)
    for tp in PARTS:
        at.make(tp, OLD)
        at.logs[tp].append(batches)
        at.logs[tp].flush()
    at.behind()
    asked, old = PARTS[:2], PARTS[2:]

    def look(on_disk: Left, on_page: Left) -> None:
        for left in (on_disk, on_page):
            for tp in PARTS:
                kept = left[tp][1]
                assert kept == batches[20 - len(kept) :], "a log has a hole"
                assert len(kept) >= 7, "too much is gone"
            assert not told or all(at.starts[tp] == 13 for tp in asked), "what was deleted has come back"

    told = False
    at.look = look
    for tp in asked:
        at.logs.move_log_start(tp, 13)
    at.logs.settle()
    told = True
    for tp in old:
        size = sum(segment.size for segment in at.logs[tp].segments[2:])
        assert at.logs.retain(tp, (size, -1), 20, 0) == 12
    at.logs[old[0]].queue.work()
    assert at.on_page()[old[0]] == (OLD, batches[12:])
    at.behind()
    assert {len(kept) for _, kept in at.on_page().values()} == {8}


def close_in_the_middle(at: Directory) -> None:
    """A clean stop says that everything is there, also what was asked for a moment before."""
    batches = run_of(3)
    for tp in PARTS:
        at.make(tp, OLD)
        at.logs[tp].append(batches)
        at.logs.write_epochs(tp, (EpochEntry(0, 0), EpochEntry(1, 3)))

    def look(on_disk: Left, _: Left) -> None:
        if (at.root / checkpoint.CLEAN_SHUTDOWN_FILE).exists():
            assert on_disk == dict.fromkeys(PARTS, (OLD, batches)), "a clean stop, and records are gone"

    at.look = look
    at.logs.close_cleanly(1, {})
    assert (at.root / checkpoint.CLEAN_SHUTDOWN_FILE).exists()
    look(at.on_disk(), {})


@pytest.mark.parametrize(
    "play", [make_many, make_again, move_starts, close_in_the_middle], ids=lambda it: it.__name__
)
def test_a_start_recovers_from_a_cut_or_a_kill_at_any_step(
    directory: Directory, play: Callable[[Directory], None]
) -> None:
    play(directory)
    assert directory.disk.steps > 9


@pytest.mark.parametrize("play", [make_many, make_again], ids=lambda it: it.__name__)
def test_a_flush_that_leaves_out_what_the_batch_has_yet_to_sync_is_found_out(
    directory: Directory, play: Callable[[Directory], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DirectoryQueue, "unsynced", lambda _: {})
    with pytest.raises(AssertionError, match="flushed"):
        play(directory)


def test_what_a_start_has_made_of_its_logs_survives_the_next_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs that were torn, and logs whose epochs were ahead of their records."""
    root = tmp_path / "data"
    logs = LogDir(root, SMALL, node_id=1, cluster_id="c")
    logs.open()
    for tp in PARTS:
        logs.create(tp, OLD, 0)
        logs[tp].append(run_of(9))
        logs.write_epochs(tp, (EpochEntry(0, 0), EpochEntry(1, 9)))
        logs[tp].flush()
    logs.close()
    for tp in PARTS[:2]:
        with max((root / str(tp)).glob("*.log")).open("r+b") as file:
            file.truncate(90)
    disk = LosingDisk(root, monkeypatch)
    logs = LogDir(root, SMALL, node_id=1, cluster_id="c")
    begun = {tp: (log.leo, log.epochs) for tp, log in logs.open().logs.items()}
    assert set(begun.values()) == {(7, (EpochEntry(0, 0),)), (9, (EpochEntry(0, 0),))}
    with disk.unseen():
        where = disk.after_power_cut(tmp_path / "cut")
    logs.close()
    for tp in PARTS:
        raw = b"".join(path.read_bytes() for path in sorted((where / str(tp)).glob("*.log")))
        assert raw == b"".join(run_of(begun[tp][0]))
        assert checkpoint.read_epochs(where / str(tp) / checkpoint.EPOCHS_FILE) == (EpochEntry(0, 0),)
    disk.close()


def test_a_log_start_that_others_are_told_of_before_it_is_on_the_disk_is_found_out(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogDir, "settle", lambda _: None)
    with pytest.raises(AssertionError, match="has come back"):
        move_starts(directory)


def test_a_start_removes_a_log_whose_topic_had_not_reached_the_disk(tmp_path: Path) -> None:
    """Its name had, and the file of its topic's id, without content."""
    LogDir(tmp_path, SMALL, node_id=1, cluster_id="c").close()
    half = tmp_path / "t-0"
    half.mkdir()
    (half / checkpoint.PARTITION_METADATA_FILE).touch()
    (half / "00000000000000000000.log").touch()
    logs = LogDir(tmp_path, SMALL, node_id=1, cluster_id="c")
    found = logs.open()
    assert not found.logs
    assert not found.offline
    assert not half.exists()
    logs.close()


def test_a_deletion_leaves_no_offset_to_another_log_of_the_name(start: Start) -> None:
    """The log start of the former one would hide the records of the new one after a crash."""
    logs, _ = start(SMALL)
    logs.create(PARTS[0], OLD, 0)
    logs[PARTS[0]].append(run_of(9))
    logs.move_log_start(PARTS[0], 6)
    logs.settle()
    logs.delete(PARTS[0])
    logs.create(PARTS[0], NEW, 0)
    logs[PARTS[0]].append(run_of(3))
    job = logs.behind()
    assert job is not None
    job()
    _, found = start(SMALL)
    assert found.logs[PARTS[0]].log_start == 0


def test_who_needs_a_log_sooner_does_not_wait_for_those_before_it(tmp_path: Path, start: Start) -> None:
    """The batch stands at the first log while the last one is written to."""
    logs, _ = start(SMALL)
    begun, go_on = threading.Event(), threading.Event()

    def stand() -> tuple[Path, ...]:
        begun.set()
        assert go_on.wait(60)
        return ()

    for tp in PARTS:
        logs.create(tp, OLD, 0)
    logs[PARTS[0]].queue.add(stand)
    job = logs.behind()
    assert job is not None
    batch = threading.Thread(target=job)
    batch.start()
    assert begun.wait(60)
    logs[PARTS[-1]].append(run_of(3))
    logs[PARTS[-1]].flush()
    assert (tmp_path / str(PARTS[-1])).exists()
    assert not (tmp_path / str(PARTS[1])).exists()
    go_on.set()
    batch.join()
    assert all((tmp_path / str(tp)).exists() for tp in PARTS)


def test_a_checkpoint_that_is_due_does_not_overwrite_a_later_one(tmp_path: Path, start: Start) -> None:
    """By the clock, and then at once: a recovery point is lowered before the log is cut."""
    logs, _ = start(SMALL)
    logs.create(PARTS[0], OLD, 0)
    logs[PARTS[0]].append(run_of(9))
    logs[PARTS[0]].flush()
    logs.write_checkpoint_later(Checkpoint.RECOVERY_POINT, {PARTS[0]: 9})
    job = logs.behind()
    logs.truncate(PARTS[0], 5)
    assert job is not None
    job()
    file = tmp_path / checkpoint.CHECKPOINT_FILES[Checkpoint.RECOVERY_POINT]
    assert checkpoint.read_offsets(file) == {PARTS[0]: 5}


def test_nothing_is_done_behind_once_the_directory_is_offline(tmp_path: Path, start: Start) -> None:
    logs, _ = start(SMALL)
    logs.create(PARTS[0], OLD, 0)
    logs.take_offline("no room")
    assert logs.behind() is None
    assert not (tmp_path / str(PARTS[0])).exists()
