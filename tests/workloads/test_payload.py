"""A payload shows whoever reads it whether it is what was sent."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wrackline.history.model import CORRUPT, FOREIGN, value_of
from wrackline.workloads.payload import (
    MAX_BYTES,
    OVERHEAD,
    decode,
    encode,
    kept_timestamp,
    key_of,
    run_tag,
    topic_crc,
)

TAG = run_tag("run-1")
values = st.builds(value_of, st.integers(0, (1 << 21) - 1), st.integers(0, (1 << 28) - 1), st.integers(0, 15))
sizes = st.integers(0, 4_000)
unhurried = settings(deadline=None)
"""The machine may be busy."""


@unhurried
@given(values, st.text(min_size=1, max_size=20), st.integers(0, 10_000), st.integers(0, 1 << 45), sizes)
def test_what_was_sent_comes_back(value: int, topic: str, partition: int, sent_ms: int, size: int) -> None:
    payload = encode(TAG, value, topic, partition, sent_ms, size)
    assert len(payload) == max(size, OVERHEAD)
    found = decode(TAG, payload, key=key_of(value), timestamp_ms=sent_ms)
    assert (found.value, found.partition, found.timestamp_ms, found.detail) == (
        value,
        partition,
        sent_ms,
        None,
    )
    assert found.topic_crc == topic_crc(topic)


@unhurried
@given(values, sizes, st.data())
def test_any_changed_byte_shows(value: int, size: int, data: st.DataObject) -> None:
    payload = bytearray(encode(TAG, value, "log", 0, 1, size))
    place = data.draw(st.integers(0, len(payload) - 1))
    payload[place] ^= data.draw(st.integers(1, 255))
    assert decode(TAG, bytes(payload)).value == CORRUPT


@unhurried
@given(values, sizes, st.data())
def test_a_shortened_or_lengthened_payload_shows(value: int, size: int, data: st.DataObject) -> None:
    payload = encode(TAG, value, "log", 0, 1, size)
    cut = data.draw(st.integers(0, len(payload) - 1))
    assert decode(TAG, payload[:cut]).value == CORRUPT
    assert decode(TAG, payload + b"\0").value == CORRUPT


@unhurried
@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_judged_and_never_raise(content: bytes) -> None:
    found = decode(TAG, content)
    assert found.value == CORRUPT
    assert found.detail


@unhurried
@given(values, values)
def test_a_key_of_another_record_shows(value: int, other: int) -> None:
    found = decode(TAG, encode(TAG, value, "log", 0, 1), key=key_of(other))
    assert found.value == (value if value == other else CORRUPT)


def test_another_runs_payload_is_foreign_and_not_corrupt() -> None:
    found = decode(TAG, encode(run_tag("run-2"), value_of(1, 2), "log", 0, 1, 300))
    assert found.value == FOREIGN
    assert found.detail == f"run {run_tag('run-2').hex()}"


def test_a_changed_timestamp_shows() -> None:
    found = decode(TAG, encode(TAG, value_of(1, 2), "log", 0, 1_000), timestamp_ms=1_001)
    assert found.value == CORRUPT
    assert found.detail == f"value {value_of(1, 2)} sent at 1000 ms has timestamp 1001"


def test_a_missing_value_is_reported_and_a_payload_too_large_is_refused() -> None:
    assert decode(TAG, None).detail == "no value"
    with pytest.raises(ValueError, match="more than"):
        encode(TAG, 1, "log", 0, 1, MAX_BYTES + 1)


def test_a_record_of_a_format_without_timestamps_has_none_to_compare() -> None:
    assert kept_timestamp(-1, -1) is None
    assert kept_timestamp(-1, 3) == -1, "one that got lost"
    assert kept_timestamp(5, -1) == 5
