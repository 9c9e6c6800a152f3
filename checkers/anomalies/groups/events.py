"""The events of groups, one by one: they are few, compared with records (wrackline.history.model)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.anomalies.about import AboutLog, AboutRun
from wrackline.checkers.inputs.arrays import NEVER

COMMIT, COMMITTED, REBALANCE, SUBSCRIBE = "commit", "committed", "rebalance", "subscribe"
ASSIGN, CRASH = "assign", "crash"
OF_GROUPS = frozenset({COMMIT, COMMITTED, REBALANCE, SUBSCRIBE, ASSIGN, CRASH})
_COLUMNS = ("index", "time_ns", "process", "type", "f", "topic", "extra")


@dataclass(slots=True, eq=False)
class Said:
    """An event, with what ``extra`` says of groups."""

    index: int
    ns: int
    process: int
    type: str
    f: str
    topic: str
    is_empty: bool
    """``extra`` says nothing."""
    group: str | None
    member: str | None
    generation: int
    """Below 0: nobody told."""
    protocol: str | None
    partitions: tuple[int, ...]
    """What a consumer has from then on."""
    offsets: Mapping[int, int]
    """Partition -> what is committed, or where a consumer begins; below 0 for nothing, or anywhere."""
    in_transaction: bool
    asked: str
    """Which end of its transaction was asked for; empty: it is not on record."""
    is_async: bool

    @property
    def of(self) -> str:
        return self.group or ""

    @property
    def who(self) -> str:
        """The member's name, where the client knows it."""
        return f"process {self.process}" if self.member is None else self.member

    def places(self, about: AboutRun) -> Iterator[tuple[AboutLog, int]]:
        """The partitions that ``offsets`` names."""
        for partition, offset in self.offsets.items():
            if log := about.logs.get((self.topic, partition)):
                yield log, offset


def said_in(row: Mapping[str, Any]) -> Said:
    said = orjson.loads(row["extra"]) if row["extra"] else {}
    said = said if isinstance(said, dict) else {}
    offsets = said.get("offsets" if row["f"] in (COMMIT, COMMITTED) else "positions")
    pairs = offsets.items() if isinstance(offsets, dict) else ()
    listed = said.get("partitions") if row["f"] != CRASH else None
    return Said(
        index=row["index"],
        ns=row["time_ns"],
        process=row["process"],
        type=intern(row["type"]),
        f=intern(row["f"]),
        topic=intern(row["topic"] or ""),
        is_empty=not said,
        group=_text(said.get("group")),
        member=_text(said.get("member")),
        generation=_number(said.get("generation")),
        protocol=_text(said.get("protocol")),
        partitions=tuple(one for one in listed or () if isinstance(one, int)),
        offsets={int(key): at for key, at in pairs if key.isdigit() and isinstance(at, int)},
        in_transaction=_number(said.get("txn")) >= 0,
        asked=_text(said.get("asked")) or "",
        is_async=said.get("mode") == "async",
    )


def _text(value: Any) -> str | None:
    return None if value is None else intern(value if isinstance(value, str) else str(value))


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdigit()) else -1


@dataclass(slots=True, eq=False)
class Operation:
    """A ``commit`` or ``committed``, of one partition."""

    log: AboutLog
    offset: int
    """-1 where nothing was committed."""
    said: Said
    """The event that says most of it."""
    since: int
    """Index of the invocation."""
    done: Said | None
    """The completion; None: it never completed."""
    until: int
    """Index until when it may take effect: that of its completion where it succeeded."""
    fence: Said | None = None
    """What ends that."""
    is_dead: bool = False
    """It never took effect: whoever fenced its member was not shown it."""

    @property
    def succeeded(self) -> bool:
        return self.done is not None and self.done.type == "ok"

    @property
    def may_count(self) -> bool:
        """It took effect, or may have. Of a transaction of which nothing but its abort was asked for it may
        not."""
        return (self.done is None or self.done.type != "fail") and self.said.asked != "abort"

    @property
    def keeps_generation(self) -> bool:
        """It took effect under the generation that it names, or not at all: an asynchronous one may be sent
        later than it is asked for, and the offsets of a transaction become visible when it has ended."""
        return self.said.generation >= 0 and not self.said.is_async and not self.said.in_transaction


class GroupEvents:
    """All that a run says of groups."""

    def __init__(self, about: AboutRun) -> None:
        self._about = about
        self._open: dict[tuple[int, str], Said] = {}
        self.members: dict[str, set[int]] = defaultdict(set)
        """Group -> the processes that named it as theirs."""
        self.joined: dict[int, int] = {}
        """Process -> index at which it subscribed first."""
        self.commits: dict[str, list[Operation]] = defaultdict(list)
        """Those of each group; when nothing more comes in the order of their invocations."""
        self.answers: dict[str, list[tuple[int, Said]]] = defaultdict(list)
        """(index of the invocation, answer) of each group that somebody asked for."""
        self.committing: dict[int, set[str]] = defaultdict(set)
        """Log -> groups whose commits have succeeded."""
        self.moves: list[Said] = []
        """Who was given partitions, by itself or by its group, or crashed."""

    def take(self, batch: pa.RecordBatch) -> list[Said]:
        """Returns the moves among these events."""
        known = len(self.moves)
        mine = batch.filter(pc.is_in(batch.column("f"), value_set=pa.array(sorted(OF_GROUPS))))
        for row in mine.select(_COLUMNS).to_pylist():
            self._take(said_in(row))
        return self.moves[known:]

    def _take(self, said: Said) -> None:
        # Who assigns partitions to itself reads for a group only where it says so: its commits may be those
        # of a transaction, and of another process.
        if said.f in (COMMIT, REBALANCE, SUBSCRIBE) or (said.f == ASSIGN and said.group is not None):
            self.members[said.of].add(said.process)
        if said.f in (COMMIT, COMMITTED):
            begun = self._open.pop((said.process, said.f), None)
            if said.type == "invoke":
                self._open[said.process, said.f] = said
            if begun is not None:
                self._end(begun, said if said.type != "invoke" else None)
        elif said.f == SUBSCRIBE:
            self.joined.setdefault(said.process, said.index)
        elif said.type == "ok":
            self.moves.append(said)

    def _end(self, begun: Said, done: Said | None) -> None:
        said = begun if done is None or done.is_empty else done
        succeeded = done is not None and done.type == "ok"
        if begun.f == COMMITTED:
            self.answers[said.of] += [(begun.index, said)] if succeeded else []
            return
        until = done.index if done is not None and succeeded else NEVER
        for log, offset in said.places(self._about):
            if offset >= 0:
                self.commits[said.of].append(Operation(log, offset, said, begun.index, done, until))
                if succeeded:
                    self.committing[log.number].add(said.of)

    def finish(self) -> None:
        """Nothing more comes: what is open never completed."""
        for begun in self._open.values():
            self._end(begun, None)
        for some in self.commits.values():
            some.sort(key=lambda one: one.since)
        for answers in self.answers.values():
            answers.sort(key=lambda one: one[0])
