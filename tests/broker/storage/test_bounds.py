"""What a log costs is bounded: every search of it, whatever lies in it, and the files it holds open."""

from __future__ import annotations

import os
import resource
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.storage.batches import batch, run_of
from wrackline.broker.model.batches.batch import split
from wrackline.broker.model.messages.requests import MAX_TIMESTAMP, LookupByTime
from wrackline.broker.model.types import LogOverrides, LogSlice, TopicPartition
from wrackline.broker.storage import descriptors
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.storage.logs.log import LogSettings, PartitionLog, create
from wrackline.broker.storage.logs.segment import BatchBounds, DamagedLog, Segment

TP = TopicPartition("log", 0)
TOPIC = UUID(int=7)
LARGE = LogSettings()
MILLIONS = 3_000_000


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    made = create(TP, TOPIC, tmp_path, LARGE, 0)
    yield made
    made.close()


def crafted(payload: bytes, *, count: int = MILLIONS) -> bytes:
    """A batch that no leader of ours takes any more, but that an older one may have stored."""
    tail = struct.pack(">hiqqqhii", 0, count - 1, 1_000, 5_000, -1, -1, -1, count) + payload
    return struct.pack(">qiibI", 0, 9 + len(tail), 0, 2, crc32c(tail)) + tail


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


# --- walks -----------------------------------------------------------------------------------------------


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"\x01" * 100, id="length -1"),
        pytest.param(b"\x00" * 900_000, id="length 0"),
        pytest.param(b"\x02\x00" * 450_000, id="length 1"),
        pytest.param(b"\x80" * 900_000, id="a number without end"),
        pytest.param(b"\x0c" * 900_000, id="the shortest records"),
    ],
)
@pytest.mark.parametrize("wanted", [3_000, MAX_TIMESTAMP])
def test_a_search_by_time_in_a_crafted_batch_ends(log: PartitionLog, payload: bytes, wanted: int) -> None:
    log.append([crafted(payload)])
    with within(2):
        assert log.lookup(LookupByTime(TP, wanted, MILLIONS)) is not None


@pytest.mark.timeout(60)
@pytest.mark.parametrize("length", [-12, -61, 0, 20, 2**31 - 13])
def test_a_walk_over_a_damaged_length_says_so(log: PartitionLog, length: int) -> None:
    """Not a walk without end, and not the end of the log: what lies behind it is there and cannot be told."""
    log.append(run_of(200))
    log.configure(LogOverrides())
    segment = log.segments[0]
    os.pwrite(segment.fd, struct.pack(">i", length), 8)
    with within(1), pytest.raises(DamagedLog, match=r"0000\.log"):
        list(segment.walk(0))
    with pytest.raises(DamagedLog):
        log.read(LogSlice(TP, 0, 200, 60, at_least_one=True))
    with pytest.raises(DamagedLog):
        log.truncate(1)
    with pytest.raises(DamagedLog):
        log.lookup(LookupByTime(TP, 1_000, 200))


