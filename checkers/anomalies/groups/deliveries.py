"""What consumers were given, where they stood after their polls, and what of the final read they lack.

Records are columns of numpy, and sets of offsets are intervals: a member that reads on holds one, however
long the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.anomalies.about import AboutRun
from wrackline.checkers.anomalies.groups.events import Placement
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints

_AT_ONCE = 100_000
"""So many offsets wait before they become intervals."""


class Spans:
    """A set of offsets, as intervals, that also counts how often any was put in."""

    def __init__(self) -> None:
        self.count = 0
        self._begin, self._end = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._waiting: list[Ints] = []
        self._size = 0

    def add(self, offsets: Ints) -> None:
        self.count += len(offsets)
        self._size += len(offsets)
        self._waiting.append(offsets)
        if self._size >= _AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        if not self._waiting:
            return
        offsets = np.unique(np.concatenate(self._waiting))
        self._waiting, self._size = [], 0
        first = np.flatnonzero(np.diff(offsets, prepend=NONE) != 1)
        last = np.append(first[1:], len(offsets)) - 1
        begins, ends = (self._begin, offsets[first]), (self._end, offsets[last] + 1)
        self._begin, self._end = _joined(np.concatenate(begins), np.concatenate(ends))

    @classmethod
    def union(cls, some: Iterable[Spans]) -> Spans:
        found = cls()
        some = list(some)
        for one in some:
            one._settle()
            found.count += one.count
        if some:
            begins, ends = ([getattr(one, name) for one in some] for name in ("_begin", "_end"))
            found._begin, found._end = _joined(np.concatenate(begins), np.concatenate(ends))
        return found

    def __len__(self) -> int:
        self._settle()
        return int((self._end - self._begin).sum())

    @property
    def lowest(self) -> list[int]:
        """The lowest, if there is any."""
        self._settle()
        found: list[int] = self._begin[:1].tolist()
        return found

    def has(self, offsets: Ints) -> Bools:
        self._settle()
        at = np.searchsorted(self._begin, offsets, side="right") - 1
        if not len(self._begin):
            return np.zeros(len(offsets), np.bool_)
        found: Bools = (at >= 0) & (offsets < self._end[at])
        return found


def _joined(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Intervals that touch become one."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    fresh = np.flatnonzero(np.append(True, begin[1:] > reach[:-1])[: len(begin)])
    return begin[fresh], reach[np.append(fresh[1:], len(begin))[: len(fresh)] - 1]


@dataclass(frozen=True, slots=True)
class Records:
    """Records of some events of a batch; ``row``: which event."""

    row: Ints
    log: Ints
    offset: Ints
    value: Ints

    def __len__(self) -> int:
        return len(self.row)

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """(row, offset, value) of each."""
        return zip(self.row.tolist(), self.offset.tolist(), self.value.tolist(), strict=True)

    @classmethod
    def joined(cls, some: Sequence[Records]) -> Records:
        columns = ([getattr(one, name) for one in some] for name in ("row", "log", "offset", "value"))
        return cls(*(np.concatenate([np.zeros(0, np.int64), *column]) for column in columns))

    def take(self, which: Ints | Bools) -> Records:
        return Records(*(getattr(self, name)[which] for name in ("row", "log", "offset", "value")))


def records_of(events: pa.RecordBatch, about: AboutRun) -> Records:
    """Those of partitions that the run knows."""
    lists = events.column("records")
    row = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = pc.list_flatten(lists)
    partition, offset, value = (
        flat.field(name).to_numpy(zero_copy_only=False).astype(np.int64)
        for name in ("partition", "offset", "value")
    )
    topics = events.column("topic").to_pylist()
    log = np.full(len(row), NONE)
    for topic in set(topics) - {None}:
        base = next((one.number - one.partition for one in about.logs.values() if one.topic == topic), NONE)
        known = np.array(sorted(one.partition for one in about.logs.values() if one.topic == topic), np.int64)
        mine = np.array([one == topic for one in topics])[row] & np.isin(partition, known)
        log[mine] = base + partition[mine]
    return Records(row, log, offset, value).take(log != NONE)


def apart(*keys: Ints) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Rows with the same keys: the keys, and which rows, in their order."""
    if not len(keys[0]):
        return
    order = np.lexsort(keys[::-1])
    columns = [key[order] for key in keys]
    fresh = np.any([np.diff(column, prepend=column[0] - 1) != 0 for column in columns], axis=0)
    for rows in np.split(order, np.flatnonzero(fresh)[1:]):
        yield tuple(int(key[rows[0]]) for key in keys), rows


@dataclass(frozen=True, slots=True)
class Passed:
    """Offsets [since, until) that a consumer passed by a poll that did not give them, nor anything later."""

    log: int
    process: int
    since: int
    until: int
    poll_index: int
    poll_ns: int


