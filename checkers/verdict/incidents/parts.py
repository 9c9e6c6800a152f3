"""Findings that lie side by side become *parts* of an incident: one anomaly, one partition, offsets without a
hole, last seen right under the same leader.

Findings are read batch by batch, in the order in which the judge has sorted them. So there are few parts,
however many findings there are; where there are too many nevertheless, holes no longer part them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.cited import Cited
from wrackline.checkers.inputs.row_groups import ints
from wrackline.checkers.inputs.runs import Place
from wrackline.checkers.inputs.table import NEVER, NONE, Bools, Ints
from wrackline.checkers.verdict.anomaly import Anomaly
from wrackline.checkers.verdict.contracts import Rule, Ruling

MOST_PARTS: Final = 5_000
MOST_CITED: Final = 2_000_000
"""Events whose time is looked up."""
_COLUMNS: Final = (
    *("anomaly", "topic", "partition", "offset", "value", "operations", "where", "explanation"),
    *("since_ns", "until_ns"),
)
Rules = Callable[[str, Place | None], Rule]
"""Of an anomaly in a partition: what findings there mean, and what excuses them."""


@dataclass(slots=True)
class Part:
    """Findings side by side. Times from the start of the run; None where no cited event is known."""

    anomaly: Anomaly
    meaning: Meaning
    rulings: dict[Ruling, int]
    """Why they mean that: what it is -> of how many findings."""
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
    polls: tuple[int, ...]
    consumers: frozenset[int]
    """The processes that polled."""
    final: tuple[int, ...]
    values: frozenset[int]
    where: str | None
    explanation: str
    """Of the first finding."""
    found_at: int = 0
    """The row of the first finding in ``findings.parquet``; the others are in the rows after it."""
    may_be_deposed: bool = False
    """Who had been replaced as leader may have acknowledged or answered it: whoever did is not on record."""
    after: int = 0
    """So many changes of leader had been before the last time that all was right, and ..."""
    until: int = 0
    """... so many before it was wrong: the cause lies between them, or at the last of them."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of each finding of a batch: the earliest and the latest event that it cites (NONE: not
    known), without those of final reads, and whether it cites one of these."""

    first: Ints
    last: Ints
    at_end: Bools
    unsure: Bools
    """Whether it cites a send that was answered late or never."""


def cited_indexes(findings: Path) -> Ints:
    """Every event that a finding cites, in order, each once; at most ``MOST_CITED``. Raises OSError."""
    result = np.zeros(0, dtype=np.int64)
    for batch in _batches(findings, ["operations"]):
        result = np.union1d(result, ints(pc.list_flatten(batch["operations"])))
        if len(result) > MOST_CITED:
            return result[:MOST_CITED]
    return result


def parts_of(
    findings: Path,
    cited: Cited,
    anomalies: Mapping[str, Anomaly],
    rules: Rules,
    changes_before: Callable[[Place, Ints], Ints],
) -> list[Part]:
    """``anomalies``: all, by name. ``rules``: of the contract. ``changes_before``: how many changes of leader
    a partition had had at these times. Raises OSError."""
    result: list[Part] = []
    number, is_loose = 0, False
    for batch in _batches(findings, list(_COLUMNS)):
        times = _times(batch["operations"], cited)
        ruled = _ruled(batch, times, rules)
        kinds, begins = _begins(batch, times, ruled, changes_before)
        is_loose = is_loose or len(result) + len(begins) > MOST_PARTS
        for begin, end in pairwise([*(kinds if is_loose else begins).tolist(), len(batch)]):
            part = _part(batch, begin, end, times, cited, anomalies, ruled)
            part.found_at += number
            before = result[-1] if result else None
            if before is not None and _continues(before, part, is_loose):
                _extend(before, part)
            else:
                result.append(part)
        number += batch.num_rows
    return result


def _batches(findings: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(findings) as file:
        yield from (batch for batch in file.iter_batches(columns=columns, use_threads=False) if len(batch))


@dataclass(frozen=True, slots=True)
class _Ruled:
    """The rulings on the findings of a batch."""

    rulings: Sequence[Ruling]
    of: Ints
    """The number of each finding's ruling."""

    @property
    def meanings(self) -> Ints:
        """The number of each finding's meaning."""
        order = list(Meaning)
        codes = np.array([order.index(one.meaning) for one in self.rulings], dtype=np.int64)
        return codes[self.of]

    def counted(self, begin: int, end: int) -> dict[Ruling, int]:
        numbers, counts = np.unique(self.of[begin:end], return_counts=True)
        result: dict[Ruling, int] = {}
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            ruling = self.rulings[number]
            result[ruling] = result.get(ruling, 0) + count
        return result


def _ruled(batch: pa.RecordBatch, times: Times, rules: Rules) -> _Ruled:
    since, until = _spans(batch, times)
    rulings: list[Ruling] = []
    of = np.zeros(len(batch), dtype=np.int64)
    kinds = np.flatnonzero(_kinds(batch))
    for begin, end in pairwise([*kinds.tolist(), len(batch)]):
        rule = rules(batch["anomaly"][begin].as_py(), _place(batch, begin))
        numbers = rule.rulings(since[begin:end], until[begin:end], times.unsure[begin:end])
        known, inverse = np.unique(numbers, return_inverse=True)
        of[begin:end] = inverse + len(rulings)
        rulings += [rule.numbered(number) for number in known.tolist()]
    return _Ruled(rulings, of)