def test_a_search_looks_at_few_batches(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20,000, whatever the topic says of its index."""
    log.configure(LogOverrides(index_interval_bytes=1 << 30))
    log.append(run_of(20_000))
    seen = 0
    walk = Segment.walk

    def counted(self: Segment, position: int) -> Iterator[BatchBounds]:
        nonlocal seen
        for one in walk(self, position):
            seen += 1
            yield one

    monkeypatch.setattr(Segment, "walk", counted)
    for wanted, end in ((1_000 + 9_000, 20_000), (MAX_TIMESTAMP, 20_000), (MAX_TIMESTAMP, 12_345)):
        seen = 0
        found = log.lookup(LookupByTime(TP, wanted, end))
        assert found is not None
        assert found.offset == {10_000: 9_000}.get(wanted, end - 1)
        assert 0 < seen < 200
    seen = 0
    assert log.read(LogSlice(TP, 3_000, 3_001, 100, at_least_one=True))
    log.truncate(3_000)
    assert 0 < seen < 300
    assert log.leo == 3_000


@given(
    times=st.lists(st.integers(-1, 30), min_size=1, max_size=120),
    size=st.integers(1, 900),
    end=st.integers(0, 130),
    wanted=st.integers(0, 32),
    cut=st.integers(0, 130),
)
def test_searches_find_what_a_look_at_every_batch_finds(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], size: int, end: int, wanted: int, cut: int
) -> None:
    log = create(TP, TOPIC, tmp_path_factory.mktemp("log"), LogSettings(segment_bytes=30_000), 0)
    try:
        for at, when in enumerate(times):
            log.append([batch(at, timestamp=when, size=size)])
        if cut < len(times):
            log.truncate(cut)
            del times[cut:]
            log.append([batch(cut, timestamp=7, size=size)])
            times.append(7)
        seen = dict(enumerate(times[:end]))
        found = log.lookup(LookupByTime(TP, wanted, end))
        assert (found and found.offset) == next((at for at, when in seen.items() if when >= wanted), None)
        newest = log.lookup(LookupByTime(TP, MAX_TIMESTAMP, end))
        assert (newest and newest.offset) == (max(seen, key=lambda at: seen[at]) if seen else None)
    finally:
        log.close()


# --- files -----------------------------------------------------------------------------------------------


def open_in(directory: Path) -> list[str]:
    """The files of a directory that this process holds open."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = entry.readlink()
        except FileNotFoundError:
            continue
        if target.is_relative_to(directory) and target.name != ".lock":
            found.append(target.name)
    return found


def test_a_partition_holds_one_file_open(tmp_path: Path) -> None:
    log = create(TP, TOPIC, tmp_path, LogSettings(segment_bytes=300, index_interval_bytes=100), 0)
    log.append(run_of(200))
    log.flush()
    assert len(log.segments) > 40
    assert open_in(tmp_path) == [log.segments[-1].path.name]
    for at in (0, 77, 199):
        assert [
            h.base_offset for h, _ in split(log.read(LogSlice(TP, at, at + 1, 10, at_least_one=True)))
        ] == [at]
    assert log.lookup(LookupByTime(TP, 1_050, 200)) is not None
    assert len(open_in(tmp_path)) == 1
    log.truncate(20)
    log.append(run_of(1, start=20))
    log.flush()
    assert len(open_in(tmp_path)) == 1
    log.close()
    assert open_in(tmp_path) == []


def test_many_partitions_share_what_files_there_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors.OPEN, "most", 5)
    tps = [TopicPartition("many", number) for number in range(20)]
    logs = LogDir(tmp_path, LARGE, node_id=1, cluster_id="c")
    logs.open()
    for number, tp in enumerate(tps):
        logs.create(tp, UUID(int=number + 1), 0)
    for turn in range(3):
        for tp in tps:
            logs[tp].append(run_of(2, start=2 * turn))
            assert len(open_in(tmp_path)) <= 5
    for tp in tps:
        logs[tp].flush()
    logs.close()
    assert open_in(tmp_path) == []

    again = LogDir(tmp_path, LARGE, node_id=1, cluster_id="c")
    found = again.open()
    assert len(open_in(tmp_path)) <= 5
    assert {found.logs[tp].leo for tp in tps} == {6}
    again.close()


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1_000), hard))
    try:
        while True:
            try:
                taken.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_the_log_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is well: records are taken into the segment there is, and a file at rest makes way."""
    log = create(TP, TOPIC, tmp_path, LogSettings(segment_bytes=300, index_interval_bytes=100), 0)
    log.append(run_of(3))
    with no_descriptors_left():
        with monkeypatch.context() as patch:
            patch.setattr(descriptors.OPEN, "make_room", lambda _=None: False)
            log.append(run_of(20, start=3))
            assert len(log.segments) == 1
        assert len(log.read(LogSlice(TP, 0, 23, 10_000))) == log.segments[0].size
    log.append(run_of(20, start=23))
    assert len(log.segments) > 2
    assert log.failure is None
    log.close()
    other = create(TP, TOPIC, tmp_path / "..", LARGE, 0)
    other.queue.work()
    assert other.segments[0].fd >= 0
    with no_descriptors_left():
        third = Segment(tmp_path, 1_000, index_interval_bytes=4_096)
        assert third.fd >= 0
    other.close()
    third.close()
