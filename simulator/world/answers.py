"""The parts of a response that the core leaves open, because only the disk knows them (as
``broker/server/answers.py``)."""

from __future__ import annotations

from dataclasses import replace

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import (
    FetchRequest,
    FetchResponse,
    ListOffsetsResponse,
    Request,
    Response,
)
from wrackline.broker.model.messages.snapshots import FetchSnapshotResponse
from wrackline.broker.model.types import LogSlice, SnapshotSlice
from wrackline.simulator.world.disk import Disk


def resolve(disk: Disk, request: Request, response: Response) -> Response:
    """Slices become bytes, look-ups by time become offsets."""
    if isinstance(response, FetchResponse):
        assert isinstance(request, FetchRequest)
        return _with_records(disk, request.max_bytes, response)
    if isinstance(response, ListOffsetsResponse):
        return _looked_up(disk, response)
    if isinstance(response, FetchSnapshotResponse) and isinstance(response.records, SnapshotSlice):
        piece = disk.read_snapshot(response.records)
        return replace(
            response, error=response.error if piece else ErrorCode.snapshot_not_found, records=piece
        )
    return response


def _with_records(disk: Disk, max_bytes: int, response: FetchResponse) -> FetchResponse:
    """``max_bytes`` bounds the whole answer, but one batch always goes (KIP-74)."""
    for result in response.partitions:
        if type(result.records) is LogSlice:
            break
    else:
        return response
    left, empty, filled = max_bytes, True, []
    for result in response.partitions:
        part = result.records
        if isinstance(part, LogSlice):
            expected = part
            if part.max_bytes > left or not empty:
                expected = replace(
                    part, max_bytes=min(part.max_bytes, left), at_least_one=part.at_least_one and empty
                )
            records = disk.read(expected) if empty or left > 0 else b""
            left -= len(records)
            empty = empty and not records
            result = result.with_records(records)
        filled.append(result)
    return FetchResponse(tuple(filled), response.error, response.session_id)


def _looked_up(disk: Disk, response: ListOffsetsResponse) -> ListOffsetsResponse:
    if all(part.lookup is None for part in response.partitions):
        return response
    parts = []
    for part in response.partitions:
        if part.lookup is not None:
            timestamp, offset, epoch = disk.find(part.lookup)
            part = replace(part, timestamp=timestamp, offset=offset, leader_epoch=epoch, lookup=None)
        parts.append(part)
    return replace(response, partitions=tuple(parts))
