"""The reader of log directories reads messages of before 0.11 that a foreign library (kafka-python) wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from tests.systems.test_segments import read, segment, simple
from wrackline.systems.base import StoredRecord
from wrackline.systems.message_sets import Malformed, message
from wrackline.systems.segments import NO_EPOCH


def written(magic: int, offset: int, key: bytes | None, value: bytes | None, timestamp: int = 5) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    builder.append(offset, timestamp=timestamp if magic else None, key=key, value=value)
    return bytes(builder.build())


BYTES = st.none() | st.binary(max_size=300)


@given(magic=st.sampled_from((0, 1)), offset=st.integers(0, 2**40), key=BYTES, value=BYTES)
def test_a_message_is_read_as_it_was_written(
    magic: int, offset: int, key: bytes | None, value: bytes | None
) -> None:
    one = message(memoryview(written(magic, offset, key, value)), 0)
    assert (one.offset, one.magic, one.key, one.value) == (offset, magic, key, value)
    assert one.timestamp_ms == (5 if magic else -1)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_segment_of_old_messages_is_a_log(magic: int, tmp_path: Path) -> None:
    segment(tmp_path, 0, *(written(magic, at, None, b"v%d" % at) for at in range(3)))
    log = read(tmp_path, high_watermarks={("log", 0): 2})
    assert log.records == [
        StoredRecord(at, NO_EPOCH, 5 if magic else -1, None, b"v%d" % at) for at in range(3)
    ]
    assert (log.leo, log.high_watermark, log.problem, log.hole) == (3, 2, None, None)


def test_a_log_may_go_on_in_the_new_format(tmp_path: Path) -> None:
    segment(tmp_path, 0, written(1, 0, None, b"v0"), simple(1))
    log = read(tmp_path)
    assert [(one.offset, one.leader_epoch, one.value) for one in log.records] == [
        (0, NO_EPOCH, b"v0"),
        (1, 3, b"v1"),
        (2, 3, b"v2"),
    ]


@pytest.mark.parametrize("at", [17, 20, 30])
def test_a_bit_that_is_another_is_found(at: int, tmp_path: Path) -> None:
    good, bad = written(1, 0, None, b"first"), bytearray(written(1, 1, b"key", b"second"))
    bad[at] ^= 1
    segment(tmp_path, 0, good, bytes(bad))
    log = read(tmp_path)
    assert [one.offset for one in log.records] == [0]
    assert log.problem is not None
    assert f"at byte {len(good)}: wrong CRC in the message of offset 1" in log.problem


def test_what_is_cut_short_is_told(tmp_path: Path) -> None:
    whole = written(0, 0, None, b"value")
    segment(tmp_path, 0, whole[:-2])
    assert read(tmp_path).problem == (
        f"{tmp_path.name}/{0:020d}.log: at byte 0: the message of offset 0 has {len(whole)} bytes, "
        f"only {len(whole) - 2} are there"
    )
    with pytest.raises(Malformed, match="2 bytes are no whole message"):
        message(memoryview(whole[:2]), 0)


def test_a_compressed_message_is_not_opened(tmp_path: Path) -> None:
    builder = LegacyRecordBatchBuilder(1, 1, 1 << 20)
    builder.append(0, timestamp=5, key=None, value=b"v")
    segment(tmp_path, 0, bytes(builder.build()))
    assert "compressed with gzip" in str(read(tmp_path).problem)
