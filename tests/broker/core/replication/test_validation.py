"""What a producer sends is checked as Kafka checks it before it enters a log (LogValidator,
DefaultRecordBatch)."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import cramjam
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.broker.core.driver import Cluster, T
from tests.broker.core.solo import Solo
from wrackline.broker.core.replication.fetching.validation import fetched, produced
from wrackline.broker.model.batches import batch
from wrackline.broker.model.batches.batch_checks import Limits, Refusal
from wrackline.broker.model.events import RequestCancelled, RequestReceived
from wrackline.broker.model.messages.requests import ProducePartition, ProduceRequest

LIMITS = Limits(1_000_000)
NOW_MS = 1_700_000_000_000


def varint(value: int) -> bytes:
    return batch._varint(value)


def record(
    delta: int,
    value: bytes | None = b"v",
    *,
    key: bytes | None = None,
    time_delta: int = 0,
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
) -> bytes:
    body = b"\x00" + varint(time_delta) + varint(delta)
    for text in (key, value):
        body += varint(-1) if text is None else varint(len(text)) + text
    body += varint(len(headers))
    for name, text in headers:
        body += varint(len(name)) + name + (varint(-1) if text is None else varint(len(text)) + text)
    return varint(len(body)) + body


def made(payload: bytes, count: int, **fields: int) -> bytes:
    """A batch with its right CRC, whatever it says: attributes, last_delta, base_offset, base_time, max_time,
    producer_id, producer_epoch, sequence, magic, length."""
    get = fields.get
    time_ms = get("base_time", NOW_MS)
    tail = struct.pack(
        ">hiqqqhii",
        get("attributes", 0),
        get("last_delta", count - 1),
        time_ms,
        get("max_time", time_ms),
        get("producer_id", -1),
        get("producer_epoch", -1),
        get("sequence", -1),
        count,
    )
    length = get("length", 9 + len(tail) + len(payload))
    head = struct.pack(">qiibI", get("base_offset", 0), length, -1, get("magic", 2), crc32c(tail + payload))
    return head + tail + payload


def three(**fields: int) -> bytes:
    return made(b"".join(record(delta) for delta in range(3)), 3, **fields)


def refused(data: bytes, limits: Limits = LIMITS) -> ErrorCode:
    """The error, and that it comes at once."""
    began = time.process_time()
    with pytest.raises(Refusal) as refusal:
        produced(data, limits)
    assert time.process_time() - began < 1
    return refusal.value.error


ENDLESS = b"\x80" * 900_000

BAD: dict[str, tuple[bytes, ErrorCode]] = {
    "length -1, three million times": (made(b"\x01" * 100, 3_000_000), ErrorCode.invalid_record),
    "length -1": (made(b"\x01" + b"\x00" * 30, 1), ErrorCode.invalid_record),
    "no records, though counted": (made(b"", 2_147_483_647), ErrorCode.invalid_record),
    "a count of 0": (made(record(0), 0, last_delta=0), ErrorCode.invalid_record),
    "a negative count": (made(record(0), -1, last_delta=0), ErrorCode.invalid_record),
    "one record less than counted": (made(record(0) + record(1), 3), ErrorCode.invalid_record),
    "one record more than counted": (made(record(0) + record(1), 1), ErrorCode.invalid_record),
    "an offset jump of 2^31": (made(record(0), 1, last_delta=2**31 - 1), ErrorCode.invalid_record),
    "a delta left out": (made(record(0) + record(2), 2), ErrorCode.invalid_record),
    "a delta twice": (made(record(0) + record(0), 2), ErrorCode.invalid_record),
    "deltas from 1": (made(record(1) + record(2), 2), ErrorCode.invalid_record),
    "a negative delta": (made(record(0) + record(-1), 2), ErrorCode.invalid_record),
    "garbage": (made(b"\xde\xad\xbe\xef" * 40, 1), ErrorCode.invalid_record),
    "zeros": (made(bytes(100), 1), ErrorCode.invalid_record),
    "bytes behind the last record": (made(record(0) + b"\x00", 1), ErrorCode.invalid_record),
    "a value past its record": (made(b"\x0e\x00\x00\x00\x01\x28\x41\x00", 1), ErrorCode.invalid_record),
    "a number without end": (made(ENDLESS, 1), ErrorCode.invalid_record),
    "a time without end": (made(varint(900_000) + b"\x00" + ENDLESS, 1), ErrorCode.invalid_record),
    "more headers than bytes": (
        made(varint(10) + b"\x00\x00\x00\x01\x01" + varint(2**60), 1),
        ErrorCode.invalid_record,
    ),
    "a header without a key": (
        made(varint(8) + b"\x00\x00\x00\x01\x01\x02\x01\x01", 1),
        ErrorCode.invalid_record,
    ),
    "negative headers": (made(varint(6) + b"\x00\x00\x00\x01\x01\x01", 1), ErrorCode.invalid_record),
    "compression type 5": (three(attributes=5), ErrorCode.unsupported_compression_type),
    "compression type 7": (three(attributes=7), ErrorCode.unsupported_compression_type),
    "not gzip": (three(attributes=1), ErrorCode.invalid_record),
    "not snappy": (three(attributes=2), ErrorCode.invalid_record),
    "not lz4": (three(attributes=3), ErrorCode.invalid_record),
    "not zstd": (three(attributes=4), ErrorCode.invalid_record),
    "LogAppendTime": (three(attributes=8), ErrorCode.invalid_timestamp),
    "transactional": (three(attributes=0x10), ErrorCode.invalid_record),
    "control": (three(attributes=0x20), ErrorCode.invalid_record),
    "a base offset": (three(base_offset=7), ErrorCode.invalid_record),
    "a producer without sequence": (three(producer_id=1, producer_epoch=0), ErrorCode.invalid_record),
    "a producer without epoch": (three(producer_id=1, sequence=0), ErrorCode.invalid_record),
    "magic 0": (three(magic=0), ErrorCode.invalid_record),
    "magic 1": (three(magic=1), ErrorCode.invalid_record),
    "magic 3": (three(magic=3), ErrorCode.corrupt_message),
    "two batches": (three() + three(), ErrorCode.invalid_record),
    "a length of -1": (three(length=-1), ErrorCode.corrupt_message),
    "a length past the bytes": (three(length=2**31 - 1), ErrorCode.corrupt_message),
    "a byte of the next batch": (three() + b"\x00", ErrorCode.corrupt_message),
    "a time past 64 bits": (
        made(record(0, time_delta=2**62), 1, base_time=2**62, max_time=2**62),
        ErrorCode.invalid_timestamp,
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_batch_that_is_not_what_it_says_is_refused_at_once_and_nothing_enters_the_log(name: str) -> None:
    data, error = BAD[name]
    assert refused(data) is error
    solo = Solo(isr=(1,), min_isr=1)
    request = solo.ask(ProduceRequest(1, 1_000, (ProducePartition(T, data),)))
    assert solo.result(request).error is error
    assert solo.replica.log.leo == 0


def test_a_count_that_a_bit_flip_made_is_told_as_corruption() -> None:
    """Of bytes that were changed on their way the client is told what makes it try again."""
    bent = bytearray(three())
    bent[60] = 0
    assert refused(bytes(bent)) is ErrorCode.corrupt_message


def test_good_batches_pass_as_they_are() -> None:
    headers = ((b"h", b"1"), (b"", None), (b"long" * 50, b"x" * 300))
    for payload, count in (
        (record(0), 1),
        (record(0, None) + record(1, b"", key=b"") + record(2, b"x" * 70, key=b"k" * 9_000), 3),
        (record(0, headers=headers) + record(1, b"y" * 20_000, headers=headers[:1]), 2),
        (b"".join(record(delta, b"%d" % delta) for delta in range(20_000)), 20_000),
    ):
        data = made(payload, count)
        header, kept = produced(data, LIMITS)
        assert kept == data
        assert header.count == count


# --- compression -----------------------------------------------------------------------------------------


def snappy_stream(data: bytes) -> bytes:
    """As snappy-java frames it."""
    blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + 1_000])) for at in range(0, len(data), 1_000)]
    return (
        b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)
    )


CODECS: dict[str, tuple[int, Callable[[bytes], Any]]] = {
    "gzip": (1, cramjam.gzip.compress),
    "snappy of librdkafka": (2, cramjam.snappy.compress_raw),
    "snappy of Java": (2, snappy_stream),
    "lz4": (3, cramjam.lz4.compress),
    "zstd": (4, cramjam.zstd.compress),
}


@pytest.mark.parametrize("name", CODECS)
def test_a_compressed_batch_is_opened_and_checked(name: str) -> None:
    kind, compress = CODECS[name]

    def packed(payload: bytes, count: int) -> bytes:
        return made(bytes(compress(payload)), count, attributes=kind)

    payload = b"".join(record(delta, b"value %d" % delta * 9) for delta in range(100))
    good = packed(payload, 100)
    assert produced(good, LIMITS)[1] == good
    assert refused(packed(payload, 99)) is ErrorCode.invalid_record
    assert refused(packed(payload + b"\x00", 100)) is ErrorCode.invalid_record
    assert refused(packed(payload[:-1], 100)) is ErrorCode.invalid_record
    assert refused(packed(b"\x01" * 90, 3_000_000)) is ErrorCode.invalid_record
    assert refused(made(bytes(compress(payload))[:-5], 100, attributes=kind)) is ErrorCode.invalid_record
    assert refused(made(b"", 1, attributes=kind)) is ErrorCode.invalid_record


@pytest.mark.parametrize("name", CODECS)
def test_a_decompression_bomb_is_refused(name: str) -> None:
    """Half a gigabyte of zeros in far less: nothing past the limit is written, and it takes no time."""
    kind, compress = CODECS[name]
    small = compress(bytes(1 << 29)) if kind != 2 else compress(bytes(1 << 24))
    bomb = made(bytes(small), 1, attributes=kind)
    assert refused(bomb, Limits(len(bomb))) in (ErrorCode.message_too_large, ErrorCode.invalid_record)
    payload = record(0, b"x" * 50_000)
    just = made(bytes(compress(payload)), 1, attributes=kind)
    at_least = -(-len(payload) // 4)
    if len(just) <= at_least:
        assert produced(just, Limits(at_least))[1] == just
        assert refused(just, Limits(at_least - 1)) is ErrorCode.message_too_large


def test_zstd_needs_version_7_of_produce() -> None:
    data = made(bytes(cramjam.zstd.compress(record(0))), 1, attributes=4)
    assert produced(data, LIMITS)[1] == data
    assert refused(data, Limits(1_000_000, zstd=False)) is ErrorCode.unsupported_compression_type
    solo = Solo(isr=(1,), min_isr=1)
    request = solo.ask(ProduceRequest(1, 1_000, (ProducePartition(T, data),), zstd=False))
    assert solo.result(request).error is ErrorCode.unsupported_compression_type


# --- times -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "deltas", "error"),
    [
        (NOW_MS, (0, 3_600_000), ErrorCode.none),
        (NOW_MS, (0, 3_600_001), ErrorCode.invalid_timestamp),
        (NOW_MS, (0, -1_000_000, -500), ErrorCode.none),
        (NOW_MS, (-1_000_001,), ErrorCode.invalid_timestamp),
        (-1, (0, 0), ErrorCode.none),
    ],
)
def test_times_stay_within_bounds(base: int, deltas: tuple[int, ...], error: ErrorCode) -> None:
    payload = b"".join(record(at, time_delta=delta) for at, delta in enumerate(deltas))
    solo = Solo(isr=(1,), min_isr=1, message_timestamp_before_max_ms=1_000_000)
    request = ProduceRequest(1, 1_000, (ProducePartition(T, made(payload, len(deltas), base_time=base)),))
    solo.handle(RequestReceived(77, request, clock_ms=NOW_MS))
    assert solo.result(77).error is error


def test_the_newest_time_of_a_batch_is_put_right() -> None:
    """As Kafka does: searches by time go by the header, so what it says must be so, for every reader."""
    payload = b"".join(record(at, time_delta=delta) for at, delta in enumerate((5, 900, -7)))
    header, data = produced(made(payload, 3, max_time=NOW_MS + 10**9), LIMITS)
    assert header.max_timestamp == NOW_MS + 900
    assert batch.parse_header(data) == header
    assert batch.crc_is_right(header, data)
    assert data[batch.HEADER_BYTES :] == payload


# --- whatever it is --------------------------------------------------------------------------------------


@given(
    st.integers(0, 4),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_changed_records_are_refused_or_read_as_kafka_python_reads_them(
    kind: int, changes: list[tuple[int, int]]
) -> None:
    """Any bytes changed behind the CRC, which is right again: refused, or read alike by kafka-python."""
    payload = b"".join(record(at, b"%d" % at * 5, key=b"k", headers=((b"h", b"i"),)) for at in range(9))
    pack = {
        1: cramjam.gzip.compress,
        2: cramjam.snappy.compress_raw,
        3: cramjam.lz4.compress,
        4: cramjam.zstd.compress,
    }
    packed = bytes(pack[kind](payload)) if kind else payload
    data = bytearray(made(packed, 9, attributes=kind))
    for at, byte in changes:
        data[21 + at % (len(data) - 21)] = byte
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    try:
        header, kept = produced(bytes(data), LIMITS)
    except Refusal:
        return
    assert header.count == header.last_offset_delta + 1
    if not header.attributes & 7:
        assert [offset for offset, _ in batch.values_of(header, kept)] == list(range(header.count))


def test_a_request_of_many_batches_is_taken_in_pieces() -> None:
    """A heartbeat must not wait for a hundred megabytes of records to be looked at."""
    solo = Solo(isr=(1,), min_isr=1)
    payload = b"".join(record(delta, b"x" * 500) for delta in range(1_500))
    part = ProducePartition(T, made(payload, 1_500))
    request = solo.ask(ProduceRequest(-1, 1_000, (part,) * 5))
    assert request not in solo.replies
    assert 0 < solo.replica.log.leo < 7_500
    solo.wait(1)
    response = solo.replies[request]
    assert [result.base_offset for result in response.partitions] == [0, 1_500, 3_000, 4_500, 6_000]

    gone = solo.ask(ProduceRequest(-1, 1_000, (part,) * 5))
    solo.handle(RequestCancelled(gone))
    taken = solo.replica.log.leo
    solo.wait(10)
    assert solo.replica.log.leo == taken, "whoever hangs up in the middle has sent the rest in vain"
    assert gone not in solo.replies


def test_a_follower_takes_no_batch_that_does_not_match_its_crc() -> None:
    good = batch.stamp(three(), 0, 0)
    bent = bytearray(batch.stamp(three(), 3, 0))
    bent[-1] ^= 1
    taken = fetched(good + bytes(bent), 0)
    assert [header.base_offset for header, _ in taken.batches] == [0]
    assert taken.fault is not None


def test_a_cluster_replicates_what_was_put_right() -> None:
    c = Cluster()
    c.create_topic()
    payload = record(0, b"late", time_delta=5)
    result = c.produced(1, data=made(payload, 1, max_time=NOW_MS + 99))
    assert result.error is ErrorCode.none
    c.until(lambda: c.values(2) == [b"late"] == c.values(3))
