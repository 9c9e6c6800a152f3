"""Findings side by side are one part of an incident; there are few parts, however many findings there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.checkers.anomalies.registry import anomalies
from wrackline.checkers.findings import FINDINGS, Meaning
from wrackline.checkers.inputs.arrays import Ints
from wrackline.checkers.inputs.cited import Cited
from wrackline.checkers.inputs.runs import Place
from wrackline.checkers.verdict.incidents.parts import MOST_PARTS, Part, cited_indexes, parts_of


def parts(folder: Path, offsets: Sequence[int | None], batch: int, change_ns: int = 0) -> list[Part]:
    """Of lost writes at these offsets, each citing an event of its own, a second after the one before."""
    number = len(offsets)
    columns = {
        "test_id": ["x"] * number,
        "anomaly": ["lost-write"] * number,
        "topic": ["log"] * number,
        "partition": [0] * number,
        "offset": offsets,
        "value": list(range(number)),
        "operations": [[one] for one in range(number)],
        "where": [None] * number,
        "explanation": [f"finding {one}" for one in range(number)],
    }
    file = folder / "findings.parquet"
    pq.write_table(pa.table(columns, schema=FINDINGS), file, row_group_size=batch)
    indexes = cited_indexes(file)
    assert indexes.tolist() == list(range(number))
    no = np.zeros(number, dtype=bool)

    def changes(_: Place, times: Ints) -> Ints:
        return (times >= change_ns).astype(np.int64) if change_ns else np.zeros_like(times)

    cited = Cited(indexes, (indexes + 1) * 1_000_000_000, no, no)
    return parts_of(file, cited, anomalies(), lambda *_: Meaning.VIOLATION, changes)


def test_a_hole_parts_them(tmp_path: Path) -> None:
    found = parts(tmp_path, [3, 4, 5, 9, None, None], 100)
    assert [(one.first, one.last, one.count) for one in found] == [
        (3, 5, 3),
        (9, 9, 1),
        (None, None, 1),
        (None, None, 1),
    ]
    assert [one.sentence for one in found] == ["finding 0", "finding 3", "finding 4", "finding 5"]
    assert (found[0].first_ns, found[0].last_ns) == (1_000_000_000, 3_000_000_000)


def test_a_change_of_leader_parts_them(tmp_path: Path) -> None:
    found = parts(tmp_path, [3, 4, 5, 6], 100, change_ns=3_000_000_000)
    assert [(one.first, one.last) for one in found] == [(3, 4), (5, 6)]


def test_too_many_holes_part_nothing_from_there_on(tmp_path: Path) -> None:
    offsets = list(range(0, 6 * MOST_PARTS, 3))
    found = parts(tmp_path, offsets, 500)
    assert len(found) <= MOST_PARTS
    assert sum(one.count for one in found) == len(offsets)
    assert found[-1].last == offsets[-1]
