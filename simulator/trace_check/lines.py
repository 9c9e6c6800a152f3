"""Lines of traces, and the steps that they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import orjson

from wrackline.broker.model.types import NodeId, TopicPartition

START, STOP = "start", "stop"
COMMIT = "ctl_commit"
MIGRATION = "migration"
ROLE = "raft_role"
"""Kinds of lines that more than one module speaks of."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a trace."""

    kind: str
    fields: Mapping[str, Any]
    number: int
    """In its file, from 1."""

    @property
    def tp(self) -> TopicPartition:
        """Raises KeyError or ValueError where the line is of no partition."""
        return partition_of(self.fields["tp"])


Batch = tuple[str, int, int, int]
"""Partition, epoch, base offset, CRC: without epochs the CRC alone tells leaders' batches apart."""
Proposal = tuple[str, int, tuple[NodeId, ...]]
"""Partition, the partition epoch that it is to follow, the ISR."""


def batches_of(line: Line) -> set[Batch]:
    tp = line.fields["tp"]
    return {(tp, epoch, base, crc) for base, _, epoch, crc in line.fields["batches"]}


def proposal_of(line: Line) -> Proposal:
    fields = line.fields
    return fields["tp"], fields["partition_epoch"], tuple(sorted(fields["pending"]))


def partition_of(name: str) -> TopicPartition:
    """Raises ValueError for what is no name of a partition."""
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


@dataclass(frozen=True)
class Step:
    """The actions of a node at one event, as far as its trace tells."""

    at_ns: int
    """When the node took the event up, on the clock that all nodes are told by."""
    node: NodeId
    incarnation: str
    lines: tuple[Line, ...]
    file: str
    """The name of the trace it is from."""
    last: bool = False
    """The trace has nothing more of this incarnation."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.lines[0].number}"

    @cached_property
    def kinds(self) -> frozenset[str]:
        return frozenset(line.kind for line in self.lines)


@dataclass
class Trace:
    """The trace of one process, or of the parts of a combined one."""

    file: str
    """What a reader is told to look into."""
    text: Iterable[bytes]
    """Line by line."""
    ahead_ns: int = 0
    """How far its host's clock is ahead of the clock that times are told by."""
    broken: list[int] = field(default_factory=list)
    """Numbers of the lines that are no lines of a trace: cut short by a full disk, or a power cut."""
    gap_ns: int | None = None
    """When a node has first done something that is not here, while it went on with its life; what the trace
    says from there on cannot be relied on. The end of a life may be missing: the next one says what it
    found."""

    def steps(self) -> dict[NodeId, list[Step]]:
        """Returns the steps by node (a combined process is two), each in its own order."""
        lines: dict[NodeId, list[tuple[tuple[str, int], int, Line]]] = {}
        for number, text in enumerate(self.text, 1):
            try:
                fields = orjson.loads(text)
                key = str(fields["incarnation"]), int(fields["step"])
                line = Line(str(fields["kind"]), fields, number)
                lines.setdefault(int(fields["node"]), []).append((key, int(fields["time_ns"]), line))
            except (ValueError, KeyError, TypeError):
                self.broken.append(number)
        return {node: list(self._steps(node, own)) for node, own in lines.items()}

    def _steps(self, node: NodeId, own: list[tuple[tuple[str, int], int, Line]]) -> Iterator[Step]:
        grouped = [(key, list(members)) for key, members in groupby(own, key=lambda one: one[0])]
        expected: tuple[str, int] | None = None
        for at, ((incarnation, _), members) in enumerate(grouped):
            for (life, _), time_ns, line in members:
                number = int(line.fields["seq"])
                if expected is not None and expected[0] == life and number != expected[1]:
                    self._gap(time_ns - self.ahead_ns)
                expected = life, number + 1
            yield Step(
                members[0][1] - self.ahead_ns,
                node,
                incarnation,
                tuple(line for _, _, line in members),
                self.file,
                last=at + 1 == len(grouped) or grouped[at + 1][0][0] != incarnation,
            )

    def _gap(self, at_ns: int) -> None:
        self.gap_ns = at_ns if self.gap_ns is None else min(self.gap_ns, at_ns)


def lines_of(streams: Mapping[NodeId, Sequence[Step]]) -> list[Line]:
    return [line for steps in streams.values() for step in steps for line in step.lines]


def commits_of(streams: Mapping[NodeId, Sequence[Step]]) -> dict[int, Mapping[str, Any]]:
    """Returns by offset the record that any controller tells to be committed there."""
    return {line.fields["offset"]: line.fields["record"] for line in lines_of(streams) if line.kind == COMMIT}


def appended_by_leaders(streams: Mapping[NodeId, Sequence[Step]]) -> set[Batch]:
    """Returns what leaders appended, in any of the traces."""
    return {
        batch
        for line in lines_of(streams)
        if line.kind == "append" and line.fields["leader"]
        for batch in batches_of(line)
    }
