"""The reader of log directories reads batches that a foreign library (kafka-python) wrote."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import cramjam
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from wrackline.systems.base import ReplicaLog, StoredRecord
from wrackline.systems.segments import SegmentError, parse_checkpoint, read_checkpoint, read_log

Written = tuple[int, bytes | None, bytes | None]
"""Timestamp, key, value."""


def batch(
    base: int, written: Sequence[Written], *, epoch: int = 3, compression: int = 0, attributes: int = 0
) -> bytes:
    builder = DefaultRecordBatchBuilder(2, compression, False, -1, -1, -1, 1 << 20)
    for delta, (timestamp, key, value) in enumerate(written):
        builder.append(delta, timestamp, key, value, [("h", b"x")] if delta % 2 else [])
    out = bytearray(builder.build())
    struct.pack_into(">q", out, 0, base)
    struct.pack_into(">i", out, 12, epoch)
    if attributes:
        struct.pack_into(">h", out, 21, attributes)
        struct.pack_into(">I", out, 17, crc32c(bytes(out[21:])))
    return bytes(out)


def simple(base: int, count: int = 2, *, epoch: int = 3) -> bytes:
    return batch(base, [(1_000 + n, None, b"v%d" % (base + n)) for n in range(count)], epoch=epoch)


def read(folder: Path, **checkpoints: dict[tuple[str, int], int]) -> ReplicaLog:
    return read_log(
        folder,
        node_id=1,
        topic="log",
        partition=0,
        high_watermarks=checkpoints.get("high_watermarks", {}),
        log_starts=checkpoints.get("log_starts", {}),
    )


def segment(folder: Path, base: int, *batches: bytes) -> Path:
    file = folder / f"{base:020d}.log"
    file.write_bytes(b"".join(batches))
    return file


WRITTEN = st.tuples(
    st.integers(0, 2**41), st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=400)
)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.lists(WRITTEN, min_size=1, max_size=5), min_size=1, max_size=6))
def test_what_a_foreign_writer_wrote_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, log: list[list[Written]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    batches, expected, offset = [], [], 0
    for number, written in enumerate(log):
        batches.append(batch(offset, written, epoch=number))
        expected += [
            StoredRecord(offset + delta, number, timestamp, key, value)
            for delta, (timestamp, key, value) in enumerate(written)
        ]
        offset += len(written)
    half = len(batches) // 2
    segment(folder, 0, *batches[:half])
    segment(folder, sum(len(one) for one in log[:half]), *batches[half:])
    found = read(folder, high_watermarks={("log", 0): 1})
    assert (found.records, found.leo, found.high_watermark, found.problem) == (expected, offset, 1, None)


def test_of_a_tombstone_the_header_says_who_sent_it(tmp_path: Path) -> None:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    builder.append(0, 5, b"k", None, [("other", b"x"), ("wrackline", b"payload")])
    builder.append(1, 5, b"k", None, [("other", b"x")])
    builder.append(2, 5, b"k", b"value", [("wrackline", b"payload")])
    segment(tmp_path, 0, bytes(builder.build()))
    assert [one.value for one in read(tmp_path).records] == [b"payload", None, b"value"]


def test_records_below_the_log_start_checkpoint_are_not_there(tmp_path: Path) -> None:
    segment(tmp_path, 0, simple(0), simple(2))
    found = read(tmp_path, log_starts={("log", 0): 3})
    assert (found.log_start, found.leo, [one.offset for one in found.records]) == (3, 4, [3])


def test_a_log_that_starts_late_is_no_hole(tmp_path: Path) -> None:
    segment(tmp_path, 40, simple(40))
    found = read(tmp_path)
    assert (found.log_start, found.leo, found.problem, found.high_watermark) == (40, 42, None, -1)


def test_a_control_batch_takes_its_offset_and_shows_no_record(tmp_path: Path) -> None:
    segment(tmp_path, 0, simple(0), batch(2, [(1, b"\0\0\0\1", b"")], attributes=0x30), simple(3))
    found = read(tmp_path)
    assert (found.leo, [one.offset for one in found.records], found.problem) == (5, [0, 1, 3, 4], None)


def compressed(codec: int, pack: Callable[[bytes], bytes], count: int = 3) -> bytes:
    """A batch as a client writes it, whose records are compressed."""
    plain = simple(0, count)
    out = bytearray(plain[:61] + pack(plain[61:]))
    struct.pack_into(">i", out, 8, len(out) - 12)
    struct.pack_into(">h", out, 21, codec)
    struct.pack_into(">I", out, 17, crc32c(bytes(out[21:])))
    return bytes(out)


def snappy_java(data: bytes) -> bytes:
    """Two blocks of a stream of snappy-java."""
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (data[:7], data[7:])]
    return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        (1, cramjam.gzip.compress),
        (2, cramjam.snappy.compress_raw),
        (2, snappy_java),
        (3, cramjam.lz4.compress),
        (4, cramjam.zstd.compress),
    ],
    ids=["gzip", "snappy of librdkafka", "snappy of Java", "lz4", "zstd"],
)
def test_a_compressed_batch_is_opened(tmp_path: Path, codec: int, pack: Callable[[bytes], bytes]) -> None:
    segment(tmp_path, 0, compressed(codec, lambda data: bytes(pack(data))))
    found = read(tmp_path)
    assert (found.problem, [one.value for one in found.records]) == (None, [b"v0", b"v1", b"v2"])


def spoilt(data: bytes) -> bytes:
    """The first byte of the records is another, and the checksum knows."""
    out = bytearray(flipped(data, 61))
    struct.pack_into(">I", out, 17, crc32c(bytes(out[21:])))
    return bytes(out)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (flipped(simple(2), 70), "wrong CRC in the batch of offset 2 at byte"),
        (simple(2)[:-1], "the batch of offset 2 at byte .* only .* are there"),
        (simple(2)[:30], "30 bytes at byte .* are no whole batch header"),
        (simple(1), "offset 1 follows 1"),
        (flipped(simple(2), 16), "no v2 record batch at byte .* .magic 3"),
        (bytes(100), "no v2 record batch at byte .* .magic 0"),
        (spoilt(batch(2, [(1, None, b"a" * 300)], compression=1)), "the batch of offset 2: not gzip: "),
        (batch(2, [(1, None, b"a")], attributes=5), "the batch of offset 2: there is no codec 5"),
    ],
    ids=["crc", "torn batch", "torn header", "overlap", "magic", "zeros", "not gzip", "no codec"],
)
def test_the_first_wrong_thing_ends_the_reading_and_is_told(tmp_path: Path, bad: bytes, problem: str) -> None:
    torn = "are there" in problem or "no whole" in problem  # what follows would be read as part of it
    segment(tmp_path, 0, simple(0), bad, b"" if torn else simple(4))
    found = read(tmp_path)
    assert found.problem is not None
    assert re.search(problem, found.problem), found.problem
    assert [one.value for one in found.records] == [b"v0", b"v1"]
    assert found.leo == 2


def test_offsets_that_a_cleaner_took_are_a_hole_and_the_rest_is_read(tmp_path: Path) -> None:
    """Whole batches go, also the first of a segment, which keeps its name."""
    segment(tmp_path, 0, simple(4), simple(6), simple(9))
    found = read(tmp_path)
    assert found.problem is None
    assert "a hole: offset 4 follows -1 at byte 0" in str(found.hole)
    assert (found.leo, [one.offset for one in found.records]) == (11, [4, 5, 6, 7, 9, 10])
    segment(tmp_path, 0, simple(0), simple(2))
    assert read(tmp_path).hole is None


def test_a_missing_segment_and_a_missing_log_are_told(tmp_path: Path) -> None:
    segment(tmp_path, 0, simple(0))
    segment(tmp_path, 7, simple(7))
    assert "a hole: the segment before it ends at offset 2" in str(read(tmp_path).hole)
    assert read(tmp_path).problem is None
    assert "no segment files" in str(read(tmp_path / "nowhere").problem)


def test_a_file_of_leader_epochs_is_read_and_a_damaged_one_is_none(tmp_path: Path) -> None:
    segment(tmp_path, 0, simple(0))
    assert read(tmp_path).epochs is None
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n7 41\n")
    assert read(tmp_path).epochs == [(0, 0), (7, 41)]
    for damaged in ("0\n2\n0 0\n", "1\n0\n", "0\n1\n0\n", "\x00\x00"):
        (tmp_path / "leader-epoch-checkpoint").write_text(damaged)
        found = read(tmp_path)
        assert (found.epochs, found.problem, found.leo) == (None, None, 2)


def test_checkpoints_are_kafkas_own_text(tmp_path: Path) -> None:
    assert parse_checkpoint("0\n2\nlog 0 41\nwith-dash 12 7\n") == {("log", 0): 41, ("with-dash", 12): 7}
    assert read_checkpoint(tmp_path / "none") == {}
    assert parse_checkpoint("") == {}, "Kafka makes the file before it first writes to it"
    for broken in ("0\n", "0\n2\nlog 0 41\n", "1\n0\n", "0\n1\nlog zero 1\n", "0\n1\nlog 0\n"):
        with pytest.raises(SegmentError, match="checkpoint"):
            parse_checkpoint(broken)
