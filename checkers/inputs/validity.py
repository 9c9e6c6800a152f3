"""The check whether a file is a history at all: its columns, and what no event may say. Nothing here says
what is wrong with a system.

What the footer tells is looked at before anything else is read, what the events tell while they are read:
either way it is one line about one run, and the others are judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.checkers.inputs.table import NONE, Bools, Ints
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FOREIGN
from wrackline.history.store.schema import SCHEMA
from wrackline.history.store.tally import Tally, difference

PARTITIONS = 1 << 20
"""A partition's number is below this (wrackline.checkers.engine.context)."""
_NEVER_NULL = tuple(field.name for field in SCHEMA if not field.nullable)


class Senseless(ValueError):
    """A history contradicts itself. One line: which event, what is wrong with it."""


class Incomplete(Senseless):
    """A history lacks events: what would be found in the rest is no evidence. One line: what is missing."""


def check_footer(file: pq.ParquetFile, test_id: str) -> None:
    """Columns and their types; and by the statistics of row groups: no nulls, no times before the start of
    the run, no other test, every index from 0 on. Raises Senseless."""
    error = next(_columns(file.schema_arrow), None)
    if error is not None:
        raise Senseless(f"not a history: {error}")
    at = column_numbers(file)
    for group in range(file.metadata.num_row_groups):
        row_group = file.metadata.row_group(group)
        for name in _NEVER_NULL:
            said = row_group.column(at[name]).statistics
            if said is None:
                continue
            if said.null_count:
                raise Senseless(f"{name} is missing in {said.null_count} events")
            if name == "time_ns" and said.has_min_max and said.min < 0:
                raise Senseless(f"an event is {-said.min} ns before the start of the run (time_ns)")
            if name == "test_id" and said.has_min_max and (said.min, said.max) != (test_id, test_id):
                other = said.max if said.min == test_id else said.min
                raise Senseless(f"events of test {other} in the history of {test_id}")
    _check_whole(file)


def _check_whole(file: pq.ParquetFile) -> None:
    """Indexes are 0 to n-1: by the statistics of row groups, so that no event is read of a file that is
    whole. Raises Incomplete, and Senseless for indexes that do not ascend."""
    expected = 0
    for group in range(file.metadata.num_row_groups):
        row_group = file.metadata.row_group(group)
        rows = row_group.num_rows
        said = row_group.column(column_numbers(file)["index"]).statistics
        known = said is not None and said.has_min_max
        if rows and not (known and (said.min, said.max) == (expected, expected + rows - 1)):
            _check_indexes(file.read_row_group(group, columns=["index"], use_threads=False), expected)
        expected += rows


def column_numbers(file: pq.ParquetFile) -> dict[str, int]:
    """The path of each column of a file -> its number."""
    return {file.metadata.schema.column(n).path: n for n in range(file.metadata.num_columns)}


def _check_indexes(table: pa.Table, expected: int) -> None:
    index: Ints = table["index"].to_numpy()
    check_order(index, expected - 1 if expected else NONE)
    error = np.flatnonzero(index != np.arange(expected, expected + len(index)))
    if len(error):
        at, before = int(index[error[0]]), expected + int(error[0])
        gone = f"event {before}" if at == before + 1 else f"events {before} to {at - 1}"
        raise Incomplete(f"{gone} missing: indexes go from 0 up by one")


def check_tally(said: Tally | None, there: Tally) -> None:
    """Checks that there are as many events of each kind as were written. ``said`` by the file; None: an
    earlier version wrote it. Raises Incomplete."""
    if said is not None and (error := difference(said, there)):
        raise Incomplete(f"it has {error} that were written")


def _columns(schema: pa.Schema) -> Iterator[str]:
    for field in SCHEMA:
        there = schema.field(field.name).type
        if pa.types.is_list(field.type) and pa.types.is_list(there) and pa.types.is_struct(there.value_type):
            names = {one.name: one.type for one in there.value_type}
            if all(names.get(one.name) == one.type for one in field.type.value_type):
                continue
        elif there == field.type:
            continue
        yield f"column {field.name} is {there}, not {field.type}"


def check_order(index: Ints, last: int) -> int:
    """Events are in the order of their indexes, none twice; ``last``: that of the event before these. Gives
    the last of these. Raises Senseless."""
    if not len(index):
        return last
    steps = np.diff(index, prepend=last)
    if last == NONE:
        steps[0] = 1
    if (steps <= 0).any():
        at = int(np.flatnonzero(steps <= 0)[0])
        before = int(index[at - 1]) if at else last
        raise Senseless(
            f"event {int(index[at])} follows event {before}: indexes must ascend, and none comes twice"
        )
    return int(index[-1])


def check_numbers(partition: Ints, record_partition: Ints, record_offset: Ints, record_value: Ints) -> None:
    """``partition`` of events may be NONE. Raises Senseless."""
    for name, column, least, most in (
        ("partition", np.where(partition == NONE, 0, partition), 0, PARTITIONS - 1),
        ("partition", record_partition, 0, PARTITIONS - 1),
        ("offset", record_offset, ACKED_WITHOUT_OFFSET, None),
        ("value", record_value, FOREIGN, None),
    ):
        if len(column) and (column.min() < least or (most is not None and column.max() > most)):
            bad = int(column.min() if column.min() < least else column.max())
            raise Senseless("a record is without one" if bad == NONE else f"{name} {bad} makes no sense")


def check_answers(index: Ints, process: Ints, unasked: Bools) -> None:
    """``unasked``: completions of what their process never invoked. Raises Senseless."""
    if unasked.any():
        at = int(np.flatnonzero(unasked)[0])
        raise Senseless(f"event {int(index[at])} completes what process {int(process[at])} never invoked")


def check_asked(index: Ints, process: Ints, unanswered: Ints) -> None:
    """``unanswered``: places of invocations that are followed by another one of their process. Raises
    Incomplete: a process does one thing at a time, so there was an answer."""
    if len(unanswered):
        at = int(unanswered[0])
        raise Incomplete(
            f"process {int(process[at])} invoked event {int(index[at + 1])} before event {int(index[at])} "
            "had been completed: its completion is missing"
        )


def check_types(seen: Iterable[str], known: Collection[str]) -> None:
    """Raises Senseless."""
    for name in seen:
        if name not in known:
            raise Senseless(f"type {name} is none of {', '.join(known)}")