@dataclass(slots=True)
class Stay:
    """Where a consumer is in a partition, from when it was put there until it is put elsewhere."""

    next: int
    """Behind the last record that it was given; where it was put before any."""
    stands: int = -1
    """Where its last poll says that it is."""
    poll_index: int | None = None
    """Of the first poll since then that says that it is past ``next``."""
    poll_ns: int = 0

    def passed(self, log: int, process: int, poll_index: int) -> Passed:
        return Passed(log, process, self.next, self.stands, poll_index, self.poll_ns)


class Deliveries:
    """``given``: (process, log) -> offsets. ``lowest``: (process, log) -> the lowest offset at which it was
    put."""

    def __init__(self, about: AboutRun) -> None:
        self._about = about
        self.given: dict[tuple[int, int], Spans] = defaultdict(Spans)
        self.lowest: dict[tuple[int, int], int] = {}
        self.passed: list[Passed] = []
        self._stays: dict[int, dict[int, Stay]] = defaultdict(dict)

    def take(self, batch: pa.RecordBatch, placements: Sequence[Placement]) -> None:
        """The polls of these events, and the placements among them."""
        is_poll = pc.and_(pc.equal(batch.column("f"), "poll"), pc.equal(batch.column("type"), "ok"))
        polls = batch.filter(is_poll)
        records = records_of(polls, self._about)
        process = polls.column("process").to_numpy(zero_copy_only=False).astype(np.int64)
        for (who, log), rows in apart(process[records.row], records.log):
            self.given[who, log].add(records.offset[rows])
        self._follow(polls, process, records, placements)

    def _follow(
        self, polls: pa.RecordBatch, process: Ints, records: Records, placements: Sequence[Placement]
    ) -> None:
        order = np.lexsort((records.offset, records.log, records.row))
        row, log, offset = (column[order] for column in (records.row, records.log, records.offset))
        last = np.append((np.diff(row) != 0) | (np.diff(log) != 0), True)[: len(row)]
        highest = zip(row[last].tolist(), log[last].tolist(), offset[last].tolist(), strict=True)
        moves, move = iter(placements), None
        move, at = next(moves, None), next(highest, None)
        columns = (polls.column(name).to_pylist() for name in ("index", "time_ns", "topic", "extra"))
        for number, (who, index, ns, topic, extra) in enumerate(zip(process.tolist(), *columns, strict=True)):
            while move is not None and move.index < index:
                self._put(move)
                move = next(moves, None)
            stays = self._stays[who]
            while at is not None and at[0] == number:
                stay = stays.setdefault(at[1], Stay(at[2] + 1))
                if at[2] >= stay.next:
                    stay.next, stay.poll_index = at[2] + 1, None
                at = next(highest, None)
            if extra and stays and (positions := orjson.loads(extra).get("positions")):
                self._stood(stays, topic, positions, index, ns)
        while move is not None:
            self._put(move)
            move = next(moves, None)

    def _stood(
        self, stays: dict[int, Stay], topic: str, positions: dict[str, int], index: int, ns: int
    ) -> None:
        for number, position in positions.items():
            log = self._about.logs.get((topic, int(number)))
            stay = stays.get(log.number) if log else None
            if stay is None:
                continue
            if position <= stay.next:
                stay.poll_index = None
            elif stay.poll_index is None:
                stay.poll_index, stay.poll_ns = index, ns
            stay.stands = position

    def _put(self, move: Placement) -> None:
        stays = self._stays[move.process]
        for partition in {*move.partitions, *move.positions}:
            if log := self._about.logs.get((move.topic, partition)):
                start = move.positions.get(partition, -1)
                self._leave(move.process, log.number)
                if start >= 0:
                    stays[log.number] = Stay(start)
                    key = move.process, log.number
                    self.lowest[key] = min(start, self.lowest.get(key, start))
        if move.f != "assign":
            for number in [
                one for one in stays if self._about.of_number[one].partition not in move.partitions
            ]:
                self._leave(move.process, number)

    def _leave(self, process: int, log: int) -> None:
        stay = self._stays[process].pop(log, None)
        if stay is not None and stay.poll_index is not None:
            self.passed.append(stay.passed(log, process, stay.poll_index))

    def passed_by(self, log: int) -> list[Passed]:
        """... of a partition, also of those that are there still."""
        found = [one for one in self.passed if one.log == log]
        for process, stays in self._stays.items():
            if (stay := stays.get(log)) and stay.poll_index is not None:
                found.append(stay.passed(log, process, stay.poll_index))
        return found

    def finish(self) -> None:
        for process, stays in self._stays.items():
            for log in list(stays):
                self._leave(process, log)

    def of_group(self, members: Iterable[int], log: int) -> Spans:
        """What these processes were given of a partition."""
        return Spans.union(self.given[one, log] for one in members if (one, log) in self.given)
