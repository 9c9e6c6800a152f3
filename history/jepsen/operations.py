"""Jepsen's operations as events of ours, in their order; the table at the head of
wrackline.history.jepsen.imports says what becomes of each."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wrackline.history.jepsen.consumers import Consumer, ours_in
from wrackline.history.jepsen.faults import Faults
from wrackline.history.jepsen.observed import Observed
from wrackline.history.jepsen.ops import NamedProcess, Op
from wrackline.history.jepsen.text import Operation
from wrackline.history.labels import CONSUMERS, NUMBERED_FROM
from wrackline.history.model import (
    ACKED_WITHOUT_OFFSET,
    CONTROL,
    CORRUPT,
    FAILED,
    FOREIGN,
    UNKNOWN,
    Event,
    Record,
    Type,
)
from wrackline.values import FALSE, TRUE, key_of, spelt

TOPIC = "key"
MAX_KEY = 1 << 20
_OPERATIONS = ("send", "poll", "txn")


@dataclass
class _Open:
    """An operation that was invoked and has not completed."""

    op: Operation
    sends: tuple[Record, ...] = ()
    polls: bool = False
    txn: int | None = None


@dataclass
class Reader:
    """``take`` raises KeyError, TypeError, ValueError, IndexError or AttributeError for what is no
    operation."""

    events: list[Event] = field(default_factory=list)
    keys: dict[Any, int] = field(default_factory=dict)
    open: dict[int, _Open] = field(default_factory=dict)
    consumers: dict[int, Consumer] = field(default_factory=dict)
    subscribers: set[int] = field(default_factory=set)
    faults: Faults = field(default_factory=Faults)
    observed: Observed = field(default_factory=Observed)
    numbers: dict[tuple[int, Any], int] = field(default_factory=dict)
    unseen: Counter[int] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    time_ns: int = 0
    transactions: int = 0
    began: bool = False

    def take(self, one: Op) -> None:
        op, process, f, kind = one.said, one.process, one.f, one.type
        self.time_ns = max(self.time_ns, one.time_ns or 0)
        if not self.began:
            self.began = True
            self.add(Event(CONTROL, Type.INFO, "phase", extra={"phase": "main"}))
        if process is None:
            for row in self.faults.take(f, op):
                self.add(row)
        elif isinstance(process, NamedProcess):
            raise ValueError(f"process {process!s:.40} is no number, and Jepsen's processes are")
        elif f in _OPERATIONS:
            self._invoke(process, op) if kind is Type.INVOKE else self._complete(process, op, kind)
        elif f == "assign":
            self._assign(process + CONSUMERS, op, kind)
        elif f == "subscribe":
            self._subscribe(process + CONSUMERS, op, kind)
        elif f in ("commit", "committed") and isinstance(op.get("value"), Mapping):
            self._committed(process + CONSUMERS, f, op, kind)
        elif f == "crash" and "group" in op:
            if kind is not Type.INVOKE:
                self.add(Event(process + CONSUMERS, Type.OK, "crash", topic=TOPIC, extra=ours_in(op)))
        else:
            # :crash says that a process ends; what it does next is under another number.
            self.ignored[f] += kind is not Type.INVOKE

    def add(self, event: Event) -> None:
        self.events.append(dataclasses.replace(event, time_ns=self.time_ns))

    def key(self, name: Any) -> int:
        """The partition that stands for a key."""
        name = key_of(name)
        if name not in self.keys:
            whole = isinstance(name, int) and 0 <= name < MAX_KEY and name not in self.keys.values()
            self.keys[name] = name if whole else max(self.keys.values(), default=-1) + 1
        return self.keys[name]

    def value(self, key: int, original: Any) -> int:
        """The value that stands for one of Jepsen's, which are unique by key only."""
        if original in (CORRUPT, FOREIGN):
            return int(original)  # of an exported history of ours; Jepsen's values are never negative
        if isinstance(original, int) and 0 <= original < 1 << 32:
            return key << 32 | original
        name = (key, original)
        return self.numbers.setdefault(name, NUMBERED_FROM + len(self.numbers))

    # --- sends and polls

    def _invoke(self, process: int, op: Operation) -> None:
        if process in self.open:
            raise ValueError(f"process {process} invokes a second operation")
        _refuse_no_mops(op.get("value"))
        sends = tuple(self._sent(mop, Type.INVOKE) for mop in op["value"] if mop[0] == "send")
        polls = any(mop[0] == "poll" for mop in op["value"])
        begun = self.open[process] = _Open(op, sends, polls, self._txn(op))
        extra, key = _extra(begun, op), op.get("key")
        if sends:
            self.add(Event(process, Type.INVOKE, "send", topic=TOPIC, key=key, records=sends, extra=extra))
        if polls:
            self.add(Event(process + CONSUMERS, Type.INVOKE, "poll", topic=TOPIC, extra=extra))

    def _txn(self, op: Operation) -> int | None:
        """Returns the number of the operation's transaction. Jepsen gives an operation several sends or polls
        in a test of transactions only; an exported history of ours says itself what is one."""
        txn = op.get("txn")
        if isinstance(txn, int):
            self.transactions = max(self.transactions, txn + 1)
            return txn
        if txn is FALSE or (op["f"] != "txn" and len(op["value"]) < 2):
            return None
        self.transactions += 1
        return self.transactions - 1

    def _complete(self, process: int, op: Operation, kind: Type) -> None:
        begun = self.open.pop(process, None)
        if begun is None:
            raise ValueError(f"process {process} completes what it never invoked")
        latency = self.time_ns - int(begun.op.get("time") or 0)
        error = None if op.get("error") is None else str(op["error"])[:500]
        common: dict[str, Any] = {"topic": TOPIC, "error": error, "latency_ns": latency}
        if begun.sends:
            records = self._outcomes(begun.sends, op, kind)
            key, extra = begun.op.get("key"), _extra(begun, op)
            self.add(Event(process, kind, "send", key=key, records=records, extra=extra, **common))
        if begun.polls:
            self._complete_poll(process + CONSUMERS, op, kind, begun, common)

    def _outcomes(self, sends: tuple[Record, ...], op: Operation, kind: Type) -> tuple[Record, ...]:
        if kind is Type.FAIL:
            return tuple(record._replace(offset=FAILED) for record in sends)
        completed = [mop for mop in op.get("value") or () if mop[0] == "send"]
        if kind is Type.INFO and len(completed) != len(sends):
            return sends
        return tuple(self._sent(mop, kind) for mop in completed)

    def _sent(self, mop: Sequence[Any], kind: Type) -> Record:
        """``[:send k v]`` or, completed, ``[:send k [offset v]]``."""
        key, content = self.key(mop[1]), mop[2]
        offset, value = content if isinstance(content, tuple) else (None, content)
        unknown = ACKED_WITHOUT_OFFSET if kind is Type.OK else UNKNOWN
        return Record(key, unknown if offset is None else int(offset), self.value(key, value))

    def _complete_poll(
        self, consumer: int, op: Operation, kind: Type, begun: _Open, common: Mapping[str, Any]
    ) -> None:
        who = self._consumer(consumer)
        rebalanced = {
            key for entry in op.get("rebalance-log") or () for key in self._rebalance(consumer, entry)
        }
        polled = list(self._polled(op["value"] if kind is Type.OK else op.get("value") or ()))
        records = tuple(record for record in polled if record.offset != UNKNOWN)
        placeless = [[record.partition, record.value] for record in polled if record.offset == UNKNOWN]
        self.observed.without_offset.update(value for _, value in placeless)
        given = {record.partition for record in records}
        if who.subscribed and len(self.subscribers) > 1 and given - who.rebalanced:
            # It has them by a rebalance that is not on record: another member may have read on meanwhile.
            who.lose_track(given - who.rebalanced)
            rebalanced |= given - who.rebalanced
            self._given_by_its_group(consumer, given - who.rebalanced)
        self.observed.take(records, succeeded=kind is Type.OK)
        extra = _extra(begun, op, placeless)
        if not records:
            self.add(Event(consumer, kind, "poll", extra=extra, **common))
            if kind is not Type.OK and who.subscribed and who.stands and not self.transactions:
                # It commits after each poll: the poll may have gone on, and the commit failed.
                who.lose_track(list(who.stands))
                self._moved(consumer, who.whereabouts())
            return
        if kind is not Type.OK:
            extra = {**(extra or {}), "aborted": str(kind)}
        first, *others = _pieces(records, rebalanced)
        self.add(Event(consumer, Type.OK, "poll", records=first, extra=extra, **common))
        for piece in others:
            self._given_by_its_group(consumer, rebalanced)
            self.add(Event(consumer, Type.INVOKE, "poll", topic=TOPIC, extra=_extra(begun, begun.op)))
            self.add(Event(consumer, Type.OK, "poll", records=piece, extra=extra, **common))
        if kind is Type.OK:
            who.given((record.partition, record.offset) for record in records)
            return
        who.lose_track(given - who.stands.keys() if self.transactions else given)
        self._moved(consumer, who.whereabouts())

    def _polled(self, value: Sequence[Any]) -> Iterator[Record]:
        for mop in value:
            if mop[0] != "poll" or len(mop) < 2:
                continue
            for name, pairs in (mop[1] or {}).items():
                key = self.key(name)
                for offset, polled in pairs:
                    number = self.value(key, polled)
                    yield Record(key, UNKNOWN if offset is None else int(offset), number)

    # --- where consumers go on

    def _consumer(self, consumer: int) -> Consumer:
        return self.consumers.setdefault(consumer, Consumer())

    def _assign(self, consumer: int, op: Operation, kind: Type) -> None:
        who = self._consumer(consumer)
        expected = [self.key(name) for name in op.get("value") or ()]
        known = None
        if isinstance(op.get("positions"), Mapping):  # of an exported history of ours
            known = {self.key(key): int(at) for key, at in op["positions"].items()}
        extra = who.after(expected, begin=op.get("seek-to-beginning?") is TRUE, known=known)
        self.add(Event(consumer, kind, "assign", topic=TOPIC, extra=extra | ours_in(op)))
        if kind is Type.OK:
            who.assign(extra)
        elif kind is Type.INFO:
            who.maybe_assign(extra)
            self._moved(consumer, who.whereabouts())

    def _subscribe(self, consumer: int, op: Operation, kind: Type) -> None:
        expected = sorted({self.key(name) for name in op.get("value") or ()})
        self.add(
            Event(consumer, kind, "subscribe", topic=TOPIC, extra={"partitions": expected} | ours_in(op))
        )
        if kind is not Type.FAIL:
            self.subscribers.add(consumer)
        if kind in (Type.OK, Type.INFO):
            who = self._consumer(consumer)
            dropped = who.subscribe(expected)
            if dropped:
                self._moved(consumer, who.whereabouts(dropped))

    def _rebalance(self, consumer: int, entry: Mapping[str, Any]) -> list[int]:
        """The partitions that may have moved at any point of the operation. (In an exported history of ours
        it was before.)"""
        who = self._consumer(consumer)
        keys = entry.get("keys") or entry.get("partitions") or ()
        taken = sorted({self.key(key) for key in keys if not isinstance(key, Mapping)})
        named = entry.get("positions")
        positions = (
            {self.key(key): int(at) for key, at in named.items()} if isinstance(named, Mapping) else {}
        )
        who.lose_track(taken)
        who.stands |= positions
        who.rebalanced.update(taken)
        revoked = {"revoked": [self.key(key) for key in entry["revoked"]]} if "revoked" in entry else {}
        self._given_by_its_group(consumer, taken, positions, ours_in(entry) | revoked)
        return [] if isinstance(named, Mapping) else taken

    def _given_by_its_group(
        self,
        consumer: int,
        partitions: Iterable[int],
        positions: Mapping[int, int] | None = None,
        ours: Mapping[str, Any] | None = None,
    ) -> None:
        extra: dict[str, Any] = {"partitions": sorted(partitions), **(ours or {})}
        if positions:
            extra["positions"] = {str(partition): start for partition, start in positions.items()}
        self.add(Event(consumer, Type.OK, "rebalance", topic=TOPIC, extra=extra))

    def _committed(self, process: int, f: str, op: Operation, kind: Type) -> None:
        """Adds the commits of an exported history of ours: Jepsen records none."""
        said = ours_in(op)
        if op["value"] or f == "commit":
            said["offsets"] = {str(self.key(key)): int(at) for key, at in op["value"].items()}
        if isinstance(op.get("txn"), int):
            said["txn"] = op["txn"]
        error = None if op.get("error") is None else str(op["error"])[:500]
        self.add(Event(process, kind, f, topic=TOPIC, error=error, extra=said))

    def _moved(self, consumer: int, extra: Mapping[str, Any]) -> None:
        """Moves a consumer to where an assignment puts it."""
        for kind in (Type.INVOKE, Type.OK):
            self.add(Event(consumer, kind, "assign", topic=TOPIC, extra=extra))

    # --- the end

    def finish(self) -> list[Event]:
        """All events, ended by what stands for a final read."""
        seen = self.observed.values()
        self.events = self.observed.settled(self.events, seen)
        self.observed.place(self.events)
        self.unseen = self.observed.unseen(self.events, seen)
        self.add(Event(CONTROL, Type.INFO, "phase", extra={"phase": "drain"}))
        first = 1 + max(event.process for event in self.events)
        for key in sorted(set(self.keys.values())):
            for event in self.observed.final_read(first + key, key, TOPIC, self.unseen[key]):
                self.add(event)
        return self.events

    def notes(self) -> Iterable[str]:
        highest = "loss is judged up to the highest offset that was polled"
        yield f"the final read is what all polls together gave; {highest}"
        if self.unseen:
            places = ", ".join(f"{TOPIC}-{key}: {count}" for key, count in sorted(self.unseen.items()))
            unseen = "acknowledged past what was polled and given to nobody"
            yield f"{unseen}: whether they are lost is not judged ({places})"
        renamed = [f"{name} is {TOPIC}-{key}" for name, key in self.keys.items() if name != key]
        if renamed:
            yield "keys: " + ", ".join(renamed[:50])
        if self.numbers:
            yield f"{len(self.numbers)} values that are no integers were numbered from {NUMBERED_FROM}"
        others = {f: count for f, count in self.ignored.items() if f != "crash" and count}
        if others:
            yield "operations left out: " + ", ".join(f"{f} ({count})" for f, count in sorted(others.items()))


def _refuse_no_mops(value: Any) -> None:
    if not (isinstance(value, tuple) and all(isinstance(mop, tuple) and mop for mop in value)):
        raise ValueError(f"its value is no list of [:send k v] and [:poll ..] but {spelt(value):.60}")


def _extra(begun: _Open, op: Operation, placeless: Sequence[Any] = ()) -> dict[str, Any] | None:
    """``op``: the event's own; ``placeless``: [partition, value] of records that were given without an
    offset."""
    extra: dict[str, Any] = {} if begun.txn is None else {"txn": begun.txn}
    extra |= ours_in(op)
    return (extra | {"placeless": list(placeless)} if placeless else extra) or None


def _pieces(records: Iterable[Record], rebalanced: set[int]) -> Iterator[tuple[Record, ...]]:
    """Apart where a partition that was given by a rebalance meanwhile goes on elsewhere; at least one."""
    piece: list[Record] = []
    following: dict[int, int] = {}
    for record in records:
        there = following.get(record.partition, record.offset)
        if record.partition in rebalanced and there != record.offset:
            yield tuple(piece)
            piece, following = [], {}
        piece.append(record)
        following[record.partition] = record.offset + 1
    yield tuple(piece)
