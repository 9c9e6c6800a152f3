"""The guard refuses wrong messages before kio's reader sees them, and cuts out unknown tags, in every
version."""

from __future__ import annotations

import struct

import pytest
from kio.schema.fetch.v17.request import FetchPartition

from tests.broker.wire.encoder import Writer, filled, schemas
from wrackline.broker.wire import guard
from wrackline.broker.wire.guard import MAX_ELEMENTS, Guard
from wrackline.broker.wire.schema import Schema, WireError, request_schema

SCHEMAS = [pytest.param(schema, id=name) for name, schema in schemas()]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_is_right_comes_through_untouched(schema: Schema) -> None:
    entity = filled(schema.root)
    message = Writer().message(entity)
    assert message == schema.write(entity), "the writer of these tests writes what kio writes"
    looked_over, at = Guard(schema.root)(b"head" + message, 4)
    assert (looked_over, at) == (b"head" + message, 4)
    assert schema.read(message, 0) == entity
    assert schema.read(message + b"more than librdkafka should send", 0) == entity


@pytest.mark.parametrize("schema", [item for item in SCHEMAS if item.values[0].flexible])
def test_unknown_tagged_fields_are_skipped_wherever_they_are(schema: Schema) -> None:
    """KIP-482. Inside of a known tagged field too, whose size is another one then."""
    entity = filled(schema.root)
    message = Writer(extra_tags=True).message(entity)
    assert len(message) >= len(schema.write(entity)) + 10
    assert schema.read(b"head" + message, 4) == entity


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_null_that_the_schema_does_not_allow_is_refused(schema: Schema) -> None:
    counted = Writer()
    counted.message(filled(schema.root))
    for place in range(counted.nulls):
        with pytest.raises(WireError, match=f"{schema.root.__name__} v{schema.version}: .* is null"):
            schema.read(Writer(null_at=place).message(filled(schema.root)), 0)


@pytest.mark.parametrize("length", [1_000, 2**31 - 1])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_length_beyond_the_message_is_refused(schema: Schema, length: int) -> None:
    counted = Writer()
    counted.message(filled(schema.root))
    for place in range(counted.lengths):
        message = Writer(length_at=place, length=length).message(filled(schema.root))
        with pytest.raises(WireError):
            schema.read(message, 0)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_message_that_ends_too_early_is_refused(schema: Schema) -> None:
    message = schema.write(filled(schema.root))
    for end in range(len(message)):
        with pytest.raises(WireError):
            schema.read(message[:end], 0)


def test_negative_lengths_other_than_null_are_refused() -> None:
    with pytest.raises(WireError, match="topics has a length of -2"):
        request_schema(3, 4).read(struct.pack(">iB", -2, 1), 0)


def test_a_message_of_very_many_small_things_is_refused_before_they_are_made() -> None:
    """A topic of DeleteTopics is one byte on the wire and some fifty in memory, and a frame may have 100
    MiB."""
    schema = request_schema(20, 4)
    allowed = guard._varint(MAX_ELEMENTS + 1) + b"\x02t" * MAX_ELEMENTS + b"\x00\x00\x03\xe8\x00"
    assert len(schema.read(allowed, 0).topic_names) == MAX_ELEMENTS
    too_many = guard._varint(MAX_ELEMENTS + 2) + b"\x02t" * (MAX_ELEMENTS + 1) + b"\x00\x00\x03\xe8\x00"
    with pytest.raises(WireError, match="topic_names: more than 200000 elements"):
        schema.read(too_many, 0)


def test_tagged_fields_that_are_not_as_they_say_are_refused() -> None:
    read = Guard(FetchPartition)
    plain = bytes(4 + 4 + 8 + 4 + 8 + 4)
    directory = bytes(range(16))
    assert read(plain + b"\x01\x00\x10" + directory, 0)
    for tags, says in (
        (b"\x01\x00\x0f" + directory, "tagged field 0 is not of 15 bytes"),
        (b"\x01\x00\x11" + directory + b"!", "tagged field 0 is not of 17 bytes"),
        (b"\x02\x00\x10" + directory + b"\x00\x10" + directory, "tagged field 0 comes after 0"),
        (b"\x01\x05\x7f", "tagged field 5 of 127 bytes ends past"),
        (b"\xff\xff\xff\xff\x0f", "more than 200000 elements"),
        (b"\x80" * 6, "longer than five bytes"),
        (b"\x02\x05\x00", "ends in the middle"),
    ):
        with pytest.raises(WireError, match=says):
            read(plain + tags, 0)
