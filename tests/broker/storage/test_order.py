"""The order in which things reach the disk (R04, R09, docs/protocol.md 2.14), looked at by a power cut at
every step.

Each promise has a control beside it: the same play with the order broken, which must be found out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.storage.batches import run_of
from tests.broker.storage.losing_disk import LosingDisk
from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.types import EpochEntry, TopicPartition
from wrackline.broker.storage import checkpoint
from wrackline.broker.storage.logdir import Found, LogDir
from wrackline.broker.storage.logs import log
from wrackline.broker.storage.logs.log import LogSettings, PartitionLog

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
SMALL = LogSettings(segment_bytes=600, index_interval_bytes=200)
Break = Callable[[pytest.MonkeyPatch], None]


class Play:
    """A node's data directory on a disk that loses what was not synced, and what a start would find there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = folder / "data"
        self.logs = LogDir(root, SMALL, node_id=1, cluster_id="c")
        self.logs.open()
        for tp in (A, B):
            self.logs.create(tp, UUID(int=5 if tp == A else 6), 0)
            self.logs.write_epochs(tp, (EpochEntry(0, 0),))
        behind = self.logs.behind()
        assert behind is not None
        behind()
        self.disk = LosingDisk(root, monkeypatch)
        self._folder = folder
        self._cuts = 0

    def found(self) -> tuple[Found, dict[TopicPartition, list[bytes]]]:
        """What the start after a power cut right now would have."""
        self._cuts += 1
        with self.disk.unseen():
            copy = self.disk.after_power_cut(self._folder / f"cut-{self._cuts}")
            left = LogDir(copy, SMALL, node_id=1, cluster_id="c")
            try:
                found = left.open()
                return found, {tp: left[tp].batches() for tp in found.logs}
            finally:
                left.close()

    def at_every_step(self, look: Callable[[], None]) -> None:
        self.disk.on_step = look


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    made = Play(tmp_path, monkeypatch)
    yield made
    made.disk.close()
    made.logs.close()


# --- the plays ----------------------------------------------------------------------------------------------


def close_cleanly(play: Play) -> None:
    """R09: a clean-shutdown file that is on the disk says that every record is, too."""
    written = {A: run_of(9), B: run_of(3)}
    for tp, batches in written.items():
        play.logs[tp].append(batches)
    for kind in Checkpoint:
        play.logs.write_checkpoint(kind, {})  # as a timer has done: a clean stop without them is none
    believed = 0

    def look() -> None:
        nonlocal believed
        found, batches = play.found()
        if found.previous_broker_epoch != -1:
            believed += 1
            assert batches == written, "a clean stop, and records are gone"
            assert {tp: found.logs[tp].high_watermark for tp in (A, B)} == {A: 9, B: 3}

    play.at_every_step(look)
    play.logs.close_cleanly(42, {A: 9, B: 3})
    assert believed, "at the end there is a clean-shutdown file"


def truncate(play: Play, to: int = 5) -> None:
    """What was cut does not come back: a follower says it has the leader's records, not its own old ones."""
    old, new = run_of(12, epoch=1), run_of(4, start=to, epoch=2)
    play.logs[A].append(old)
    play.logs[A].flush()
    assert [part.base_offset for part in play.logs[A].segments] == [0, 6]
    play.logs.write_checkpoint("recovery-point", {A: 12})

    def look() -> None:
        found, batches = play.found()
        assert batches[A] == old[: len(batches[A])], "a prefix of what was there"
        assert len(batches[A]) >= to
        assert [entry.epoch for entry in found.logs[A].epochs] == [1]

    play.at_every_step(look)
    play.logs.truncate(A, to)
    assert play.found()[1][A] == old[:to], "the cut is on the disk on return"
    play.at_every_step(lambda: None)
    play.logs[A].append(new)
    assert play.found()[1][A] == old[:to]
    play.logs[A].flush()
    assert play.found()[1][A] == old[:to] + new


def truncate_between_segments(play: Play) -> None:
    """The later segment goes on where the cut one ends, should it come back."""
    truncate(play, 6)


def roll(play: Play) -> None:
    """What a flush has answered for is there, in whatever segment, old or new."""
    batches = run_of(20)
    for at in range(0, 20, 4):
        play.logs[A].append(batches[at : at + 4])
        play.logs[A].flush()
        assert play.found()[1][A] == batches[: at + 4], f"flushed up to {at + 4}"
    assert len(play.logs[A].segments) > 2


# --- the orders broken --------------------------------------------------------------------------------------


def file_before_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    real = LogDir.close_cleanly

    def wrong(logs: LogDir, epoch: int, marks: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        checkpoint.write_clean_shutdown(logs.path, epoch)
        return real(logs, epoch, marks)

    monkeypatch.setattr(LogDir, "close_cleanly", wrong)


def file_without_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionLog, "flush_at_rest", lambda _: None)


def cut_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    _truncate_without(monkeypatch, log.os, "fdatasync")


def removal_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    _truncate_without(monkeypatch, log, "fsync_dir")


def _truncate_without(monkeypatch: pytest.MonkeyPatch, module: object, sync: str) -> None:
    real = PartitionLog.truncate

    def wrong(self: PartitionLog, to_offset: int) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, sync, lambda _: None)
            return real(self, to_offset)

    monkeypatch.setattr(PartitionLog, "truncate", wrong)


def entry_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    real = PartitionLog.prepare_flush

    def wrong(self: PartitionLog) -> log.FlushJob:
        job = real(self)
        job.directory = None
        return job

    monkeypatch.setattr(PartitionLog, "prepare_flush", wrong)


PLAYS = [close_cleanly, truncate, truncate_between_segments, roll]
BROKEN: list[tuple[Callable[[Play], None], Break, str]] = [
    (close_cleanly, file_before_flush, "a clean stop, and records are gone"),
    (close_cleanly, file_without_flush, "a clean stop, and records are gone"),
    (truncate, cut_not_synced, "the cut is on the disk on return"),
    (truncate_between_segments, removal_not_synced, "the cut is on the disk on return"),
    (roll, entry_not_synced, "flushed up to 8"),
]


@pytest.mark.parametrize("of", PLAYS, ids=lambda of: of.__name__)
def test_a_power_cut_at_any_step_finds_what_was_promised(play: Play, of: Callable[[Play], None]) -> None:
    of(play)
    assert play.disk.steps > 3, "there were moments to look at"


@pytest.mark.parametrize(("of", "breaks", "found"), BROKEN, ids=[breaks.__name__ for _, breaks, _ in BROKEN])
def test_an_order_that_is_broken_is_found_out(
    play: Play, of: Callable[[Play], None], breaks: Break, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    with pytest.raises(AssertionError, match=found):
        of(play)
