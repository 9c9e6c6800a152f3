"""The lag of consumers: records that nobody was given yet, and each consumer's position against the log's
end.

Both are what Jepsen's Kafka test plots as *unseen* and *realtime lag*. A record is known by its partition and
offset. The end of a log is the largest end that clients have seen until then: by an ack, a poll or a request
for the end offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wrackline.harness.report.read.columns import OPERATION, Batch, Bools, Ints, Table, Words
from wrackline.harness.report.read.downsample import Downsampler
from wrackline.history.excerpts import decode_extra
from wrackline.history.json_values import mapping
from wrackline.history.model import POLLS

COLUMNS: Final = 600
"""Points in time that unseen records are counted at."""
_ENDS: Final = 4_096
"""Points in time for which the end of each log is remembered."""
LAGS: Final = 8_000
GIVEN: Final = (*POLLS, "drain", "dequeue")
"""Kinds of operations that hand records to a consumer."""
_BLOCK_BITS: Final = 16
_IN_BLOCK: Final = (1 << _BLOCK_BITS) - 1
_OFFSET_BITS: Final = 44
_BLOCKS: Final = 1_024
"""Blocks of offsets that are remembered: 256 KiB each."""
_MARK, _SEEN = np.uint16(0x7FFF), np.uint16(0x8000)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)

LAG: Final = np.dtype([("operation", OPERATION), ("position", np.int64), ("behind", np.int64)])
"""A consumer's ``position`` in one partition at the end of an operation, and how many offsets it was
``behind`` the end of the log."""


class Unseen:
    """Counts records acknowledged and not yet given to any consumer, by partition and time.

    For each offset it remembers, in 16 bits each, the value that was acknowledged there last, whether that
    was given to a consumer, and which other value was. So a record that is lost stays unseen when its offset
    is used again.
    """

    def __init__(self, end_ns: int) -> None:
        self._width = max(end_ns, 1) / COLUMNS
        self._blocks = self._rows = np.zeros(0, np.int64)
        """Numbers of the blocks of offsets that are remembered, rising; and where each is."""
        self._acked = self._given = np.zeros(1 << _BLOCK_BITS, np.uint16)
        self._change: dict[int, Ints] = {}
        self._latest: dict[int, Table] = {}
        self.left_out = 0
        """Records that were not followed, because there were too many offsets."""
        self.followed = 0

    def add(self, batch: Batch, acked: Bools, given: Bools) -> None:
        """``acked``, ``given``: which records of the batch were acknowledged, and given to a consumer."""
        keys = batch.place << _OFFSET_BITS | batch.offset
        marks, slots = _marks(batch.value), self._slots(keys, acked | given)
        self.left_out += int((acked & (slots < 0)).sum())
        acks = np.flatnonzero(acked & (slots >= 0))
        reads = np.flatnonzero(given & (slots >= 0))
        reads = reads[self._given[slots[reads]] != marks[reads]]  # most are given once more
        records = slots << 16 | marks
        acks, reads = _firsts(records, acks), _firsts(records, reads)
        # acknowledged here: when was it first given, if that is in this batch too?
        at = np.searchsorted(records[reads], records[acks])
        here = np.asarray(np.append(reads, -1)[at])
        here = np.where((here >= 0) & (records[here] == records[acks]), here, -1)
        never = np.iinfo(np.int64).max
        given_at = np.where(here >= 0, batch.owner[here], never)
        fresh = self._acked[slots[acks]] & _MARK != marks[acks]
        up = fresh & (self._given[slots[acks]] != marks[acks]) & (given_at > batch.owner[acks])
        down = up & (given_at < never)
        self._count(batch, acks[up], batch.owner[acks[up]], 1)
        self._count(batch, acks[down], given_at[down], -1)
        # acknowledged earlier, and given here for the first time
        news = reads[self._acked[slots[reads]] == marks[reads]]
        self._count(batch, news, batch.owner[news], -1)
        self._acked[slots[news]] |= _SEEN
        self._given[slots[reads]] = marks[reads]
        states = marks[acks] | np.where(up & ~down, np.uint16(0), _SEEN)
        order = np.flatnonzero(fresh)[np.argsort(acks[fresh], kind="stable")]  # the last at an offset stays
        self._acked[slots[acks[order]]] = states[order]
        self.followed += int(fresh.sum())

    def _slots(self, keys: Ints, chosen: Bools) -> Ints:
        """Returns where each of the chosen offsets is remembered; -1: nowhere."""
        blocks = keys >> _BLOCK_BITS
        expected = np.unique(blocks[chosen])
        new = expected[~np.isin(expected, self._blocks)][: _BLOCKS - len(self._blocks)]
        rows = np.r_[self._rows, np.arange(len(self._rows), len(self._rows) + len(new))]
        order = np.argsort(np.r_[self._blocks, new])
        self._blocks, self._rows = np.r_[self._blocks, new][order], rows[order]
        while len(self._acked) < len(rows) << _BLOCK_BITS:
            self._acked, self._given = (np.r_[one, np.zeros_like(one)] for one in (self._acked, self._given))
        if not len(self._blocks):
            return np.full(len(keys), -1, np.int64)
        at = np.minimum(np.searchsorted(self._blocks, blocks), len(self._blocks) - 1)
        slots = self._rows[at] << _BLOCK_BITS | keys & _IN_BLOCK
        return np.where(chosen & (self._blocks[at] == blocks), slots, -1)

    def _count(self, batch: Batch, records: Ints, owners: Ints, change: int) -> None:
        places = batch.place[records]
        ends = batch.operations["end"][owners]
        columns: Ints = np.clip(ends // self._width, 0, COLUMNS - 1).astype(np.int64)
        for place in np.unique(places).tolist():
            own = np.flatnonzero(places == place)
            if place not in self._change:
                self._change[place] = np.zeros(COLUMNS, np.int64)
                self._latest[place] = np.zeros(COLUMNS, OPERATION)
            np.add.at(self._change[place], columns[own], change)
            own = own[np.argsort(owners[own], kind="stable")]
            result, newest = np.unique(columns[own][::-1], return_index=True)
            self._latest[place][result] = batch.operations[owners[own][::-1][newest]]

    def series(self) -> Mapping[int, Ints]:
        """Partition -> records unseen at the end of each column of time."""
        return {place: np.cumsum(change) for place, change in sorted(self._change.items())}

    def latest(self, place: int) -> Table:
        """Returns for each column of time an operation in it that changed the number; ``index`` 0 where
        none did."""
        return self._latest[place]


def _marks(values: Ints) -> NDArray[np.uint16]:
    """15 bits of each value; 0 is none."""
    mixed = values.astype(np.uint64) * _MIX
    return ((mixed ^ mixed >> np.uint64(29)) >> np.uint64(33)).astype(np.uint16) & _MARK | np.uint16(1)


def _firsts(records: Ints, chosen: Ints) -> Ints:
    """Returns where each different one of the chosen records is first, in the order of their numbers."""
    return np.asarray(chosen[np.unique(records[chosen], return_index=True)[1]])


class Lags:
    """Samples where consumers were, as they said after a poll, against the end of the log known by then."""

    def __init__(self, end_ns: int, topics: Words, known: Mapping[tuple[int, int], int]) -> None:
        self._end_ns = max(end_ns, 1)
        self._topics, self._known = topics, known
        self._ends: dict[int, int] = {}
        self._course: dict[int, Ints] = {}
        self._found = Downsampler(LAGS, self._cell, lambda rows: rows["behind"])

    def _cell(self, rows: NDArray[np.void], level: int) -> Ints:
        of = rows["operation"]
        column = of["end"] * max(COLUMNS >> max(level - 3, 0), 8) // self._end_ns
        process = of["process"] & (0x3FFFFF, 15, 3)[level] if level < 3 else 0 * of["process"]
        which = of["place"].astype(np.int64) << 22 | process
        return np.asarray(which << 12 | column)

    def add(self, batch: Batch, ends: tuple[Ints, Ints, Ints], polls: Bools) -> None:
        """``ends``: (row of the operation, partition, end of the log that it shows); ``polls``: which
        operations say where a consumer is."""
        sampled = self._sampled(batch, polls)
        positions = self._positions(batch, sampled)
        owner, place, end = ends
        for number in np.union1d(np.unique(place), np.unique(positions["operation"]["place"])).tolist():
            own = place == number
            asked = np.flatnonzero(positions["operation"]["place"] == number)
            order = np.argsort(owner[own], kind="stable")
            at, known = owner[own][order], np.maximum.accumulate(end[own][order]) if own.any() else end[own]
            known = np.maximum(known, self._ends.get(number, 0))
            if len(asked):
                last = np.searchsorted(at, sampled[positions["behind"][asked]], "right") - 1
                before = np.full(len(asked), self._ends.get(number, 0), np.int64)
                if len(known):
                    before = np.where(last >= 0, known[np.maximum(last, 0)], before)
                positions["behind"][asked] = np.maximum(before - positions["position"][asked], 0)
            if len(known):
                self._remember(number, batch.operations["end"][at], known)
        self._found.add(positions)

    def _sampled(self, batch: Batch, polls: Bools) -> Ints:
        """The last poll of each process in each column of time."""
        rows = np.flatnonzero(polls)
        of = batch.operations[rows]
        keys = of["process"] * COLUMNS + of["end"] * COLUMNS // self._end_ns
        _, newest = np.unique(keys[::-1], return_index=True)
        return np.sort(rows[len(rows) - 1 - newest])

    def _positions(self, batch: Batch, sampled: Ints) -> NDArray[np.void]:
        """A row for each partition of each sampled poll; ``behind`` is the number of the poll for now."""
        result: list[tuple[int, int, int]] = []
        topics = dict(enumerate(self._topics.listed()))
        by_place = {place: topic for (topic, _), place in self._known.items()}
        only = min(topics, default=-1) if len(topics) == 1 else -1
        for number, (row, text) in enumerate(
            zip(sampled.tolist(), batch.extra.take(pa.array(sampled)).to_pylist(), strict=True)
        ):
            said = _positions_said(text)
            topic = by_place.get(int(batch.operations["place"][row]), only)
            if not said and batch.operations["last"][row] >= 0:  # an imported history: where the records end
                result.append(
                    (number, int(batch.operations["place"][row]), int(batch.operations["last"][row]) + 1)
                )
            for partition, position in said.items():
                place = self._known.get((topic, partition))
                if place is not None:
                    result.append((number, place, position))
        rows = np.zeros(len(result), LAG)
        if result:
            number, place, position = np.array(result, np.int64).T
            rows["operation"] = batch.operations[sampled[number]]
            rows["operation"]["place"] = place
            rows["position"], rows["behind"] = position, number
        return rows

    def _remember(self, place: int, times: Ints, known: Ints) -> None:
        course = self._course.setdefault(place, np.zeros(_ENDS, np.int64))
        columns = np.clip(times * _ENDS // self._end_ns, 0, _ENDS - 1)
        np.maximum.at(course, columns, known)
        self._ends[place] = int(known[-1])

    def rows(self) -> NDArray[np.void]:
        result = self._found.rows()
        return np.zeros(0, LAG) if result is None else result

    def behind_ns(self, rows: NDArray[np.void]) -> Ints:
        """Returns for how long each consumer had been behind: since the log first went past its position,
        as exactly as the ``_ENDS`` points in time tell; 0 for one that was not behind."""
        result = np.zeros(len(rows), np.int64)
        for place, course in self._course.items():
            own = np.flatnonzero((rows["operation"]["place"] == place) & (rows["behind"] > 0))
            reached = np.searchsorted(np.maximum.accumulate(course), rows["position"][own], "right")
            since = reached * self._end_ns // _ENDS
            result[own] = np.maximum(rows["operation"]["end"][own] - since, 0)
        return result


def _positions_said(text: str | None) -> dict[int, int]:
    """``extra.positions`` of a row; {} where it says nothing of the kind."""
    return {
        int(partition): position
        for partition, position in mapping(decode_extra(text), "positions").items()
        if partition.isdecimal() and isinstance(position, int)
    }


def ends_seen(batch: Batch, shown: Bools, asked: Bools) -> tuple[Ints, Ints, Ints]:
    """(row of the operation, partition, end of the log) as acks and reads (``shown``: which records) and
    requests for the end (``asked``: which operations) have it."""
    parts = batch.parts(shown & (batch.offset >= 0))
    rows = np.flatnonzero(asked & (batch.high_watermark >= 0) & (batch.operations["place"] >= 0))
    return (
        np.concatenate([parts.operation, rows]),
        np.concatenate([parts.place, batch.operations["place"][rows]]),
        np.concatenate([parts.last + 1, batch.high_watermark[rows]]),
    )
