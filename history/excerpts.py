"""Bounded excerpts of a history: a few rows out of as many as there may be.

Every question is one scan of the Parquet files with a filter that row-group statistics can prune, batch by
batch; what is kept is bounded by the question (indexes asked for, offsets asked for, rows of a window), never
by the history's size. Long record lists (the final read) are cut in Arrow before they become Python objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from wrackline.history.model import CONTROL, NEMESIS, Event, Record, Type
from wrackline.history.store.schema import SCHEMA

KEPT_RECORDS: Final = 8
CONTROL_ROWS: Final = 50_000
LONGEST_OPERATION_NS: Final = 120_000_000_000
"""How long after a window an operation that overlaps it may still complete and be found."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One event with at most ``KEPT_RECORDS`` of its records."""

    event: Event
    records: int = 0
    """How many records it had."""
    ranges: tuple[tuple[int, int, int, int], ...] = ()
    """Where they lie: (partition, how many, first offset, last offset), for the first ``KEPT_RECORDS``
    partitions."""

    @property
    def begin_ns(self) -> int:
        """When the operation was invoked, as far as this row knows."""
        latency = self.event.latency_ns
        return self.event.time_ns - latency if latency is not None else self.event.time_ns


class History:
    """Reads one run's history files. Methods raise pyarrow.ArrowException or OSError when a file is
    broken."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = files
        self._dataset = ds.dataset([str(path) for path in files], format="parquet")

    def control(self) -> list[Event]:
        """Rows of the nemesis and of the runner, in order."""
        expected = ds.field("process").isin([NEMESIS, CONTROL])
        result: list[Event] = []
        for batch in self.scan(expected):
            result += [excerpt.event for excerpt in _excerpts(batch)]
            if len(result) >= CONTROL_ROWS:
                break
        return sorted(result[:CONTROL_ROWS], key=lambda event: event.index)

    def rates(self) -> list[dict[str, Any]]:
        """Completions of clients per second and kind, in the shape of ``seconds`` in metrics.json (without
        latencies): what a run that was never judged can still show."""
        counts: dict[tuple[int, str], dict[str, int]] = {}
        expected = (ds.field("process") >= 0) & (ds.field("type") != Type.INVOKE.value)
        for batch in self.scan(expected, columns=["time_ns", "f", "type"]):
            second = pc.divide(batch.column("time_ns"), 1_000_000_000)
            table = pa.table({"t": second, "f": batch.column("f"), "type": batch.column("type")})
            for row in table.group_by(["t", "f", "type"]).aggregate([("t", "count")]).to_pylist():
                own = counts.setdefault((row["t"], row["f"]), {"ok": 0, "fail": 0, "info": 0})
                own[row["type"]] = own.get(row["type"], 0) + row["t_count"]
        return [{"t": t, "f": f, **own} for (t, f), own in sorted(counts.items())]

    def by_index(self, indexes: Collection[int]) -> dict[int, Excerpt]:
        """The events with these indexes; those that are not there are left out."""
        if not indexes:
            return {}
        return {e.event.index: e for batch in self.scan(having(indexes)) for e in _excerpts(batch)}

    def completions(self, invokes: Sequence[Event]) -> dict[int, Excerpt]:
        """Index of an invocation -> its completion: the next event of its process. Operations that never
        completed are left out."""
        if not invokes:
            return {}
        open_: dict[int, list[Event]] = {}
        for invoke in invokes:
            open_.setdefault(invoke.process, []).append(invoke)
        expected = ds.field("process").isin(sorted(open_)) & (
            ds.field("index") > min(e.index for e in invokes)
        )
        nearest: dict[int, int] = {}
        for batch in self.scan(expected, columns=["index", "process"]):
            processes, indexes = batch.column("process").to_numpy(), batch.column("index").to_numpy()
            for process, waiting in open_.items():
                own = np.sort(indexes[processes == process])
                for invoke in waiting:
                    at = int(np.searchsorted(own, invoke.index, side="right"))
                    if at < len(own):
                        nearest[invoke.index] = min(int(own[at]), nearest.get(invoke.index, int(own[at])))
            if len(nearest) == len(invokes):
                break
        events = self.by_index(nearest.values())
        return {
            invoke: events[index]
            for invoke, index in nearest.items()
            if index in events and events[index].event.type != Type.INVOKE
        }

    def invocations(self, completions: Sequence[Event]) -> dict[int, int]:
        """Index of a completion -> index of its invocation: the last one of its process and kind before
        it."""
        ended: dict[tuple[int, str], list[int]] = {}
        for event in completions:
            ended.setdefault((event.process, event.f), []).append(event.index)
        if not ended:
            return {}
        result: dict[int, int] = {}
        expected = ds.field("process").isin(sorted({process for process, _ in ended}))
        expected &= ds.field("type") == Type.INVOKE.value
        expected &= ds.field("index") < max(max(own) for own in ended.values())
        for batch in self.scan(expected, columns=["index", "process", "f"]):
            processes, indexes = batch.column("process").to_numpy(), batch.column("index").to_numpy()
            kinds = batch.column("f").to_numpy(zero_copy_only=False)
            for (process, f), waiting in ended.items():
                own = np.sort(indexes[(processes == process) & (kinds == f)])
                for index in waiting if len(own) else ():
                    at = int(np.searchsorted(own, index)) - 1
                    if at >= 0:
                        result[index] = max(int(own[at]), result.get(index, -1))
        return result

    def between(self, begin_ns: int, end_ns: int, limit: int) -> list[Excerpt]:
        """Events of clients in a window: completions of every operation that overlaps it, and the invocations
        within it; at most ``limit`` rows, earliest first."""
        time, latency = ds.field("time_ns"), ds.field("latency_ns")
        in_window = (time >= begin_ns) & (time <= end_ns)
        overlaps = (time > end_ns) & (time <= end_ns + LONGEST_OPERATION_NS) & (time - latency <= end_ns)
        expected = (ds.field("process") >= 0) & (
            in_window | (overlaps & (ds.field("type") != Type.INVOKE.value))
        )
        result: list[Excerpt] = []
        for batch in self.scan(expected):
            result += _excerpts(batch.slice(0, limit - len(result)))
            if len(result) >= limit:
                break
        return result

    def scan(self, wanted: pc.Expression, columns: Sequence[str] = SCHEMA.names) -> Iterator[pa.RecordBatch]:
        batches = self._dataset.to_batches(
            columns=list(columns), filter=wanted, batch_size=32_768, batch_readahead=2, fragment_readahead=1
        )
        return (batch for batch in batches if batch.num_rows)


def having(indexes: Collection[int]) -> pc.Expression:
    """A filter for these indexes, with bounds that row-group statistics can prune by."""
    index = ds.field("index")
    within = (index >= min(indexes)) & (index <= max(indexes))
    return within & index.isin(pa.array(sorted(set(indexes)), pa.int64()))


def _excerpts(batch: pa.RecordBatch) -> list[Excerpt]:
    lists = batch.column("records")
    lengths = pc.list_value_length(lists).fill_null(0).to_pylist()
    columns = [name for name in SCHEMA.names if name not in ("records", "test_id")]
    made = []
    for position, row in enumerate(batch.select(columns).to_pylist()):
        kept: tuple[Record, ...] = ()
        ranges: tuple[tuple[int, int, int, int], ...] = ()
        if lengths[position]:
            values = lists[position].values
            kept = tuple(record_of(item) for item in values.slice(0, KEPT_RECORDS).to_pylist())
            ranges = _ranges(values)
        row["type"] = Type(row["type"])
        row["extra"] = decode_extra(row["extra"])
        made.append(Excerpt(Event(records=kept, **row), lengths[position], ranges))
    return made


def _ranges(values: pa.StructArray) -> tuple[tuple[int, int, int, int], ...]:
    partitions = values.field("partition").to_numpy(zero_copy_only=False)
    offsets = values.field("offset").to_numpy(zero_copy_only=False)
    result = []
    for partition in np.unique(partitions)[:KEPT_RECORDS]:
        own = offsets[partitions == partition]
        result.append((int(partition), len(own), int(own.min()), int(own.max())))
    return tuple(result)


def record_of(item: Mapping[str, Any]) -> Record:
    return Record(item["partition"], item["offset"], item["value"], item["leader_epoch"], item["timestamp"])


def decode_extra(text: str | None) -> dict[str, Any]:
    """The JSON of a row's ``extra``; {} when there is none or it is no object."""
    if not text:
        return {}
    try:
        result = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return result if isinstance(result, dict) else {}
