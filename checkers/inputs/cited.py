"""The events that findings cite, as the history tells them: when they were, and whose. Of a history of any
size only narrow columns are read, and only the row groups that hold one of these events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.checkers.inputs.row_groups import Names, ints
from wrackline.checkers.inputs.runs import Place
from wrackline.checkers.inputs.table import NONE, Bools, Ints
from wrackline.checkers.inputs.validity import column_numbers
from wrackline.history.model import POLLS, REPLICA
from wrackline.history.store.addresses import parquet

MOST_ROWS: Final = 64
"""Rows whose records are read: a final read's row has thousands of records."""
LATE_NS: Final = 1_000_000_000
"""Clients wait longer than this for an answer before they send again, unless a specification says less."""
_COLUMNS: Final = ["index", "time_ns", "process", "f", "type", "latency_ns"]
_RECORDS: Final = "records"
Spot = tuple[int, int, int]
"""(index of an event, partition, offset)"""


@dataclass(frozen=True, slots=True)
class Cited:
    """Cited events in the order of their indexes; columns of equal length."""

    index: Ints
    ns: Ints
    is_final: Bools
    """The event is of a final read or of a replica's own log: it says what was there at the end."""
    is_poll: Bools
    is_unsure: Bools
    """The event is a send's completion, and its outcome is unknown, or it came so late (``LATE_NS``) that
    the client may have sent again."""
    process: Ints

    def rows(self, indexes: Ints) -> Ints:
        """The row of each event; NONE for one that the history does not hold."""
        if not len(self.index):
            return np.full(len(indexes), NONE, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.index, indexes), len(self.index) - 1)
        return np.where(self.index[at] == indexes, at, NONE)


def read_cited(files: Iterable[str], indexes: Ints) -> Cited:
    """``indexes``: in order, each once. Raises OSError or ValueError."""
    result: list[tuple[Ints, Ints, Bools, Bools, Bools, Ints]] = []
    for table in _of_events(files, indexes, _COLUMNS):
        names, types = Names(), Names()
        f, kind = names.codes(table["f"]), types.codes(table["type"])
        process = ints(table["process"])
        final = (f == _code(names, "drain")) | (process == REPLICA)
        late = (kind == _code(types, "info")) | (ints(table["latency_ns"]) >= LATE_NS)
        unsure = (f == _code(names, "send")) & late
        poll = np.isin(f, [_code(names, name) for name in POLLS])
        result.append((ints(table["index"]), ints(table["time_ns"]), final, poll, unsure, process))
    if not result:
        nothing = np.zeros(0, dtype=np.int64)
        no = nothing.astype(bool)
        return Cited(nothing, nothing, no, no, no, nothing)
    columns = [np.concatenate(column) for column in zip(*result, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Cited(*(column[order] for column in columns))


def epochs_at(files: Iterable[str], spots: Sequence[Spot]) -> dict[Spot, int]:
    """The leader epochs of the records that events have at these offsets. What has none is left out, and so
    are all but the first ``MOST_ROWS`` events. Raises OSError or ValueError."""
    events = np.unique(np.array([event for event, _, _ in spots], dtype=np.int64))[:MOST_ROWS]
    result: dict[Spot, int] = {}
    for table in _of_events(files, events, ["index", _RECORDS]):
        for event, records in zip(table["index"].to_pylist(), table[_RECORDS], strict=True):
            result |= _epochs(event, records, spots)
    return result


def epochs_of_final_reads(files: Iterable[str]) -> dict[Place, list[int]]:
    """The leader epochs of the records that the final read of each partition returned, smallest first; those
    that the client does not tell are left out. Raises OSError or ValueError."""

    def of_drains(file: pq.ParquetFile, group: int) -> Bools:
        return np.asarray(pc.equal(_group(file, group, ["f"])["f"], "drain"))

    result: dict[Place, set[int]] = {}
    for table in _having(files, of_drains, ["topic", "partition", _RECORDS]):
        places = zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True)
        for (topic, partition), records in zip(places, table[_RECORDS], strict=True):
            if records.values is not None and topic is not None:
                epochs = np.unique(ints(pc.struct_field(records.values, "leader_epoch")))
                result.setdefault((topic, partition), set()).update(epochs[epochs >= 0].tolist())
    return {place: sorted(epochs) for place, epochs in result.items()}


def _epochs(event: int, records: pa.Scalar, spots: Sequence[Spot]) -> dict[Spot, int]:
    values = records.values
    if values is None or not len(values):
        return {}
    partition, offset, epoch = (
        ints(pc.struct_field(values, name)) for name in ("partition", "offset", "leader_epoch")
    )
    result = {}
    for one in {one for one in spots if one[0] == event}:
        at = np.flatnonzero((partition == one[1]) & (offset == one[2]))
        if len(at) and epoch[at[0]] >= 0:
            result[one] = int(epoch[at[0]])
    return result


def _code(names: Names, name: str) -> int:
    return names.names.index(name) if name in names.names else -2


def _of_events(files: Iterable[str], indexes: Ints, columns: list[str]) -> Iterator[pa.Table]:
    """The rows of events, by their indexes. Row groups without any of them are passed over, by the
    statistics of the file."""

    def of_indexes(file: pq.ParquetFile, group: int) -> Bools:
        said = file.metadata.row_group(group).column(column_numbers(file)["index"]).statistics
        if said is not None and said.has_min_max:
            first, last = (
                np.searchsorted(indexes, said.min),
                np.searchsorted(indexes, said.max, side="right"),
            )
            if first == last:
                return np.zeros(0, dtype=bool)
        return np.isin(ints(_group(file, group, ["index"])["index"]), indexes)

    return _having(files, of_indexes, columns)


def _having(
    files: Iterable[str], spots: Callable[[pq.ParquetFile, int], Bools], columns: list[str]
) -> Iterator[pa.Table]:
    """The rows of each row group that are wanted; where none is, the columns are not read."""
    for path in files:
        with parquet(path, read_dictionary=["f", "type"]) as file:
            for group in range(file.metadata.num_row_groups):
                rows = np.flatnonzero(spots(file, group))
                if len(rows):
                    yield _group(file, group, columns).take(rows)


def _group(file: pq.ParquetFile, group: int, columns: list[str]) -> pa.Table:
    return file.read_row_group(group, columns=columns, use_threads=False)
