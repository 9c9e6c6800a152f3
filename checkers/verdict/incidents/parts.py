"""Findings that lie side by side become *parts* of an incident: one anomaly, one partition, offsets without a
hole, last seen right under the same leader.

Findings are read batch by batch, in the order in which the judge has sorted them. So there are few parts,
however many findings there are; where there are too many nevertheless, holes no longer part them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints
from wrackline.checkers.inputs.cited import Cited
from wrackline.checkers.inputs.row_groups import ints
from wrackline.checkers.inputs.runs import Place
from wrackline.checkers.verdict.anomaly import Anomaly

MOST_PARTS: Final = 5_000
MOST_CITED: Final = 2_000_000
"""Events whose time is looked up."""
_COLUMNS: Final = ("anomaly", "topic", "partition", "offset", "value", "operations", "where", "explanation")


@dataclass(slots=True)
class Part:
    """Findings side by side. Times from the start of the run; None where no cited event is known."""

    anomaly: Anomaly
    meaning: Meaning
    place: Place | None
    first: int | None
    """The smallest offset; None for findings without one."""
    last: int | None
    count: int
    first_ns: int | None
    """When the earliest event was that they cite, without those of final reads."""
    last_ns: int | None
    at_end: bool
    """They cite a final read or a replica's own log."""
    operations: tuple[int, ...]
    """Cited by the first finding or the last, in order."""
    links: frozenset[int]
    """Those of them that are of one cause alone: operations of senders and of those who ask for an end
    offset, and not polls or final reads, which show many records."""
    final: tuple[int, ...]
    values: frozenset[int]
    where: str | None
    explanation: str
    """Of the first finding."""
    found_at: int = 0
    """The row of the first finding in ``findings.parquet``; the others are in the rows after it."""
    after: int = 0
    """So many changes of leader had been before the last time that all was right, and ..."""
    until: int = 0
    """... so many before it was wrong: the cause lies between them, or at the last of them."""


@dataclass(frozen=True, slots=True)
class Times:
    """Of each finding of a batch: when the earliest and the latest event was that it cites (NONE: not known),
    without those of final reads, and whether it cites one of these."""

    first: Ints
    last: Ints
    at_end: Bools


def cited_indexes(findings: Path) -> Ints:
    """Every event that a finding cites, in order, each once; at most ``MOST_CITED``. Raises OSError."""
    found = np.zeros(0, dtype=np.int64)
    for batch in _batches(findings, ["operations"]):
        found = np.union1d(found, ints(pc.list_flatten(batch["operations"])))
        if len(found) > MOST_CITED:
            return found[:MOST_CITED]
    return found


def parts_of(
    findings: Path,
    cited: Cited,
    anomalies: Mapping[str, Anomaly],
    meaning: Callable[[str, Place | None], Meaning],
    changes_before: Callable[[Place, Ints], Ints],
) -> list[Part]:
    """``anomalies``: all, by name. ``meaning``: what a finding means under the contract. ``changes_before``:
    how many changes of leader a partition had had at these times. Raises OSError."""
    found: list[Part] = []
    number, is_loose = 0, False
    for batch in _batches(findings, list(_COLUMNS)):
        times = _times(batch["operations"], cited)
        kinds, begins = _begins(batch, times, changes_before)
        is_loose = is_loose or len(found) + len(begins) > MOST_PARTS
        for begin, end in pairwise([*(kinds if is_loose else begins).tolist(), len(batch)]):
            part = _part(batch, begin, end, times, cited, anomalies, meaning)
            part.found_at += number
            before = found[-1] if found else None
            if before is not None and _continues(before, part, is_loose):
                _extend(before, part)
            else:
                found.append(part)
        number += batch.num_rows
    return found


