"""A run's events as the walk reads them: once, in the order of their indexes.

What there is one of for each operation is decoded in Python; records are columns, since polls and the final
read have many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.anomalies.about import AboutRun
from wrackline.checkers.anomalies.transactions.coordinator import (
    COMMIT,
    COMMITTED,
    Coordinator,
    Offsets,
    Transaction,
)
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints
from wrackline.checkers.inputs.table import Table, concatenated

KINDS = ("send", "poll", "drain", COMMIT, COMMITTED, "rebalance", "subscribe", "assign")
_SEND, _POLL, _DRAIN, _COMMIT, _COMMITTED, _REBALANCE, _SUBSCRIBE, _ASSIGN = range(len(KINDS))
_OK = "ok"


@dataclass(frozen=True, slots=True)
class Records(Table[Ints]):
    """Records, each with what it is ``of``: a place in ``Events.polls``, or the index of an event of the
    final read."""

    log: Ints
    value: Ints
    offset: Ints
    of: Ints


@dataclass(frozen=True, slots=True)
class OfTransaction(Table[Ints]):
    """What polls say of transactions."""

    txn: Ints
    """The number of its transaction; NONE: of none."""
    undone: Ints
    """1: its transaction was aborted."""
    invoke_index: Ints
    """Of polls of transactions, as ``invoke_ns``; NONE where it does not follow its invocation."""
    invoke_ns: Ints


@dataclass(frozen=True, slots=True)
class Polls(Table[Ints]):
    """Polls that succeeded."""

    index: Ints
    ns: Ints
    process: Ints
    of: OfTransaction


@dataclass(slots=True)
class Events:
    coordinator: Coordinator
    polls: Polls
    given: Records
    final: Records
    members: dict[int, set[str]]
    """Process -> the groups that it reads for."""


def read_events(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Events:
    """The events of a run, of which each batch has some, one after another."""
    reader = _Reader(about)
    for batch in batches:
        reader.take(batch)
    return Events(
        reader.coordinator,
        concatenated(Polls, reader.polls),
        concatenated(Records, reader.given),
        concatenated(Records, reader.final),
        reader.members,
    )


@dataclass(slots=True)
class _Event:
    type: str
    extra: Mapping[str, Any]
    """As decoded."""
    index: int
    ns: int
    process: int
    base: int
    """The log of partition 0 of its topic."""


@dataclass
class _Reader:
    about: AboutRun
    coordinator: Coordinator = field(default_factory=Coordinator)
    polls: list[Polls] = field(default_factory=list)
    given: list[Records] = field(default_factory=list)
    final: list[Records] = field(default_factory=list)
    members: dict[int, set[str]] = field(default_factory=dict)
    _open: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Process -> (transaction, index, ns) of the send or poll that it has invoked last."""
    _asked: dict[tuple[int, str], Offsets] = field(default_factory=dict)
    """(process, f) -> the commit or the question that it has not completed."""
    _polls: int = 0

    def __post_init__(self) -> None:
        self._bases = {log.topic: log.number - log.partition for log in self.about.logs.values()}
        self._logs = self.about.of_number
        self._numbers = np.array(sorted(self._logs), np.int64)

    def take(self, batch: pa.RecordBatch) -> None:
        kind = _ints(pc.index_in(batch.column("f"), pa.array(KINDS)).fill_null(-1))
        done = pc.equal(batch.column("type"), _OK).to_numpy(zero_copy_only=False)
        index, ns, process = (_ints(batch.column(name)) for name in ("index", "time_ns", "process"))
        base = self._base(batch.column("topic"))
        sizes = _ints(pc.list_value_length(batch.column("records")).fill_null(0))
        records = _records(batch, base, sizes)
        polls = np.flatnonzero((kind == _POLL) & done)
        place = np.full(len(kind), NONE)
        place[polls] = self._polls + np.arange(len(polls))
        self._polls += len(polls)
        self.given.append(self._known(records, place))
        self.final.append(self._known(records, np.where((kind == _DRAIN) & done, index, NONE)))
        of = OfTransaction(*(np.full(len(kind), value) for value in (NONE, 0, NONE, NONE)))
        extra = batch.column("extra")
        spoken = _has(extra, '"txn"') | (_has(extra, '"aborted"') & (kind == _POLL))
        spoken &= (kind == _SEND) | (kind == _POLL)
        rows = np.flatnonzero(spoken | (kind > _DRAIN))
        sent = records.take((spoken & (kind == _SEND))[records.of])
        each = zip(*(column.tolist() for column in (sent.log, sent.value, sent.offset)), strict=True)
        types, texts = (batch.column(name).take(pa.array(rows)).to_pylist() for name in ("type", "extra"))
        columns = (rows, kind[rows], index[rows], ns[rows], process[rows], base[rows], sizes[rows])
        for type_, text, row, f, *numbers, size in zip(
            types, texts, *(c.tolist() for c in columns), strict=True
        ):
            event = _Event(type_, orjson.loads(text) if text else {}, *numbers)
            if f == _SEND:
                self._send(event, islice(each, size))
            elif f == _POLL:
                self._poll(event, of, row)
            elif f in (_COMMIT, _COMMITTED):
                self._offsets(event, KINDS[f])
            if f in (_COMMIT, _REBALANCE, _SUBSCRIBE) or (f == _ASSIGN and "group" in event.extra):
                self.members.setdefault(event.process, set()).add(_group(event.extra))
        self.polls.append(Polls(index[polls], ns[polls], process[polls], of.take(polls)))

    def _known(self, records: Records, of_event: Ints) -> Records:
        """The records of some events, as far as they are in a partition that is known."""
        of = of_event[records.of]
        there = (of != NONE) & np.isin(records.log, self._numbers)
        return Records(records.log[there], records.value[there], records.offset[there], of[there])

    def _base(self, topics: pa.Array) -> Ints:
        """The log of partition 0 of each event's topic; NONE for one that no log is known of."""
        encoded = topics.dictionary_encode()
        bases = [self._bases.get(name, NONE) for name in encoded.dictionary.to_pylist()]
        found: Ints = np.array([*bases, NONE], np.int64)[_ints(encoded.indices.fill_null(-1))]
        return found

    def _paired(self, event: _Event, number: int) -> tuple[int, int] | None:
        """Index and time of its invocation, where it succeeded and follows that in its process."""
        before = self._open.pop(event.process, None)
        if event.type == "invoke":
            self._open[event.process] = (number, event.index, event.ns)
        return before[1:] if before is not None and before[0] == number and event.type == _OK else None

    def _send(self, event: _Event, records: Iterable[tuple[int, int, int]]) -> None:
        known = {(log, value): offset for log, value, offset in records if value >= 0 and log in self._logs}
        number = _number(event.extra.get("txn"))
        if number is None:
            return
        paired = self._paired(event, number) is not None
        one = self.coordinator.transactions.get(number) or Transaction(number, process=event.process)
        if event.type == "invoke":
            named = event.extra.get("transactional_id")
            one.transactional_id = None if named is None else str(named)
            one.invoke_index, one.invoke_ns = event.index, event.ns
        else:
            one.complete_index, one.complete_ns, one.type = event.index, event.ns, event.type
            one.asked, one.end_ns = event.extra.get("asked"), _number(event.extra.get("end_ns"))
            one.paired = paired
        one.records |= known
        if number not in self.coordinator.transactions:
            self.coordinator.begin(one)

    def _poll(self, event: _Event, of: OfTransaction, row: int) -> None:
        if event.extra.get("aborted") == "fail":
            of.undone[row] = 1
        number = _number(event.extra.get("txn"))
        if number is not None:
            of.txn[row] = number
            paired = self._paired(event, number)
            if paired is not None:
                of.invoke_index[row], of.invoke_ns[row] = paired

    def _offsets(self, event: _Event, f: str) -> None:
        """A commit, or a question for what is committed. The completion says most."""
        if event.type == "invoke":
            one = Offsets(f, _group(event.extra), {}, None, event.process, event.index)
            self._asked[event.process, f] = one
            self.coordinator.offsets.append(one)
        else:
            asked = self._asked.pop((event.process, f), None)
            if asked is None:
                return
            one = asked
            one.type, one.complete_index, one.complete_ns = event.type, event.index, event.ns
        if event.extra:
            least = 0 if f == COMMIT else -1
            named = (event.extra.get("offsets") or {}).items()
            logs = ((event.base + int(p), int(o)) for p, o in named if o is not None)
            one.group, one.txn = _group(event.extra), _number(event.extra.get("txn"))
            one.offsets = {log: offset for log, offset in logs if offset >= least and log in self._logs}


def _ints(column: pa.Array) -> Ints:
    found: Ints = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found


def _has(extra: pa.Array, text: str) -> Bools:
    found: Bools = pc.match_substring(extra, text).fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _records(batch: pa.RecordBatch, base: Ints, sizes: Ints) -> Records:
    """All records, ``of`` the rows of their events."""
    flat = batch.column("records").flatten()
    partition, value, offset = (_ints(flat.field(name)) for name in ("partition", "value", "offset"))
    of = np.repeat(np.arange(len(sizes)), sizes)
    return Records(np.where(base[of] == NONE, NONE, base[of] + partition), value, offset, of)


def _number(field: Any) -> int | None:
    return None if field is None else int(field)


def _group(extra: Mapping[str, Any]) -> str:
    return str(extra.get("group") or "")