def _spans(batch: pa.RecordBatch, times: Times) -> tuple[Ints, Ints]:
    """When each finding began to be one and when it was: from the first to the last of what it cites, and of
    the time that its check gave it. What a final read shows lasts until the end of the run."""
    given, end = ints(batch["since_ns"]), ints(batch["until_ns"], null=NEVER)
    cited = np.where(times.at_end, NEVER, times.last)
    since = np.where(given == NONE, times.first, np.minimum(given, _or(times.first, NEVER)))
    until = np.where(given == NONE, _or(cited, NEVER), np.maximum(end, cited))
    return np.maximum(since, 0), until


def _or(times: Ints, unknown: int) -> Ints:
    return np.where(times == NONE, unknown, times)


def _place(batch: pa.RecordBatch, at: int) -> Place | None:
    topic = batch["topic"][at].as_py()
    return None if topic is None else (topic, batch["partition"][at].as_py())


def _kinds(batch: pa.RecordBatch) -> Bools:
    """Tells for each row whether another anomaly or partition begins."""
    apart = np.zeros(len(batch), dtype=bool)
    apart[0] = True
    for name in ("anomaly", "topic", "partition"):
        code = ints(batch[name].dictionary_encode().indices)
        apart[1:] |= code[1:] != code[:-1]
    return apart


def _begins(
    batch: pa.RecordBatch, times: Times, ruled: _Ruled, changes_before: Callable[[Place, Ints], Ints]
) -> tuple[Ints, Ints]:
    """The rows where another anomaly, partition or meaning begins, and those where a part begins."""
    apart, meant = _kinds(batch), ruled.meanings
    apart[1:] |= meant[1:] != meant[:-1]
    kinds = np.flatnonzero(apart)
    offset = ints(batch["offset"])
    apart[1:] |= (offset[1:] == NONE) | (offset[:-1] == NONE) | (np.diff(offset) > 1)
    for begin, end in pairwise([*kinds.tolist(), len(batch)]):
        place = _place(batch, begin)
        if place is not None:
            for ns in (times.first, times.last):
                changes = changes_before(place, ns[begin:end])
                apart[begin + 1 : end] |= changes[1:] != changes[:-1]
    return kinds, np.flatnonzero(apart)


def _part(
    batch: pa.RecordBatch,
    begin: int,
    end: int,
    times: Times,
    cited: Cited,
    anomalies: Mapping[str, Anomaly],
    ruled: _Ruled,
) -> Part:
    one, other = (_row(batch, at) for at in (begin, end - 1))
    rulings = ruled.counted(begin, end)
    offset = ints(batch["offset"].slice(begin, end - begin))
    offset = offset[offset != NONE]
    first, last = times.first[begin:end], times.last[begin:end]
    seen = first != NONE
    return Part(
        anomaly=anomalies[one["anomaly"]],
        meaning=next(iter(rulings)).meaning,
        rulings=rulings,
        place=_place(batch, begin),
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
    unsure = np.zeros(len(operations), dtype=bool)
    at_end[of[cited.is_final[at]]] = True
    unsure[of[cited.is_unsure[at]]] = True
    of, at = of[~cited.is_final[at]], at[~cited.is_final[at]]
    never = np.iinfo(np.int64).max
    first, last = np.full(len(operations), never), np.full(len(operations), NONE)
    np.minimum.at(first, of, cited.ns[at])
    np.maximum.at(last, of, cited.ns[at])
    return Times(np.where(first == never, NONE, first), last, at_end, unsure)


def _cited(one: dict[str, Any], other: dict[str, Any], cited: Cited) -> dict[str, Any]:
    indexes = np.unique(np.array([*one["operations"], *other["operations"]], dtype=np.int64))
    at = cited.rows(indexes)
    known = at != NONE
    final, poll = (np.zeros(len(indexes), dtype=bool) for _ in range(2))
    final[known], poll[known] = cited.is_final[at[known]], cited.is_poll[at[known]]
    return {
        "operations": tuple(indexes.tolist()),
        "links": frozenset(indexes[known & ~final & ~poll].tolist()),
        "polls": tuple(indexes[poll].tolist()),
        "consumers": frozenset(cited.process[at[poll]].tolist()),
        "final": tuple(indexes[final].tolist()),
    }


def _continues(before: Part, part: Part, is_loose: bool) -> bool:
    """Tells whether the part continues the one that ended with a batch."""
    if (before.anomaly, before.place, before.meaning) != (part.anomaly, part.place, part.meaning):
        return False
    if is_loose:
        return True
    if before.last is None or part.first is None or part.first - before.last > 1:
        return False
    return before.last_ns == part.last_ns and before.first_ns == part.first_ns


def _extend(before: Part, part: Part) -> None:
    before.count += part.count
    for ruling, count in part.rulings.items():
        before.rulings[ruling] = before.rulings.get(ruling, 0) + count
    before.first = min((one for one in (before.first, part.first) if one is not None), default=None)
    before.last = max((one for one in (before.last, part.last) if one is not None), default=None)
    before.first_ns = min((one for one in (before.first_ns, part.first_ns) if one is not None), default=None)
    before.last_ns = max((one for one in (before.last_ns, part.last_ns) if one is not None), default=None)
    before.at_end = before.at_end or part.at_end


def _row(batch: pa.RecordBatch, at: int) -> dict[str, Any]:
    return {name: batch[name][at].as_py() for name in _COLUMNS}
