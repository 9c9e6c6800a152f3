"""Batches from outside, before they may enter a log: from producers, and from leaders."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from broker.core.batch import BatchHeader, CorruptBatch, crc_is_right, split, stamp
from broker.core.values import dataclass

_TRANSACTIONAL = 0x10
_CONTROL = 0x20


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    error: ErrorCode
    message: str


def produced(records: bytes, max_bytes: int) -> tuple[BatchHeader, bytes | memoryview]:
    """The one batch of a produce request. Raises Refusal with error 2, 10 or 87 (protocol.md 6.3)."""
    try:
        batches = list(split(records))
    except CorruptBatch as corrupt:
        raise Refusal(ErrorCode.corrupt_message, str(corrupt)) from corrupt
    if len(batches) != 1:
        raise Refusal(ErrorCode.invalid_record, f"{len(batches)} batches, a produce request carries one")
    header, batch = batches[0]
    if header.size_bytes > max_bytes:
        raise Refusal(
            ErrorCode.message_too_large, f"batch of {header.size_bytes} bytes, the limit is {max_bytes}"
        )
    if not crc_is_right(header, batch):
        raise Refusal(ErrorCode.corrupt_message, "the batch does not match its CRC")
    if header.attributes & (_TRANSACTIONAL | _CONTROL):
        raise Refusal(ErrorCode.invalid_record, "transactional and control batches are not supported")
    if header.count != header.last_offset_delta + 1:
        raise Refusal(
            ErrorCode.invalid_record, f"{header.count} records in {header.last_offset_delta + 1} offsets"
        )
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise Refusal(ErrorCode.invalid_record, "a producer id without sequence or epoch")
    return header, batch


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
