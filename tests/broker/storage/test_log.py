"""A log on disk appends, rolls, reads, truncates, resets and searches by time; its files are laid out as
Kafka's."""

from __future__ import annotations

import errno
import os
import resource
import struct
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.storage.batches import batch, foreign_batch, run_of
from wrackline.broker.model.batches.batch import parse_header, split
from wrackline.broker.model.messages.requests import MAX_TIMESTAMP, LookupByTime
from wrackline.broker.model.types import LogSlice, TopicPartition
from wrackline.broker.storage.logs.log import LogFailed, LogSettings, PartitionLog, create

TP = TopicPartition("log", 0)
TOPIC = UUID("00112233-4455-6677-8899-aabbccddeeff")
SMALL = LogSettings(segment_bytes=1_024, index_interval_bytes=200)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    made = create(TP, TOPIC, tmp_path, SMALL, 0)
    yield made
    made.close()


def read(
    log: PartitionLog, start: int, end: int, max_bytes: int = 1 << 20, *, at_least_one: bool = True
) -> bytes:
    return log.read(LogSlice(TP, start, end, max_bytes, at_least_one))


def test_what_is_appended_is_read_back_across_rolls(log: PartitionLog) -> None:
    batches = run_of(50, records=3)
    rolls = [log.append([one]) for one in batches]
    assert any(rolls)
    assert len(log.segments) > 3
    assert log.leo == 150
    whole, at = b"", 0
    while chunk := read(log, at, 150):
        whole += chunk
        at = [header.last_offset + 1 for header, _ in split(chunk)][-1]
    assert whole == b"".join(batches)


def test_segments_carry_kafkas_names_and_index_entries(log: PartitionLog, tmp_path: Path) -> None:
    log.append(run_of(60))
    for segment in log.segments:
        assert segment.path == tmp_path / f"{segment.base_offset:020d}.log"
        raw = segment.path.read_bytes()
        entries = list(struct.iter_unpack(">ii", segment.path.with_suffix(".index").read_bytes()))
        assert entries
        for relative, position in entries:
            # What kafka-dump-log verifies: the batch at the position ends with the entry's offset.
            assert parse_header(raw, position).last_offset == segment.base_offset + relative
        assert [entry[0] for entry in entries] == sorted({entry[0] for entry in entries})


def test_one_append_of_many_batches_rolls_in_the_middle(log: PartitionLog) -> None:
    assert log.append(run_of(100)) is True
    assert log.leo == 100
    assert all(segment.size <= SMALL.segment_bytes for segment in log.segments)
    assert [s.next_offset for s in log.segments[:-1]] == [s.base_offset for s in log.segments[1:]]


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=25),
    asks=st.lists(
        st.tuples(st.integers(0, 130), st.integers(0, 130), st.integers(0, 2_000), st.booleans()), max_size=12
    ),
)
def test_a_read_gives_whole_batches_within_its_bounds(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], asks: list[tuple[int, int, int, bool]]
) -> None:
    log = create(TP, TOPIC, tmp_path_factory.mktemp("log"), SMALL, 0)
    try:
        spans, offset = [], 0
        for count in counts:
            raw = batch(offset, count)
            log.append([raw])
            spans.append((offset, offset + count, raw))
            offset += count
        for start, end, max_bytes, at_least_one in asks:
            data = read(log, start, end, max_bytes, at_least_one=at_least_one)
            eligible = [(a, b, raw) for a, b, raw in spans if b > start and b <= end]
            got = [bytes(raw) for _, raw in split(data)]
            assert got == [raw for _, _, raw in eligible[: len(got)]]
            if not got and eligible and start < min(end, log.leo):
                assert not at_least_one
                assert len(eligible[0][2]) > max_bytes
            assert len(data) <= max_bytes or (len(got) == 1 and at_least_one)
    finally:
        log.close()


