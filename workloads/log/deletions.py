"""Deletions: DeleteRecords under load, by clients that know how far a log reaches."""

from __future__ import annotations

import time
from typing import Any

from wrackline.history.model import Type
from wrackline.workloads.clients.base import Admin, ClientError
from wrackline.workloads.log.processes import Context, Place, Process, close_in_background
from wrackline.workloads.log.spec import DeletingSpec
from wrackline.workloads.pace import Slot

_KEEP, _AGAIN = 1, 2
"""Salts: each choice of a slot has its own."""
AGAIN = 8
"""One deletion in so many asks for less than what is deleted already."""
_UNKNOWN = frozenset({"REQUEST_TIMED_OUT", "UNKNOWN", "UNKNOWN_SERVER_ERROR", "NETWORK_EXCEPTION"})
"""After these, and errors of the client itself, the records may be deleted all the same."""


class Deleter(Process):
    """Deletes the records of a partition below an offset: all but the latest that clients were told of."""

    f = "delete"

    def __init__(self, context: Context, slot: int, spec: DeletingSpec) -> None:
        super().__init__(context, slot)
        self._keep = spec.keep_records
        self._requested: dict[Place, int] = {}
        self._client: Admin | None = None

    def operate(self, slot: Slot) -> None:
        topic, partition = self.context.places[slot.lane]
        before = self._before((topic, partition), slot)
        place: dict[str, Any] = {"topic": topic, "partition": partition, "offset": before}
        if self._client is None:
            self._client = self.context.library.admin(self.context.bootstrap, self.context.spec)
        self.record(self.process, Type.INVOKE, self.f, **place)
        begin = time.monotonic_ns()
        extra, kind, error = {}, Type.OK, None
        try:
            extra = {"low_watermark": self._client.delete_records(topic, partition, before)}
        except ClientError as refused:
            kind = Type.INFO if refused.name.startswith("_") or refused.name in _UNKNOWN else Type.FAIL
            error = refused.name
        latency = time.monotonic_ns() - begin
        self.record(self.process, kind, self.f, **place, extra=extra or None, error=error, latency_ns=latency)
        if kind is Type.INFO or self._client.broken:
            self.retire()

    def _before(self, place: Place, slot: Slot) -> int:
        requested = self._requested.get(place, 0)
        if slot.choice(AGAIN, salt=_AGAIN) == 0:
            return requested // 2
        keep = self._keep + slot.choice(self._keep + 1, salt=_KEEP)
        self._requested[place] = max(requested, self.context.tally.end(*place) - keep)
        return self._requested[place]

    def drop_client(self) -> None:
        if self._client is not None:
            close_in_background(self._client)
            self._client = None


def deleters(context: Context) -> list[Process]:
    """The processes that delete, numbered behind all others."""
    spec = context.spec
    assert isinstance(spec, DeletingSpec)
    count, _ = spec.shares.get("delete", (0, 0))
    return [Deleter(context, slot, spec) for slot in range(spec.concurrency - count, spec.concurrency)]
