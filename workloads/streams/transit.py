"""The records on their way through the application, from the input topic to the output topic.

Each send to the input is one to the output too: it is invoked before the record leaves, since the output
may be read before the input's answer is here. When the application's group has committed past an input
record, its output is acknowledged: both happen in one transaction (KIP-129). At what offset nobody says.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from wrackline.history.model import (
    ACKED_WITHOUT_OFFSET,
    FAILED,
    OUTPUT,
    UNKNOWN,
    Event,
    Record,
    Type,
    output_of,
    parts_of,
)
from wrackline.workloads.clients.base import Fetched
from wrackline.workloads.log.processes import Context

FIRST_PROCESS = 1 << 19
"""Each record on its way has a logical process of its own, from here on."""
STATE = slice(45, 53)
"""The place of the count in an output's payload."""


def state_of(fetched: Fetched, value: int) -> int:
    """The count that came with an output; -1 for a record that is none."""
    is_output = value >= 0 and parts_of(value)[2] == OUTPUT and fetched.value is not None
    return int.from_bytes(fetched.value[STATE], "big") if is_output and fetched.value else -1


@dataclass
class StreamsContext(Context):
    """Writes down what becomes of a record in the output besides what it is asked to."""

    _mutex: threading.Lock = field(default_factory=threading.Lock)
    _begun: int = 0
    _open: dict[int, int] = field(default_factory=dict)
    """Value sent to the input -> the process of its output."""
    _acked: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Partition -> (offset, value) of what the input has and the application has not committed."""

    @property
    def output(self) -> str:
        return list(self.topics)[1]

    @property
    def behind(self) -> int:
        """How many acknowledged records the application has not processed yet, as far as anybody knows."""
        with self._mutex:
            return sum(map(len, self._acked.values()))

    def record(self, process: int, kind: Type, f: str, **columns: Any) -> None:
        super().record(process, kind, f, **columns)
        if f == "send" and columns.get("topic") == self.topic:
            self._follow(kind, columns["records"])

    def states(self, fetched: Sequence[Fetched], records: Sequence[Record]) -> dict[str, Any]:
        found = [state_of(one, record.value) for one, record in zip(fetched, records, strict=True)]
        return {"states": found} if any(state >= 0 for state in found) else {}

    def _follow(self, kind: Type, records: Sequence[Record]) -> None:
        for record in records:
            if kind is Type.INVOKE:
                with self._mutex:
                    process = self._open[record.value] = FIRST_PROCESS + self._begun
                    self._begun += 1
                self._row(process, Type.INVOKE, record, UNKNOWN)
            elif record.offset == FAILED:
                with self._mutex:
                    process = self._open.pop(record.value)
                self._row(process, Type.FAIL, record, FAILED)
            elif record.offset >= 0:
                with self._mutex:
                    heappush(self._acked.setdefault(record.partition, []), (record.offset, record.value))

    def committed(self, offsets: Mapping[int, int]) -> None:
        """The application's group has committed these offsets of the input."""
        for partition, committed in offsets.items():
            for value, process in self._below(partition, committed):
                self._row(process, Type.OK, Record(partition, -1, value), ACKED_WITHOUT_OFFSET)

    def _below(self, partition: int, committed: int) -> list[tuple[int, int]]:
        result = []
        with self._mutex:
            waiting = self._acked.get(partition, [])
            while waiting and waiting[0][0] < committed:
                value = heappop(waiting)[1]
                result.append((value, self._open.pop(value)))
        return result

    def _row(self, process: int, kind: Type, sent: Record, offset: int) -> None:
        record = Record(sent.partition, offset, output_of(sent.value), -1, sent.timestamp)
        row = Event(process, kind, "send", topic=self.output, partition=sent.partition, records=(record,))
        self.recorder.record(row)  # the tally is of what clients are asked for
