"""Events of share groups: what each member acquired, and what became of each acknowledgement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.checks.events import CRASH, SUBSCRIBE, EventBatch, Records
from wrackline.checkers.inputs.table import NEVER, NONE

ACQUIRE, ACKNOWLEDGE, LAG = "acquire", "acknowledge", "lag"
FINAL = ("accept", "reject")
RELEASE, RENEW = "release", "renew"
OF_SHARE_GROUPS = frozenset({ACQUIRE, ACKNOWLEDGE, LAG, SUBSCRIBE, CRASH})
_COLUMNS = ("index", "time_ns", "process", "type", "f", "extra")


@dataclass(slots=True, eq=False)
class Delivery:
    """A record as a member acquired it."""

    process: int
    value: int
    count: int
    """The delivery count; 0: nobody told."""
    since_ns: int
    """It was not acquired before."""
    begin: int
    """Index of the poll's invocation."""
    index: int
    ns: int
    """When the member had it."""
    locked_ns: int = 0
    """Its lock does not end before."""
    renewed: Answer | None = None
    """The last renewal of its lock that was confirmed, while its member was not given it again."""
    polled: list[tuple[int, int]] = field(default_factory=list)
    """(index, ns) of the first and the last poll that gave its member nothing since that renewal."""
    let_go: int = NEVER
    """Index from which on its member may not have it any more: it acknowledged it, left or crashed."""


@dataclass(slots=True, eq=False)
class Answer:
    """The acknowledgement of one record."""

    kind: str
    process: int
    begin: int
    begin_ns: int
    delivery: Delivery | None
    """What it answers; None: its member was not given it."""
    index: int = -1
    """Of the completion that says that it succeeded; below 0: nobody knows what became of it."""
    ns: int = -1

    @property
    def succeeded(self) -> bool:
        return self.index >= 0


@dataclass(slots=True)
class Course:
    """All that happened to one record in one group."""

    deliveries: list[Delivery] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LagAnswer:
    index: int
    ns: int
    start: int
    lag: int


@dataclass(slots=True)
class ShareGroup:
    """``limit`` and ``lock_ns`` are 0 where nobody told."""

    name: str
    limit: int = 0
    lock_ns: int = 0
    session_ns: int = 0
    courses: dict[int, dict[int, Course]] = field(default_factory=lambda: defaultdict(dict))
    """Log -> offset -> what happened."""
    lags: dict[int, LagAnswer] = field(default_factory=dict)
    """Log -> the last answer."""
    polled: list[int] = field(default_factory=list)
    """Indexes of invocations of polls that succeeded and gave nothing."""

    def course(self, log: int, offset: int) -> Course:
        return self.courses[log].setdefault(offset, Course())


