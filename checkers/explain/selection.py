"""The selection of findings that are shown: of each incident, anomaly and partition the first few by
offset; and where those are too many, each anomaly has its turn.

Rows of ``findings.parquet`` are counted and sampled batch by batch; memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from wrackline.checkers.explain.model import PER_PARTITION, Finding, Group

PER_GROUP_DETAILED: Final = 5
_CITED: Final = 8
"""Operations of a finding (wrackline.checkers.findings)."""
_COLUMNS: Final = ("anomaly", "topic", "partition", "offset", "value", "operations", "where", "explanation")


class IncidentRows:
    """The incident that each row of the findings is evidence of."""

    def __init__(self, rows: Iterable[tuple[str, int, int]] = ()) -> None:
        """``rows``: (id of an incident, first row, last row); no row is in two of them."""
        ranked = sorted(rows, key=lambda one: one[1])
        self._ids = pa.array([one for one, _, _ in ranked], pa.string())
        self._first, self._last = (np.array([one[at] for one in ranked], dtype=np.int64) for at in (1, 2))

    def of(self, first: int, count: int) -> pa.Array:
        """The ids for ``count`` rows from row ``first`` on; null where a row is in none."""
        rows = np.arange(first, first + count)
        at = np.searchsorted(self._first, rows, side="right") - 1
        inside = at >= 0
        inside[inside] = rows[inside] <= self._last[at[inside]]
        return self._ids.take(pa.array(at, mask=~inside))


NO_INCIDENTS: Final = IncidentRows()


@dataclass(frozen=True, slots=True)
class Sample:
    """The first few findings of a group, by offset."""

    group: Group
    """Without explanations."""
    findings: tuple[Finding, ...]


def sampled(path: Path, incidents: IncidentRows = NO_INCIDENTS) -> list[Sample]:
    """All groups of a file of findings, by anomaly, topic, partition and incident. Raises
    pyarrow.ArrowException, OSError and KeyError for a broken file."""
    sampler = _Sampler()
    number = 0
    for batch in _batches(path, _COLUMNS):
        if batch.num_rows:
            ids = incidents.of(number, batch.num_rows)
            sampler.take(pa.Table.from_batches([batch]).append_column("incident", ids))
        number += batch.num_rows
    return [
        Sample(Group(*key[:3], count, *sampler.bounds[key], incident=key[3]), tuple(sampler.kept[key]))
        for key, count in sorted(sampler.counts.items(), key=lambda item: _group_order(item[0]))
    ]


def fair(samples: Sequence[Sample], limit: int) -> list[Sample]:
    """Returns at most ``limit`` groups, in their order; every anomaly has as many as any other that has
    them."""
    turns: dict[str, int] = {}
    ranked = []
    for at, sample in enumerate(samples):
        anomaly = sample.group.anomaly
        turns[anomaly] = turn = turns.get(anomaly, 0) + 1
        ranked.append((turn, at))
    return [samples[at] for _, at in sorted(sorted(ranked)[:limit], key=lambda item: item[1])]


def detailed(samples: Sequence[Sample], limit: int) -> list[Finding]:
    """Returns at most ``limit`` findings, in their order: of each group the first few that rest on
    different operations. The first of every group is taken before the second of any, and the anomalies
    take turns."""
    turns: dict[str, int] = {}
    ranked: list[tuple[int, int, int, Finding]] = []
    for sample in samples:
        anomaly = sample.group.anomaly
        turns[anomaly] = turn = turns.get(anomaly, 0) + 1
        first = {finding.operations: finding for finding in reversed(sample.findings)}
        distinct = [finding for finding in sample.findings if first[finding.operations] is finding]
        ranked += [
            (rank, turn, len(ranked) + rank, finding)
            for rank, finding in enumerate(distinct[:PER_GROUP_DETAILED])
        ]
    chosen = sorted(ranked, key=lambda item: item[:3])[:limit]
    return [finding for *_, finding in sorted(chosen, key=lambda item: item[2])]


def repeated(samples: Sequence[Sample]) -> Iterator[tuple[Finding, Finding]]:
    """(finding, the first one of its group that rests on the same operations)."""
    for sample in samples:
        first: dict[tuple[int, ...], Finding] = {}
        for finding in sample.findings:
            earlier = first.setdefault(finding.operations, finding)
            if earlier is not finding:
                yield finding, earlier


_Key = tuple[str, str | None, int | None, str | None]
_OF_KEY: Final = ("anomaly", "topic", "partition", "incident")


class _Sampler:
    """Counts findings by anomaly, partition and incident and keeps the first few by offset."""

    def __init__(self) -> None:
        self.counts: dict[_Key, int] = {}
        self.bounds: dict[_Key, tuple[int | None, int | None]] = {}
        self.kept: dict[_Key, list[Finding]] = {}

    def take(self, table: pa.Table) -> None:
        groups = table.group_by(list(_OF_KEY)).aggregate(
            [("anomaly", "count"), ("offset", "min"), ("offset", "max")]
        )
        for group in groups.to_pylist():
            key: _Key = (group["anomaly"], group["topic"], group["partition"], group["incident"])
            self.counts[key] = self.counts.get(key, 0) + group["anomaly_count"]
            low, high = self.bounds.get(key, (None, None))
            ends = [n for n in (low, high, group["offset_min"], group["offset_max"]) if n is not None]
            self.bounds[key] = (min(ends), max(ends)) if ends else (None, None)
            self._keep(key, table.filter(_is_group(key)))

    def _keep(self, key: _Key, members: pa.Table) -> None:
        """Merge this batch's first few into those kept so far."""
        if members.num_rows > PER_PARTITION:
            members = members.take(pc.sort_indices(members["offset"])[:PER_PARTITION])  # nulls come last
        fresh = [_finding(row) for row in members.to_pylist()]
        self.kept[key] = sorted(self.kept.get(key, []) + fresh, key=_by_offset)[:PER_PARTITION]


def _is_group(key: _Key) -> pc.Expression:
    expression = pc.field("anomaly") == key[0]
    for name, expected in zip(_OF_KEY[1:], key[1:], strict=True):
        expression &= pc.field(name).is_null() if expected is None else pc.field(name) == expected
    return expression


def _by_offset(finding: Finding) -> tuple[float, tuple[int, ...]]:
    return (float("inf") if finding.offset is None else finding.offset, finding.operations)


def _finding(row: Mapping[str, Any]) -> Finding:
    return Finding(
        anomaly=row["anomaly"],
        topic=row["topic"],
        partition=row["partition"],
        offset=row["offset"],
        value=row["value"],
        operations=tuple(row["operations"] or ())[:_CITED],
        where=row["where"],
        sentence=row["explanation"] or "",
    )


def _batches(path: Path, columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
    dataset = ds.dataset(str(path), format="parquet")
    yield from dataset.to_batches(columns=list(columns), batch_readahead=2, fragment_readahead=1)


def _group_order(key: _Key) -> tuple[str, str, int, str]:
    return (key[0], key[1] or "", -1 if key[2] is None else key[2], key[3] or "")
