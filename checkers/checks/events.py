"""Events as walks read them: records in columns, and one by one the few that speak of groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.inputs.row_groups import ints
from wrackline.checkers.inputs.table import NONE, Bools, Ints, Table

COMMIT, COMMITTED, REBALANCE, SUBSCRIBE = "commit", "committed", "rebalance", "subscribe"
ASSIGN, CRASH = "assign", "crash"
OF_GROUPS = frozenset({COMMIT, COMMITTED, REBALANCE, SUBSCRIBE, ASSIGN, CRASH})
_COLUMNS = ("index", "time_ns", "process", "type", "f", "extra")


@dataclass(frozen=True, slots=True)
class Records(Table[Ints]):
    """Records of partitions that the run knows, each with what it is ``of``, such as a row of a batch."""

    log: Ints
    value: Ints
    offset: Ints
    of: Ints

    def at(self, row: int) -> tuple[int, int, int, int]:
        """Gives one record as numbers."""
        return int(self.log[row]), int(self.value[row]), int(self.offset[row]), int(self.of[row])


class EventBatch:
    """Events with the columns of the history (wrackline.history.store.schema)."""

    def __init__(self, batch: pa.RecordBatch, about: AboutRun) -> None:
        self._batch, self._about = batch, about
        self.index, self.ns, self.process = (self.ints(name) for name in ("index", "time_ns", "process"))
        bases = {log.topic: log.number - log.partition for log in about.logs.values()}
        self.base = self.numbered("topic", lambda name: bases.get(name, NONE))
        """The log of partition 0 of each event's topic; NONE where none is known of it."""
        lists = batch.column("records")
        of = np.repeat(np.arange(len(batch)), ints(pc.list_value_length(lists), null=0))
        flat = lists.flatten()
        partition, value, offset = (ints(flat.field(name)) for name in ("partition", "value", "offset"))
        log = np.where(self.base[of] == NONE, NONE, self.base[of] + partition)
        records = Records(log, value, offset, of)
        self.records = records.take(np.isin(log, np.array(list(about.of_number), np.int64)))
        """``of``: the row of the event."""

    def ints(self, name: str) -> Ints:
        return ints(self.column(name))

    def numbered(self, name: str, number: Callable[[str], int]) -> Ints:
        """Turns a column of texts into numbers; NONE for null."""
        texts = self.column(name)
        texts = texts if isinstance(texts, pa.DictionaryArray) else texts.dictionary_encode()
        result = np.array([*map(number, texts.dictionary.to_pylist()), NONE], np.int64)
        return result[ints(texts.indices, null=-1)]

    def column(self, name: str) -> pa.Array:
        return self._batch.column(name)

    def are(self, outcome: str | None, kind: str | None = None) -> Bools:
        """Says which events are of this type, and of this kind; None: of any."""
        result = np.ones(len(self.index), np.bool_)
        for name, expected in (("type", outcome), ("f", kind)):
            if expected is not None:
                result &= pc.equal(self.column(name), expected).to_numpy(zero_copy_only=False)
        return result

    def say(self, text: str) -> Bools:
        """Says which events have this in their ``extra``."""
        result = pc.match_substring(self.column("extra"), text).fill_null(False)
        return np.asarray(result.to_numpy(zero_copy_only=False), np.bool_)

    def texts(self, name: str, rows: Ints) -> list[Any]:
        """Gives the texts of a column in these rows."""
        result: list[Any] = self.column(name).take(pa.array(rows)).to_pylist()
        return result

    def group_events(self) -> Iterator[GroupEvent]:
        """Yields the events that speak of groups, in their order."""
        mine = pc.is_in(self.column("f"), value_set=pa.array(sorted(OF_GROUPS)))
        base = self.base[mine.to_numpy(zero_copy_only=False)].tolist()
        rows = self._batch.select(_COLUMNS).filter(mine).to_pylist()
        for row, of_topic in zip(rows, base, strict=True):
            yield _group_event(row, of_topic, self._about.of_number)


