"""Small histories written by hand, and what is gathered from them for the pictures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.harness.report.read.columns import Operations
from wrackline.harness.report.read.log_order import Stretch
from wrackline.harness.report.read.pictures import Gathered, Gatherer
from wrackline.history.model import RunInfo, value_of
from wrackline.history.store.schema import METADATA_KEY, SCHEMA

S, MS = 1_000_000_000, 1_000_000
END_NS = 60 * S


def row(at_s: float, process: int, type_: str, f: str, **columns: Any) -> dict[str, Any]:
    """A row of topic ``log``, partition 0; its index is given when it is written."""
    own = {"test_id": "r", "time_ns": round(at_s * S), "process": process, "type": type_, "f": f}
    return {**dict.fromkeys(SCHEMA.names), "topic": "log", "partition": 0, **own, **columns}


def record(offset: int, value: int, partition: int = 0) -> dict[str, int]:
    return {"partition": partition, "offset": offset, "value": value, "leader_epoch": 0, "timestamp": -1}


def sent(
    at_s: float, offset: int, *, process: int = 1, took_s: float = 0.01, type_: str = "ok", partition: int = 0
) -> list[dict[str, Any]]:
    """A send of one record, whose value has the offset as its counter, where it fits."""
    value = value_of(process, offset % (1 << 28))
    begun = row(
        at_s - took_s, process, "invoke", "send", partition=partition, records=[record(-1, value, partition)]
    )
    placed = record(offset if type_ == "ok" else -1, value, partition)
    return [begun, row(at_s, process, type_, "send", partition=partition, records=[placed])]


def polled(
    at_s: float, offsets: Sequence[int], *, process: int = 9, f: str = "poll", position: int | None = None
) -> list[dict[str, Any]]:
    """A poll that is given what ``sent`` put there."""
    given = [record(offset, value_of(1, offset)) for offset in offsets]
    extra = None if position is None else f'{{"positions":{{"0":{position}}}}}'
    return [
        row(at_s - 0.005, process, "invoke", f),
        row(at_s, process, "ok", f, partition=None if f == "poll" else 0, records=given, extra=extra),
    ]


def written(
    folder: Path,
    *operations: Sequence[dict[str, Any]],
    info: RunInfo | None = None,
    groups: int | None = None,
) -> Path:
    """The history of these rows, in the order of their times; ``groups``: rows of each group."""
    rows = sorted((one for rows in operations for one in rows), key=lambda one: one["time_ns"])
    for index, one in enumerate(rows):
        one["index"] = index
    path = folder / "history.parquet"
    schema = SCHEMA if info is None else SCHEMA.with_metadata({METADATA_KEY: info.to_json()})
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=groups)
    return path


def gathered(
    path: Path,
    *,
    end_ns: int = END_NS,
    wanted: Sequence[Stretch] = (),
    cited: Collection[int] = (),
    bars: int = 1_000,
) -> Gathered:
    operations = Operations([path])
    gatherer = Gatherer(operations, end_ns, {}, wanted, cited, bars)
    for batch in operations.batches():
        gatherer.add(batch)
    return gatherer.gathered()
