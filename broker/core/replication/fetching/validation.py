"""Batches from outside, before they may enter a log: from producers, and from leaders."""

from __future__ import annotations

import struct

from crc32c import crc32c
from kio.schema.errors import ErrorCode

from wrackline.broker.model.batches.batch import (
    CRC_START,
    BatchHeader,
    CorruptBatch,
    Miscounted,
    crc_is_right,
    parse_header,
    split,
    stamp,
)
from wrackline.broker.model.batches.batch_checks import Limits, Refusal, check_header, check_records
from wrackline.broker.model.values import dataclass

_MAGIC_OFFSET = 16
_MAX_TIMESTAMP_OFFSET = 35


def produced(records: bytes, limits: Limits) -> tuple[BatchHeader, bytes]:
    """The one batch of a produce request, its newest time put right where its producer was wrong (as Kafka
    does).

    Raises Refusal with error 2, 10, 32, 76 or 87 (docs/protocol.md 6.1), in Kafka's order.
    """
    try:
        batches = list(split(records))
    except CorruptBatch as corrupt:
        raise Refusal(_error_of(records, corrupt), str(corrupt)) from corrupt
    if len(batches) != 1:
        raise Refusal(ErrorCode.invalid_record, f"{len(batches)} batches, a produce request carries one")
    header, batch = batches[0]
    if header.size_bytes > limits.max_bytes:
        raise Refusal(
            ErrorCode.message_too_large,
            f"batch of {header.size_bytes} bytes, the limit is {limits.max_bytes}",
        )
    if not crc_is_right(header, batch):
        raise Refusal(ErrorCode.corrupt_message, "the batch does not match its CRC")
    check_header(header, limits)
    batch = bytes(batch)
    newest = check_records(header, batch, limits)
    return (header, batch) if newest == header.max_timestamp else _retimed(batch, newest)


def _error_of(records: bytes, corrupt: CorruptBatch) -> ErrorCode:
    """A batch that is whole and says nonsense is a mistake of its producer: it need not try again."""
    if isinstance(corrupt, Miscounted):
        arrived_whole = crc32c(memoryview(records)[CRC_START:]) == int.from_bytes(
            records[CRC_START - 4 : CRC_START]
        )
        return ErrorCode.invalid_record if arrived_whole else ErrorCode.corrupt_message
    old_format = len(records) > _MAGIC_OFFSET and records[_MAGIC_OFFSET] in (0, 1)
    return ErrorCode.invalid_record if old_format else ErrorCode.corrupt_message


def _retimed(batch: bytes, newest: int) -> tuple[BatchHeader, bytes]:
    out = bytearray(batch)
    struct.pack_into(">q", out, _MAX_TIMESTAMP_OFFSET, newest)
    struct.pack_into(">I", out, CRC_START - 4, crc32c(memoryview(out)[CRC_START:]))
    retimed = bytes(out)
    return parse_header(retimed), retimed


def stamped(
    header: BatchHeader, batch: bytes | memoryview, base_offset: int, leader_epoch: int
) -> tuple[BatchHeader, bytes]:
    """The batch as it goes into the leader's log."""
    final = BatchHeader(
        base_offset,
        header.batch_length,
        leader_epoch,
        header.magic,
        header.crc,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
    )
    return final, stamp(batch, base_offset, leader_epoch)


@dataclass(frozen=True, slots=True)
class Fetched:
    batches: list[tuple[BatchHeader, bytes]]
    fault: str | None = None
    """Why the rest of the bytes cannot be taken; None when all is well (a cut-off last batch is)."""


def fetched(records: bytes, from_offset: int) -> Fetched:
    """The batches a leader sent, from the one that holds ``from_offset`` on, as they are."""
    taken: list[tuple[BatchHeader, bytes]] = []
    expected = from_offset
    try:
        for header, batch in split(records):
            if header.last_offset < expected and not taken:
                continue
            if header.base_offset > expected or (taken and header.base_offset != expected):
                return Fetched(taken, f"batch at offset {header.base_offset}, expected {expected}")
            if not crc_is_right(header, batch):
                return Fetched(taken, f"batch at offset {header.base_offset} does not match its CRC")
            taken.append((header, bytes(batch)))
            expected = header.last_offset + 1
    except CorruptBatch as corrupt:
        return Fetched(taken, None if taken else str(corrupt))
    return Fetched(taken)
