"""What consumers were given, and where they stood after their polls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.anomalies.about import AboutRun
from wrackline.checkers.anomalies.groups.events import ASSIGN, Said
from wrackline.checkers.anomalies.groups.records import Records, Spans, apart, records_of
from wrackline.checkers.inputs.row_groups import ints


class Passed(NamedTuple):
    """Offsets [since, until) that a consumer passed by a poll that did not give them, nor anything later."""

    process: int
    log: int
    since: int
    until: int
    poll_index: int
    poll_ns: int


@dataclass(slots=True)
class Stay:
    """A consumer in a partition, from when it was put there until it is put elsewhere."""

    next: int
    """Behind the last record that it was given; where it was put before any."""
    stands: int = -1
    """Where its last poll says that it is."""
    poll: tuple[int, int] | None = None
    """(index, ns) of the first poll that said that it is past ``next``."""


class Deliveries:
    """``given``: (process, log) -> offsets. ``lowest``: (process, log) -> the lowest offset at which it was
    put."""

    def __init__(self, about: AboutRun) -> None:
        self._about = about
        self.given: dict[tuple[int, int], Spans] = {}
        self.lowest: dict[tuple[int, int], int] = {}
        self._passed: list[Passed] = []
        self._stays: dict[int, dict[int, Stay]] = defaultdict(dict)

    def take(self, batch: pa.RecordBatch, moves: Sequence[Said]) -> None:
        """The polls of these events, and the moves among them."""
        is_poll = pc.and_(pc.equal(batch.column("f"), "poll"), pc.equal(batch.column("type"), "ok"))
        polls = batch.filter(is_poll)
        records, process = records_of(polls, self._about), ints(polls.column("process"))
        for (who, log), rows in apart(process[records.row], records.log):
            fresh = Spans.of(records.offset[rows])
            self.given[who, log] = Spans.union(
                [self.given[who, log], fresh] if (who, log) in self.given else [fresh]
            )
        columns = (polls.column(name).to_pylist() for name in ("index", "time_ns", "topic", "extra"))
        highest, to_come = _highest(records), list(reversed(moves))
        for row, (who, index, ns, topic, extra) in enumerate(zip(process.tolist(), *columns, strict=True)):
            while to_come and to_come[-1].index < index:
                self._put(to_come.pop())
            stays = self._stays[who]
            for log, offset in highest.get(row, ()):
                stay = stays.setdefault(log, Stay(offset + 1))
                if offset >= stay.next:
                    stay.next, stay.poll = offset + 1, None
            if extra and stays and (positions := orjson.loads(extra).get("positions")):
                for number, position in positions.items():
                    known = self._about.logs.get((topic, int(number)))
                    here = stays.get(known.number) if known else None
                    if here is not None:
                        here.poll = (here.poll or (index, ns)) if position > here.next else None
                        here.stands = position
        for move in reversed(to_come):
            self._put(move)

    def _put(self, move: Said) -> None:
        stays = self._stays[move.process]
        for partition in {*move.partitions, *move.offsets}:
            if log := self._about.logs.get((move.topic, partition)):
                self._leave(move.process, log.number)
                start, key = move.offsets.get(partition, -1), (move.process, log.number)
                if start >= 0:
                    stays[log.number] = Stay(start)
                    self.lowest[key] = min(start, self.lowest.get(key, start))
        for log_number in list(stays) if move.f != ASSIGN else ():
            if self._about.of_number[log_number].partition not in move.partitions:
                self._leave(move.process, log_number)

    def _leave(self, process: int, log: int) -> None:
        self._passed += self._left(process, log, self._stays[process].pop(log, None))

    @staticmethod
    def _left(process: int, log: int, stay: Stay | None) -> list[Passed]:
        if stay is None or stay.poll is None:
            return []
        return [Passed(process, log, stay.next, stay.stands, *stay.poll)]

    def passed(self) -> list[Passed]:
        """So far."""
        still = [self._left(who, *stay) for who, stays in self._stays.items() for stay in stays.items()]
        return sum(still, list(self._passed))

    def to(self, members: Iterable[int], log: int) -> Spans:
        """What these processes were given of a partition."""
        return Spans.union(self.given[who, log] for who in members if (who, log) in self.given)


def _highest(records: Records) -> dict[int, list[tuple[int, int]]]:
    """Event -> of each of its partitions the highest offset."""
    order = np.lexsort((records.offset, records.log, records.row))
    some = records.take(order)
    last = np.append((np.diff(some.row) != 0) | (np.diff(some.log) != 0), True)[: len(order)]
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, log, offset, _ in zip(*(column[last].tolist() for column in some), strict=True):
        found[row].append((log, offset))
    return found