def _batches(findings: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(findings) as file:
        yield from (batch for batch in file.iter_batches(columns=columns, use_threads=False) if len(batch))


def _begins(
    batch: pa.RecordBatch, times: Times, changes_before: Callable[[Place, Ints], Ints]
) -> tuple[Ints, Ints]:
    """The rows where another anomaly or partition begins, and those where a part begins."""
    apart = np.zeros(len(batch), dtype=bool)
    apart[0] = True
    for name in ("anomaly", "topic", "partition"):
        code = ints(batch[name].dictionary_encode().indices)
        apart[1:] |= code[1:] != code[:-1]
    kinds = np.flatnonzero(apart)
    offset = ints(batch["offset"])
    apart[1:] |= (offset[1:] == NONE) | (offset[:-1] == NONE) | (np.diff(offset) > 1)
    for begin, end in pairwise([*kinds.tolist(), len(batch)]):
        topic, partition = batch["topic"][begin].as_py(), batch["partition"][begin].as_py()
        if topic is not None and partition is not None:
            for ns in (times.first, times.last):
                changes = changes_before((topic, partition), ns[begin:end])
                apart[begin + 1 : end] |= changes[1:] != changes[:-1]
    return kinds, np.flatnonzero(apart)


def _part(
    batch: pa.RecordBatch,
    begin: int,
    end: int,
    times: Times,
    cited: Cited,
    anomalies: Mapping[str, Anomaly],
    meaning: Callable[[str, Place | None], Meaning],
) -> Part:
    one, other = (_row(batch, at) for at in (begin, end - 1))
    place: Place | None = None if one["topic"] is None else (one["topic"], one["partition"])
    offset = ints(batch["offset"].slice(begin, end - begin))
    offset = offset[offset != NONE]
    first, last = times.first[begin:end], times.last[begin:end]
    seen = first != NONE
    return Part(
        anomaly=anomalies[one["anomaly"]],
        meaning=meaning(one["anomaly"], place),
        place=place,
        first=int(offset.min()) if len(offset) else None,
        last=int(offset.max()) if len(offset) else None,
        count=end - begin,
        first_ns=int(first[seen].min()) if seen.any() else None,
        last_ns=int(last[seen].max()) if seen.any() else None,
        at_end=bool(times.at_end[begin:end].any()),
        **_cited(one, other, cited),
        values=frozenset(row["value"] for row in (one, other) if row["value"] is not None),
        where=one["where"],
        explanation=one["explanation"],
        found_at=begin,
    )


def _times(operations: pa.ListArray, cited: Cited) -> Times:
    rows = ints(operations.value_lengths(), null=0)
    of = np.repeat(np.arange(len(operations)), rows)
    at = cited.rows(ints(pc.list_flatten(operations)))
    of, at = of[at != NONE], at[at != NONE]
    at_end = np.zeros(len(operations), dtype=bool)
    at_end[of[cited.is_final[at]]] = True
    of, at = of[~cited.is_final[at]], at[~cited.is_final[at]]
    never = np.iinfo(np.int64).max
    first, last = np.full(len(operations), never), np.full(len(operations), NONE)
    np.minimum.at(first, of, cited.ns[at])
    np.maximum.at(last, of, cited.ns[at])
    return Times(np.where(first == never, NONE, first), last, at_end)


def _cited(one: dict[str, Any], other: dict[str, Any], cited: Cited) -> dict[str, Any]:
    indexes = np.unique(np.array([*one["operations"], *other["operations"]], dtype=np.int64))
    at = cited.rows(indexes)
    known = at != NONE
    final, poll = (np.zeros(len(indexes), dtype=bool) for _ in range(2))
    final[known], poll[known] = cited.is_final[at[known]], cited.is_poll[at[known]]
    return {
        "operations": tuple(indexes.tolist()),
        "links": frozenset(indexes[known & ~final & ~poll].tolist()),
        "final": tuple(indexes[final].tolist()),
    }


def _continues(before: Part, part: Part, is_loose: bool) -> bool:
    """Whether it goes on where a batch ended."""
    if (before.anomaly, before.place) != (part.anomaly, part.place):
        return False
    if is_loose:
        return True
    if before.last is None or part.first is None or part.first - before.last > 1:
        return False
    return before.last_ns == part.last_ns and before.first_ns == part.first_ns


def _extend(before: Part, part: Part) -> None:
    before.count += part.count
    before.first = min((one for one in (before.first, part.first) if one is not None), default=None)
    before.last = max((one for one in (before.last, part.last) if one is not None), default=None)
    before.first_ns = min((one for one in (before.first_ns, part.first_ns) if one is not None), default=None)
    before.last_ns = max((one for one in (before.last_ns, part.last_ns) if one is not None), default=None)
    before.at_end = before.at_end or part.at_end


def _row(batch: pa.RecordBatch, at: int) -> dict[str, Any]:
    return {name: batch[name][at].as_py() for name in _COLUMNS}
