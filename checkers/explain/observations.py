"""The observations of a history around the offsets that findings are about: what each log and reader holds
there, where logs end, and the records of the operations that are cited.

Every question is one scan of the history (wrackline.history.excerpts), and what is kept is bounded by what is
asked for. Long record lists (the final read) are cut in Arrow before they become Python objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from wrackline.history.excerpts import History, decode_extra, having, record_of
from wrackline.history.model import POLLS, Record, Type

NEAR_RECORDS: Final = 64
_OFFSET_BITS: Final = 44
_OFFSET_MASK: Final = (1 << _OFFSET_BITS) - 1


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
    """The start and the end of a log (the final read's, or one replica's own). Unknown bounds are None."""

    start: int | None
    end: int | None
    hw: int | None = None
    in_isr: bool | None = None
    complete: bool | None = None


@dataclass(slots=True)
class Observations:
    """The observations at the offsets asked for, and how often each was made."""

    counts: dict[Sighting, int] = field(default_factory=dict)
    ends: dict[tuple[str, int, str | None], LogEnd] = field(default_factory=dict)
    """By (topic, partition, replica's node or None for the final read)."""
    reached: dict[tuple[str, int, str | None, int], int] = field(default_factory=dict)
    """The same and an offset asked for -> index of the row that holds it, or would: what was read up to it or
    past it."""
    _places: dict[tuple[str, int, int], list[Sighting]] = field(default_factory=dict)
    _logs: dict[tuple[str, int], dict[str | None, LogEnd]] = field(default_factory=dict)

    def at(self, topic: str, partition: int, offset: int) -> Sequence[Sighting]:
        """Returns what was seen at one offset. To be asked when all is known."""
        if not self._places:
            for s in self.counts:
                self._places.setdefault((s.topic, s.partition, s.offset), []).append(s)
        return self._places.get((topic, partition, offset), ())

    def ends_of(self, topic: str, partition: int) -> Mapping[str | None, LogEnd]:
        """Returns where the final read of a partition and its replicas' logs end. To be asked when all is
        known."""
        if not self._logs:
            for (t, p, node), end in self.ends.items():
                self._logs.setdefault((t, p), {})[node] = end
        return self._logs.get((topic, partition), {})


def observations(history: History, wanted: Mapping[tuple[str, int], Collection[int]]) -> Observations:
    """Returns what was seen at offsets of partitions; ``wanted``: (topic, partition) -> offsets."""
    result = Observations()
    if not wanted:
        return result
    topics = sorted({topic for topic, _ in wanted})
    where = (ds.field("type") != Type.INVOKE.value) & ds.field("topic").isin(topics)
    where &= ds.field("f").isin(["send", *POLLS, "drain", "replica"])
    codes = {
        topic: np.array(
            sorted(_code(p, o) for (t, p), offsets in wanted.items() if t == topic for o in offsets)
        )
        for topic in topics
    }
    for batch in history.scan(where):
        _note_ends(batch, wanted, result)
        for topic, wanted_codes in codes.items():
            own = batch.select(["f", "node", "records"]).filter(pc.equal(batch.column("topic"), topic))
            _note_records(own, topic, wanted_codes, result)
    return result


def records_of(
    history: History, indexes: Collection[int], near: Collection[tuple[int, int]], values: Collection[int]
) -> dict[int, list[Record]]:
    """Index -> records of the events with these indexes: all that a send sent; of a read those at
    (partition, offset) ``near``, those of one of the ``values`` and the last of each partition. At most
    ``NEAR_RECORDS`` of an event."""
    if not indexes:
        return {}
    codes = np.array(sorted(_code(p, o) for p, o in near), dtype=np.int64)
    sought = np.array(sorted(values), dtype=np.int64)
    result: dict[int, list[Record]] = {}
    for batch in history.scan(having(indexes), columns=["index", "f", "records"]):
        for index, f, own in zip(*(batch.column(n) for n in ("index", "f", "records")), strict=True):
            if own.is_valid and len(own.values):
                kept = np.arange(len(own.values))
                if f.as_py() != "send":
                    kept = _near(own.values, codes, sought)
                taken = own.values.take(pa.array(kept[:NEAR_RECORDS]))
                result[index.as_py()] = [record_of(item) for item in taken.to_pylist()]
    return result


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


def _note_records(batch: pa.RecordBatch, topic: str, codes: np.ndarray[Any, Any], into: Observations) -> None:
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
    result = flat.take(pa.array(hits)).to_pylist()
    kinds = batch.column("f").take(pa.array(parents)).to_pylist()
    nodes = batch.column("node").take(pa.array(parents)).to_pylist()
    for record, f, node in zip(result, kinds, nodes, strict=True):
        seen = Sighting(
            topic, record["partition"], record["offset"], f, node if f == "replica" else None,
            record["value"], record["leader_epoch"],
        )  # fmt: skip
        into.counts[seen] = into.counts.get(seen, 0) + 1


def _last_offsets(lists: pa.ListArray) -> list[int]:
    """The offset of the last record of each list; -1 where there is none."""
    result = []
    for own in lists:
        result.append(own.values.field("offset")[-1].as_py() if own.is_valid and len(own.values) else -1)
    return result


def _note_ends(
    batch: pa.RecordBatch, wanted: Mapping[tuple[str, int], Collection[int]], into: Observations
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
                into.reached[*key, offset] = min(row["index"], into.reached.get((*key, offset), row["index"]))
        before = into.ends.get(key)
        into.ends[key] = LogEnd(
            start=row["offset"],
            end=row["high_watermark"],
            hw=extra.get("hw"),
            in_isr=extra.get("in_isr"),
            complete=bool(extra.get("complete")) or bool(before and before.complete),
        )
