"""Parts of all models: rows of a history, and the integers that stand for what they name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.history import history_files
from wrackline.history.jepsen.text import Operation
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, NEMESIS
from wrackline.values import Keyword

Row = Mapping[str, Any]
Place = tuple[str, int]

RECORDS_AT_ONCE = 50_000
READ_BY_POLL = ("poll", "drain")


def rows(run_dir: Path) -> Iterator[Row]:
    """The events of clients and of the nemesis, in their order, a bounded piece of the file at a time. Raises
    HistoryError."""
    expected = pc.field("process") >= NEMESIS
    for path in history_files(run_dir):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=8192):
                for piece in _pieces(batch.filter(expected)):
                    yield from piece.to_pylist()


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Rows of final reads have thousands of records: as many rows at once as have ``RECORDS_AT_ONCE``
    together."""
    sizes = pc.list_value_length(batch.column("records")).fill_null(0).to_numpy()
    until = np.cumsum(sizes) // RECORDS_AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(until)) + 1), len(batch)]
    for start, end in itertools.pairwise(edges):
        yield batch.slice(start, end - start)


@dataclass
class Keys:
    """The integer that stands for a partition: partitions of the first topic keep their own numbers."""

    numbers: dict[Place, int] = field(default_factory=dict)

    def of(self, topic: str, partition: int) -> int:
        place = (topic, partition)
        if place not in self.numbers:
            first = next(iter(self.numbers), place)[0]
            taken = set(self.numbers.values())
            free = partition if topic == first and partition not in taken else max(taken, default=-1) + 1
            self.numbers[place] = free
        return self.numbers[place]


def extra_of(row: Row) -> Mapping[str, Any]:
    return orjson.loads(row["extra"] or "{}")  # type: ignore[no-any-return]


class Processes:
    """A process for the n-th record of a process's sends: new ones after an unknown outcome."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def of(self, *name: Any) -> int:
        return self._numbers.setdefault(name, len(self._numbers))


def outcome_of(row: Row, record: Mapping[str, int]) -> str:
    if row["type"] != "ok":
        return str(row["type"])
    offset = record["offset"]
    if offset >= 0 or offset == ACKED_WITHOUT_OFFSET:
        return "ok"
    return "fail" if offset == FAILED else "info"


def operation(row: Row, process: Any, kind: str, f: str, value: Any) -> Operation:
    """An operation at the time of a row."""
    return {
        "time": row["time_ns"],
        "type": Keyword(kind),
        "process": process,
        "f": Keyword(f),
        "value": value,
    }


def txn(row: Row, process: int, kind: str, value: list[Any]) -> Operation:
    return operation(row, process, kind, "txn", value)


def numbered(operations: Iterable[Operation]) -> Iterator[Operation]:
    """The operations with their indexes."""
    for index, one in enumerate(operations):
        yield {"index": index, **one}