@pytest.mark.parametrize("to_offset", [0, 1, 17, 29, 30, 59, 60, 75])
def test_truncation_keeps_exactly_what_lies_below(log: PartitionLog, to_offset: int) -> None:
    batches = run_of(60)
    log.append(batches)
    log.flush()
    end = log.truncate(to_offset)
    assert end == log.leo == min(to_offset, 60)
    assert log.flushed_upto <= end
    again = batch(end, epoch=1)
    log.append([again])
    tail = read(log, end, end + 1)
    assert tail == again
    assert read(log, 0, end) == b"" if end == 0 else read(log, 0, end).startswith(batches[0])


def test_truncation_into_a_batch_drops_the_whole_batch(log: PartitionLog) -> None:
    log.append(run_of(3, records=4))
    assert log.truncate(6) == 4


def test_reset_begins_again_at_another_offset(log: PartitionLog, tmp_path: Path) -> None:
    log.append(run_of(60))
    log.reset(1_000)
    assert (log.leo, log.log_start, log.flushed_upto) == (1_000, 1_000, 1_000)
    assert [p.name for p in sorted(tmp_path.glob("*.log"))] == ["00000000000000001000.log"]
    log.append([batch(1_000)])
    assert read(log, 1_000, 1_001) == batch(1_000)


def test_an_append_must_begin_where_the_log_ends(log: PartitionLog) -> None:
    log.append(run_of(2))
    with pytest.raises(ValueError, match="the log ends at 2"):
        log.append([batch(3)])
    assert log.leo == 2


def test_records_are_found_by_time(log: PartitionLog) -> None:
    log.append([batch(0, 2, timestamp=100), batch(2, 2, timestamp=300), batch(4, 1, timestamp=200)])

    def found(timestamp: int, end: int = 5) -> tuple[int, int] | None:
        result = log.lookup(LookupByTime(TP, timestamp, end))
        return None if result is None else (result.offset, result.timestamp)

    assert found(50) == (0, 100)
    assert found(101) == (2, 300)
    assert found(300) == (2, 300)
    assert found(301) is None
    assert found(250, end=2) is None
    assert found(MAX_TIMESTAMP) == (2, 300)


@pytest.mark.parametrize("codec", [0, 1])
def test_a_foreign_library_reads_our_segments(log: PartitionLog, codec: int) -> None:
    from kafka.record import MemoryRecords

    values = [f"value {i}".encode() for i in range(30)]
    for i in range(0, 30, 3):
        log.append([foreign_batch(values[i : i + 3], i, epoch=i // 10, codec=codec)])
    seen = []
    for segment in log.segments:
        records = MemoryRecords(segment.path.read_bytes())
        while records.has_next():
            part = records.next_batch()
            assert part.validate_crc()
            seen += [(record.offset, record.value) for record in part]
    assert seen == list(enumerate(values))


def test_a_full_disk_fails_the_log_and_leaves_no_torn_batch(log: PartitionLog) -> None:
    log.append(run_of(3))
    size = log.segments[-1].size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, hard))
    try:
        with pytest.raises(OSError) as failure:
            log.append([batch(3)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert failure.value.errno == errno.EFBIG
    assert os.path.getsize(log.segments[-1].path) == size  # noqa: PTH202
    assert log.leo == 3
    with pytest.raises(LogFailed, match="takes no more writes"):
        log.append([batch(3)])
    with pytest.raises(LogFailed):
        log.prepare_flush()


def test_a_flush_under_way_does_not_vouch_for_what_was_rewritten(log: PartitionLog) -> None:
    log.append(run_of(10))
    job = log.prepare_flush()
    log.truncate(4)
    log.append(run_of(8, start=4, epoch=1))
    job.run()
    assert log.flushed(job) == 4
    assert log.flushed_upto == 4
    log.flush()
    assert log.flushed_upto == 12


def test_a_flush_survives_the_removal_of_its_segments(log: PartitionLog) -> None:
    log.append(run_of(60))
    job = log.prepare_flush()
    assert len(job.files) > 2
    log.reset(0)
    job.run()
    assert log.flushed(job) == 0
