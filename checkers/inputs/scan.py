"""The first look at a history: what its runner, nemesis and final reads wrote down, and which operations are
open where it is cut into splits. It reads three narrow columns of most row groups and the rest of few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.checkers.inputs.row_groups import (
    INFO,
    INVOKE,
    OK,
    TYPES,
    Names,
    Split,
    ints,
    of_clients,
    open_file,
)
from wrackline.checkers.inputs.table import NONE, Bools, Ints
from wrackline.history.model import ACKED_WITHOUT_OFFSET
from wrackline.history.store.tally import Tally, count

_ANSWER_COLUMNS = (
    "index",
    "time_ns",
    "topic",
    "partition",
    "records.list.element.partition",
    "records.list.element.offset",
)
LateCompletion = tuple[str, int, int, int]
"""(topic, partition, index, time_ns) of the last answer that names the partition."""


class LateCompletions:
    """The late completions of one split: ``take`` row group by row group, then ``close``. Final reads that
    began in an earlier split are nothing it can know: ``unplaced`` is the (index, time_ns) of the last
    answer before the split's own first final read."""

    def __init__(self) -> None:
        self.unplaced: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None
        """(row group, row) of that answer."""
        self._found: dict[tuple[str, int], tuple[int, int]] = {}
        self._begun = False

    @property
    def found(self) -> list[LateCompletion]:
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
            table = file.read_row_group(group, columns=list(_ANSWER_COLUMNS), use_threads=False)
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
    splits: Iterable[tuple[list[LateCompletion], tuple[int, int] | None, bool]],
    began: dict[tuple[str, int], int],
) -> dict[tuple[str, int], int]:
    """Partition -> when (time_ns) somebody was told of it last, if that was after its final read had begun.

    ``splits``: of each split in order what came late, what has no place, and whether an earlier one has a
    final read; ``began``: index at which each final read began."""
    result: dict[tuple[str, int], tuple[int, int]] = {}
    for placed, unplaced, begun in splits:
        late = [((topic, partition), (index, ns)) for topic, partition, index, ns in placed]
        if begun and unplaced is not None:
            late += [(place, (unplaced[0], unplaced[1])) for place in began]
        for place, at in late:
            if place in began and at[0] > began[place]:
                result[place] = max(result.get(place, at), at)
    return {place: ns for place, (_, ns) in result.items()}


_COLUMNS = (
    *(
        "test_id",
        "index",
        "time_ns",
        "process",
        "type",
        "f",
        "topic",
        "partition",
        "offset",
        "leader_epoch",
        "high_watermark",
    ),
    *("node", "error", "extra"),
)
_WITH_RECORDS = "records.list.element.partition"


@dataclass(slots=True)
class SplitSummary:
    """The content of one split. ``open_at_start``: [process, index, ns, kind, silent] of completions whose
    invocation is in an earlier split; ``open_at_end``: [process, index, ns] of invocations that are not
    completed in this one."""

    run: int
    number: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    open_at_start: list[list[int]] = field(default_factory=list)
    open_at_end: list[list[int]] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    """Kinds of operations (f) of clients."""
    late: list[LateCompletion] = field(default_factory=list)
    deletions: list[tuple[str, int, int]] = field(default_factory=list)
    """(topic, partition, offset): how far ``delete`` asked to delete, by row group."""
    unplaced: tuple[int, int] | None = None
    """See wrackline.checkers.inputs.scan."""
    events: int = 0
    tally: Tally = field(default_factory=dict)
    end_ns: int = 0
    problem: str = ""

    def to_json(self) -> bytes:
        return orjson.dumps(self)

    @classmethod
    def from_json(cls, text: bytes) -> SplitSummary:
        return cls(**orjson.loads(text))


def scan_split(split: Split) -> SplitSummary:
    """Raises OSError (unreadable, or a page's checksum is wrong) or ValueError."""
    result = SplitSummary(split.run, split.number)
    kinds, topics, fs = Names(), Names(), Names()
    firsts: dict[int, tuple[int, int, int]] = {}
    lasts: dict[int, tuple[int, int, int]] = {}
    used: set[int] = set()
    late_completions = LateCompletions()
    with open_file(split.path) as file:
        for group in range(split.first, split.last):
            table = file.read_row_group(group, columns=["process", "type", "f", "topic"], use_threads=False)
            process = ints(table["process"])
            numbers = kinds.codes(table["type"])
            kind = np.array([TYPES.get(name, 3) for name in kinds.names], dtype=np.int64)[numbers]
            f = fs.codes(table["f"])
            count(result.tally, fs.names, kinds.names, f, numbers)
            topics.codes(table["topic"])
            client = of_clients(process, f, fs)
            used |= set(np.unique(f[process >= 0]).tolist())
            _edges(process, kind, np.flatnonzero(client), group, firsts, lasts)
            drain = fs.names.index("drain") if "drain" in fs.names else -1
            late_completions.take(file, group, kind, client & (f != drain), f == drain)
            crash = fs.names.index("crash") if "crash" in fs.names else -1
            expected = np.flatnonzero((process < 0) | (f == drain) | (f == crash))
            if len(expected):
                result.rows += _small(file, group, expected)
            delete = fs.names.index("delete") if "delete" in fs.names else -1
            if len(deletes := np.flatnonzero((f == delete) & (kind == INVOKE))):
                result.deletions += _largest(file, group, deletes)
            result.events += len(process)
        _open_ends(file, firsts, lasts, result)
        late_completions.close(file)
        if split.last > split.first:
            times = file.read_row_group(split.last - 1, columns=["time_ns"], use_threads=False)["time_ns"]
            result.end_ns = pc.max(times).as_py() or 0
    result.late, result.unplaced = late_completions.found, late_completions.unplaced
    result.topics = [name for name in topics.names if name is not None]
    result.kinds = sorted(fs.names[number] for number in used)
    return result


