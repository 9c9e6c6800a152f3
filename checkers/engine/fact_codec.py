"""Facts in few bytes: how they travel from one task to the next.

A row of a shuffle is some hundred to some hundred thousand facts of one kind about one place of a log, as one
binary value (``Packed``). The executor sorts and moves them; what is in them only numpy looks at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from wrackline.checkers.engine.facts import KIND_OF, Kind
from wrackline.checkers.inputs.table import Ints, T, Table, pack, plain, unpack

VALUES, AGAIN = -(1 << 60), 1 - (1 << 60)
"""Owners of what is looked at by value: found in the first round, and in the second."""
SENDERS = -(1 << 59)
"""Owners from here down: of what each process sent (wrackline.checkers.engine.logs.unacknowledged)."""
AS_A_WHOLE = -1
"""The part of what concerns a log as a whole."""

SCHEMA = pa.schema(
    [
        ("owner", pa.int64()),
        ("part", pa.int64()),
        ("kind", pa.int32()),
        ("size", pa.int64()),
        ("data", pa.binary()),
    ]
)
"""``owner``: the log that the rows are of; for what is of a run ``owner_of_run``, for what is looked at by
value VALUES. ``part``: the range of the log, the interval of an object's time, or the bucket of values."""


class Packed(NamedTuple):
    """Facts of one kind about one place, as they travel."""

    owner: int
    part: int
    kind: Kind
    size: int
    """How many facts."""
    data: bytes

    def rows(self) -> Table[Ints]:
        """Decodes the facts. Raises TypeError for notes, which are none."""
        if self.kind.table is None:
            raise TypeError(f"{self.kind.name} has no rows")
        return unpack(self.data, self.size, self.kind.table)

    def rows_of(self, kind: type[T]) -> T:
        """Decodes the facts, which are known to be of this kind."""
        if self.kind.table is not plain(kind):
            raise TypeError(f"rows of {self.kind.name} are no {kind.__name__}")
        return unpack(self.data, self.size, kind)

    def note(self) -> Any:
        """Decodes the JSON of a note."""
        return orjson.loads(self.data)


class Writer:
    """Gathers facts and gives them as Arrow batches of a bounded size."""

    def __init__(self, limit_bytes: int = 4 << 20) -> None:
        self._limit = limit_bytes
        self._rows: list[Packed] = []
        self._bytes = 0

    def put(self, packed: Packed) -> None:
        self._rows.append(packed)
        self._bytes += len(packed.data) + 64

    def note(self, owner: int, part: int, said: Mapping[str, Any]) -> None:
        """Counts and problems, as JSON."""
        self.put(Packed(owner, part, Kind.NOTE, 1, orjson.dumps(said)))

    def rows(self, owner: int, part: int, rows: Table[Ints]) -> None:
        """Writes rows that all belong to one place."""
        if len(rows):
            self.put(Packed(owner, part, KIND_OF[type(rows)], len(rows), pack(rows.columns())))

    def spread(self, owner: Ints | int, part: Ints | int, rows: Table[Ints]) -> None:
        """Writes rows that belong to the places (owner, part); within one place their order stays."""
        size = len(rows)
        if not size:
            return
        owner, part = np.broadcast_to(owner, size), np.broadcast_to(part, size)
        order = np.lexsort((part, owner))
        owner, part = owner[order], part[order]
        new = np.flatnonzero(np.diff(owner).astype(bool) | np.diff(part).astype(bool)) + 1
        bounds = [0, *new.tolist(), size]
        if len(bounds) == 2:
            self.rows(int(owner[0]), int(part[0]), rows)
            return
        kind, columns = KIND_OF[type(rows)], rows.take(order).columns()
        for lo, hi in itertools.pairwise(bounds):
            data = pack([column[lo:hi] for column in columns])
            self.put(Packed(int(owner[lo]), int(part[lo]), kind, hi - lo, data))

    def batches(self, *, everything: bool = False) -> Iterator[pa.RecordBatch]:
        """Yields what there is, once it is enough for a batch, or as ``everything`` that will come."""
        if self._rows and (everything or self._bytes >= self._limit):
            for rows in _portions(self._rows, self._limit):
                columns = list(zip(*rows, strict=True))
                yield pa.RecordBatch.from_arrays(
                    [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
                    schema=SCHEMA,
                )
            self._rows, self._bytes = [], 0


def _portions(rows: Sequence[Packed], limit: int) -> Iterator[list[Packed]]:
    portion: list[Packed] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += len(row.data)
        if size >= limit:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def read(batches: Iterable[pa.RecordBatch]) -> Iterator[Packed]:
    """Reads what a writer wrote, one batch at a time."""
    for batch in batches:
        owners, parts, kinds, sizes = (
            batch.column(at).to_numpy(zero_copy_only=False).tolist() for at in range(4)
        )
        data = batch.column(4)
        for at, (owner, part, kind, size) in enumerate(zip(owners, parts, kinds, sizes, strict=True)):
            yield Packed(owner, part, Kind(kind), size, data[at].as_buffer().to_pybytes())
