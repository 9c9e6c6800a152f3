"""One bit that changed on the disk is noticed, costs nothing that is whole, and makes the broker trust itself
no more."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.storage.batches import batch, run_of
from tests.broker.storage.conftest import TOPIC, TP
from wrackline.broker.model.types import (
    METADATA,
    METADATA_TOPIC_ID,
    EpochEntry,
    LogSlice,
    QuorumState,
)
from wrackline.broker.storage import checkpoint
from wrackline.broker.storage.logdir import DataDirError, Found, LogDir
from wrackline.broker.storage.logs.log import LogSettings

SMALL = LogSettings(segment_bytes=600, index_interval_bytes=200)
EPOCHS = (0, 0, 0, 2, 2, 5, 7, 7, 7, 7, 8, 8)
BATCHES = [batch(offset, epoch=epoch) for offset, epoch in enumerate(EPOCHS)]
SIZE = len(BATCHES[0])
FIELDS = {
    "base offset": (0, 8),
    "length": (8, 12),
    "leader epoch": (12, 16),
    "magic": (16, 17),
    "CRC": (17, 21),
    "rest": (21, SIZE),
}


def opened(path: Path) -> tuple[LogDir, Found]:
    directory = LogDir(path, SMALL, node_id=1, cluster_id="c")
    try:
        return directory, directory.open()
    except DataDirError:
        directory.close()
        raise


def flip(path: Path, at: int, bit: int) -> None:
    with path.open("r+b", buffering=0) as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ (1 << bit)]))


def closed_cleanly(path: Path) -> None:
    directory, _ = opened(path)
    directory.create(TP, TOPIC, 0)
    for at, epoch in enumerate(EPOCHS):
        entries = [EpochEntry(e, EPOCHS.index(e)) for e in sorted(set(EPOCHS[: at + 1]))]
        if epoch not in EPOCHS[:at]:
            directory.write_epochs(TP, entries)
        directory[TP].append([BATCHES[at]])
    directory.close_cleanly(42, {TP: len(BATCHES)})
    directory.close()


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of a node after a clean stop: one log of three segments. No test here loses power,
    and thousands of starts need no disk."""
    for sync in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, sync, lambda _: None)
    closed_cleanly(tmp_path)
    return tmp_path


def put_aside(path: Path) -> list[Path]:
    return sorted((path / "log-0").glob("*.damaged*"))


@pytest.mark.parametrize("field", FIELDS)
def test_every_bit_of_a_batch(
    stopped: Path, pristine: Callable[[], None], field: str, caplog: pytest.LogCaptureFixture
) -> None:
    """After a clean stop, in a batch in the middle of the log and in the last one: exactly what lies before
    is kept."""
    for which in (5, len(BATCHES) - 1):
        segment = max(path for path in (stopped / "log-0").glob("*.log") if int(path.stem) <= which)
        begin = (which - int(segment.stem)) * SIZE
        for at in range(*FIELDS[field]):
            for bit in range(8) if at < FIELDS["rest"][0] else (at % 8,):
                caplog.clear()
                flip(segment, begin + at, bit)
                directory, found = opened(stopped)
                assert directory[TP].batches() == BATCHES[:which], (which, at, bit)
                assert found.previous_broker_epoch == -1
                assert found.logs[TP].high_watermark == found.logs[TP].leo == which
                (loud,) = [line for line in caplog.messages if "DAMAGED log log-0" in line]
                assert all(str(path) in loud for path in put_aside(stopped))
                in_order = sorted(put_aside(stopped), key=lambda path: "from-byte" not in path.name)
                kept = b"".join(path.read_bytes() for path in in_order)
                assert len(kept) == SIZE * (len(BATCHES) - which), "nothing is deleted"
                assert kept[SIZE:] == b"".join(BATCHES[which + 1 :])
                directory.close()
                pristine()


