"""Bounded excerpts of a history: a few rows out of as many as there may be.

Every question is one scan of the Parquet files with a filter that row-group statistics can prune, batch by
batch; what is kept is bounded by the question (indexes asked for, offsets asked for, rows of a window), never
by the history's size. Long record lists (the final read) are cut in Arrow before they become Python objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from wrackline.history.model import CONTROL, NEMESIS, Event, Record, Type
from wrackline.history.schema import SCHEMA

KEPT_RECORDS: Final = 8
CONTROL_ROWS: Final = 50_000
NEAR_RECORDS: Final = 64
LONGEST_OPERATION_NS: Final = 120_000_000_000
"""How long after a window an operation that overlaps it may still complete and be found."""
_OFFSET_BITS: Final = 44
_OFFSET_MASK: Final = (1 << _OFFSET_BITS) - 1


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


@dataclass(frozen=True, slots=True)
class Sighting:
    """A value that acks, polls, the final read or a replica's log put at an offset."""

    topic: str
    partition: int
    offset: int
    f: str
    node: str | None
    """The replica; None for what clients saw."""
    value: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a log (the final read's, or one replica's own) starts and ends. Unknown bounds are None."""

    start: int | None
    end: int | None
    hw: int | None = None
    in_isr: bool | None = None
    complete: bool | None = None


@dataclass(slots=True)
class Sightings:
    """What was seen at the offsets asked for, and how often."""

    counts: dict[Sighting, int] = field(default_factory=dict)
    ends: dict[tuple[str, int, str | None], LogEnd] = field(default_factory=dict)
    """By (topic, partition, replica's node or None for the final read)."""
    chunks: dict[tuple[str, int, str | None, int], int] = field(default_factory=dict)
    """The same and an offset asked for -> index of the row that holds it, or would: what was read up to it or
    past it."""
    _places: dict[tuple[str, int, int], list[Sighting]] = field(default_factory=dict)
    _logs: dict[tuple[str, int], dict[str | None, LogEnd]] = field(default_factory=dict)

    def at(self, topic: str, partition: int, offset: int) -> Sequence[Sighting]:
        """What was seen at one offset. To be asked when all is known."""
        if not self._places:
            for s in self.counts:
                self._places.setdefault((s.topic, s.partition, s.offset), []).append(s)
        return self._places.get((topic, partition, offset), ())

    def ends_of(self, topic: str, partition: int) -> Mapping[str | None, LogEnd]:
        """Where the final read of a partition and its replicas' logs end. To be asked when all is known."""
        if not self._logs:
            for (t, p, node), end in self.ends.items():
                self._logs.setdefault((t, p), {})[node] = end
        return self._logs.get((topic, partition), {})


class History:
    """Reads one run's history files. Methods raise pyarrow.ArrowException or OSError when a file is
    broken."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._dataset = ds.dataset([str(path) for path in files], format="parquet")

    def control(self) -> list[Event]:
        """Rows of the nemesis and of the runner, in order."""
        wanted = ds.field("process").isin([NEMESIS, CONTROL])
        found: list[Event] = []
        for batch in self._scan(wanted):
            found += [excerpt.event for excerpt in _excerpts(batch)]
            if len(found) >= CONTROL_ROWS:
                break
        return sorted(found[:CONTROL_ROWS], key=lambda event: event.index)

    def rates(self) -> list[dict[str, Any]]:
        """Completions of clients per second and kind, in the shape of ``seconds`` in metrics.json (without
        latencies): what a run that was never judged can still show."""
        counts: dict[tuple[int, str], dict[str, int]] = {}
        wanted = (ds.field("process") >= 0) & (ds.field("type") != Type.INVOKE.value)
        for batch in self._scan(wanted, columns=["time_ns", "f", "type"]):
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
        return {e.event.index: e for batch in self._scan(_having(indexes)) for e in _excerpts(batch)}

    def records_of(
        self, indexes: Collection[int], near: Collection[tuple[int, int]], values: Collection[int]
    ) -> dict[int, list[Record]]:
        """Index -> records of the events with these indexes: all that a send sent; of a read those at
        (partition, offset) ``near``, those of one of the ``values`` and the last of each partition. At most
        ``NEAR_RECORDS`` of an event."""
        if not indexes:
            return {}
        codes = np.array(sorted(_code(p, o) for p, o in near), dtype=np.int64)
        sought = np.array(sorted(values), dtype=np.int64)
        found: dict[int, list[Record]] = {}
        for batch in self._scan(_having(indexes), columns=["index", "f", "records"]):
            for index, f, own in zip(*(batch.column(n) for n in ("index", "f", "records")), strict=True):
                if own.is_valid and len(own.values):
                    kept = np.arange(len(own.values))
                    if f.as_py() != "send":
                        kept = _near(own.values, codes, sought)
                    taken = own.values.take(pa.array(kept[:NEAR_RECORDS]))
                    found[index.as_py()] = [_record(item) for item in taken.to_pylist()]
        return found

    def completions(self, invokes: Sequence[Event]) -> dict[int, Excerpt]:
        """Index of an invocation -> its completion: the next event of its process. Operations that never
        completed are left out."""
        if not invokes:
            return {}
        open_: dict[int, list[Event]] = {}
        for invoke in invokes:
            open_.setdefault(invoke.process, []).append(invoke)
        wanted = ds.field("process").isin(sorted(open_)) & (ds.field("index") > min(e.index for e in invokes))
        nearest: dict[int, int] = {}
        for batch in self._scan(wanted, columns=["index", "process"]):
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
        found: dict[int, int] = {}
        wanted = ds.field("process").isin(sorted({process for process, _ in ended}))
        wanted &= ds.field("type") == Type.INVOKE.value
        wanted &= ds.field("index") < max(max(own) for own in ended.values())
        for batch in self._scan(wanted, columns=["index", "process", "f"]):
            processes, indexes = batch.column("process").to_numpy(), batch.column("index").to_numpy()
            kinds = batch.column("f").to_numpy(zero_copy_only=False)
            for (process, f), waiting in ended.items():
                own = np.sort(indexes[(processes == process) & (kinds == f)])
                for index in waiting if len(own) else ():
                    at = int(np.searchsorted(own, index)) - 1
                    if at >= 0:
                        found[index] = max(int(own[at]), found.get(index, -1))
        return found

    def between(self, begin_ns: int, end_ns: int, limit: int) -> list[Excerpt]:
        """Events of clients in a window: completions of every operation that overlaps it, and the invocations
        within it; at most ``limit`` rows, earliest first."""
        time, latency = ds.field("time_ns"), ds.field("latency_ns")
        in_window = (time >= begin_ns) & (time <= end_ns)
        overlaps = (time > end_ns) & (time <= end_ns + LONGEST_OPERATION_NS) & (time - latency <= end_ns)
        wanted = (ds.field("process") >= 0) & (
            in_window | (overlaps & (ds.field("type") != Type.INVOKE.value))
        )
        found: list[Excerpt] = []
        for batch in self._scan(wanted):
            found += _excerpts(batch.slice(0, limit - len(found)))
            if len(found) >= limit:
                break
        return found

    def around(self, wanted: Mapping[tuple[str, int], Collection[int]]) -> Sightings:
        """What was seen at offsets of partitions: by (topic, partition) -> offsets."""
        sightings = Sightings()
        if not wanted:
            return sightings
        topics = sorted({topic for topic, _ in wanted})
        where = (ds.field("type") != Type.INVOKE.value) & ds.field("topic").isin(topics)
        where &= ds.field("f").isin(["send", "poll", "drain", "replica"])
        codes = {
            topic: np.array(
                sorted(_code(p, o) for (t, p), offsets in wanted.items() if t == topic for o in offsets)
            )
            for topic in topics
        }
        for batch in self._scan(where):
            _note_ends(batch, wanted, sightings)
            for topic, wanted_codes in codes.items():
                own = batch.select(["f", "node", "records"]).filter(pc.equal(batch.column("topic"), topic))
                _note_records(own, topic, wanted_codes, sightings)
        return sightings

    def _scan(self, wanted: pc.Expression, columns: Sequence[str] = SCHEMA.names) -> Iterator[pa.RecordBatch]:
        batches = self._dataset.to_batches(
            columns=list(columns), filter=wanted, batch_size=32_768, batch_readahead=2, fragment_readahead=1
        )
        return (batch for batch in batches if batch.num_rows)


def _having(indexes: Collection[int]) -> pc.Expression:
    """A filter for these indexes, with bounds that row-group statistics can prune by."""
    index = ds.field("index")
    within = (index >= min(indexes)) & (index <= max(indexes))
    return within & index.isin(pa.array(sorted(set(indexes)), pa.int64()))


def _code(partition: int, offset: int) -> int:
    return partition << _OFFSET_BITS | offset


def _near(
    records: pa.StructArray, codes: np.ndarray[Any, Any], values: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Positions of the records at a place or of a value asked for, of the last one of each partition, and of
    the last one behind such a place that has a smaller leader epoch."""
    offsets = records.field("offset").to_numpy(zero_copy_only=False)
    partitions = records.field("partition").to_numpy(zero_copy_only=False).astype(np.int64)
    held = records.field("value").to_numpy(zero_copy_only=False)
    chosen = np.isin(partitions << _OFFSET_BITS | offsets, codes) | np.isin(held, values)
    epochs = records.field("leader_epoch").to_numpy(zero_copy_only=False)
    for partition in np.unique(partitions):
        own = np.flatnonzero(partitions == partition)
        places = own[np.isin(offsets[own], codes & _OFFSET_MASK)]
        if len(places):
            smaller = own[(own > places[0]) & (epochs[own] >= 0) & (epochs[own] < epochs[places].max())]
            chosen[smaller[-1:]] = True
        chosen[own[np.argmax(offsets[own])]] = True
    return np.flatnonzero(chosen)


def _note_records(batch: pa.RecordBatch, topic: str, codes: np.ndarray[Any, Any], into: Sightings) -> None:
    """Add the records of this batch that lie at an offset asked for."""
    records = batch.column("records")
    flat = pc.list_flatten(records)
    if not len(flat):
        return
    offsets = pc.struct_field(flat, "offset").to_numpy(zero_copy_only=False)
    partitions = pc.struct_field(flat, "partition").to_numpy(zero_copy_only=False).astype(np.int64)
    hits = np.flatnonzero(np.isin(partitions << _OFFSET_BITS | offsets, codes) & (offsets >= 0))
    if not len(hits):
        return
    parents = pc.list_parent_indices(records).to_numpy()[hits]
    found = flat.take(pa.array(hits)).to_pylist()
    kinds = batch.column("f").take(pa.array(parents)).to_pylist()
    nodes = batch.column("node").take(pa.array(parents)).to_pylist()
    for record, f, node in zip(found, kinds, nodes, strict=True):
        seen = Sighting(
            topic, record["partition"], record["offset"], f, node if f == "replica" else None,
            record["value"], record["leader_epoch"],
        )  # fmt: skip
        into.counts[seen] = into.counts.get(seen, 0) + 1


def _last_offsets(lists: pa.ListArray) -> list[int]:
    """The offset of the last record of each list; -1 where there is none."""
    found = []
    for own in lists:
        found.append(own.values.field("offset")[-1].as_py() if own.is_valid and len(own.values) else -1)
    return found


def _note_ends(
    batch: pa.RecordBatch, wanted: Mapping[tuple[str, int], Collection[int]], into: Sightings
) -> None:
    """Remember where the final read and the replicas' own logs start and end, and which of their rows reach
    what is asked for."""
    names = ["topic", "partition", "f", "node", "offset", "high_watermark", "extra", "index"]
    ends = batch.filter(pc.is_in(batch.column("f"), pa.array(["drain", "replica"])))
    reached = _last_offsets(ends.column("records"))
    for row, last in zip(ends.select(names).to_pylist(), reached, strict=True):
        if (row["topic"], row["partition"]) not in wanted:
            continue
        extra = decode_extra(row["extra"])
        key = (row["topic"], row["partition"], row["node"] if row["f"] == "replica" else None)
        for offset in wanted[key[:2]]:
            if last >= offset or extra.get("complete"):
                into.chunks[*key, offset] = min(row["index"], into.chunks.get((*key, offset), row["index"]))
        before = into.ends.get(key)
        into.ends[key] = LogEnd(
            start=row["offset"],
            end=row["high_watermark"],
            hw=extra.get("hw"),
            in_isr=extra.get("in_isr"),
            complete=bool(extra.get("complete")) or bool(before and before.complete),
        )


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
            kept = tuple(_record(item) for item in values.slice(0, KEPT_RECORDS).to_pylist())
            ranges = _ranges(values)
        row["type"] = Type(row["type"])
        row["extra"] = decode_extra(row["extra"])
        made.append(Excerpt(Event(records=kept, **row), lengths[position], ranges))
    return made


def _ranges(values: pa.StructArray) -> tuple[tuple[int, int, int, int], ...]:
    partitions = values.field("partition").to_numpy(zero_copy_only=False)
    offsets = values.field("offset").to_numpy(zero_copy_only=False)
    found = []
    for partition in np.unique(partitions)[:KEPT_RECORDS]:
        own = offsets[partitions == partition]
        found.append((int(partition), len(own), int(own.min()), int(own.max())))
    return tuple(found)


def _record(item: Mapping[str, Any]) -> Record:
    return Record(item["partition"], item["offset"], item["value"], item["leader_epoch"], item["timestamp"])


def decode_extra(text: str | None) -> dict[str, Any]:
    """The JSON of a row's ``extra``; {} when there is none or it is no object."""
    if not text:
        return {}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
