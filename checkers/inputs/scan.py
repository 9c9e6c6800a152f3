"""The first look at a history: what its runner, nemesis and final reads wrote down, and which operations are
open where it is cut into splits. It reads three narrow columns of most row groups and the rest of few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.checkers.inputs.arrays import Ints
from wrackline.checkers.inputs.late_completions import Latecomer, Latecomers
from wrackline.checkers.inputs.operations import of_clients
from wrackline.checkers.inputs.row_groups import INVOKE, TYPES, Names, Split, ints, open_file
from wrackline.history.tally import Tally, count

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
class Survey:
    """What one split has to say. ``heads``: [process, index, ns, kind, silent] of completions whose
    invocation is in an earlier split; ``tails``: [process, index, ns] of invocations that are not completed
    in this one."""

    run: int
    number: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    heads: list[list[int]] = field(default_factory=list)
    tails: list[list[int]] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    """Kinds of operations (f) of clients."""
    late: list[Latecomer] = field(default_factory=list)
    unplaced: tuple[int, int] | None = None
    """See wrackline.checkers.inputs.late_completions."""
    events: int = 0
    tally: Tally = field(default_factory=dict)
    end_ns: int = 0
    problem: str = ""

    def to_json(self) -> bytes:
        return orjson.dumps(self)

    @classmethod
    def from_json(cls, text: bytes) -> Survey:
        return cls(**orjson.loads(text))


def survey(split: Split) -> Survey:
    """Raises OSError (unreadable, or a page's checksum is wrong) or ValueError."""
    found = Survey(split.run, split.number)
    kinds, topics, fs = Names(), Names(), Names()
    firsts: dict[int, tuple[int, int, int]] = {}
    lasts: dict[int, tuple[int, int, int]] = {}
    used: set[int] = set()
    latecomers = Latecomers()
    with open_file(split.path) as file:
        for group in range(split.first, split.last):
            table = file.read_row_group(group, columns=["process", "type", "f", "topic"], use_threads=False)
            process = ints(table["process"])
            numbers = kinds.codes(table["type"])
            kind = np.array([TYPES.get(name, 3) for name in kinds.names], dtype=np.int64)[numbers]
            f = fs.codes(table["f"])
            count(found.tally, fs.names, kinds.names, f, numbers)
            topics.codes(table["topic"])
            client = of_clients(process, f, fs)
            used |= set(np.unique(f[process >= 0]).tolist())
            _edges(process, kind, np.flatnonzero(client), group, firsts, lasts)
            drain = fs.names.index("drain") if "drain" in fs.names else -1
            latecomers.take(file, group, kind, client & (f != drain), f == drain)
            crash = fs.names.index("crash") if "crash" in fs.names else -1
            wanted = np.flatnonzero((process < 0) | (f == drain) | (f == crash))
            if len(wanted):
                found.rows += _small(file, group, wanted)
            found.events += len(process)
        _open_ends(file, firsts, lasts, found)
        latecomers.close(file)
        if split.last > split.first:
            times = file.read_row_group(split.last - 1, columns=["time_ns"], use_threads=False)["time_ns"]
            found.end_ns = pc.max(times).as_py() or 0
    found.late, found.unplaced = latecomers.found, latecomers.unplaced
    found.topics = [name for name in topics.names if name is not None]
    found.kinds = sorted(fs.names[number] for number in used)
    return found


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
    found: Survey,
) -> None:
    heads = [(group, row, process, kind) for process, (kind, group, row) in firsts.items() if kind != INVOKE]
    tails = [(group, row, process) for process, (kind, group, row) in lasts.items() if kind == INVOKE]
    groups = {one[0] for one in (*heads, *tails)}
    for group in sorted(groups):
        table = file.read_row_group(
            group, columns=["index", "time_ns", "f", _WITH_RECORDS], use_threads=False
        )
        index, ns = ints(table["index"]), ints(table["time_ns"])
        silent = pc.and_(
            pc.equal(table["f"].cast(pa.string()), "send"),
            pc.equal(pc.fill_null(pc.list_value_length(table["records"]), 0), 0),
        )
        for at, row, process, kind in heads:
            if at == group:
                found.heads.append([process, int(index[row]), int(ns[row]), kind, int(silent[row].as_py())])
        found.tails += [[process, int(index[row]), int(ns[row])] for at, row, process in tails if at == group]


def _small(file: pq.ParquetFile, group: int, rows: Ints) -> list[dict[str, Any]]:
    table = file.read_row_group(group, columns=list(_COLUMNS), use_threads=False)
    return list(_parsed(table.take(pa.array(rows))))


def _parsed(table: pa.Table) -> Iterator[dict[str, Any]]:
    for row in table.to_pylist():
        row["extra"] = orjson.loads(row["extra"]) if row["extra"] else {}
        yield row


Partners = dict[str, list[list[int]]]
"""``invoked``: [process, index, ns] of the invocation that the first event of a process in this split
completes; ``completed``: [process, index, ns, kind, silent] of what completes an invocation left open at its
end."""


def partners(surveys: list[Survey]) -> dict[int, Partners]:
    """What each split of one run must know of operations that begin or end in another."""
    found: dict[int, Partners] = {one.number: {"invoked": [], "completed": []} for one in surveys}
    open_now: dict[int, tuple[int, list[int]]] = {}
    for one in sorted(surveys, key=lambda survey: survey.number):
        for head in one.heads:
            invoked = open_now.pop(head[0], None)
            if invoked is not None:
                split, tail = invoked
                found[one.number]["invoked"].append(tail)
                found[split]["completed"].append(head)
        open_now |= {tail[0]: (one.number, tail) for tail in one.tails}
    return found
