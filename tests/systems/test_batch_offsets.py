"""The second reader of batches, held against kafka-python's builder of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from wrackline.systems.batch_offsets import next_offset, offsets_in

PRODUCER = 7


def batch(
    base: int, deltas: Sequence[int], *, codec: int = 0, transactional: bool = False, control: bool = False
) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, int(transactional), PRODUCER, 0, 0, 1 << 20)
    for delta in deltas:
        builder.append(delta, 1_700_000_000_000 + delta * 90, b"k" * 70, b"v" * (delta * 30), [])
    made = bytearray(builder.build())
    struct.pack_into(">q", made, 0, base)
    if control:
        struct.pack_into(">H", made, 21, struct.unpack_from(">H", made, 21)[0] | 0x20)
    return bytes(made)


def test_batches_with_and_without_gaps() -> None:
    data = batch(10, [0, 1, 2]) + batch(13, [0, 4]) + batch(20, [0])
    assert list(offsets_in(data)) == [10, 11, 12, 13, 17, 20]
    assert next_offset(data) == 21


def test_a_batch_that_is_cut_off_is_none() -> None:
    data = batch(10, [0, 1]) + batch(12, [0])
    for size in range(len(batch(10, [0, 1])), len(data)):
        assert list(offsets_in(data[:size])) == [10, 11]
        assert next_offset(data[:size]) == 12
    assert (list(offsets_in(b"")), next_offset(b"")) == ([], -1)
    assert list(offsets_in(data + bytes(200))) == [10, 11, 12]  # a file that was made larger beforehand


def test_messages_before_there_were_batches() -> None:
    builder = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    for offset in range(3):
        builder.append(offset, timestamp=1, key=None, value=b"v")
    data = bytes(builder.build())
    assert list(offsets_in(data)) == [0, 1, 2]
    assert next_offset(data) == 3


@pytest.mark.parametrize(("deltas", "offsets"), [([0, 1, 2], [5, 6, 7]), ([0, 2], [])])
def test_of_a_compressed_batch_with_gaps_nobody_can_tell(deltas: list[int], offsets: list[int]) -> None:
    data = batch(5, deltas, codec=1)
    assert list(offsets_in(data)) == offsets
    assert next_offset(data) == 8


def test_control_batches_have_no_records_and_end_what_was_aborted() -> None:
    data = b"".join(
        (
            batch(0, [0, 1], transactional=True),
            batch(2, [0], transactional=True, control=True),
            batch(3, [0], transactional=True),
            batch(4, [0], transactional=True, control=True),
            batch(5, [0]),
        )
    )
    assert list(offsets_in(data)) == [0, 1, 3, 5]
    assert list(offsets_in(data, {PRODUCER: [0]})) == [3, 5]
    assert list(offsets_in(data, {PRODUCER: [3]})) == [0, 1, 5]
    assert list(offsets_in(data, {PRODUCER + 1: [0]})) == [0, 1, 3, 5]
    assert next_offset(data) == 6
