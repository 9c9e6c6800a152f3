"""Registers: one per partition. A write is a send; a read finds the last record that was written.

With ``read_by: marker`` a read takes effect where its marker is in the log, a write where its record is: the
order of offsets is the order of the register. What the promise rests on is said in docs/linearizability.md.
"""

from __future__ import annotations

import time
from typing import Any

from wrackline.history.model import Record, Type
from wrackline.workloads.log.markers import Marks, Unknown, end_of, last_write
from wrackline.workloads.log.processes import Context, Place, Process, Reading
from wrackline.workloads.log.senders import Sender
from wrackline.workloads.log.workload import Workload
from wrackline.workloads.pace import Slot
from wrackline.workloads.register.spec import RegisterSpec


class Reader(Reading):
    f = "read"

    def __init__(self, context: Context, slot: int, marks: Marks | None) -> None:
        super().__init__(context, slot)
        self._marks = marks

    def operate(self, slot: Slot) -> None:
        place = self.context.places[slot.lane]
        columns: dict[str, Any] = {"topic": place[0], "partition": place[1]}
        client = self.client()
        self.invoke(**columns)
        begin = time.monotonic_ns()
        try:
            end, last, corrupt = self._read(place)
        except Unknown as wrong:
            self.complete(Type.FAIL, begin, **columns, error=str(wrong))
        else:
            records = () if last is None else (last,)
            extra: dict[str, Any] | None = {"corrupt": corrupt} if corrupt else None
            self.complete(Type.OK, begin, **columns, high_watermark=end, records=records, extra=extra)
        if client.broken:
            self.retire()

    def _read(self, place: Place) -> tuple[int, Record | None, list[dict[str, Any]]]:
        """(the end it rests on, the last record written, what is corrupt). Raises Unknown."""
        client = self.client()
        end = end_of(client, place) if self._marks is None else self._marks.mark(place)
        deadline = time.monotonic() + self.context.spec.client.end_timeout_ms / 1e3
        return (end, *last_write(self.context, client, place, end, deadline))

    def drop_client(self) -> None:
        super().drop_client()
        if self._marks is not None:
            self._marks.close()


class RegisterWorkload(Workload):
    settings = RegisterSpec

    def processes(self, context: Context) -> list[Process]:
        spec = context.spec
        assert isinstance(spec, RegisterSpec)
        threads: list[Process] = [Sender(context, slot) for slot in range(spec.senders)]
        for number in range(spec.readers):
            slot = spec.senders + number
            marks = Marks(context, slot + spec.readers) if spec.read_by == "marker" else None
            threads.append(Reader(context, slot, marks))
        return threads
