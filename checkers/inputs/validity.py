"""Whether a file is a history at all: its columns, and what no event may say. Nothing here says what is wrong
with a system.

What the footer tells is looked at before anything else is read, what the events tell while they are read:
either way it is one line about one run, and the others are judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.checkers.inputs.arrays import NONE, Bools, Ints
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FOREIGN
from wrackline.history.schema import SCHEMA

PARTITIONS = 1 << 20
"""A partition's number is below this (wrackline.checkers.engine.context)."""
_NEVER_NULL = tuple(field.name for field in SCHEMA if not field.nullable)


class Senseless(ValueError):
    """A history contradicts itself. One line: which event, what is wrong with it."""


def check_footer(file: pq.ParquetFile, test_id: str) -> None:
    """Columns and their types; and by the statistics of row groups: no nulls, no times before the start of
    the run, no other test. Raises Senseless."""
    wrong = next(_columns(file.schema_arrow), None)
    if wrong is not None:
        raise Senseless(f"not a history: {wrong}")
    at = {file.metadata.schema.column(n).path: n for n in range(file.metadata.num_columns)}
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


def check_types(seen: Iterable[str], known: Collection[str]) -> None:
    """Raises Senseless."""
    for name in seen:
        if name not in known:
            raise Senseless(f"type {name} is none of {', '.join(known)}")
