"""The data from which the pictures of a run are drawn, gathered in one pass over its history."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.harness.report.read.bars import BARS, Bars, lanes
from wrackline.harness.report.read.columns import OK, OPEN, Batch, Ints, Operations, Table
from wrackline.harness.report.read.delivery import GIVEN, Lags, Unseen, ends_seen
from wrackline.harness.report.read.downsample import Downsampler
from wrackline.harness.report.read.latency import BINS, Latency, Leaders, Spreads, bins
from wrackline.harness.report.read.log_order import Order, Stretch
from wrackline.history.wording import partition_label

RAW_POINTS: Final = 20_000
TIMES: Final = 240
"""Points in time that quantiles of latency are told for."""
_RATIO: Final = 12
"""Latencies of the raw picture are held apart when they differ by a twelfth of a decade."""
_NOT_LOAD: Final = ("drain", "assign", "rebalance", "crash", "subscribe", "lag")
"""Kinds of operations whose latency says nothing: the final read, and consumers that take partitions."""
_READ: Final = (*GIVEN, "read")


@dataclass(slots=True)
class Histogram:
    """Latencies of acknowledged operations of one kind, by time."""

    counts: Ints
    """TIMES rows of BINS."""
    most: Ints

    @classmethod
    def empty(cls) -> Histogram:
        return cls(np.zeros((TIMES, BINS), np.int64), np.zeros(TIMES, np.int64))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Numbers in tables: ``f`` is a number in ``fs``, ``place`` in ``places``, ``error`` in ``errors``."""

    end_ns: int
    fs: Sequence[str]
    errors: Sequence[str]
    places: Sequence[str]
    hosts: Sequence[str]
    leaders: Leaders
    operations: int
    unseen: Unseen
    lags: NDArray[np.void]
    behind_ns: Ints
    raw: Table
    raw_seen: int
    quantiles: Mapping[str, Histogram]
    latency: Latency
    order: Table
    order_seen: int
    around: Sequence[tuple[Stretch, Table]]
    bars: Table
    """Rows of BAR."""
    lane: Ints
    """Of each bar."""

    def led_by(self, rows: Table) -> Ints:
        """The number in ``hosts`` of the node that led each operation's partition when it began."""
        return self.leaders.at(self.places, rows["place"].astype(np.int64), rows["begin"])


class Gatherer:
    """``add`` takes the batches of a history in order; ``gathered`` has what came of them until then.
    ``wanted``: offsets that are looked at closely; ``cited``: indexes of rows that findings rest on."""

    def __init__(
        self,
        operations: Operations,
        end_ns: int,
        leaders: Mapping[str, Sequence[LeaderSpan]],
        wanted: Sequence[Stretch],
        cited: Collection[int],
        bars: int = BARS,
    ) -> None:
        self._operations, self._end_ns = operations, max(end_ns, 1)
        self._leaders = Leaders(leaders)
        self._unseen = Unseen(end_ns)
        self._lags = Lags(end_ns, operations.places.topics, operations.places.known)
        self._order = Order(end_ns, wanted)
        self._bars = Bars(end_ns, cited, bars)
        self._raw = Downsampler(RAW_POINTS, self._cell, lambda rows: rows["end"] - rows["begin"])
        self._quantiles: dict[str, Histogram] = {}
        self._partitions, self._nodes = Spreads(), Spreads()

    def _cell(self, rows: NDArray[np.void], level: int) -> Ints:
        finer = np.where(rows["outcome"] == OK, 4, 1)  # most points are ok, and shall look like it
        column = rows["end"] * np.maximum((2_000 >> level) * finer, 60) // self._end_ns
        took = np.maximum(rows["end"] - rows["begin"], 1_000)
        row = (np.log10(took) * max(_RATIO * 2 >> level // 2, _RATIO)).astype(np.int64)
        which = rows["f"].astype(np.int64) << 2 | rows["outcome"]
        return np.asarray(which << 24 | row << 14 | column)

    def add(self, batch: Batch) -> None:
        of, fs = batch.operations, self._operations.fs
        ok = of["outcome"] == OK
        sends = of["f"] == fs.number("send")
        given = np.isin(of["f"], [fs.number(name) for name in GIVEN]) & ok
        reads = np.isin(of["f"], [fs.number(name) for name in _READ]) & ok
        acked = (sends & ok)[batch.owner] & (batch.offset >= 0)
        self._unseen.add(batch, acked, given[batch.owner] & (batch.offset >= 0))
        ends = ends_seen(batch, acked | reads[batch.owner], ok & (of["f"] == fs.number("end")))
        self._lags.add(batch, ends, ok & (of["f"] == fs.number("poll")))
        self._order.add(batch, acked | reads[batch.owner], self._known())
        self._bars.add(of)
        self._note_latency(of[~np.isin(of["f"], [fs.number(name) for name in _NOT_LOAD])], fs.number("send"))

    def _known(self) -> dict[tuple[str, int], int]:
        return {place: number for number, place in enumerate(self._operations.places.listed())}

    def _labels(self) -> list[str]:
        return [partition_label(*place) for place in self._operations.places.listed()]

    def _note_latency(self, of: Table, send: int) -> None:
        of = of[of["end"] > of["begin"]]
        self._raw.add(of)
        of = of[of["outcome"] == OK]
        took = of["end"] - of["begin"]
        at = np.clip(of["end"] * TIMES // self._end_ns, 0, TIMES - 1)
        names = self._operations.fs.listed()
        for f in np.unique(of["f"]).tolist():
            own = of["f"] == f
            held = self._quantiles.setdefault(names[f], Histogram.empty())
            np.add.at(held.counts, (at[own], bins(took[own])), 1)
            np.maximum.at(held.most, at[own], took[own])
        sends = of["f"] == send
        labels, which = self._labels(), of["place"][sends].astype(np.int64)
        self._partitions.add(labels, which, took[sends])
        self._nodes.add(self._leaders.hosts, self._leaders.at(labels, which, of["begin"][sends]), took[sends])

    def gathered(self) -> Gathered:
        unfinished = self._operations.unfinished()
        self._bars.add(unfinished[unfinished["outcome"] == OPEN])
        bars = self._bars.rows()
        of_bars = bars["operation"]
        raw, lags = self._raw.rows(), self._lags.rows()
        return Gathered(
            end_ns=self._end_ns,
            fs=self._operations.fs.listed(),
            errors=self._operations.errors.listed(),
            places=self._labels(),
            hosts=self._leaders.hosts,
            leaders=self._leaders,
            operations=self._bars.operations,
            unseen=self._unseen,
            lags=lags,
            behind_ns=self._lags.behind_ns(lags),
            raw=of_bars[:0] if raw is None else raw,
            raw_seen=self._raw.seen,
            quantiles=self._quantiles,
            latency=Latency(self._partitions.spreads(), self._nodes.spreads()),
            order=self._order.points(),
            order_seen=self._order.seen,
            around=self._order.around(),
            bars=bars,
            lane=lanes(of_bars["process"], of_bars["begin"], bars["until"]),
        )
