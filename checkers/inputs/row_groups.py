"""Parts of histories, and how one is read: row groups of Parquet become columns of numpy, some ten
thousand events (or some hundred thousand records) at a time, whatever the size of a row group.

Spark's own reader makes objects of nested records, which costs ten times what Arrow's columns cost. So an
executor is given *splits* (a file and a range of its row groups) and decides where each is read; the bytes
are read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.checkers.inputs.table import NONE, Bools, Ints, Table, concatenated
from wrackline.checkers.inputs.validity import check_types, column_numbers
from wrackline.history.store.addresses import parquet

ROWS_OF_MEMBERS = ("rebalance", "crash")
"""Kinds of rows that are no operations: a member of a group learns something in the middle of a poll, or
ends."""


def of_clients(process: Ints, f: Ints, names: Names) -> Bools:
    """Returns a mask of the events that belong to operations of clients."""
    result: Bools = process >= 0
    for name in ROWS_OF_MEMBERS:
        result &= f != names.number(name)
    return result


@dataclass(frozen=True, slots=True)
class Operations(Table[Ints]):
    """Operations of clients, each with the event that says most of it."""

    process: Ints
    f: Ints
    base: Ints
    """The log of partition 0 of its topic; NONE where it has none."""
    partition: Ints
    kind: Ints
    """OK, FAIL or INFO."""
    shown_end: Ints
    """How far the answer said that the log goes; NONE where it did not say."""
    error: Ints
    event: Ints
    """The row, in its batch, of the event that says most."""
    invoke_index: Ints
    invoke_ns: Ints
    complete_index: Ints
    """NONE when it never completed."""
    complete_ns: Ints


SPLIT_EVENTS = 1_000_000
SPLIT_RECORDS = 4_000_000
BATCH_EVENTS = 65_536
BATCH_RECORDS = 400_000
INVOKE, OK, FAIL, INFO = range(4)
TYPES = {"invoke": INVOKE, "ok": OK, "fail": FAIL, "info": INFO}
_STRINGS = ("type", "f", "topic", "node", "error")
_RECORDS = tuple(f"records.list.element.{name}" for name in ("partition", "offset", "value", "leader_epoch"))
_EVENTS = ("index", "time_ns", "process", *_STRINGS, "partition", "high_watermark")


@dataclass(frozen=True, slots=True)
class Split:
    """Row groups [first, last) of a run's history."""

    run: int
    number: int
    """Splits of a run are numbered in the order of its events."""
    path: str
    """Of the history: a path, or an address (wrackline.history.store.addresses)."""
    first: int
    last: int


def splits_of(run: int, path: str, events: int = SPLIT_EVENTS, records: int = SPLIT_RECORDS) -> list[Split]:
    """Cut a history into parts of about so many events or records. Raises OSError or ValueError."""
    result: list[Split] = []
    with parquet(path) as file:
        metadata = file.metadata
        leaf = _leaf(file)
        first, some_events, some_records = 0, 0, 0
        for group in range(metadata.num_row_groups):
            here = metadata.row_group(group)
            some_events += here.num_rows
            some_records += here.column(leaf).num_values
            if some_events >= events or some_records >= records or group + 1 == metadata.num_row_groups:
                result.append(Split(run, len(result), path, first, group + 1))
                first, some_events, some_records = group + 1, 0, 0
    return result


def count_facts(path: str) -> int:
    """Counts the records, and the events without any. Raises OSError or ValueError."""
    with parquet(path) as file:
        leaf = _leaf(file)
        groups = range(file.metadata.num_row_groups)
        return sum(file.metadata.row_group(group).column(leaf).num_values for group in groups)


def _leaf(file: pq.ParquetFile) -> int:
    """Number of the column that tells how many records there are."""
    return next(at for path, at in column_numbers(file).items() if path.startswith("records."))


@dataclass(frozen=True, slots=True)
class Events(Table[Ints]):
    """Events of a history. Strings are numbers into ``names``; NONE is null."""

    index: Ints
    ns: Ints
    process: Ints
    kind: Ints
    """A value of TYPES."""
    f: Ints
    topic: Ints
    node: Ints
    error: Ints
    partition: Ints
    high_watermark: Ints
    """How far the answer said that the log goes."""
    size: Ints
    """How many records it has."""
    txn: Ints
    """1: it belongs to a transaction (only where ``extra`` was read)."""


@dataclass(frozen=True, slots=True)
class Records(Table[Ints]):
    """Records of events."""

    partition: Ints
    offset: Ints
    """Below 0: what became of a send without an offset (wrackline.history.model)."""
    value: Ints
    epoch: Ints
    """The leader epoch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events in the order of their index, and their records."""

    events: Events
    begin: Ints
    """Records of event i are rows [begin, begin + size) of ``records``."""
    records: Records
    extra: pa.ChunkedArray | None = None
    """JSON, where it was read."""

    def __len__(self) -> int:
        return len(self.events)

    def records_of(self, events: Ints) -> tuple[Ints, Ints]:
        """Returns (which of ``events``, row) for each record of the events, in order."""
        sizes = self.events.size[events]
        which = np.repeat(np.arange(len(events)), sizes)
        starts = np.cumsum(sizes) - sizes
        return which, np.arange(len(which)) - np.repeat(starts - self.begin[events], sizes)


