"""The explanation of a finding, as data: the content of ``explanations.json``. The judge writes it, the
report draws it and ``wrackline explain`` prints it. Nothing here reasons.

Everything is bounded: ``PER_PARTITION`` findings of a group, ``GROUPS`` groups of them, ``EXPLAINED``
findings with edges or facts and what the logs hold, ``DETAILED`` with windows of time. Where there are more,
every anomaly has its turn. All findings stay in ``findings.parquet``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import orjson
from pydantic import TypeAdapter

from wrackline.history.wording import number, partition_label

EXPLANATIONS_FILE: Final = "explanations.json"
VERSION: Final = 2
"""Of the file's form; a file of another version is written again."""
PER_PARTITION: Final = 20
"""Findings shown per incident, anomaly and partition (docs/anomalies.md section 10)."""
GROUPS: Final = 80
EXPLAINED: Final = 200
DETAILED: Final = 60
OPEN: Final = "open"
"""Outcome of an operation whose completion is not in the history."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of ``findings.parquet``."""

    anomaly: str
    topic: str | None
    partition: int | None
    offset: int | None
    value: int | None
    operations: tuple[int, ...]
    """History indexes of the events that it cites."""
    where: str | None
    sentence: str

    @property
    def anchor(self) -> str:
        """Returns the anchor that a link to the finding ends with: the same whenever it is judged again."""
        named_by = (self.topic, self.partition, self.offset, self.value, self.operations)
        return f"f-{self.anomaly}-{hashlib.sha256(repr(named_by).encode()).hexdigest()[:10]}"

    @property
    def place(self) -> tuple[str, int, int] | None:
        """Topic, partition and offset; None where one of them is not known."""
        if self.topic is None or self.partition is None or self.offset is None:
            return None
        return self.topic, self.partition, self.offset


@dataclass(frozen=True, slots=True)
class Operation:
    """An invocation and its completion; one of the two where the history has no more."""

    indexes: tuple[int, ...]
    """History indexes of the rows it was made of."""
    process: int
    who: str
    """The process's label: ``p3``, ``replica n2``, ``nemesis``."""
    f: str
    name: str
    """What the operation is called in a sentence."""
    outcome: str
    """``ok``, ``fail``, ``info`` or ``open``."""
    begin_ns: int
    end_ns: int | None
    what: str
    """The records that it sent or read, or the question that it asked, in a few words."""
    topic: str | None
    partition: int | None
    node: str | None = None
    error: str | None = None
    txn: int | None = None
    """Number of the transaction it is part of."""

    @property
    def of_a_client(self) -> bool:
        """Tells whether the operation is part of the run itself, not of the final read after it."""
        return self.process >= 0 and self.f != "drain"


