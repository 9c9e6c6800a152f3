"""A whole history as narrow numpy columns, batch by batch: for what must look at every operation once.

A row becomes no Python object. Only the columns asked for are decoded, and of the records only partition,
offset and value. Memory is one batch, and the invocations that nothing has completed yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wrackline.history.model import Type

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Table = NDArray[np.void]
"""Rows of OPERATION, in one array."""

OPERATION: Final = np.dtype(
    [
        ("index", np.int64),
        ("begun", np.int64),
        ("begin", np.int64),
        ("end", np.int64),
        ("process", np.int64),
        ("f", np.uint8),
        ("outcome", np.uint8),
        ("place", np.int32),
        ("offset", np.int64),
        ("last", np.int64),
        ("value", np.int64),
        ("count", np.int64),
        ("error", np.int32),
    ]
)
"""An operation. ``index``: of its completion, or of its invocation when it has none; ``begun``: of its
invocation, -1 when it has none. ``begin``, ``end``: nanoseconds since the start of the run, ``end`` -1 when
it was never completed. ``f``, ``outcome`` (see OUTCOMES), ``place``, ``error``: numbers of words, ``place``
and ``error`` -1 for none. ``offset`` to ``last``: where its records lie, -1 for nowhere; ``value``: of the
first; ``count``: how many it sent or was given."""
OUTCOMES: Final = ("open", "ok", "fail", "info")
OPEN, OK, FAIL, INFO = range(4)
NO_VALUE: Final = -9
"""``value`` of an operation without a record."""
OFFSETS: Final = 1 << 44
"""Records at offsets from here on are left out: no log is so long, a broken reader may say so."""
_TYPES: Final = {Type.INVOKE.value: OPEN, Type.OK.value: OK, Type.FAIL.value: FAIL, Type.INFO.value: INFO}
_PARTITIONS: Final = 1 << 12
_WORDS: Final = 250
_WORD_LENGTH: Final = 160
_UNASKED: Final = ("rebalance", "crash")
"""They come without an invocation, and may come in the middle of a poll."""
_NARROW: Final = (
    *("index", "time_ns", "process", "type", "f", "topic", "partition", "value"),
    *("high_watermark", "error", "latency_ns", "extra"),
)
_RECORDS: Final = tuple(f"records.list.element.{name}" for name in ("partition", "offset", "value"))


@dataclass(slots=True)
class Words:
    """Numbers for texts, in the order in which they are met; those past ``limit`` are all one ``…``."""

    limit: int = _WORDS
    known: dict[str, int] = field(default_factory=dict)

    def number(self, word: str) -> int:
        result = self.known.get(word)
        if result is None:
            result = self.known.setdefault(word if len(self.known) < self.limit else "…", len(self.known))
        return result

    def codes(self, column: Any) -> Ints:
        """The number of each text of a column; -1 for null."""
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        words = [self.number(str(word)[:_WORD_LENGTH]) for word in encoded.dictionary.to_pylist()]
        mapped = np.array([*words, -1], np.int64)
        return np.asarray(mapped[_ints(encoded.indices, len(words))])

    def listed(self) -> list[str]:
        return list(self.known)


@dataclass(slots=True)
class Places:
    """Numbers for partitions, in the order in which they are met."""

    topics: Words = field(default_factory=Words)
    known: dict[tuple[int, int], int] = field(default_factory=dict)

    def codes(self, topics: Ints, partitions: Ints) -> Ints:
        """The number of each (number of a topic, partition); -1 where either is unknown, or no topic has so
        many partitions."""
        partitions = np.where((partitions < 0) | (partitions >= _PARTITIONS), _PARTITIONS, partitions)
        both = (topics + 1) * (_PARTITIONS + 1) + partitions
        there = np.flatnonzero(np.bincount(both)) if len(both) else np.zeros(0, np.int64)
        mapped = np.full(int(there[-1]) + 1 if len(there) else 0, -1, np.int64)
        for key in there.tolist():
            topic, partition = divmod(key, _PARTITIONS + 1)
            if topic > 0 and partition < _PARTITIONS:
                mapped[key] = self.known.setdefault((topic - 1, partition), len(self.known))
        return np.asarray(mapped[both])

    def listed(self) -> list[tuple[str, int]]:
        """(topic, partition) of each."""
        topics = self.topics.listed()
        return [(topics[topic], partition) for topic, partition in self.known]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of operations in one partition each: a transaction has a row for each of its partitions."""

    operation: Ints
    """Row of ``Batch.operations``."""
    place: Ints
    first: Ints
    last: Ints
    count: Ints


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows of a history. ``records`` lie in the order of their operations."""

    operations: Table
    """What ended in these rows, in their order."""
    owner: Ints
    """Of each record: the row of its operation in ``operations``."""
    place: Ints
    offset: Ints
    value: Ints
    high_watermark: Ints
    """Of each operation; -1 for none."""
    extra: Any
    """Of each operation: an Arrow array of JSON texts."""

    def parts(self, chosen: Bools) -> Parts:
        """The chosen records by operation and partition; a row for each run of records of one partition."""
        owner, place, offset = self.owner[chosen], self.place[chosen], self.offset[chosen]
        if not len(owner):
            none = np.zeros(0, np.int64)
            return Parts(none, none, none, none, none)
        starts = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(place) != 0)])
        return Parts(
            owner[starts],
            place[starts],
            np.minimum.reduceat(offset, starts),
            np.maximum.reduceat(offset, starts),
            np.diff(np.r_[starts, len(owner)]),
        )


def _ints(column: Any, null: int = -1) -> Ints:
    return np.asarray(pc.fill_null(column, null), np.int64)


class Operations:
    """Reads the operations of clients, the final read among them. Raises what pyarrow raises when a file is
    broken, while it is read."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = list(files)
        self.fs, self.errors, self.places = Words(), Words(), Places()
        self._open = np.zeros(0, OPERATION)

    def batches(self) -> Iterator[Batch]:
        for file in self._files:
            history = pq.ParquetFile(file, read_dictionary=["type", "f", "topic", "error"])
            for batch in history.iter_batches(batch_size=32_768, columns=[*_NARROW, *_RECORDS]):
                yield self._batch(batch)

    def unfinished(self) -> Table:
        """The operations that were never completed. To be asked when all is read."""
        return self._open

    def _batch(self, batch: pa.RecordBatch) -> Batch:
        rows, topics = self._rows(batch)
        asked = rows["process"] >= 0
        chosen, rows = np.flatnonzero(asked), rows[asked]
        rows, ended = self._paired(rows)
        kept = chosen[ended]
        operations = rows[ended]
        owner, place, offset, value = self._records(batch.column("records"), topics, kept)
        _describe(operations, owner, place, offset, value)
        return Batch(
            operations,
            owner,
            place,
            offset,
            value,
            _ints(batch.column("high_watermark"))[kept],
            batch.column("extra").take(pa.array(kept)),
        )

    def _rows(self, batch: pa.RecordBatch) -> tuple[Table, Ints]:
        """Every row as it stands, and the number of its topic."""
        rows = np.zeros(batch.num_rows, OPERATION)
        for name, column in (("index", "index"), ("end", "time_ns"), ("process", "process")):
            rows[name] = _ints(batch.column(column))
        rows["f"] = self.fs.codes(batch.column("f")).astype(np.uint8)
        types = Words()
        codes = types.codes(batch.column("type"))
        rows["outcome"] = np.array([_TYPES.get(word, INFO) for word in types.listed()] or [0], np.uint8)[
            codes
        ]
        rows["error"] = self.errors.codes(batch.column("error"))
        topics = self.places.topics.codes(batch.column("topic"))
        rows["place"] = self.places.codes(topics, _ints(batch.column("partition")))
        took = _ints(batch.column("latency_ns"), 0)
        rows["begin"] = rows["end"] - np.maximum(took, 0)
        rows["begun"] = -1
        rows["value"] = _ints(batch.column("value"), NO_VALUE)
        rows["offset"] = rows["last"] = -1
        return rows, topics

    def _paired(self, rows: Table) -> tuple[Table, Ints]:
        """The rows with their invocations, and which of them end an operation; what is open is kept."""
        unasked = [self.fs.number(word) for word in _UNASKED]
        both = np.concatenate([self._open, rows])
        paired = np.flatnonzero(~np.isin(both["f"], unasked))
        order = paired[np.argsort(both["process"][paired], kind="stable")]
        process, invoked = both["process"][order], both["outcome"][order] == OPEN
        follows = np.r_[False, process[1:] == process[:-1]]
        answers = np.flatnonzero(follows & ~invoked & np.r_[False, invoked[:-1]])
        own, before = order[answers], order[answers - 1]
        both["begin"][own] = both["begin"][before]
        both["begun"][own] = both["index"][before]
        waiting = np.ones(len(both), np.bool_)
        waiting[before] = False
        still = both[waiting & (both["outcome"] == OPEN)]
        still["end"] = -1
        still["begun"] = still["index"]
        old = len(self._open)
        self._open = still
        rows = both[old:]
        # an invocation that waits has its time in "begin"; what stands in "end" is that of its own row
        return rows, np.flatnonzero(rows["outcome"] != OPEN)

    def _records(self, column: Any, topics: Ints, kept: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """(row of its operation, place, offset, value) of each record of these rows."""
        own = column.take(pa.array(kept))
        flat = pc.list_flatten(own)
        if not len(flat):
            return tuple(np.zeros(0, np.int64) for _ in range(4))  # type: ignore[return-value]
        owner = _ints(pc.list_parent_indices(own))
        partition, offset, value = (
            _ints(flat.field(flat.type.get_field_index(name))) for name in ("partition", "offset", "value")
        )
        place = self.places.codes(topics[kept][owner], partition)
        whole = (offset < OFFSETS) & (place >= 0)
        return owner[whole], place[whole], offset[whole], value[whole]


def _describe(operations: Table, owner: Ints, place: Ints, offset: Ints, value: Ints) -> None:
    """Write down where the records of each operation lie, in its first partition, and the first value."""
    if not len(owner):
        return
    starts = np.flatnonzero(np.r_[True, np.diff(owner) != 0])
    of = owner[starts]
    operations["count"][of] = np.diff(np.r_[starts, len(owner)])
    operations["value"][of] = value[starts]
    operations["offset"][of] = np.maximum(offset[starts], -1)
    operations["place"][of] = place[starts]
    ends = np.r_[starts[1:], len(owner)] - 1
    one_place = place[ends] == place[starts]
    operations["last"][of] = np.where(one_place, np.maximum(offset[ends], -1), operations["offset"][of])