def _edges(
    process: Ints,
    kind: Ints,
    clients: Ints,
    group: int,
    firsts: dict[int, tuple[int, int, int]],
    lasts: dict[int, tuple[int, int, int]],
) -> None:
    """Notes each process's first and last event: (kind, row group, row)."""
    of = process[clients]
    names, at = np.unique(of, return_index=True)
    _, back = np.unique(of[::-1], return_index=True)
    first, last = clients[at], clients[len(of) - 1 - back]
    for name, a, b in zip(names.tolist(), first.tolist(), last.tolist(), strict=True):
        firsts.setdefault(name, (int(kind[a]), group, a))
        lasts[name] = (int(kind[b]), group, b)


def _open_ends(
    file: pq.ParquetFile,
    firsts: Mapping[int, tuple[int, int, int]],
    lasts: Mapping[int, tuple[int, int, int]],
    found: SplitSummary,
) -> None:
    open_at_start = [
        (group, row, process, kind) for process, (kind, group, row) in firsts.items() if kind != INVOKE
    ]
    open_at_end = [(group, row, process) for process, (kind, group, row) in lasts.items() if kind == INVOKE]
    groups = {one[0] for one in (*open_at_start, *open_at_end)}
    for group in sorted(groups):
        table = file.read_row_group(
            group, columns=["index", "time_ns", "f", _WITH_RECORDS], use_threads=False
        )
        index, ns = ints(table["index"]), ints(table["time_ns"])
        silent = pc.and_(
            pc.equal(table["f"].cast(pa.string()), "send"),
            pc.equal(pc.fill_null(pc.list_value_length(table["records"]), 0), 0),
        )
        for at, row, process, kind in open_at_start:
            if at == group:
                found.open_at_start.append(
                    [process, int(index[row]), int(ns[row]), kind, int(silent[row].as_py())]
                )
        found.open_at_end += [
            [process, int(index[row]), int(ns[row])] for at, row, process in open_at_end if at == group
        ]


def _small(file: pq.ParquetFile, group: int, rows: Ints) -> list[dict[str, Any]]:
    table = file.read_row_group(group, columns=list(_COLUMNS), use_threads=False)
    return list(_parsed(table.take(pa.array(rows))))


def _largest(file: pq.ParquetFile, group: int, rows: Ints) -> list[tuple[str, int, int]]:
    """The largest offset of each partition that these rows name."""
    table = file.read_row_group(group, columns=["topic", "partition", "offset"], use_threads=False)
    largest: dict[tuple[str, int], int] = {}
    for row in table.take(pa.array(rows)).to_pylist():
        if row["topic"] is not None and row["partition"] is not None and row["offset"] is not None:
            place = (row["topic"], row["partition"])
            largest[place] = max(largest.get(place, 0), row["offset"])
    return [(*place, offset) for place, offset in largest.items()]


def _parsed(table: pa.Table) -> Iterator[dict[str, Any]]:
    for row in table.to_pylist():
        row["extra"] = orjson.loads(row["extra"]) if row["extra"] else {}
        yield row


Partners = dict[str, list[list[int]]]
"""``invoked``: [process, index, ns] of the invocation that the first event of a process in this split
completes; ``completed``: [process, index, ns, kind, silent] of what completes an invocation left open at its
end."""


def partners(scans: list[SplitSummary]) -> dict[int, Partners]:
    """Returns what each split of one run must know of operations that begin or end in another."""
    result: dict[int, Partners] = {one.number: {"invoked": [], "completed": []} for one in scans}
    open_now: dict[int, tuple[int, list[int]]] = {}
    for one in sorted(scans, key=lambda scan_split: scan_split.number):
        for head in one.open_at_start:
            invoked = open_now.pop(head[0], None)
            if invoked is not None:
                split, tail = invoked
                result[one.number]["invoked"].append(tail)
                result[split]["completed"].append(head)
        open_now |= {tail[0]: (one.number, tail) for tail in one.open_at_end}
    return result
