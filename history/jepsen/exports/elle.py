"""The models ``list-append`` and ``rw-register``, for Elle.

Of a history without transactions ``list-append`` has transactions of one append or one read each: a send of
several records is none, since each record has its own outcome.

A history of transactional producers (the workload ``txn``) is told by transactions: what a
transaction polled, then what it wrote (it is not given its own records before it is committed); each poll
outside of them and each final read is a transaction of reads. A *key* is what one process wrote to one
partition, ``WRITES`` records at most, so that

* only one process writes to a key, one transaction after another: Kafka lets transactions of several
  producers interleave differently in different partitions, which would be cycles of writes (G0) and no error;
* a read of a key is a whole prefix of it. A consumer that began at the start of a partition and went on has
  been given one; where it was put back (after an abort, or at what its group had committed), what it had been
  given from there on no longer counts. Of a consumer that began elsewhere nothing is told.

So the history of a system that keeps its promise is ``read-committed`` (``--consistency read-committed``) and
no more: polls may lag behind, and those of several partitions do not belong to one moment.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wrackline.history.jepsen.exports.common import (
    Keys,
    Place,
    Processes,
    Row,
    extra_of,
    numbered,
    outcome_of,
    txn,
)
from wrackline.history.jepsen.text import Operation
from wrackline.history.model import parts_of
from wrackline.values import Keyword

WRITES = 64
"""A key is not written to more often, since each read of a list repeats it."""


def list_append(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """``:append`` and ``:r`` of lists."""
    head, rest = _until_it_shows(events)
    if head is None:
        yield from numbered(_Transactions("append").operations(rest))
    else:
        yield from numbered(_single(head, keys))


def rw_register(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """``:w`` and ``:r`` of registers: a read is of the last value of what ``list-append`` has as a list.
    Nothing of a history without transactions."""
    del keys
    head, rest = _until_it_shows(events)
    if head is None:
        yield from numbered(_Transactions("w").operations(rest))


def _until_it_shows(events: Iterable[Row]) -> tuple[Iterable[Row] | None, Iterable[Row]]:
    """(all events, nothing) of a history without transactional producers; (None, all events) of one with
    them."""
    seen: list[Row] = []
    rest = iter(events)
    for row in rest:
        seen.append(row)
        if row["process"] >= 0 and row["f"] == "send":
            whole = itertools.chain(seen, rest)
            return (None, whole) if "transactional_id" in extra_of(row) else (whole, ())
    return seen, ()


def _number(row: Row) -> int | None:
    number = extra_of(row).get("txn") if "txn" in (row["extra"] or "") else None
    return number if isinstance(number, int) else None


def _single(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """Transactions of one append or one read each.

    Each record of a send is of a process of its own, with the send's invocation and completion."""
    processes = Processes()
    prefixes: dict[Place, _Prefix] = {}
    for row in events:
        if row["process"] < 0:
            continue
        if row["f"] == "send":
            yield from _appends(row, keys, processes)
        elif row["f"] == "drain":
            yield from _prefix_read(row, keys, processes, prefixes)


def _appends(row: Row, keys: Keys, processes: Processes) -> Iterator[Operation]:
    for at, record in enumerate(row["records"] or ()):
        process = processes.of(row["process"], at)
        mop = [Keyword("append"), keys.of(row["topic"], record["partition"]), record["value"]]
        yield txn(row, process, outcome_of(row, record), [mop])


@dataclass
class _Prefix:
    invoked: bool = False
    values: list[int] = field(default_factory=list)


def _prefix_read(
    row: Row, keys: Keys, processes: Processes, prefixes: dict[Place, _Prefix]
) -> Iterator[Operation]:
    """One read from the first chunk's invocation to the last chunk's completion, if the read came to its
    end."""
    prefix = prefixes.setdefault((row["topic"], row["partition"]), _Prefix())
    key = keys.of(row["topic"], row["partition"])
    process = processes.of("drain", row["topic"], row["partition"])
    if not prefix.invoked:
        prefix.invoked = True
        yield txn(row, process, "invoke", [[Keyword("r"), key, None]])
    if row["type"] == "ok":
        prefix.values.extend(record["value"] for record in row["records"] or ())
        if extra_of(row).get("complete") is True:
            yield txn(row, process, "ok", [[Keyword("r"), key, prefix.values]])