@pytest.mark.parametrize("kind", ["high-watermark", "recovery-point", "log-start"])
def test_every_bit_of_a_checkpoint(stopped: Path, pristine: Callable[[], None], kind: str) -> None:
    """It says what it said, or it is not believed."""
    directory, before = opened(stopped)
    directory.close()
    pristine()
    path = stopped / checkpoint.CHECKPOINT_FILES[kind]  # type: ignore[index]
    believed = 0
    for at in range(path.stat().st_size):
        for bit in range(8):
            flip(path, at, bit)
            directory, found = opened(stopped)
            log, whole = found.logs[TP], before.logs[TP]
            assert (log.leo, log.log_start) == (whole.leo, whole.log_start), (at, bit)
            assert not put_aside(stopped)
            if found.previous_broker_epoch == 42:
                assert log == whole, (at, bit)
                believed += 1
            else:
                assert log.high_watermark in (0, whole.high_watermark)
            directory.close()
            pristine()
    assert believed < 8 * 8, "only a bit of the word that begins the checksum's row goes unnoticed"


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "00000000000000000000.index"])
def test_a_flipped_bit_in_the_epoch_file_or_the_index_deletes_no_records(
    stopped: Path, pristine: Callable[[], None], name: str
) -> None:
    """A line about epochs that one batch alone speaks against may cost that batch, which the leader has;
    nothing is deleted."""
    directory, before = opened(stopped)
    directory.close()
    pristine()
    path = stopped / "log-0" / name
    for at in range(path.stat().st_size):
        for bit in range(8):
            flip(path, at, bit)
            directory, found = opened(stopped)
            batches = directory[TP].batches()
            assert batches == BATCHES[: len(batches)]
            if found.previous_broker_epoch == 42:
                assert found.logs == before.logs
            else:
                kept = b"".join(aside.read_bytes() for aside in put_aside(stopped))
                assert sorted(b"".join(batches) + kept) == sorted(b"".join(BATCHES))
            directory.close()
            pristine()


def test_every_bit_of_the_topics_id(stopped: Path, pristine: Callable[[], None]) -> None:
    """A log of another topic would be deleted: the log has its topic, or none."""
    path = stopped / "log-0" / "partition.metadata"
    for at in range(path.stat().st_size):
        for bit in range(8):
            flip(path, at, bit)
            directory, found = opened(stopped)
            if found.offline:
                assert (found.offline, found.logs, found.previous_broker_epoch) == ((TP,), {}, -1)
            else:
                assert found.logs[TP].topic_id == TOPIC, (at, bit)
            directory.close()
            pristine()


def test_every_bit_of_a_vote(tmp_path: Path) -> None:
    state = QuorumState(7, 101, 103, UUID(int=5), UUID(int=6))
    checkpoint.write_quorum_state(tmp_path, state)
    path = tmp_path / checkpoint.QUORUM_FILE
    for at in range(path.stat().st_size):
        for bit in range(8):
            flip(path, at, bit)
            try:
                found = checkpoint.read_quorum_state(tmp_path)
            except checkpoint.CheckpointError:
                found = state
            assert found == state, (at, bit)
            flip(path, at, bit)


def test_a_bit_of_the_nodes_identity_or_of_the_clean_stop(
    stopped: Path, pristine: Callable[[], None]
) -> None:
    """The node starts as itself or not at all; the proof of a clean stop is right or none."""
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        path = stopped / name
        for at in range(path.stat().st_size):
            for bit in (at % 8, 7):
                flip(path, at, bit)
                try:
                    directory, found = opened(stopped)
                except DataDirError:
                    assert name == "meta.properties"
                else:
                    assert found.logs[TP].leo == len(BATCHES)
                    directory.close()
                pristine()


def test_what_was_put_aside_before_stays(stopped: Path) -> None:
    for times in (1, 2):
        directory, _ = opened(stopped)
        directory.truncate(TP, 3)
        directory[TP].append(BATCHES[3:5])
        directory.close_cleanly(42, {})
        directory.close()
        flip(stopped / "log-0" / f"{0:020d}.log", 3 * SIZE + 40, 0)
        directory, _ = opened(stopped)
        assert len(put_aside(stopped)) == times
        directory.close()