class EdgeKind(StrEnum):
    """The reason why one operation came before another (docs/report-internals.md)."""

    TIME = "time"
    LOG = "log"
    SEEN = "seen"
    UNSEEN = "unseen"
    TRANSACTION = "with"
    VALUE = "held"
    QUEUE = "queue"

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS: Final = {
    EdgeKind.TIME: "in time",
    EdgeKind.LOG: "in the log",
    EdgeKind.SEEN: "seen",
    EdgeKind.UNSEEN: "not seen",
    EdgeKind.TRANSACTION: "one transaction",
    EdgeKind.VALUE: "one value",
    EdgeKind.QUEUE: "in the queue",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """The evidence at one end of an edge that proves the edge. A field that does not matter is None."""

    time_ns: int | None = None
    """Of its completion, where it came before in time; of its invocation, where it came after."""
    partition: int | None = None
    offset: int | None = None
    value: int | None = None
    end: int | None = None
    """The end offset of the partition that it returned, or up to which it read."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One operation came before another. ``before`` and ``after`` are numbers of operations, from 1, in the
    order of ``Explanation.operations``."""

    before: int
    after: int
    kind: EdgeKind
    sentence: str
    earlier: Shown = Shown()
    """What ``before`` shows."""
    later: Shown = Shown()
    """What ``after`` shows."""

    @property
    def conclusion(self) -> str:
        """Returns what follows from the sentence, as ``2 before 1``."""
        verb = "and" if self.kind in (EdgeKind.TRANSACTION, EdgeKind.VALUE) else "before"
        return f"{self.before} {verb} {self.after}" + (" belong together" if verb == "and" else "")


@dataclass(frozen=True, slots=True)
class Held:
    """One value in a cell."""

    label: str
    value: int
    leader_epoch: int | None
    times: int


@dataclass(frozen=True, slots=True)
class Cell:
    """The content of one log or reader at one offset."""

    held: tuple[Held, ...] = ()
    more: int = 0
    state: str = ""
    """``same``, ``differs``, ``missing`` or empty when there is nothing to compare."""
    note: str = ""
    """The text of a cell without a value: ``missing``, ``past the end``, ..."""


@dataclass(frozen=True, slots=True)
class Column:
    """A log, or a reader of it."""

    name: str
    bounds: str
    """What is known of where that log begins and ends; of a reader, who it is."""


@dataclass(frozen=True, slots=True)
class Line:
    """One offset: a cell for each column."""

    offset: int
    culprit: bool
    cells: tuple[Cell, ...]
    expected: int | None = None
    """The value that ought to be there."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The contents of each log and reader around the finding's offset, and what each poll that proves the
    finding was given there."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]

    @property
    def sentence(self) -> str:
        """Returns what each log and reader has at the offset itself, as ``Offset 41: p3·117 (acked, log of
        n1)``."""
        line = next((line for line in self.lines if line.culprit), None)
        if line is None:
            return ""
        holders: dict[str, list[str]] = {}
        for column, cell in zip(self.columns, line.cells, strict=True):
            content = " and ".join(item.label for item in cell.held) or cell.note
            if content:
                holders.setdefault(content, []).append(column.name)
        listed = "; ".join(f"{content} ({', '.join(names)})" for content, names in holders.items())
        return f"Offset {number(line.offset)}: {listed}" if listed else ""


@dataclass(frozen=True, slots=True)
class FaultNear:
    """A fault in force between one second before a finding's operations and two seconds after them."""

    id: str
    fault: str
    targets: tuple[str, ...]
    role: str
    begin_ns: int | None
    ended_ns: int | None
    proved: bool

    def in_force(self, begin_ns: int, end_ns: int) -> bool:
        """Tells whether the fault was in force at any time between the two."""
        begun = self.begin_ns is not None and self.begin_ns <= end_ns
        return begun and (self.ended_ns is None or self.ended_ns >= begin_ns)


@dataclass(frozen=True, slots=True)
class Window:
    """An interval of time around operations of a finding, and what clients did in it."""

    begin_ns: int
    end_ns: int
    operations: tuple[int, ...] = ()
    """Positions in ``Explanations.operations``, in the order of invocation: those of the processes of the
    finding first chosen, then of those that worked on its partition, then of others."""
    hidden: int = 0
    """How many further processes were active in it."""

    def holds(self, begin_ns: int, end_ns: int | None) -> bool:
        return begin_ns <= self.end_ns and (end_ns is None or end_ns >= self.begin_ns)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One finding with what proves it."""

    finding: Finding
    operations: tuple[Operation, ...] = ()
    """Those that it cites, in the order of the history; and rows that should hold a record and do not."""
    absent: tuple[int, ...] = ()
    """Indexes of rows that the finding cites and the history does not hold."""
    faults: tuple[FaultNear, ...] = ()
    cycle: str | None = None
    """What Elle calls a cycle of this type, as ``G1c-realtime``; None where the finding is none of
    transactions."""
    edges: tuple[Edge, ...] = ()
    """A cycle: each edge's ``after`` is the next one's ``before``, the last one's the first one's. It is
    empty when there is none."""
    facts: tuple[str, ...] = ()
    """A sentence on what each operation shows, where there is no cycle."""
    neighbourhood: Neighbourhood | None = None
    detailed: bool = False
    """One of the ``DETAILED``, which have windows and are drawn."""
    windows: tuple[Window, ...] = ()
    same_as: int | None = None
    """Offset of an earlier finding of the group that rests on the same operations and has the windows of
    both."""

    @property
    def ends(self) -> tuple[Operation, ...]:
        """The first and the last operation of the run itself among those that prove it."""
        own = [op for op in self.operations if op.of_a_client] or list(self.operations)
        return tuple(dict.fromkeys((own[0], own[-1]))) if own else ()

    @property
    def has_nodes(self) -> bool:
        """Tells whether any operation names the node that answered; Kafka's clients seldom know it."""
        return any(op.node for op in self.operations)


@dataclass(frozen=True, slots=True)
class Group:
    """All findings of one anomaly in one partition that are evidence of one incident: how many, where in the
    log, and the first few."""

    anomaly: str
    topic: str | None
    partition: int | None
    count: int
    first_offset: int | None = None
    last_offset: int | None = None
    explanations: tuple[Explanation, ...] = ()
    """Empty where there are more than ``GROUPS`` groups and this one is not shown."""
    incident: str | None = None
    """The id of the incident (``verdict.json``). None: the incident is not one of those that the verdict
    tells, or there is no verdict."""

    @property
    def more(self) -> int:
        return self.count - len(self.explanations)

    @property
    def where(self) -> str:
        return partition_label(self.topic, self.partition)

    @property
    def unbroken(self) -> bool:
        """Tells whether the findings fill a range of offsets without a hole."""
        low, high = self.first_offset, self.last_offset
        return low is not None and high is not None and self.count == high - low + 1 > 1


@dataclass(frozen=True, slots=True)
class Explanations:
    """The whole file."""

    version: int
    groups: tuple[Group, ...] = ()
    """In the order in which the report has them: those of incidents that break the contract first."""
    operations: tuple[Operation, ...] = ()
    """Those of all windows, each once."""
    lacking: tuple[tuple[str, str], ...] = ()
    """(a file, why it could not be read, and what is not here for it)."""

    def in_window(self, window: Window) -> list[Operation]:
        return [self.operations[at] for at in window.operations]

    def __iter__(self) -> Iterator[Explanation]:
        """Every finding that is shown."""
        return (one for group in self.groups for one in group.explanations)


# --- as bytes: what is as if it were not there (None, empty, zero) is left out

_FORM: Final = TypeAdapter(Explanations)
_LIST: Final = TypeAdapter(list[Explanation])


def to_json(explanations: Explanations) -> bytes:
    return _FORM.dump_json(explanations, exclude_defaults=True, warnings="error") + b"\n"


def from_json(content: bytes) -> Explanations:
    """Raises ValueError, in one line, for what is no such file, or one of another version."""
    result = orjson.loads(content)
    version = result.get("version", 0) if isinstance(result, dict) else None
    if version != VERSION:
        raise ValueError(f"its version is {version}, not {VERSION}")
    return _FORM.validate_python(result)


def list_to_json(explanations: Iterable[Explanation]) -> bytes:
    """Some of them, without their windows: the operations of those are in the file alone."""
    result = [replace(one, windows=()) for one in explanations]
    return _LIST.dump_json(result, indent=2, exclude_defaults=True, warnings="error")
