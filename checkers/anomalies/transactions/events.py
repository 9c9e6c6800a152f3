"""A run's events as the walk reads them: once, in the order of their indexes.

What there is one of for each operation is decoded in Python; records are columns, since polls and the final
read have many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from wrackline.checkers.anomalies.transactions.coordinator import Coordinator, Transaction
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.events import EventBatch, Groups, Records
from wrackline.checkers.inputs.table import NONE, Ints, Table, concatenated


@dataclass(frozen=True, slots=True)
class Polls(Table[Ints]):
    """Polls that succeeded."""

    index: Ints
    ns: Ints
    process: Ints
    txn: Ints
    """The number of its transaction; NONE: of none."""
    undone: Ints
    """1: its transaction was aborted."""
    invoke_index: Ints
    """Of polls of transactions, as ``invoke_ns``; NONE where it does not follow its invocation."""
    invoke_ns: Ints


@dataclass(frozen=True, slots=True)
class Read:
    """A record that a poll gave, and which poll."""

    log: int
    value: int
    offset: int
    index: int
    ns: int
    process: int


@dataclass(slots=True)
class Events:
    coordinator: Coordinator
    members: Mapping[str, set[int]]
    """Group -> the processes that read for it."""
    polls: Polls
    given: Records
    """``of``: a place in ``polls``."""
    final: Records
    """``of``: the index of an event of the final read."""

    def read(self, row: int) -> Read:
        """A row of ``given``."""
        log, value, offset, poll = self.given.at(row)
        columns = (self.polls.index, self.polls.ns, self.polls.process)
        return Read(log, value, offset, *(int(column[poll]) for column in columns))


def read_events(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Events:
    """The events of a run, of which each batch has some, one after another."""
    reader = _Reader()
    for batch in batches:
        reader.take(EventBatch(batch, about))
    return Events(
        Coordinator(reader.transactions, reader.groups.requests),
        reader.groups.members,
        concatenated(Polls, reader.polls),
        concatenated(Records, reader.given),
        concatenated(Records, reader.final),
    )


@dataclass(slots=True)
class _Event:
    type: str
    extra: Mapping[str, Any]
    """As decoded."""
    index: int
    ns: int
    process: int


@dataclass
class _Reader:
    transactions: dict[int, Transaction] = field(default_factory=dict)
    groups: Groups = field(default_factory=Groups)
    polls: list[Polls] = field(default_factory=list)
    given: list[Records] = field(default_factory=list)
    final: list[Records] = field(default_factory=list)
    _newest: dict[str, Transaction] = field(default_factory=dict)
    """By transactional id."""
    _open: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Process -> (transaction, index, ns) of the send or poll that it has invoked last."""

    def take(self, events: EventBatch) -> None:
        for of_group in events.group_events():
            self.groups.take(of_group)
        size, records = len(events.index), events.records
        polls = np.flatnonzero(events.are("ok", "poll"))
        place = np.full(size, NONE)
        place[polls] = sum(map(len, self.polls)) + np.arange(len(polls))
        self.given.append(_of(records, place))
        self.final.append(_of(records, np.where(events.are("ok", "drain"), events.index, NONE)))
        of = Polls(
            *(events.index, events.ns, events.process),
            *(np.full(size, value) for value in (NONE, 0, NONE, NONE)),
        )
        is_send, is_poll = events.are(None, "send"), events.are(None, "poll")
        spoken = (events.say('"txn"') & (is_send | is_poll)) | (events.say('"aborted"') & is_poll)
        rows = np.flatnonzero(spoken)
        sent = records.take((spoken & is_send)[records.of] & (records.value >= 0))
        each = zip(*(column.tolist() for column in (sent.log, sent.value, sent.offset)), strict=True)
        columns = (events.index, events.ns, events.process, is_send, np.bincount(sent.of, minlength=size))
        texts = (events.texts(name, rows) for name in ("type", "extra"))
        for row, outcome, extra, *numbers, sends, count in zip(
            rows.tolist(), *texts, *(column[rows].tolist() for column in columns), strict=True
        ):
            event = _Event(outcome, orjson.loads(extra), *numbers)
            if sends:
                self._send(event, islice(each, count))
            else:
                self._poll(event, of, row)
        self.polls.append(of.take(polls))

    def _paired(self, event: _Event, number: int) -> tuple[int, int] | None:
        """Index and time of its invocation, where it succeeded and follows that in its process."""
        before = self._open.pop(event.process, None)
        if event.type == "invoke":
            self._open[event.process] = (number, event.index, event.ns)
        return before[1:] if before is not None and before[0] == number and event.type == "ok" else None

    def _send(self, event: _Event, records: Iterable[tuple[int, int, int]]) -> None:
        known = {(log, value): offset for log, value, offset in records}
        number = _number(event.extra.get("txn"))
        if number is None:
            return
        paired = self._paired(event, number) is not None
        one = self.transactions.get(number) or Transaction(number, process=event.process)
        if event.type == "invoke":
            named = event.extra.get("transactional_id")
            one.transactional_id = None if named is None else str(named)
            one.invoke_index, one.invoke_ns = event.index, event.ns
        else:
            one.complete_index, one.complete_ns, one.type = event.index, event.ns, event.type
            one.asked, one.end_ns = event.extra.get("asked"), _number(event.extra.get("end_ns"))
            one.paired = paired
        one.records |= known
        if number not in self.transactions:
            self._begin(one)

    def _begin(self, one: Transaction) -> None:
        self.transactions[one.number] = one
        if one.transactional_id is not None:
            if before := self._newest.get(one.transactional_id):
                before.settled_by = one
            self._newest[one.transactional_id] = one

    def _poll(self, event: _Event, polls: Polls, row: int) -> None:
        if event.extra.get("aborted") == "fail":
            polls.undone[row] = 1
        number = _number(event.extra.get("txn"))
        if number is not None:
            polls.txn[row] = number
            paired = self._paired(event, number)
            if paired is not None:
                polls.invoke_index[row], polls.invoke_ns[row] = paired


def _of(records: Records, of_event: Ints) -> Records:
    """The records of some events, and what they are of."""
    of = of_event[records.of]
    return replace(records, of=of).take(of != NONE)


def _number(field: Any) -> int | None:
    return None if field is None else int(field)
