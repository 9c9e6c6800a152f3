"""The offsets in a partition's log at which each operation sent and read, over time: sampled for the whole
run, and each record of a few stretches of offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wrackline.checkers.explain.model import Group
from wrackline.harness.report.read.columns import OPERATION, Batch, Bools, Ints
from wrackline.harness.report.read.downsample import Downsampler
from wrackline.history.wording import partition_label

PLACES: Final = 12
"""Partitions whose order is shown."""
POINTS: Final = 12_000
"""Of all partitions together."""
STRETCHES: Final = 8
_RECORDS: Final = 1_500
"""Of one stretch of offsets."""
_AROUND: Final = 6
"""Offsets shown before and after those of the findings."""
_LONGEST: Final = 28


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets of a partition that findings are about, and some around them."""

    topic: str
    partition: int
    first: int
    last: int
    cited: tuple[int, ...]
    anomalies: tuple[str, ...]

    @property
    def label(self) -> str:
        return partition_label(self.topic, self.partition)


def stretches(groups: Sequence[Group]) -> list[Stretch]:
    """The first offsets that each group of findings is about, and what lies around them; groups that come
    first are served first, and share a stretch where they can."""
    offsets: dict[tuple[str, int], dict[int, set[str]]] = {}
    for group in groups:
        for finding in (one.finding for one in group.explanations):
            if finding.topic is not None and finding.partition is not None and finding.offset is not None:
                own = offsets.setdefault((finding.topic, finding.partition), {})
                own.setdefault(finding.offset, set()).add(finding.anomaly)
    result: list[Stretch] = []
    for group in groups:
        place = group.topic or "", group.partition if group.partition is not None else -1
        own = offsets.get(place, {})
        low = min(
            (offset for offset, names in own.items() if offset >= 0 and group.anomaly in names), default=None
        )
        if low is None or len(result) == STRETCHES:
            continue
        if any((one.topic, one.partition) == place and one.first <= low <= one.last for one in result):
            continue
        cited = tuple(sorted(offset for offset in own if low <= offset < low + _LONGEST - 2 * _AROUND))
        anomalies = tuple(sorted(set().union(*(own[offset] for offset in cited))))
        result.append(Stretch(*place, max(low - _AROUND, 0), cited[-1] + _AROUND, cited, anomalies))
    return result


class Order:
    """Points along the offsets of each partition."""

    def __init__(self, end_ns: int, wanted: Sequence[Stretch]) -> None:
        self._end_ns = max(end_ns, 1)
        self._wanted = wanted
        self._points = Downsampler(POINTS, self._cell, lambda rows: -rows["index"])
        self._records: dict[int, list[NDArray[np.void]]] = {}
        self._counts: dict[int, int] = {}

    def _cell(self, rows: NDArray[np.void], level: int) -> Ints:
        column = rows["end"] * max(400 >> (level // 2), 16) // self._end_ns
        offsets = (rows["offset"] >> (level + 2)) & 0xFFFFFFFF
        which = rows["place"].astype(np.int64) << 4 | rows["f"] & 15
        return np.asarray(which << 42 | offsets << 10 | column)

    def add(self, batch: Batch, chosen: Bools, known: Mapping[tuple[str, int], int]) -> None:
        """``chosen``: records that were acknowledged or read; ``known``: partition -> its number."""
        chosen = chosen & (batch.offset >= 0)
        shown = chosen & (batch.place < PLACES) if len(known) > PLACES else chosen
        parts = batch.parts(shown)
        rows = batch.operations[parts.operation]
        rows["place"], rows["offset"], rows["last"] = parts.place, parts.first, parts.last
        rows["count"] = parts.count
        self._points.add(rows)
        for number, stretch in enumerate(self._wanted):
            place = known.get((stretch.topic, stretch.partition), -2)
            within = chosen & (batch.place == place) & (batch.offset >= stretch.first)
            at = np.flatnonzero(within & (batch.offset <= stretch.last))
            at = at[: _RECORDS - self._counts.get(number, 0)]
            if len(at):
                rows = batch.operations[batch.owner[at]]
                rows["place"], rows["offset"], rows["last"] = place, batch.offset[at], batch.offset[at]
                rows["value"], rows["count"] = batch.value[at], 1
                self._records.setdefault(number, []).append(rows)
                self._counts[number] = self._counts.get(number, 0) + len(at)

    def points(self) -> NDArray[np.void]:
        """Operations by partition: ``offset`` to ``last`` is what it sent or read there."""
        result = self._points.rows()
        return np.zeros(0, OPERATION) if result is None else result

    @property
    def seen(self) -> int:
        return self._points.seen

    def around(self) -> list[tuple[Stretch, NDArray[np.void]]]:
        """Each record sent or read at the offsets of each stretch."""
        return [
            (stretch, np.concatenate(self._records[number]))
            for number, stretch in enumerate(self._wanted)
            if number in self._records
        ]