class ShareEvents:
    """Gathers the events of a run."""

    def __init__(self) -> None:
        self.groups: dict[str, ShareGroup] = {}
        self._polls: dict[int, tuple[int, int]] = {}
        """Process -> (index, ns) of the poll that it has under way."""
        self._open: dict[int, dict[tuple[int, int], Answer]] = {}
        """Process -> the acknowledgements that it has under way, by log and offset."""
        self._held: dict[int, dict[tuple[int, int], Delivery]] = defaultdict(dict)
        """Member -> its last delivery of each record, since it joined."""
        self._renewed: dict[int, dict[tuple[int, int], Delivery]] = defaultdict(dict)
        """Member -> deliveries whose lock it has renewed, and that it was not given again yet."""

    def take(self, events: EventBatch) -> None:
        mine = pc.is_in(events.column("f"), value_set=pa.array(sorted(OF_SHARE_GROUPS)))
        rows = np.flatnonzero(mine.to_numpy(zero_copy_only=False))
        columns = [events.column(name).take(pa.array(rows)) for name in _COLUMNS]
        texts = zip(*(column.to_pylist() for column in columns), strict=True)
        begins = np.searchsorted(events.records.of, rows, "left").tolist()
        ends = np.searchsorted(events.records.of, rows, "right").tolist()
        for row, begin, end, (index, ns, process, kind, f, extra) in zip(
            rows.tolist(), begins, ends, texts, strict=True
        ):
            said = orjson.loads(extra) if extra else {}
            one = _Row(index, ns, process, kind, said, int(events.base[row]))
            match f:
                case "acquire":
                    self._acquire(one, events.records, range(begin, end))
                case "acknowledge":
                    self._acknowledge(one)
                case "lag":
                    self._lag(one)
                case "subscribe":
                    self._subscribe(one)
                case _:
                    self._crash(one)

    def _group(self, row: _Row) -> ShareGroup:
        name = str(row.extra.get("group", ""))
        return self.groups.setdefault(name, ShareGroup(name))

    def _subscribe(self, row: _Row) -> None:
        share = row.extra.get("share")
        if isinstance(share, dict):
            group = self._group(row)
            group.limit = int(share.get("limit") or 0)
            group.lock_ns = int(share.get("lock_ms") or 0) * 1_000_000
            group.session_ns = int(share.get("session_ms") or 0) * 1_000_000

    def _crash(self, row: _Row) -> None:
        self._renewed.pop(row.process, None)
        for delivery in self._held.pop(row.process, {}).values():
            delivery.let_go = min(delivery.let_go, row.index)

    def _acquire(self, row: _Row, records: Records, places: range) -> None:
        if row.type == "invoke":
            self._polls[row.process] = row.index, row.ns
            return
        begin, begin_ns = self._polls.pop(row.process, (row.index, row.ns))
        if row.type != "ok":
            return
        group, counts = self._group(row), row.extra.get("counts") or ()
        again = {(p, offset) for p, offset in row.extra.get("renewed") or ()}
        since_ns = int(row.extra.get("since_ns", begin_ns))
        if not len(places):
            group.polled.append(begin)
            for one in self._renewed[row.process].values():
                if begin > one.polled[0][0]:
                    one.polled[1:] = [(row.index, row.ns)]
        for number, place in enumerate(places):
            log, value, offset, _ = records.at(place)
            if (renewed := self._renewed[row.process].pop((log, offset), None)) is not None:
                renewed.renewed = None
            if (log - row.base, offset) in again:
                continue
            count = int(counts[number]) if number < len(counts) else 0
            delivery = Delivery(row.process, value, count, since_ns, begin, row.index, row.ns)
            delivery.locked_ns = since_ns + group.lock_ns
            group.course(log, offset).deliveries.append(delivery)
            self._held[row.process][log, offset] = delivery

    def _acknowledge(self, row: _Row) -> None:
        if row.type == "invoke":
            self._open[row.process] = dict(self._begun(row))
            return
        under_way = self._open.pop(row.process, {})
        for _, log, offset in self._named(row) if row.type in ("ok", "info") else ():
            answer = under_way.get((log, offset))
            if answer is None:
                continue
            answer.index, answer.ns = row.index, row.ns
            if answer.kind == RENEW and answer.delivery is not None:
                had, lock_ns = answer.delivery, self._group(row).lock_ns
                had.locked_ns = max(had.locked_ns, answer.begin_ns + lock_ns)
                had.renewed, had.polled = answer, [(row.index, row.ns)]
                self._renewed[had.process][log, offset] = had

    def _begun(self, row: _Row) -> Iterator[tuple[tuple[int, int], Answer]]:
        group, member = self._group(row), int(row.extra.get("member", row.process))
        for kind, log, offset in self._named(row):
            delivery = self._held[member].get((log, offset))
            answer = Answer(kind, row.process, row.index, row.ns, delivery)
            if delivery is not None and kind != RENEW:
                delivery.let_go = min(delivery.let_go, row.index)
            group.course(log, offset).answers.append(answer)
            yield (log, offset), answer

    def _named(self, row: _Row) -> Iterator[tuple[str, int, int]]:
        """(kind, log, offset) of the records that an acknowledgement names."""
        if row.base == NONE:
            return
        for kind, places in (row.extra.get("acks") or {}).items():
            for partition, offsets in places.items():
                yield from ((kind, row.base + int(partition), int(offset)) for offset in offsets)

    def _lag(self, row: _Row) -> None:
        if row.type != "ok" or row.base == NONE:
            return
        starts = row.extra.get("starts") or {}
        for partition, lag in (row.extra.get("lags") or {}).items():
            answer = LagAnswer(row.index, row.ns, int(starts.get(partition, 0)), int(lag))
            self._group(row).lags[row.base + int(partition)] = answer


@dataclass(frozen=True, slots=True)
class _Row:
    index: int
    ns: int
    process: int
    type: str
    extra: Mapping[str, Any]
    base: int
    """The log of partition 0 of its topic; NONE where it has none."""
