"""Old segments go, and the log start moves and stays moved; a topic has segment settings of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.storage.batches import batch, run_of
from wrackline.broker.model.types import LogOverrides, LogSlice, TopicPartition
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.storage.logs.log import LogSettings, PartitionLog

TP = TopicPartition("log", 0)


def open_dir(path: Path) -> tuple[LogDir, int]:
    made = LogDir(path, LogSettings(segment_bytes=1_024), node_id=1, cluster_id="c")
    found = made.open().logs
    return made, found[TP].log_start if TP in found else 0


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDir]:
    made, _ = open_dir(tmp_path)
    made.create(TP, UUID(int=1), 0)
    yield made
    made.close()


def fill(log: PartitionLog, count: int = 60) -> list[int]:
    """Records with timestamps 1000, 1001, ...; the base offsets of the segments."""
    log.append(run_of(count))
    return [segment.base_offset for segment in log.segments]


def files(logs: LogDir) -> list[int]:
    behind = logs.behind()
    assert behind is not None
    behind()
    return sorted(int(path.stem) for path in logs[TP].directory.glob("*.log"))


def test_by_size_the_oldest_whole_segments_go(logs: LogDir) -> None:
    log = logs[TP]
    bases = fill(log)
    size = sum(segment.size for segment in log.segments)
    assert logs.retain(TP, (size - 1, -1), 60, 0) is None, (
        "what is left would be less than what is to be kept"
    )
    assert logs.retain(TP, (size - log.segments[0].size, -1), 60, 0) == bases[1]
    assert logs.retain(TP, (0, -1), 60, 0) == bases[-1], "the active segment stays"
    assert files(logs) == [bases[-1]]
    assert log.leo == 60


def test_by_time_all_of_it_may_go(logs: LogDir) -> None:
    log = logs[TP]
    bases = fill(log)
    newest_of_first = 1_000 + bases[1] - 1
    assert logs.retain(TP, (-1, 500), 60, newest_of_first + 500) is None, "exactly as old as is kept"
    assert logs.retain(TP, (-1, 500), 60, newest_of_first + 501) == bases[1]
    assert logs.retain(TP, (-1, 500), 60, 1e9) == 60
    assert (log.log_start, log.leo) == (60, 60)
    assert files(logs) == [60]
    log.append([batch(60)])
    assert log.read(LogSlice(TP, 60, 61, 1 << 20)) == batch(60)


def test_nothing_goes_that_is_not_committed(logs: LogDir) -> None:
    log = logs[TP]
    bases = fill(log)
    assert logs.retain(TP, (-1, 0), bases[2] - 1, 1e9) == bases[1]
    assert logs.retain(TP, (-1, 0), bases[1] - 1, 1e9) is None


@pytest.mark.parametrize("to_offset", [1, 7, 30, 59, 60])
def test_a_moved_log_start_survives_a_restart_without_a_clean_stop(
    logs: LogDir, tmp_path: Path, to_offset: int
) -> None:
    log = logs[TP]
    fill(log)
    logs.move_log_start(TP, to_offset)
    assert logs.owes
    logs.settle()
    assert all(segment.next_offset > to_offset or segment is log.segments[-1] for segment in log.segments)
    logs._lock, held = logs._lock, logs._lock
    import fcntl

    fcntl.flock(held, fcntl.LOCK_UN)
    again, log_start = open_dir(tmp_path)
    assert log_start == to_offset
    assert again[TP].leo == 60
    again.close()


def test_a_cut_after_a_moved_start_leaves_the_start(logs: LogDir) -> None:
    log = logs[TP]
    fill(log)
    logs.move_log_start(TP, 40)
    assert logs.truncate(TP, 45) == 45
    assert (log.log_start, log.leo) == (40, 45)
    assert log.append(run_of(3, start=45)) in (True, False)


def test_a_topics_own_segment_settings(logs: LogDir) -> None:
    log = logs[TP]
    log.configure(LogOverrides(segment_bytes=300))
    fill(log, 12)
    assert max(segment.size for segment in log.segments) <= 300
    log.configure(LogOverrides(segment_ms=10))
    before = len(log.segments)
    log.append([batch(12, timestamp=5_000), batch(13, timestamp=5_010), batch(14, timestamp=5_021)])
    newer = [segment.base_offset for segment in log.segments[before - 1 :]]
    assert newer[-1] == 14, "11 ms after the first of its segment"
    assert 13 not in newer
    log.configure(LogOverrides(index_interval_bytes=0))
    log.append(run_of(5, start=15))
    assert len(log.segments[-1].index) >= 4
