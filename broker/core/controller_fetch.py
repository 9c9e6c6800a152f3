"""Observers read the metadata log by fetching it like any partition (protocol.md K03, 2.12.4): long polls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.core.controller_log import MetadataLog
from broker.core.effects import CancelTimer, Effect, Reply, SetTimer
from broker.core.messages import FetchPartition, FetchRequest, FetchResponse, FetchResult
from broker.core.types import METADATA, METADATA_TOPIC_ID, LogSlice

_UNSET = UUID(int=0)
_PREFIX = "metadata-fetch:"


@dataclass(frozen=True, slots=True)
class _Parked:
    request_id: int
    request: FetchRequest

    @property
    def timer(self) -> str:
        return f"{_PREFIX}{self.request_id}"


class Observers:
    """Fetches that wait for the next committed record."""

    def __init__(self) -> None:
        self._parked: dict[int, _Parked] = {}

    def fetch(self, log: MetadataLog, request_id: int, request: FetchRequest, now_ms: float) -> list[Effect]:
        response = _answer(log, request)
        if request.max_wait_ms <= 0 or request.min_bytes <= 0 or not _waits(response):
            return [Reply(request_id, response)]
        parked = self._parked[request_id] = _Parked(request_id, request)
        return [SetTimer(parked.timer, now_ms + request.max_wait_ms)]

    def wake(self, log: MetadataLog) -> list[Effect]:
        """Records were committed."""
        effects: list[Effect] = []
        for parked in list(self._parked.values()):
            response = _answer(log, parked.request)
            if not _waits(response):
                del self._parked[parked.request_id]
                effects += [CancelTimer(parked.timer), Reply(parked.request_id, response)]
        return effects

    def timer(self, log: MetadataLog, key: str) -> list[Effect]:
        parked = self._parked.pop(int(key.removeprefix(_PREFIX)), None) if key.startswith(_PREFIX) else None
        return [] if parked is None else [Reply(parked.request_id, _answer(log, parked.request))]

    def forget(self, request_id: int) -> list[Effect]:
        parked = self._parked.pop(request_id, None)
        return [] if parked is None else [CancelTimer(parked.timer)]


def _answer(log: MetadataLog, request: FetchRequest) -> FetchResponse:
    return FetchResponse(tuple(_read(log, asked, request.max_bytes) for asked in request.partitions))


def _read(log: MetadataLog, asked: FetchPartition, max_bytes: int) -> FetchResult:
    if asked.topic_id in (None, _UNSET):
        known = asked.tp == METADATA
    else:
        known = asked.topic_id == METADATA_TOPIC_ID and asked.tp.partition == METADATA.partition
    if not known:
        return FetchResult(asked.tp, ErrorCode.unknown_topic_or_partition, topic_id=asked.topic_id)
    return log.read(replace(asked, tp=METADATA), max_bytes)


def _waits(response: FetchResponse) -> bool:
    """Nothing to tell yet: no records, no error, no divergence."""
    return all(
        result.error is ErrorCode.none
        and result.diverging is None
        and not isinstance(result.records, LogSlice)
        for result in response.partitions
    )
