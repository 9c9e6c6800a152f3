"""A history of Jepsen's Kafka or Redpanda queue test as a run directory of ours, so that the same checkers judge it.

=====================  =================================================================================================
Jepsen                 here
=====================  =================================================================================================
key                    a partition of the one topic ``key``
value                  ``key << 32 | value`` (Jepsen's values are unique by key only); values that are no integers below
                       2**32 are numbered in the order in which they first appear
process                its producer keeps the number; its consumer, a client of its own, is ``process + CONSUMERS``
``:send``              ``send``; an offset of ``nil`` is an acknowledgement without offset
``:poll``              ``poll``
``:txn``               a ``send`` and a ``poll`` with the same ``extra.txn``, both open for as long as the transaction was
``:assign``            ``assign``: partitions that were assigned before go on where they were, new ones begin at 0 with
                       ``:seek-to-beginning?``, and else at a place that nobody told
``:subscribe``         ``subscribe``; ``:rebalance-log``: one ``rebalance`` row each, before the poll's completion
``:crash``             ends the process
``:nemesis``           faults, never proved: Jepsen records what was asked for, not that it took effect
=====================  =================================================================================================

Jepsen has no final read apart from its polls, and judges loss among the offsets some consumer was given. So the final
read is what all polls together gave, up to the highest offset; sends that were acknowledged beyond it (Jepsen's *unseen*)
become sends of unknown outcome, and a note says how many. Replicas' logs and end offsets are not in such a history.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.history.files import write_history
from harness.history.model import (
    ACKED_WITHOUT_OFFSET,
    CONTROL,
    CORRUPT,
    FAILED,
    FOREIGN,
    NEMESIS,
    UNKNOWN,
    Event,
    Record,
    RunInfo,
    TopicInfo,
    Type,
)
from harness.jepsen.text import Operation, read

TOPIC = "key"
CONSUMERS = 1 << 24
SOMEWHERE = -1
"""A position that nobody told: the next poll may begin anywhere."""
MAX_KEY = 1 << 20
CHUNK = 10_000
_OPERATIONS = ("send", "poll", "txn")
_PHASES = ("begin", "active", "undo", "ended")
_UNDO = {"start": "kill", "resume": "pause", "heal": "partition"}
"""What ends a fault of Jepsen's nemeses, where it is not stop-X for start-X."""


class ImportFailed(Exception):
    """The history cannot be used. One line: where, what, how to mend it."""


@dataclass(frozen=True)
class Settings:
    """What the history does not tell and a contract rests on."""

    name: str
    acks: str = "all"
    idempotence: bool = True
    replication_factor: int = 3
    min_insync_replicas: int = 2


@dataclass
class _Open:
    """An operation that was invoked and has not completed."""

    op: Operation
    sends: tuple[Record, ...] = ()
    polls: bool = False
    txn: int | None = None


def import_history(
    path: Path, results: Path, settings: Settings, progress: Callable[[int], None] = lambda _done: None
) -> Path:
    """The new run's directory. Raises ImportFailed, TextError, OSError."""
    reader = _Reader(path)
    for at, operation in enumerate(read(path, progress), 1):
        reader.take(operation, at)
    events = reader.finish()
    info = _info(path, settings, reader)
    run_dir = results / info.test_id
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, run_dir, ignore_errors=True)
        try:
            write_history(run_dir, info, events)
        except OSError as wrong:
            wrong.filename = wrong.filename or str(run_dir)
            raise
        undo.pop_all()
    return run_dir


def _info(path: Path, settings: Settings, reader: _Reader) -> RunInfo:
    now = datetime.datetime.now(datetime.UTC)
    return RunInfo(
        test_id=f"{now:%Y%m%dT%H%M%SZ}-{settings.name}-{secrets.token_hex(2)}",
        name=settings.name,
        seed=0,
        started_at=now.isoformat(timespec="seconds"),
        system="imported",
        workload="log",
        acks=settings.acks,
        idempotence=settings.idempotence,
        topics=(
            TopicInfo(
                TOPIC,
                max(reader.keys.values(), default=-1) + 1,
                settings.replication_factor,
                settings.min_insync_replicas,
                contiguous=False,
            ),
        ),
        notes=(f"imported from {path.name}, a history of Jepsen", *reader.notes()),
    )