class Names:
    """Strings of a history as small numbers: those given first, new ones as they come."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.names = list(known)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def number(self, name: str) -> int:
        result = self._numbers.get(name)
        if result is None:
            result = self._numbers[name] = len(self.names)
            self.names.append(name)
        return result

    def codes(self, column: pa.ChunkedArray | pa.Array) -> Ints:
        encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if not isinstance(encoded, pa.DictionaryArray):
            encoded = encoded.dictionary_encode()
        numbers = np.array([self.number(name) for name in encoded.dictionary.to_pylist()] + [NONE], np.int64)
        return numbers[ints(encoded.indices, null=len(numbers) - 1)]


def ints(column: pa.Array | pa.ChunkedArray, *, null: int = NONE) -> Ints:
    """A column of integers; nulls become ``null``."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if whole.null_count:
        whole = whole.cast(pa.int64()).fill_null(null)
    result: Ints = whole.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return result


def open_file(path: str) -> AbstractContextManager[pq.ParquetFile]:
    return parquet(path, page_checksum_verification=True, read_dictionary=list(_STRINGS))


def read(
    split: Split, names: Mapping[str, Names], *, extra: bool = False, groups: Sequence[int] | None = None
) -> Iterator[Batch]:
    """The events of a split, batch by batch. ``names``: numbers for the strings of f, topic, node and error.

    Raises OSError (also where a page's checksum is wrong)."""
    columns = [*_EVENTS, *_RECORDS, *(["extra"] if extra else [])]
    with open_file(split.path) as file:
        leaf = _leaf(file)
        for group in range(split.first, split.last) if groups is None else groups:
            metadata = file.metadata.row_group(group)
            each = max(1, metadata.column(leaf).num_values // max(1, metadata.num_rows))
            rows = max(1, min(BATCH_EVENTS, BATCH_RECORDS // each))
            for batch in file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
                yield _batch(batch, names)


def events_of(
    split: Split, columns: Sequence[str] | None = None, between: tuple[int, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The events of a split as they are in the file, some ten thousand at a time, in the order of their
    index. ``columns``: these alone; ``between``: at least those whose index lies between these, both
    included. Raises OSError."""
    with parquet(split.path, page_checksum_verification=True) as file:
        at = column_numbers(file)["index"]
        for group in range(split.first, split.last):
            known = file.metadata.row_group(group).column(at).statistics
            if (
                between
                and known
                and known.has_min_max
                and not (known.min <= between[1] and between[0] <= known.max)
            ):
                continue
            yield from file.iter_batches(BATCH_EVENTS, row_groups=[group], columns=columns, use_threads=False)


def _batch(batch: pa.RecordBatch, names: Mapping[str, Names]) -> Batch:
    records = batch.column("records")
    offsets = records.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    fields = dict(
        zip((field.name for field in records.type.value_type), records.values.flatten(), strict=True)
    )
    size = np.diff(offsets)
    if records.null_count:
        size = np.where(records.is_valid().to_numpy(zero_copy_only=False), size, 0)
    codes = names["type"].codes(batch.column("type"))
    check_types(names["type"].names, TYPES)
    kinds = np.array([TYPES[name] for name in names["type"].names], dtype=np.int64)
    events = Events(
        index=ints(batch.column("index")),
        ns=ints(batch.column("time_ns")),
        process=ints(batch.column("process")),
        kind=kinds[codes],
        f=names["f"].codes(batch.column("f")),
        topic=names["topic"].codes(batch.column("topic")),
        node=names["node"].codes(batch.column("node")),
        error=names["error"].codes(batch.column("error")),
        partition=ints(batch.column("partition")),
        high_watermark=ints(batch.column("high_watermark")),
        size=size,
        txn=_of_transactions(batch),
    )
    there = Records(
        partition=ints(fields["partition"]),
        offset=ints(fields["offset"]),
        value=ints(fields["value"]),
        epoch=ints(fields["leader_epoch"]),
    )
    return Batch(
        events, offsets[:-1], there, batch.column("extra") if "extra" in batch.schema.names else None
    )


def _of_transactions(batch: pa.RecordBatch) -> Ints:
    if "extra" not in batch.schema.names:
        return np.zeros(len(batch), np.int64)
    return ints(pc.match_substring(batch.column("extra"), '"txn"').cast(pa.int64()), null=0)


def joined(before: Batch | None, batch: Batch) -> Batch:
    """Events left over from an earlier batch, followed by a batch."""
    if before is None or not len(before):
        return batch
    shift = len(before.records)
    return Batch(
        concatenated(Events, [before.events, batch.events]),
        np.concatenate([before.begin, batch.begin + shift]),
        concatenated(Records, [before.records, batch.records]),
    )


def picked(batch: Batch, events: Ints) -> Batch:
    """Some events alone (their rows), with their records."""
    _, records = batch.records_of(events)
    size = batch.events.size[events]
    return Batch(batch.events.take(events), np.cumsum(size) - size, batch.records.take(records))


__all__ = [
    "FAIL",
    "INFO",
    "INVOKE",
    "OK",
    "TYPES",
    "Batch",
    "Names",
    "Split",
    "events_of",
    "ints",
    "joined",
    "picked",
    "read",
    "splits_of",
]