@dataclass(slots=True, eq=False)
class GroupEvent:
    """An event, with what ``extra`` says of groups."""

    index: int
    ns: int
    process: int
    type: str
    f: str
    is_empty: bool
    """``extra`` says nothing."""
    group: str | None
    member: str | None
    generation: int
    """Below 0: nobody told."""
    protocol: str | None
    partitions: tuple[int, ...]
    """What a consumer has from then on, of one topic ..."""
    logs: tuple[int, ...]
    """... and which logs these are."""
    offsets: Mapping[int, int]
    """Log -> what is committed, or where a consumer begins; below 0 for nothing, or anywhere."""
    txn: int
    """Below 0: it is of no transaction."""
    asked: str
    """Which end of its transaction was asked for; empty: it is not on record."""
    is_async: bool
    is_lost: bool
    """A member gives up what it had without being asked. The generation that it names may be one that was
    never stored: a coordinator names it when members join, before it writes it down."""
    coordinator: int
    """The node that answered; below 0: nobody told."""
    is_certain: bool
    """Of the coordinator: it was asked on a connection to that node, and no client took it for one."""
    is_stable: bool
    """The answer was to be stable (KIP-447)."""

    @property
    def of(self) -> str:
        return self.group or ""

    @property
    def who(self) -> str:
        """Names the member, as far as the client knows it."""
        return f"process {self.process}" if self.member is None else self.member


_LEAST = {COMMIT: 0, COMMITTED: -1}
"""The least offset that these may name."""


def _group_event(row: Mapping[str, Any], base: int, known: Mapping[int, AboutLog]) -> GroupEvent:
    extra, f = orjson.loads(row["extra"]) if row["extra"] else {}, row["f"]
    extra = extra if isinstance(extra, dict) else {}
    offsets = extra.get("offsets" if f in _LEAST else "positions")
    pairs = offsets.items() if isinstance(offsets, dict) else ()
    placed = [(base + int(key), at) for key, at in pairs if key.isdigit() and isinstance(at, int)]
    partitions = [one for one in extra.get("partitions") or () if isinstance(one, int)] if f != CRASH else ()
    return GroupEvent(
        index=row["index"],
        ns=row["time_ns"],
        process=row["process"],
        type=intern(row["type"]),
        f=intern(f),
        is_empty=not extra,
        group=_text(extra.get("group")),
        member=_text(extra.get("member")),
        generation=_number(extra.get("generation")),
        protocol=_text(extra.get("protocol")),
        partitions=tuple(partitions),
        logs=tuple(base + one for one in partitions if base + one in known),
        offsets={log: at for log, at in placed if log in known and at >= _LEAST.get(f, at)},
        txn=_number(extra.get("txn")),
        asked=_text(extra.get("asked")) or "",
        is_async=extra.get("mode") == "async",
        is_lost=extra.get("lost") is True,
        coordinator=_number(extra.get("coordinator")),
        is_certain=extra.get("coordinator_by") == "connection",
        is_stable=extra.get("stable") is True,
    )


def _text(value: Any) -> str | None:
    return None if value is None else intern(value if isinstance(value, str) else str(value))


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdigit()) else -1


@dataclass(slots=True, eq=False)
class Request:
    """A ``commit`` or ``committed``."""

    event: GroupEvent
    """The event that says most of it."""
    since: int
    """Index of the invocation."""
    done: GroupEvent | None = None
    """The completion; None: it never completed."""

    @property
    def type(self) -> str:
        return "info" if self.done is None else self.done.type

    @property
    def complete_index(self) -> int | None:
        return None if self.done is None else self.done.index

    @property
    def complete_ns(self) -> int | None:
        return None if self.done is None else self.done.ns

    @property
    def last_index(self) -> int:
        """Gives the index of its completion, else of its invocation."""
        return self.since if self.done is None else self.done.index


class Groups:
    """Collects what a run says of groups, but for records."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], Request] = {}
        self.members: dict[str, set[int]] = defaultdict(set)
        """Group -> the processes that named it as theirs."""
        self.requests: list[Request] = []
        """In the order of their invocations."""

    def take(self, event: GroupEvent) -> Request | None:
        """Returns what it completes."""
        # Who assigns partitions to itself reads for a group only where it says so: its commits may be those
        # of a transaction, and of another process.
        if event.f in (COMMIT, REBALANCE, SUBSCRIBE) or (event.f == ASSIGN and event.group is not None):
            self.members[event.of].add(event.process)
        if event.f not in _LEAST:
            return None
        begun = self._open.pop((event.process, event.f), None)
        if event.type == "invoke":
            self._open[event.process, event.f] = Request(event, event.index)
            self.requests.append(self._open[event.process, event.f])
            return None
        if begun is not None:
            begun.done, begun.event = event, begun.event if event.is_empty else event
        return begun
