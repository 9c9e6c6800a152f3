"""The parts of a response that the core leaves open, because only the disk knows them: records and offsets by
time."""

from __future__ import annotations

from dataclasses import replace

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import (
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsResponse,
    ListOffsetsResult,
    Request,
    Response,
)
from wrackline.broker.model.messages.snapshots import FetchSnapshotResponse
from wrackline.broker.model.types import METADATA, LogSlice, SnapshotSlice, TopicPartition
from wrackline.broker.storage.logdir import LogDir


def resolve(logs: LogDir, request: Request, response: Response, fetch_max_bytes: int) -> Response:
    """Fills in records and offsets: not more than ``fetch_max_bytes`` of records, but one batch always.
    Raises OSError when a log cannot be read."""
    match response:
        case FetchResponse():
            assert isinstance(request, FetchRequest)
            # Not ``replace``, here and below: it takes five times as long, and this is every fetch's way.
            results = _with_records(logs, min(request.max_bytes, fetch_max_bytes), response.partitions)
            return FetchResponse(results, response.error, response.session_id)
        case ListOffsetsResponse():
            return replace(response, partitions=tuple(_looked_up(logs, item) for item in response.partitions))
        case FetchSnapshotResponse() if isinstance(response.records, SnapshotSlice):
            asked = response.records
            size = min(max(asked.max_bytes, 0), fetch_max_bytes)
            piece = logs.read_snapshot(SnapshotSlice(asked.id, asked.position, size))
            gone = ErrorCode.snapshot_not_found if not piece else response.error
            return replace(response, error=gone, records=piece)
        case _:
            return response


def _with_records(logs: LogDir, max_bytes: int, results: tuple[FetchResult, ...]) -> tuple[FetchResult, ...]:
    """Slices become bytes. ``max_bytes`` bounds the whole answer, but one batch always goes (KIP-74)."""
    left = max_bytes
    filled = []
    empty = True
    for result in results:
        part = result.records
        if isinstance(part, LogSlice):
            records = b""
            if empty or left > 0:
                at_most, at_least_one = min(part.max_bytes, left), part.at_least_one and empty
                records = logs.read(
                    LogSlice(part.tp, part.start_offset, part.end_offset, at_most, at_least_one)
                )
            left -= len(records)
            empty = empty and not records
            result = result.with_records(records)
        filled.append(result)
    return tuple(filled)


def _looked_up(logs: LogDir, result: ListOffsetsResult) -> ListOffsetsResult:
    if result.lookup is None:
        return result
    log = logs.get(result.lookup.tp)
    found = log.lookup(result.lookup) if log is not None else None
    if found is None or found.offset >= result.lookup.end_offset:
        return replace(result, lookup=None, timestamp=-1, offset=-1, leader_epoch=-1)
    return replace(
        result, lookup=None, timestamp=found.timestamp, offset=found.offset, leader_epoch=found.leader_epoch
    )


def read_from(response: Response) -> TopicPartition:
    """The first log that must be read for a response."""
    match response:
        case FetchResponse():
            result = [part.tp for part in response.partitions if isinstance(part.records, LogSlice)]
        case ListOffsetsResponse():
            result = [part.tp for part in response.partitions if part.lookup is not None]
        case _:
            result = []
    return result[0] if result else METADATA
