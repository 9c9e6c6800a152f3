"""One order of what all nodes did: by time, and never against cause and effect.

Clocks of different hosts differ by some milliseconds. A step that rests on another node's, as a follower's
append does on its leader's, therefore waits for it here, whatever the clocks say. Any order that respects
this is a course of events that the nodes could not tell from the real one, and an invariant must hold in
each of its states.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from wrackline.broker.model.types import NodeId
from wrackline.simulator.traced.lines import COMMIT, START, Line, Step
from wrackline.simulator.traced.transactions import Transactions

Streams = dict[NodeId, list[Step]]
Proposal = tuple[str, int, tuple[NodeId, ...]]
"""Partition, the partition epoch that it is to follow, the ISR."""
Batch = tuple[str, int, int, int]
"""Partition, epoch, base offset, CRC: without epochs the CRC alone tells leaders' batches apart."""


class Order:
    """``unordered`` counts the steps whose cause is in no trace, or in one that waits for them."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._offsets = sorted({line.fields["offset"] for line in _lines(streams) if line.kind == COMMIT})
        self._batches = {
            batch
            for line in _lines(streams)
            if line.kind == "append" and line.fields["leader"]
            for batch in _batches(line)
        }
        """What leaders appended, in any of the traces."""
        proposals = {
            _proposal(line)
            for line in _lines(streams)
            if line.kind == "isr" and line.fields["pending"] is not None
        }
        self._wanted = {
            offset: proposal for offset, proposal in _changes(streams).items() if proposal in proposals
        }
        """Offset of the metadata log -> the proposal that this change takes; the controller's own are not
        here."""
        self._committed = -1
        self._appended: set[Batch] = set()
        self._proposed: set[Proposal] = set()
        self._reached: dict[tuple[NodeId, str], int] = defaultdict(int)
        """(node, partition) -> the furthest end its log ever had."""
        self._zookeeper = Transactions(streams)
        self.unordered = 0

    def __iter__(self) -> Iterator[Step]:
        at = dict.fromkeys(self._streams, 0)
        while True:
            heads = [
                (steps[at[node]].at_ns, node)
                for node, steps in self._streams.items()
                if at[node] < len(steps)
            ]
            if not heads:
                return
            heads.sort()
            ready = next((node for _, node in heads if self._ready(self._streams[node][at[node]])), None)
            if ready is None:
                self.unordered += 1
                ready = heads[0][1]
            step = self._streams[ready][at[ready]]
            at[ready] += 1
            self._took(step)
            yield step

    def _ready(self, step: Step) -> bool:
        return all(self._caused(step.node, line) for line in step.lines)

    def _caused(self, node: NodeId, line: Line) -> bool:
        """Whether all that the line rests on has been taken."""
        fields = line.fields
        match line.kind:
            case "append" if not fields["leader"]:
                return _batches(line) & self._batches <= self._appended
            case "follower":
                end: int = fields["leo"]
                return self._reached[fields["id"], fields["tp"]] >= end
            case "md_apply":
                return self._is_committed(fields["offset"])
            case "register" if fields["broker"] == node:
                return self._is_committed(fields["epoch"])
            case _ if line.kind == COMMIT:
                wanted = self._wanted.get(fields["offset"])
                return wanted is None or wanted in self._proposed
            case _:
                return self._zookeeper.caused(line)

    def _is_committed(self, offset: int) -> bool:
        """All of the metadata log up to there that is in any trace."""
        at = bisect_right(self._offsets, offset)
        return at == 0 or self._committed >= self._offsets[at - 1]

    def _took(self, step: Step) -> None:
        for line in step.lines:
            fields = line.fields
            match line.kind:
                case "append":
                    key = step.node, fields["tp"]
                    self._reached[key] = max(self._reached[key], fields["last"] + 1)
                    if fields["leader"]:
                        self._appended |= _batches(line)
                case "isr" if fields["pending"] is not None:
                    self._proposed.add(_proposal(line))
                case "truncate":
                    key = step.node, fields["tp"]
                    self._reached[key] = max(self._reached[key], fields["to"])
                case _ if line.kind == START:
                    for tp, log in fields["logs"].items():
                        self._reached[step.node, tp] = max(self._reached[step.node, tp], log["leo"])
                case _ if line.kind == COMMIT:
                    self._committed = max(self._committed, fields["offset"])
                case _:
                    self._zookeeper.took(line)


def _batches(line: Line) -> set[Batch]:
    tp = line.fields["tp"]
    return {(tp, epoch, base, crc) for base, _, epoch, crc in line.fields["batches"]}


def _proposal(line: Line) -> Proposal:
    fields = line.fields
    return fields["tp"], fields["partition_epoch"], tuple(fields["pending"])


def _changes(streams: Streams) -> dict[int, Proposal]:
    """Offset of the metadata log -> what a leader would have proposed for this change of an ISR to come."""
    commits = {
        line.fields["offset"]: line.fields["record"] for line in _lines(streams) if line.kind == COMMIT
    }
    names: dict[str, str] = {}
    epochs: dict[str, int] = {}
    found: dict[int, Proposal] = {}
    for offset, record in sorted(commits.items()):
        match record["type"]:
            case "TopicRecord":
                names[record["topic_id"]] = record["name"]
            case "PartitionRecord":
                epochs[_tp(names, record)] = record["partition_epoch"]
            case "PartitionChangeRecord":
                tp = _tp(names, record)
                before = epochs.get(tp, 0)
                epochs[tp] = before + 1
                if record["isr"] is not None:
                    found[offset] = tp, before, tuple(sorted(record["isr"]))
    return found


def _tp(names: Mapping[str, str], record: Mapping[str, Any]) -> str:
    return f"{names.get(record['topic_id'], '')}-{record['partition_id']}"


def _lines(streams: Streams) -> Iterator[Line]:
    return (line for steps in streams.values() for step in steps for line in step.lines)