def test_a_log_that_lost_its_end_between_two_batches_is_noticed(stopped: Path) -> None:
    """Nothing in the files is wrong but that there was more when they were closed."""
    last = max((stopped / "log-0").glob("*.log"))
    last.unlink()
    directory, found = opened(stopped)
    assert found.previous_broker_epoch == -1
    assert found.logs[TP].leo == int(last.stem)
    directory.close()


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """After a kill: nothing was flushed, so nothing is known of what must be there."""
    directory = LogDir(tmp_path, LogSettings(), node_id=1, cluster_id="c")
    directory.open()
    directory.create(TP, TOPIC, 0)
    directory[TP].append(run_of(9))
    directory.close()
    return tmp_path / "log-0" / f"{0:020d}.log"


@pytest.mark.parametrize("at", [8, 18, 70], ids=["length", "CRC", "payload"])
def test_a_flipped_bit_is_not_taken_for_a_torn_write_after_a_kill(crashed: Path, at: int) -> None:
    flip(crashed, 4 * SIZE + at, 2)
    directory, found = opened(crashed.parents[1])
    assert found.logs[TP].leo == 4
    (aside,) = put_aside(crashed.parents[1])
    assert aside.name == f"{0:020d}.log.from-byte-{4 * SIZE}.damaged"
    assert aside.stat().st_size == 5 * SIZE
    directory.close()


@pytest.mark.parametrize("tail", [b"", b"\0" * 3_000, b"\xff" * 50], ids=["short", "zeros", "ones"])
def test_a_torn_write_is_cut_and_nothing_is_kept_of_it(crashed: Path, tail: bytes) -> None:
    crashed.write_bytes(crashed.read_bytes()[: 5 * SIZE + 30] + tail)
    directory, found = opened(crashed.parents[1])
    assert found.logs[TP].leo == 5
    assert not put_aside(crashed.parents[1])
    directory.close()


def test_a_voter_does_not_start_with_less_than_it_had_on_disk(tmp_path: Path) -> None:
    """What it acknowledged may be committed by its word; a broker's copy of the same log is fetched again."""
    directory, _ = opened(tmp_path)
    directory.create(METADATA, METADATA_TOPIC_ID, 0)
    directory[METADATA].append(run_of(4))
    directory.close_cleanly(-1, {})
    directory.close()
    segment = tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"
    flip(segment, SIZE + 70, 0)
    content = segment.read_bytes()
    checkpoint.write_quorum_state(tmp_path, QuorumState(1, 101, -1, UUID(int=0), UUID(int=6)))
    for _ in range(2):
        with pytest.raises(
            DataDirError, match=f"empty {tmp_path}, and nothing beside it, only while a majority"
        ):
            opened(tmp_path)
        assert segment.read_bytes() == content, "left as it is"
        # The second start finds no clean-shutdown file; the recovery point says the same.
    (tmp_path / checkpoint.QUORUM_FILE).unlink()
    directory, found = opened(tmp_path)
    assert len(found.metadata) == 1
    directory.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[LogDir]:
    directory = LogDir(tmp_path, LogSettings(), node_id=1, cluster_id="c")
    directory.open()
    directory.create(TP, TOPIC, 0)
    directory[TP].append(run_of(9))
    yield directory
    directory.close()


@pytest.mark.parametrize("max_bytes", [1, SIZE, 3 * SIZE, 1 << 20])
def test_a_bit_that_changes_while_the_node_runs_is_not_served(running: LogDir, max_bytes: int) -> None:
    """In whatever field but the leader epoch, which no checksum covers. What is whole is served still."""
    segment = running[TP].directory / f"{0:020d}.log"

    def read(start: int) -> bytes:
        return running.read(LogSlice(TP, start, 9, max_bytes))

    whole = [read(start) for start in range(9)]
    for at in (*range(12), *range(16, SIZE)):
        for bit in range(8):
            flip(segment, 4 * SIZE + at, bit)
            with pytest.raises(OSError) as refused:
                read(4)
            assert refused.value.errno == errno.EIO
            assert str(segment) in str(refused.value)
            flip(segment, 4 * SIZE + at, bit)
    assert [read(start) for start in range(9)] == whole
    segment.write_bytes(segment.read_bytes()[: 6 * SIZE])
    with pytest.raises(OSError, match="the file ends here"):
        read(6)