@dataclass
class _Reader:
    """Turns operations into events, in their order."""

    path: Path
    events: list[Event] = field(default_factory=list)
    keys: dict[Any, int] = field(default_factory=dict)
    open: dict[int, _Open] = field(default_factory=dict)
    assigned: dict[int, set[int]] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    """Kind -> ids of those that go on."""
    seen: dict[int, dict[int, int]] = field(default_factory=dict)
    """Partition -> offset -> the value that was read there first."""
    numbers: dict[tuple[int, Any], int] = field(default_factory=dict)
    unseen: Counter[int] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    time_ns: int = 0
    transactions: int = 0
    nemesis_rows: int = 0
    began: bool = False

    def take(self, op: Operation, at: int) -> None:
        try:
            self._take(op)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as wrong:
            raise ImportFailed(
                f"{self.path}, operation {at}: no operation of Jepsen's Kafka or queue workload "
                f"({type(wrong).__name__}: {wrong}): {str(op)[:100]}"
            ) from wrong

    def _take(self, op: Operation) -> None:
        self.time_ns = max(self.time_ns, int(op.get("time") or 0))
        if not self.began:
            self.began = True
            self.add(Event(CONTROL, Type.INFO, "phase", extra={"phase": "main"}))
        process, f, kind = op["process"], str(op["f"]), Type(op["type"])
        if process == "nemesis":
            self._take_fault(f, op)
        elif not isinstance(process, int):
            raise ValueError(f"process {process!r}")
        elif f in _OPERATIONS:
            self._invoke(process, op) if kind is Type.INVOKE else self._complete(process, op, kind)
        elif f == "assign":
            self._assign(process, op, kind)
        elif f == "subscribe":
            self._subscribe(process, op, kind)
        else:
            # :crash says that a process ends; what it does next is under another number.
            self.ignored[f] += kind is not Type.INVOKE

    def add(self, event: Event) -> None:
        self.events.append(dataclasses.replace(event, time_ns=self.time_ns))

    def key(self, said: Any) -> int:
        """The partition that stands for a key. JSON turns integer keys of maps into strings."""
        if isinstance(said, str) and said.lstrip("-").isdigit():
            said = int(said)
        if said not in self.keys:
            whole = isinstance(said, int) and 0 <= said < MAX_KEY and said not in self.keys.values()
            self.keys[said] = said if whole else max(self.keys.values(), default=-1) + 1
        return self.keys[said]

    def value(self, key: int, said: Any) -> int:
        if said in (CORRUPT, FOREIGN) and not isinstance(said, float):
            return int(said)  # of an exported history of ours; Jepsen's values are never negative
        if isinstance(said, int) and not isinstance(said, bool) and 0 <= said < 1 << 32:
            return key << 32 | said
        name = (key, repr(said))
        return self.numbers.setdefault(name, (1 << 52) + len(self.numbers))

    def _invoke(self, process: int, op: Operation) -> None:
        if process in self.open:
            raise ValueError(f"process {process} invokes a second operation")
        sends = tuple(self._sent(mop, Type.INVOKE) for mop in op["value"] if mop[0] == "send")
        polls = any(mop[0] == "poll" for mop in op["value"])
        begun = _Open(op, sends, polls)
        if sends and polls:
            begun.txn = self.transactions
            self.transactions += 1
        self.open[process] = begun
        extra = _txn(begun)
        if sends:
            self.add(Event(process, Type.INVOKE, "send", topic=TOPIC, records=sends, extra=extra))
        if polls:
            self.add(Event(process + CONSUMERS, Type.INVOKE, "poll", topic=TOPIC, extra=extra))

    def _complete(self, process: int, op: Operation, kind: Type) -> None:
        begun = self.open.pop(process, None)
        if begun is None:
            raise ValueError(f"process {process} completes what it never invoked")
        latency = self.time_ns - int(begun.op.get("time") or 0)
        error = None if op.get("error") is None else str(op["error"])[:500]
        common: dict[str, Any] = {"topic": TOPIC, "error": error, "latency_ns": latency}
        if begun.sends:
            records = begun.sends
            if kind is Type.OK:
                records = tuple(self._sent(mop, kind) for mop in op["value"] if mop[0] == "send")
            elif kind is Type.FAIL:
                records = tuple(record._replace(offset=FAILED) for record in records)
            self.add(Event(process, kind, "send", records=records, extra=_txn(begun), **common))
        if begun.polls:
            self._complete_poll(process + CONSUMERS, op, kind, begun, common)

    def _sent(self, mop: Sequence[Any], kind: Type) -> Record:
        """``[:send k v]`` or, completed, ``[:send k [offset v]]``."""
        key, said = self.key(mop[1]), mop[2]
        if not isinstance(said, list):
            return Record(key, ACKED_WITHOUT_OFFSET if kind is Type.OK else UNKNOWN, self.value(key, said))
        offset, value = said
        return Record(key, ACKED_WITHOUT_OFFSET if offset is None else int(offset), self.value(key, value))

    def _complete_poll(
        self, consumer: int, op: Operation, kind: Type, begun: _Open, common: Mapping[str, Any]
    ) -> None:
        for rebalanced in op.get("rebalance-log") or ():
            self._rebalance(consumer, rebalanced)
        records: tuple[Record, ...] = ()
        if kind is Type.OK:
            records = tuple(self._polled(op["value"]))
        self.add(Event(consumer, kind, "poll", records=records, extra=_txn(begun), **common))

    def _polled(self, value: Sequence[Any]) -> Iterator[Record]:
        for mop in value:
            if mop[0] != "poll" or len(mop) < 2:
                continue
            for said, pairs in (mop[1] or {}).items():
                key = self.key(said)
                seen = self.seen.setdefault(key, {})
                for offset, value_said in pairs:
                    if offset is None:
                        continue
                    number = self.value(key, value_said)
                    if seen.get(int(offset), CORRUPT) < 0:
                        seen[int(offset)] = number
                    yield Record(key, int(offset), number)

    def _assign(self, process: int, op: Operation, kind: Type) -> None:
        wanted = {self.key(said) for said in op.get("value") or ()}
        kept = self.assigned.get(process, set())
        if kind is Type.OK:
            self.assigned[process] = wanted
        begin = op.get("seek-to-beginning?") is True
        positions = {
            str(key): 0 if begin else SOMEWHERE for key in sorted(wanted) if begin or key not in kept
        }
        if isinstance(op.get("positions"), Mapping):  # of an exported history of ours
            positions = {str(self.key(key)): int(at) for key, at in op["positions"].items()}
        self.add(Event(process + CONSUMERS, kind, "assign", topic=TOPIC, extra={"positions": positions}))

    def _subscribe(self, process: int, op: Operation, kind: Type) -> None:
        wanted = sorted({self.key(said) for said in op.get("value") or ()})
        if kind is Type.OK:
            self.assigned[process] = set()
        self.add(Event(process + CONSUMERS, kind, "subscribe", topic=TOPIC, extra={"partitions": wanted}))

    def _rebalance(self, consumer: int, said: Mapping[str, Any]) -> None:
        taken = said.get("keys") or said.get("partitions") or ()
        extra: dict[str, Any] = {
            "partitions": sorted({self.key(key) for key in taken if not isinstance(key, Mapping)})
        }
        if isinstance(said.get("positions"), Mapping):
            extra["positions"] = {str(self.key(key)): int(at) for key, at in said["positions"].items()}
        self.add(Event(consumer, Type.OK, "rebalance", topic=TOPIC, extra=extra))

    def _take_fault(self, f: str, op: Operation) -> None:
        """Jepsen records each act of the nemesis twice, as it is asked for and when it was done. A history that was
        exported here says itself what each row is."""
        own = op.get("value")
        if isinstance(own, Mapping) and isinstance(own.get("id"), str) and own.get("phase") in _PHASES:
            self.add(Event(NEMESIS, Type.INFO, f, extra={"targets": [], "proved": None, **own}))
            self.nemesis_rows += 1
            return
        undone = f.removeprefix("stop-") if f.startswith("stop-") else _UNDO.get(f)
        if undone is not None:
            for fault in self.faults.pop(undone, []):
                self._fault(undone, fault, "undo", op)
                self._fault(undone, fault, "ended", op)
            return
        kind = f.removeprefix("start-")
        going_on = self.faults.setdefault(kind, [])
        if going_on and going_on[-1].endswith("?"):
            going_on[-1] = going_on[-1].rstrip("?")
            self._fault(kind, going_on[-1], "active", op)
            return
        fault = f"f{self.nemesis_rows + 1}"
        going_on.append(fault + "?")
        self._fault(kind, fault, "begin", op)

    def _fault(self, kind: str, fault: str, phase: str, op: Operation) -> None:
        extra: dict[str, Any] = {
            "id": fault.rstrip("?"),
            "phase": phase,
            "targets": [],
            "role": str(op.get("value"))[:200],
            "proved": None,
            "proof": "imported: Jepsen records what its nemesis did, not whether it took effect",
        }
        self.add(Event(NEMESIS, Type.INFO, kind, extra=extra))
        self.nemesis_rows += 1

    def finish(self) -> list[Event]:
        """All events, ended by the final read."""
        if not any(event.process >= 0 for event in self.events):
            raise ImportFailed(
                f"{self.path}: no :send, :poll or :txn in it; only histories of Jepsen's Kafka and queue workloads can be "
                "judged here"
            )
        highest = {key: max(offsets) for key, offsets in self.seen.items() if offsets}
        self.events = [self._within(event, highest) for event in self.events]
        self.add(Event(CONTROL, Type.INFO, "phase", extra={"phase": "drain"}))
        first = 1 + max(event.process for event in self.events)
        for key in sorted(highest):
            self._final_read(first + key, key, highest[key])
        return self.events

    def _within(self, event: Event, highest: Mapping[int, int]) -> Event:
        """The event, its acknowledgements beyond what was read made unknown."""
        if event.f != "send" or event.type is not Type.OK:
            return event
        beyond = [record for record in event.records if record.offset > highest.get(record.partition, -1)]
        if not beyond:
            return event
        self.unseen.update(record.partition for record in beyond)
        records = tuple(
            record._replace(offset=UNKNOWN) if record in beyond else record for record in event.records
        )
        unseen = [[record.partition, record.offset, record.value] for record in beyond]
        return dataclasses.replace(event, records=records, extra={**(event.extra or {}), "unseen": unseen})

    def _final_read(self, process: int, key: int, last: int) -> None:
        offsets = self.seen[key]
        records = [Record(key, offset, offsets[offset]) for offset in sorted(offsets)]
        common: dict[str, Any] = {"topic": TOPIC, "partition": key, "offset": 0, "high_watermark": last + 1}
        for start in range(0, len(records), CHUNK):
            chunk = tuple(records[start : start + CHUNK])
            done = start + CHUNK >= len(records)
            extra = {"positions": {str(key): chunk[-1].offset + 1}, "complete": done, "derived": "every poll"}
            self.add(Event(process, Type.INVOKE, "drain", **common))
            self.add(Event(process, Type.OK, "drain", records=chunk, extra=extra, **common))

    def notes(self) -> Iterable[str]:
        yield "the final read is what all polls together gave; loss is judged up to the highest offset that was polled"
        if self.unseen:
            places = ", ".join(f"{TOPIC}-{key}: {count}" for key, count in sorted(self.unseen.items()))
            yield f"acknowledged beyond the highest offset that was polled, and not judged ({places})"
        renamed = [f"{said} is {TOPIC}-{key}" for said, key in self.keys.items() if said != key]
        if renamed:
            yield "keys: " + ", ".join(renamed[:50])
        if self.numbers:
            yield f"{len(self.numbers)} values that are no integers were numbered from {1 << 52}"
        others = {f: count for f, count in self.ignored.items() if f != "crash" and count}
        if others:
            yield "operations left out: " + ", ".join(f"{f} ({count})" for f, count in sorted(others.items()))


def _txn(begun: _Open) -> dict[str, Any] | None:
    return None if begun.txn is None else {"txn": begun.txn}