@dataclass
class _Log:
    """The records that one consumer has been given of one partition, from its start on."""

    upto: int = 0
    order: list[tuple[int, int]] = field(default_factory=list)
    """(offset, key)"""
    lists: dict[int, list[int]] = field(default_factory=dict)

    def give(self, offset: int, key: int, value: int) -> None:
        self.order.append((offset, key))
        self.lists.setdefault(key, []).append(value)
        self.upto = max(self.upto, offset + 1)

    def go_back(self, position: int) -> None:
        while self.order and self.order[-1][0] >= position:
            _, key = self.order.pop()
            self.lists[key].pop()
        self.upto = position


@dataclass
class _Txn:
    """A transaction that has not completed: ``open`` operations of it are under way."""

    process: int
    open: int = 0
    writes: list[list[Any]] = field(default_factory=list)
    reads: list[list[Any]] = field(default_factory=list)
    kind: str = "ok"


class _Transactions:
    """The transactions of one history. ``write``: the word for a write, by which the model is known."""

    def __init__(self, write: str) -> None:
        self._write = write
        self._keys = Processes()
        self._processes = Processes()
        self._logs: dict[tuple[Any, str, int], _Log | None] = {}
        """By consumer, topic and partition; None: it did not begin at the start."""
        self._who: dict[int, Any] = {}
        """Process -> the consumer that it is, or goes on as."""
        self._open: dict[int, _Txn] = {}

    def operations(self, events: Iterable[Row]) -> Iterator[Operation]:
        for row in events:
            if row["process"] < 0:
                continue
            if row["f"] == "assign" and row["type"] == "ok":
                self._assigned(row)
            elif row["f"] in ("send", "poll"):
                number = _number(row)
                yield from self._alone(row) if number is None else self._of(number, row)
            elif row["f"] == "drain" and not extra_of(row).get("derived"):
                yield from self._alone(row)

    def _alone(self, row: Row) -> Iterator[Operation]:
        """A poll or a final read outside of transactions (a send outside is none of Elle's business)."""
        if row["f"] == "send":
            return
        process = self._processes.of(row["process"])
        if row["type"] != "ok":
            yield txn(row, process, row["type"], [])
            return
        if row["f"] == "drain" and row["offset"] == 0:
            self._logs.setdefault((row["process"], row["topic"], row["partition"]), _Log())
        yield txn(row, process, "ok", self._given(row))

    def _of(self, number: int, row: Row) -> Iterator[Operation]:
        about = self._open.get(number)
        if row["type"] == "invoke":
            first = about is None
            about = self._open.setdefault(number, _Txn(self._processes.of(row["process"])))
            about.open += 1
            if row["f"] == "send":
                about.writes = [self._wrote(row, record) for record in row["records"] or ()]
            if first:
                yield txn(row, about.process, "invoke", [])
            return
        if about is None:
            return
        about.open -= 1
        if row["f"] == "poll":
            about.reads = self._given(row)
            ended = extra_of(row).get("aborted") or row["type"]
        else:
            ended = row["type"]
        about.kind = ended if ended != "ok" else about.kind
        if not about.open:
            del self._open[number]
            reads = about.reads if about.kind == "ok" else []
            yield txn(row, about.process, about.kind, [*reads, *about.writes])

    # --- keys, and what consumers have been given of them

    def _key(self, row: Row, record: Mapping[str, int]) -> int:
        process, counter, _ = parts_of(record["value"])
        return self._keys.of(row["topic"], record["partition"], process, counter // WRITES)

    def _wrote(self, row: Row, record: Mapping[str, int]) -> list[Any]:
        return [Keyword(self._write), self._key(row, record), record["value"]]

    def _assigned(self, row: Row) -> None:
        """A consumer that says whose member it is goes on with what that member was given."""
        said = extra_of(row)
        who = self._who[row["process"]] = said.get("member", row["process"])
        for partition, position in (said.get("positions") or {}).items():
            place = (who, row["topic"], int(partition))
            known = self._logs.get(place)
            if known is not None and 0 <= position <= known.upto:
                known.go_back(position)
            else:
                self._logs[place] = _Log() if position == 0 else None

    def _given(self, row: Row) -> list[list[Any]]:
        """Reads of all keys that there were records of, as far as prefixes of them are known."""
        who = self._who.get(row["process"], row["process"])
        touched: dict[int, _Log] = {}
        for record in row["records"] or ():
            log = self._logs.get((who, row["topic"], record["partition"]))
            if log is not None and record["value"] >= 0:
                key = self._key(row, record)
                log.give(record["offset"], key, record["value"])
                touched[key] = log
        return [[Keyword("r"), key, self._read(log.lists[key])] for key, log in touched.items()]

    def _read(self, values: list[int]) -> Any:
        return list(values) if self._write == "append" else values[-1]
