"""FIFO queues: one per partition. An enqueue is a send; the head is one position that all dequeuers share.

Whoever dequeues holds the head's lock from looking to moving it, so a record is taken by one client alone,
and a dequeue that fails has certainly taken nothing. To answer "empty" it sends a marker and reads up to it.
The head only ever moves forward: a leader that knows less of the log cannot make anything come out twice.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from wrackline.history.model import Record, Type, is_marker
from wrackline.workloads.log.markers import Marks, Stretch, Unknown
from wrackline.workloads.log.processes import Context, Place, Process, Reading
from wrackline.workloads.log.senders import Sender
from wrackline.workloads.log.workload import Workload
from wrackline.workloads.pace import Slot
from wrackline.workloads.queue.spec import QueueSpec


class Head:
    """The head of one queue: the offset of the next record to take. Guarded by its lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.offset = 0


def _columns(place: Place) -> dict[str, Any]:
    return {"topic": place[0], "partition": place[1]}


class Dequeuer(Reading):
    f = "dequeue"

    def __init__(self, context: Context, slot: int, heads: list[Head], marks: Marks) -> None:
        super().__init__(context, slot)
        self._heads = heads
        self._marks = marks
        self._stretch: Stretch | None = None
        """Where the consumer stands; good as long as nobody else moved the head."""

    def operate(self, slot: Slot) -> None:
        place = self.context.places[slot.lane]
        columns = _columns(place)
        head = self._heads[slot.lane]
        client = self.client()
        timeout_s = self.context.spec.client.end_timeout_ms / 1e3
        self.invoke(**columns)
        begin = time.monotonic_ns()
        if not head.lock.acquire(timeout=timeout_s):
            self.complete(Type.FAIL, begin, **columns, error="_BUSY")
            return
        try:
            # The completion is recorded before the lock is released, so that no other process is given this
            # record earlier.
            self._complete(head, place, begin, time.monotonic() + timeout_s)
        finally:
            head.lock.release()
        if client.broken:
            self.retire()

    def _complete(self, head: Head, place: Place, begin: int, deadline: float) -> None:
        columns = _columns(place)
        try:
            record, corrupt = self._take(head, place, deadline)
        except Unknown as wrong:
            self._stretch = None
            self.complete(Type.FAIL, begin, **columns, error=str(wrong))
            return
        extra: dict[str, Any] | None = {"corrupt": corrupt} if corrupt else None
        self.complete(Type.OK, begin, **columns, records=() if record is None else (record,), extra=extra)

    def _take(self, head: Head, place: Place, deadline: float) -> tuple[Record | None, list[dict[str, Any]]]:
        """The record at the head, or None when there is none for certain; the head moves past it. Raises
        Unknown."""
        stretch = self._at(head, place)
        marker: int | None = None
        while marker is None or head.offset <= marker:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Unknown("_TIMED_OUT")
            record = stretch.next(min(left, self.context.spec.client.poll_ms / 1e3))
            if record is not None:
                head.offset = record.offset + 1
                if not is_marker(record.value):
                    return record, stretch.corrupt
            elif marker is None:
                marker = self._marks.mark(place)
        return None, stretch.corrupt

    def _at(self, head: Head, place: Place) -> Stretch:
        stretch = self._stretch
        if stretch is None or stretch.place != place or stretch.position != head.offset:
            stretch = Stretch(self.context, self.client(), place, head.offset)
        stretch.corrupt = []
        self._stretch = stretch
        return stretch

    def drop_client(self) -> None:
        super().drop_client()
        self._stretch = None
        self._marks.close()


class QueueWorkload(Workload):
    settings = QueueSpec

    def processes(self, context: Context) -> list[Process]:
        spec = context.spec
        assert isinstance(spec, QueueSpec)
        heads = [Head() for _ in context.places]
        threads: list[Process] = [Sender(context, slot) for slot in range(spec.senders)]
        for number in range(spec.dequeuers):
            slot = spec.senders + number
            threads.append(Dequeuer(context, slot, heads, Marks(context, slot + spec.dequeuers)))
        return threads
