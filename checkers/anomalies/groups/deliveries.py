"""Deliveries: the records that consumers were given, and their positions after their polls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import orjson

from wrackline.checkers.anomalies.groups.spans import Spans, apart
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.events import ASSIGN, EventBatch, GroupEvent, Records


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

    def take(self, events: EventBatch, moves: Sequence[GroupEvent]) -> None:
        """The polls of these events, and the moves among them."""
        is_poll = events.are("ok", "poll")
        records, polls = events.records.take(is_poll[events.records.of]), np.flatnonzero(is_poll)
        for (who, log), rows in apart(events.process[records.of], records.log):
            fresh = Spans.of(records.offset[rows])
            self.given[who, log] = Spans.union(
                [self.given[who, log], fresh] if (who, log) in self.given else [fresh]
            )
        numbers = (
            column[polls].tolist() for column in (events.process, events.index, events.ns, events.base)
        )
        highest, to_come = _highest(records), list(reversed(moves))
        for row, extra, who, index, ns, base in zip(
            polls.tolist(), events.texts("extra", polls), *numbers, strict=True
        ):
            while to_come and to_come[-1].index < index:
                self._put(to_come.pop())
            stays = self._stays[who]
            for log, offset in highest.get(row, ()):
                stay = stays.setdefault(log, Stay(offset + 1))
                if offset >= stay.next:
                    stay.next, stay.poll = offset + 1, None
            if extra and stays and (positions := orjson.loads(extra).get("positions")):
                for number, position in positions.items():
                    if here := stays.get(base + int(number)):
                        here.poll = (here.poll or (index, ns)) if position > here.next else None
                        here.stands = position
        for move in reversed(to_come):
            self._put(move)

    def _put(self, move: GroupEvent) -> None:
        stays = self._stays[move.process]
        for log in {*move.logs, *move.offsets}:
            self._leave(move.process, log)
            start, key = move.offsets.get(log, -1), (move.process, log)
            if start >= 0:
                stays[log] = Stay(start)
                self.lowest[key] = min(start, self.lowest.get(key, start))
        for log in list(stays) if move.f != ASSIGN else ():
            if self._about.of_number[log].partition not in move.partitions:
                self._leave(move.process, log)

    def _leave(self, process: int, log: int) -> None:
        self._passed += self._left(process, log, self._stays[process].pop(log, None))

    @staticmethod
    def _left(process: int, log: int, stay: Stay | None) -> list[Passed]:
        if stay is None or stay.poll is None:
            return []
        return [Passed(process, log, stay.next, stay.stands, *stay.poll)]

    def passed(self) -> list[Passed]:
        """Yields who went past what, so far."""
        still = [self._left(who, *stay) for who, stays in self._stays.items() for stay in stays.items()]
        return sum(still, list(self._passed))

    def to(self, members: Iterable[int], log: int) -> Spans:
        """Gives what these processes were given of a partition."""
        return Spans.union(self.given[who, log] for who in members if (who, log) in self.given)


def _highest(records: Records) -> dict[int, list[tuple[int, int]]]:
    """Event -> of each of its partitions the highest offset."""
    result: dict[int, list[tuple[int, int]]] = defaultdict(list)
    some = records.take(np.lexsort((records.offset, records.log, records.of)))
    last = np.append((np.diff(some.of) != 0) | (np.diff(some.log) != 0), True)[: len(some)]
    for row, log, offset in zip(*(c[last].tolist() for c in (some.of, some.log, some.offset)), strict=True):
        result[row].append((log, offset))
    return result
