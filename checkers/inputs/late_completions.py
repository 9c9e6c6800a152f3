"""What clients were told of a partition after its final read had begun. Such a read is no evidence: a record
that was acknowledged behind its end is not lost, it came too late to be read.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.checkers.inputs.arrays import NONE, Bools, Ints
from wrackline.checkers.inputs.row_groups import INFO, INVOKE, OK, Names, ints
from wrackline.history.model import ACKED_WITHOUT_OFFSET

_COLUMNS = (
    "index",
    "time_ns",
    "topic",
    "partition",
    "records.list.element.partition",
    "records.list.element.offset",
)
Latecomer = tuple[str, int, int, int]
"""(topic, partition, index, time_ns) of the last answer that names the partition."""


class Latecomers:
    """Of one split, row group by row group, then ``close``. Final reads that began in an earlier split are
    nothing it can know: ``unplaced`` is the (index, time_ns) of the last answer before the split's own first
    final read."""

    def __init__(self) -> None:
        self.unplaced: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None
        """(row group, row) of that answer."""
        self._found: dict[tuple[str, int], tuple[int, int]] = {}
        self._begun = False

    @property
    def found(self) -> list[Latecomer]:
        return [(*place, *at) for place, at in sorted(self._found.items())]

    def take(self, file: pq.ParquetFile, group: int, kind: Ints, clients: Bools, drains: Bools) -> None:
        """``clients``: events of operations other than final reads; ``drains``: of final reads."""
        first = 0 if self._begun else len(kind)
        begins = drains & (kind == INVOKE)
        if not self._begun and begins.any():
            first, self._begun = int(np.argmax(begins)), True
        at = np.flatnonzero(clients & ((kind == OK) | (kind == INFO)))
        if len(before := at[at < first]):
            self._last = (group, int(before[-1]))
        if len(after := at[at >= first]):
            table = file.read_row_group(group, columns=list(_COLUMNS), use_threads=False)
            self._place(table.take(pa.array(after)))

    def close(self, file: pq.ParquetFile) -> None:
        if self._last is not None:
            group, row = self._last
            at = file.read_row_group(group, columns=["index", "time_ns"], use_threads=False).slice(row, 1)
            self.unplaced = (at["index"][0].as_py(), at["time_ns"][0].as_py())

    def _place(self, table: pa.Table) -> None:
        index, ns, partition = ints(table["index"]), ints(table["time_ns"]), ints(table["partition"])
        names = Names()
        topic = names.codes(table["topic"])
        records = table["records"].combine_chunks()
        of = ints(pc.list_parent_indices(records))
        named = pc.list_flatten(records)
        offset = ints(pc.struct_field(named, "offset"))
        # What is not acknowledged has no offset; reads have one always.
        some = (offset >= 0) | (offset == ACKED_WITHOUT_OFFSET)
        whole = np.flatnonzero(
            (partition != NONE) & (ints(pc.fill_null(pc.list_value_length(records), 0)) == 0)
        )
        rows = np.concatenate([of[some], whole])
        places = np.concatenate([ints(pc.struct_field(named, "partition"))[some], partition[whole]])
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            name = names.names[topic[row]] if topic[row] != NONE else None
            if name is not None:
                known = self._found.get((name, place), (NONE, NONE))
                self._found[name, place] = max(known, (int(index[row]), int(ns[row])))


def latest(
    splits: Iterable[tuple[list[Latecomer], tuple[int, int] | None, bool]], began: dict[tuple[str, int], int]
) -> dict[tuple[str, int], int]:
    """Partition -> when (time_ns) somebody was told of it last, if that was after its final read had begun.

    ``splits``: of each split in order what came late, what has no place, and whether an earlier one has a
    final read; ``began``: index at which each final read began."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for placed, unplaced, begun in splits:
        late = [((topic, partition), (index, ns)) for topic, partition, index, ns in placed]
        if begun and unplaced is not None:
            late += [(place, (unplaced[0], unplaced[1])) for place in began]
        for place, at in late:
            if place in began and at[0] > began[place]:
                found[place] = max(found.get(place, at), at)
    return {place: ns for place, (_, ns) in found.items()}
